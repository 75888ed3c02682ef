"""Prediction of cell types for an AnnData or for files of cells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._checks import check_real
from sparsemargin._engine.messages import warn_user
from sparsemargin.cells.genes import CellForm, Match
from sparsemargin.cells.source import corpus_for
from sparsemargin.files.atomic import replacing
from sparsemargin.files.distinct import Named, check_distinct
from sparsemargin.files.tsv import tsv_row
from sparsemargin.genomes.cells import CellNormalizer, Values
from sparsemargin.models.fitted.outputs import probabilities_of
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.models.pipelines import parts_of
from sparsemargin.readers.cell_files import Cells
from sparsemargin.streaming.predict import Predictor

#: Predicted type of cells with too small a confidence, and of cells without counts.
UNASSIGNED = "unassigned"


class CellTypes(NamedTuple):
    """Predicted cell types: arrays of shape (n_cells,) of names, types and confidences."""

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
    normalize: Values = "auto",
    var: str | None = None,
    match: Match = "exact",
) -> CellTypes | None:
    r"""Predict the types of cells. Genes are matched by name.

    Parameters
    ----------
    model : pipeline that `fit_anndata` returned
    adata : AnnData, path, or list of paths
        As for `fit_anndata`. An AnnData gets the columns `predicted` and `confidence` in `obs`.
    threshold : float, default=0
        Cells with a smaller confidence are "unassigned". Cells without any count of the genes of
        the model are always "unassigned".
    output : path or open binary file, default=None
        File for a table of cells, types and confidences, separated by tabs. Use it for files whose
        predictions do not fit in memory. Backslashes, tabs, line ends and other control characters
        in names are escaped, as ``\\``, ``\t``, ``\n`` and ``\x00``, and names with quotes are
        quoted, as `csv` does.
    layer : str, default=None
        As for `fit_anndata`.
    normalize : {"auto", "counts", None}, default="auto"
        "auto": the scale of the values is recognised. Counts, logarithms of normalised counts and
        normalised counts are converted to the scale of the training cells. "counts": the values
        are counts, which need not be whole (estimated counts). None: values are not converted.
    var, match
        As for `fit_anndata`.

    Returns
    -------
    CellTypes or None
        ``pandas.DataFrame(types._asdict())`` converts it to a table. None if there is an `output`.

    Raises
    ------
    ValueError
        If the model is not such a pipeline, the cells have too few genes of the model, their values
        can't be converted to the scale of the training cells, or a file is damaged.

    Warns
    -----
    UserWarning
        If genes of the model are missing, which count as 0; if values are on another scale than
        those of the training cells; if cells have no counts.
    """
    before, learner = parts_of(model)
    if before is None or not isinstance(before[-1], CellNormalizer):
        raise ValueError("model must be a pipeline of a CellNormalizer and a classifier.")
    form = CellForm(layer, var, match, normalize)
    with form.open(adata) as cells:
        parts = predicted_types(learner, before[-1], cells, form, threshold)
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


def predicted_types(
    learner: Any, how: CellNormalizer, cells: list[Cells], form: CellForm, threshold: float
) -> Iterator[CellTypes]:
    """Predict the types of cells and yield them block by block."""
    check_real("threshold", threshold, 0, 1)
    learner.check_probabilities()
    corpus = corpus_for(cells, how, form)
    predictor = Predictor(learner, lambda _: corpus)
    names = np.array([label_text(each) for each in learner.classes_.tolist()], dtype=object)
    ends, weights = np.cumsum([each.n_cells for each in cells]), np.array(corpus.weights)
    barcodes = (each.barcodes[i : i + 1024] for each in cells for i in range(0, each.n_cells, 1024))
    read, n_done, n_empty = np.zeros(0, dtype=object), 0, 0
    for block in predictor.blocks():
        n_rows = block.block.n_rows
        while len(read) < n_rows:
            read = np.concatenate([read, next(barcodes)])
        of_file = np.searchsorted(ends, n_done + np.arange(n_rows), side="right")
        confidence = probabilities_of(learner.fitted, block.outputs).max(axis=1)
        confidence -= (1 - weights[of_file]) * (confidence - 1 / len(names))
        is_empty = np.diff(np.append(0, np.cumsum(block.rows.data != 0))[block.rows.indptr]) == 0
        confidence[is_empty] = 1 / len(names)
        unassigned = is_empty | (confidence < threshold)
        yield CellTypes(
            read[:n_rows], np.where(unassigned, UNASSIGNED, names[block.codes]), confidence
        )
        read, n_done, n_empty = read[n_rows:], n_done + n_rows, n_empty + int(is_empty.sum())
    if n_empty:
        warn_user(
            f"{n_empty:,} of {n_done:,} cells have no counts of the genes of the model. They are "
            f"{UNASSIGNED!r}."
        )


def write_types(parts: Iterator[CellTypes], path: Any) -> None:
    """Write a table of types. A file at a path is written atomically."""
    with nullcontext(path) if hasattr(path, "write") else replacing(path) as file:
        file.write(tsv_row(CellTypes._fields))
        for part in parts:
            lines = zip(*map(np.ndarray.tolist, part), strict=True)
            file.write(b"".join(tsv_row((cell, kind, f"{p:.6g}")) for cell, kind, p in lines))
