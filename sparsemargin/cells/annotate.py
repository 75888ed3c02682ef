"""Prediction of cell types for an AnnData or for files of cells."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sparsemargin._checks import check_real
from sparsemargin._engine.messages import warn_user
from sparsemargin.cells.genes import CellForm, Match
from sparsemargin.cells.labels import UNASSIGNED, different_names
from sparsemargin.cells.matrices import is_cells
from sparsemargin.cells.source import corpus_for
from sparsemargin.cells.voting import Voting
from sparsemargin.estimators.rejector import Rejector
from sparsemargin.files.atomic import replacing
from sparsemargin.files.distinct import Named, check_distinct
from sparsemargin.files.kinds import check_table_name
from sparsemargin.files.sources import Source
from sparsemargin.files.tsv import separator_for, tsv_row
from sparsemargin.genomes.cells import CellNormalizer, Values
from sparsemargin.models import Learner
from sparsemargin.models.fitted.outputs import confidence_of, probabilities_of
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.models.pipelines import parts_of
from sparsemargin.readers.cell_files import Cells
from sparsemargin.readers.label_tables import FILE_COLUMN
from sparsemargin.streaming.predict import Predictor

#: Value of a setting for reading cells that stands for the setting of the model.
AS_MODEL: Literal["as model"] = "as model"


class CellTypes(NamedTuple):
    """Predicted cell types: arrays of shape (n_cells,) of names, types and confidences."""

    cells: np.ndarray
    predicted: np.ndarray
    confidence: np.ndarray

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.predicted[:3])) + ", ..." * (len(self.predicted) > 3)
        return f"CellTypes of {len(self.predicted):,} cells: {shown}"


class PredictedCells(NamedTuple):
    """Predictions for some cells.

    `cells` are their names, `codes` indices into the `classes_` of the model, `outputs` its
    outputs, of shape (n_cells, n_vectors). `weights` lower the confidences of cells that lack genes
    (see `check_shared`), and are 0 for cells without counts.
    """

    cells: np.ndarray
    codes: np.ndarray
    outputs: np.ndarray
    weights: np.ndarray

    def probabilities(self, learner: Any) -> np.ndarray:
        """Return probabilities of shape (n_cells, n_classes). All are equal for a cell without
        counts."""
        found, weights = probabilities_of(learner.fitted, self.outputs), self.weights[:, np.newaxis]
        return weights * found + (1 - weights) / found.shape[1]


def annotate(
    model: Any,
    adata: Any,
    *,
    key_added: str = "sparsemargin",
    threshold: float = 0.0,
    majority_voting: str | None = None,
    min_share: float = 0.0,
    proba: bool = False,
    output: Any = None,
    layer: str | None = AS_MODEL,
    normalize: Values = "auto",
    var: str | None = AS_MODEL,
    match: Match | Literal["as model"] = AS_MODEL,
) -> CellTypes | None:
    r"""Predict the types of cells. Genes are matched by name.

    Parameters
    ----------
    model : CellClassifier, or pipeline of a `CellNormalizer` and a classifier
        Or a `Rejector` of one of these: cells that it rejects are "unassigned", too.
    adata : AnnData, path, or list of paths
        As X of `CellClassifier.fit`. If it is an AnnData and there is no `output`, predictions are
        written to it: the types to ``obs[key_added]`` and the confidences to
        ``obs[key_added + "_confidence"]``. The types are classes of the model, such as integers,
        if no cell is "unassigned", and otherwise their texts.
    key_added : str, default="sparsemargin"
        Name of the columns of `obs`.
    threshold : float, default=0
        Cells with a smaller confidence are "unassigned". Cells without any count of the genes of
        the model are always "unassigned".
    majority_voting : str, default=None
        A column of `obs` with clusters, such as "leiden": each cell gets the most frequent type of
        its cluster. Or a graph in `obsp`, such as "connectivities": the probabilities of a cell are
        averaged over the cell, with weight 1, and its neighbours. Cells that are unassigned by the
        threshold do not vote for a type and stay unassigned. A graph averages confidences, too;
        clusters do not change them. None: there is no vote.
    min_share : float, default=0
        Least share of the cells of a cluster that must have its most frequent type. Otherwise the
        cells of the cluster are "unassigned".
    proba : bool, default=False
        Whether to write the probabilities to ``obsm[key_added + "_proba"]``, a DataFrame with the
        types as columns.
    output : path or open binary file, default=None
        File for a table of cells, types and confidences, separated by commas if its name ends in
        ".csv", and otherwise by tabs. The first column, "file", names the file of each cell if
        there are several. Use it for predictions that do not fit in memory. Backslashes, tabs, line
        ends and other control characters in names are escaped, as ``\\``, ``\t``, ``\n`` and
        ``\x00``, and names with quotes are quoted, as `csv` does.
    layer : str or None, default="as model"
        As for `CellClassifier`. "as model": the layer of the model, or None for a pipeline.
    normalize : {"auto", "counts", None}, default="auto"
        "auto": the scale of the values is recognised. Counts, logarithms of normalised counts and
        normalised counts are converted to the scale of the training cells. "counts": the values
        are counts, which need not be whole (estimated counts). None: values are not converted.
    var, match
        As for `CellClassifier`. "as model": as in the model, or the defaults for a pipeline.

    Returns
    -------
    CellTypes or None
        ``pandas.DataFrame(types._asdict())`` converts it to a table. None if there is an `output`.

    Raises
    ------
    ValueError
        If `model` is not a model of cells, the cells have too few genes of the model, their values
        can't be converted to the scale of the training cells, `majority_voting` is neither a column
        nor a graph, or a file is damaged.

    Warns
    -----
    UserWarning
        If genes of the model are missing, which count as 0. Confidences are lowered if the other
        genes have less than 90 % of the variance of the training cells; the message says by how
        much. If values are on another scale than those of the training cells, or cells have no
        counts. If most cells have a cluster of their own.
    """
    model, least = _unwrapped(model)
    learner, how = cell_model(model)
    if not hasattr(how, "feature_names_in_"):
        raise ValueError(
            "The pipeline was fitted to a matrix without names of genes, by which cells are "
            "matched. Fit it to a DataFrame: adata.to_df()."
        )
    if not isinstance(adata, list | tuple | Source) and not is_cells(adata):
        raise ValueError(
            f"annotate takes an AnnData, a path or a list of these, got a {type(adata).__name__}. "
            "For a DataFrame or a matrix, call predict or predict_proba of the model."
        )
    check_real("threshold", threshold, 0, 1)
    if not isinstance(key_added, str):
        raise ValueError(f"key_added must be the name of a column, got {key_added!r}.")
    if min_share and majority_voting is None:
        raise ValueError("min_share is for clusters. Pass majority_voting, or leave min_share out.")
    learner.check_probabilities()
    if proba and (output is not None or not hasattr(adata, "obs_names")):
        raise ValueError(
            "proba=True writes to adata.obsm. Pass an AnnData and no output, or call predict_proba."
        )
    check_table_name(output)
    voting = None if majority_voting is None else Voting.of(adata, majority_voting, min_share)
    names = np.array([label_text(each) for each in learner.classes_.tolist()], dtype=object)
    form, kept = form_for(model, layer, var, match, normalize), list[np.ndarray]()
    with form.open(adata) as cells:
        blocks: Iterable[PredictedCells] = predicted_cells(learner, how, cells, form)
        if voting is not None:
            blocks = [PredictedCells(*map(np.concatenate, zip(*blocks, strict=True)))]
        parts = _typed(blocks, learner, names, (threshold, least), voting, kept if proba else None)
        if output is not None:
            sources = [each.source for each in cells if each.source is not None]
            read = [Named("the file", name) for each in sources for name in each.files]
            check_distinct([Named("output", output)], read)
            write_types(parts, output, cells)
            return None
        types = CellTypes(*map(np.concatenate, zip(*parts, strict=True)))
    types = types._replace(predicted=_as_classes(types.predicted, learner.classes_))
    if proba:
        frame = type(adata.obs)(np.concatenate(kept), index=adata.obs_names, columns=names)
        adata.obsm[f"{key_added}_proba"] = frame
    if hasattr(adata, "obs_names"):
        adata.obs[key_added] = types.predicted
        adata.obs[key_added] = adata.obs[key_added].astype("category")
        adata.obs[f"{key_added}_confidence"] = types.confidence
    return types


def _unwrapped(model: Any) -> tuple[Any, float]:
    """Return the model inside a fitted Rejector, and the least output of cells that it accepts.
    Other models are returned as they are, with minus infinity."""
    if not isinstance(model, Rejector):
        return model, -np.inf
    check_is_fitted(model)
    inner = model.estimator_
    return getattr(inner, "estimator", inner), model.threshold_


def _as_classes(types: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Convert names of types to entries of `classes`. If a cell is unassigned, return the names."""
    known = {label_text(each): each for each in classes.tolist()}
    if classes.dtype.kind in "OU" or not known.keys() >= set(types.tolist()):
        return types
    return np.array([known[each] for each in types.tolist()], classes.dtype)


def form_for(
    model: Any, layer: str | None, var: str | None, match: Any, values: Values = "auto"
) -> CellForm:
    """Return the settings for reading cells. `AS_MODEL` stands for the setting of the model if it
    is a CellClassifier, otherwise for the default."""
    given = {"layer": layer, "var": var, "match": match}
    own = CellForm()
    settings = {
        name: getattr(model, name, getattr(own, name)) if value == AS_MODEL else value
        for name, value in given.items()
    }
    return CellForm(**settings, values=values)


def check_arguments(how: Mapping[str, Any]) -> None:
    """Raise a TypeError for a keyword argument that is not a setting for reading cells."""
    known = ["layer", "var", "match", "normalize"]
    for name in sorted(how.keys() - set(known)):
        is_other = name in inspect.signature(annotate).parameters
        advice = f" {name} is an argument of annotate." if is_other else ""
        raise TypeError(f"{name!r} is not one of the keyword arguments {', '.join(known)}.{advice}")


def cell_model(model: Any) -> tuple[Any, CellNormalizer]:
    """Return the classifier and the normalizer of a model of cells, or raise a ValueError."""
    before, learner = parts_of(model)
    is_cells_model = before is not None and isinstance(before[-1], CellNormalizer)
    if not is_cells_model or not isinstance(learner, Learner) or not hasattr(learner, "fitted"):
        raise ValueError(
            "model must be a fitted CellClassifier, or a pipeline of a CellNormalizer and a "
            "classifier of sparsemargin. Fit one: CellClassifier(COLUMN).fit(adata)."
        )
    return learner, before[-1]


def predicted_cells(
    learner: Any, how: CellNormalizer, cells: list[Cells], form: CellForm
) -> Iterator[PredictedCells]:
    """Predict the types of cells and yield them block by block."""
    corpus = corpus_for(cells, how, form)
    ends, weights = np.cumsum([each.n_cells for each in cells]), np.array(corpus.weights)
    barcodes = (each.barcodes[i : i + 1024] for each in cells for i in range(0, each.n_cells, 1024))
    read, n_done = np.zeros(0, dtype=object), 0
    for block in Predictor(learner, lambda _: corpus).blocks():
        n_rows = block.block.n_rows
        while len(read) < n_rows:
            read = np.concatenate([read, next(barcodes)])
        of_file = np.searchsorted(ends, n_done + np.arange(n_rows), side="right")
        is_empty = np.diff(np.append(0, np.cumsum(block.rows.data != 0))[block.rows.indptr]) == 0
        codes = np.asarray(block.codes)
        yield PredictedCells(
            read[:n_rows], codes, block.outputs, np.where(is_empty, 0, weights[of_file])
        )
        read, n_done = read[n_rows:], n_done + n_rows


def _typed(
    blocks: Iterable[PredictedCells], learner: Any, names: np.ndarray,
    least: tuple[float, float], voting: Voting | None, kept: list[np.ndarray] | None,
) -> Iterator[CellTypes]:  # fmt: skip
    """Yield the types of cells, and append their probabilities to `kept`. Cells with a smaller
    probability or output than `least` are unassigned."""
    n_done = n_empty = 0
    names = np.append(names, UNASSIGNED)
    for block in blocks:
        is_empty, probabilities = block.weights == 0, block.probabilities(learner)
        if voting is not None:
            probabilities = voting.probabilities(probabilities)
        if kept is not None:
            kept.append(probabilities)
        codes, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
        is_unassigned = is_empty | (confidence < least[0])
        is_unassigned |= confidence_of(block.outputs) < least[1]
        if voting is not None:
            codes = voting.types(np.where(is_unassigned, -1, codes), len(names) - 1)
        yield CellTypes(block.cells, names[np.where(is_unassigned, -1, codes)], confidence)
        n_done, n_empty = n_done + len(codes), n_empty + int(is_empty.sum())
    if n_empty:
        warn_user(
            f"{n_empty:,} of {n_done:,} cells have no counts of the genes of the model. They are "
            f"{UNASSIGNED!r}."
        )


def write_types(parts: Iterator[CellTypes], path: Any, cells: list[Cells]) -> None:
    """Write a table of types. A file at a path is written atomically. The first column names the
    file of each cell if there are several."""
    name = "" if hasattr(path, "write") else os.fspath(path)
    row = partial(tsv_row, separator=separator_for(name))
    files = np.array(different_names(cells), dtype=object)
    ends, n_done = np.cumsum([each.n_cells for each in cells]), 0
    columns = ([] if len(cells) == 1 else [FILE_COLUMN]) + list(CellTypes._fields)
    header = row(columns)  # written with the first cells, because reading these may raise an error
    with nullcontext(path) if hasattr(path, "write") else replacing(path) as file:
        for names, types, confidence in parts:
            texts = [f"{p:.6g}" for p in confidence.tolist()]
            fields = [names.tolist(), types.tolist(), texts]
            if len(cells) > 1:
                at = np.searchsorted(ends, n_done + np.arange(len(names)), side="right")
                fields.insert(0, files[at].tolist())
            file.write(header + b"".join(map(row, zip(*fields, strict=True))))
            header = b""
            n_done += len(names)
