"""Description of a file of cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin.cells.genes import CellForm, columns_in
from sparsemargin.cells.labels import labels_of
from sparsemargin.cells.source import sample_of
from sparsemargin.files.sources import Source
from sparsemargin.models.inputs.labels import label_text


def describe_cells(source: Source, label: str | None = None) -> dict[str, Any]:
    """Return the figures of a file of cells, from its tables and the values of some cells. If a
    `label` is given, count the cells of each type."""
    form = CellForm()
    with form.open(source) as [cells]:
        try:
            columns = columns_in(cells, cells.genes, form)
            sample = sample_of(cells, columns, np.dtype(np.float64))
            values = str(sample.scale)
        except ValueError as error:
            values = str(error)
        figures = {
            "cells": cells.n_cells, "genes": cells.n_genes, "values": values,
            "entries": cells.entries_before(cells.n_cells), "layers": list(cells.layers),
            "obs": cells.obs.columns,
        }  # fmt: skip
        if label is None:
            return figures
        [codes], classes = labels_of([cells], label)
        counts = np.bincount(codes[codes >= 0], minlength=len(classes))
        order = np.argsort(-counts, kind="stable").tolist()
        texts = list(map(label_text, classes.tolist()))
        types = [{"label": texts[i], "rows": int(counts[i])} for i in order]
        return {**figures, "labels": types}
