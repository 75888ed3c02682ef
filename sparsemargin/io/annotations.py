"""Types of cells told by a model, in their table or in files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._checks import check_real
from sparsemargin.genomes.cells import CellNormalizer
from sparsemargin.io.cell_files import Cells
from sparsemargin.io.cells import CellForm, Match, corpus_for
from sparsemargin.io.distinct import Named, check_distinct
from sparsemargin.io.files import replacing
from sparsemargin.io.predict import Predictor
from sparsemargin.models.labels import label_text
from sparsemargin.models.outputs import probabilities_of
from sparsemargin.models.pipelines import parts_of

#: What cells are told to be where no type is likely enough.
UNASSIGNED = "unassigned"


class CellTypes(NamedTuple):
    """Names of cells, their types, and how likely these are: arrays of one length."""

    cells: np.ndarray
    predicted: np.ndarray
    confidence: np.ndarray


def annotate(
    model: Any,
    adata: Any,
    *,
    threshold: float = 0.0,
    output: Any = None,
    layer: str | None = None,
    var: str | None = None,
    match: Match = "exact",
) -> CellTypes | None:
    """Tell the types of cells, whose genes are found by their names.

    Parameters
    ----------
    model : pipeline of `fit_anndata`
    adata : AnnData, path, or list of paths
        As for `fit_anndata`. An AnnData gets the columns `predicted` and `confidence` in `obs`.
    threshold : float, default=0
        Cells of which no type is as likely are "unassigned".
    output : path or open binary file, default=None
        A table to write, parted by tabs, of cells, types and confidences: for files that no memory
        holds.
    layer, var, match
        As for `fit_anndata`.

    Returns
    -------
    CellTypes or None
        ``pandas.DataFrame(types._asdict())`` makes it a table. None where there is an `output`.

    Raises
    ------
    ValueError
        If the model knows no genes, or the cells have none of them; whatever is wrong with a file.

    Warns
    -----
    UserWarning
        If genes of the model are missing, which count as 0.
    """
    before, learner = parts_of(model)
    if before is None or not isinstance(before[-1], CellNormalizer):
        raise ValueError("model must be a pipeline of a CellNormalizer and a classifier.")
    form = CellForm(layer, var, match)
    with form.open(adata) as cells:
        parts = told_types(learner, before[-1], cells, form, threshold)
        if output is not None:
            sources = [each.source for each in cells if each.source is not None]
            read = [Named("the file", name) for each in sources for name in each.files]
            check_distinct([Named("output", output)], read)
            write_types(parts, output)
            return None
        columns = list(zip(*parts, strict=True))
    types = CellTypes(*(np.concatenate(column) for column in columns))
    if hasattr(adata, "obs_names"):
        adata.obs["predicted"], adata.obs["confidence"] = types.predicted, types.confidence
    return types


def told_types(
    learner: Any, how: CellNormalizer, cells: list[Cells], form: CellForm, threshold: float
) -> Iterator[CellTypes]:
    """The types of cells, block by block."""
    check_real("threshold", threshold, 0, 1)
    learner._tells_probabilities()
    predictor = Predictor(learner, lambda _: corpus_for(cells, how, form))
    names = np.array([label_text(each) for each in learner.classes_.tolist()], dtype=object)
    barcodes = (each.barcodes[i : i + 1024] for each in cells for i in range(0, each.n_cells, 1024))
    read = np.zeros(0, dtype=object)
    for block in predictor.blocks():
        n_rows = block.block.n_rows
        while len(read) < n_rows:
            read = np.concatenate([read, next(barcodes)])
        confidence = probabilities_of(learner._fitted, block.outputs).max(axis=1)
        told = np.where(confidence < threshold, UNASSIGNED, names[block.codes])
        yield CellTypes(read[:n_rows], told, confidence)
        read = read[n_rows:]


def write_types(parts: Iterator[CellTypes], path: Any) -> None:
    """Write a table of types, which appears whole or not at all."""
    with nullcontext(path) if hasattr(path, "write") else replacing(path) as file:
        file.write("\t".join(CellTypes._fields).encode() + b"\n")
        for part in parts:
            lines = zip(*map(np.ndarray.tolist, part), strict=True)
            file.write("".join(f"{cell}\t{told}\t{p:.6g}\n" for cell, told, p in lines).encode())
