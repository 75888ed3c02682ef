"""Cells, whose genes are matched by name and whose counts are normalised, as a source of rows."""

from __future__ import annotations

import csv
import os
import time
import zlib
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils.class_weight import compute_sample_weight

from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.messages import warn_user
from sparsemargin.genomes.cells import (
    Advice,
    CellNormalizer,
    Part,
    Sample,
    normalised,
    spread,
)
from sparsemargin.genomes.scales import CHECKED
from sparsemargin.io.cell_files import Cells
from sparsemargin.io.genes import CellForm, check_shared, columns_in, first_of, genes_of
from sparsemargin.io.options import StreamOptions
from sparsemargin.io.reading import Reading, SettingsError
from sparsemargin.io.rows import LabelledRows, RowSource
from sparsemargin.io.stream import going_on, learn_rows, with_cache_path
from sparsemargin.models import Learner
from sparsemargin.models.classifiers import CLASSIFIERS
from sparsemargin.models.labels import LabelTable, label_text, number_of

# Values that are in memory together while cells are mixed, and cells that are read together.
_BUFFERED, _SPAN = 2 << 20, 64

# A span has the values of so many chunks of the file, as the first and the last are unpacked twice.
_CHUNKS = 4

# Cells that are read together for a sample by which the scale is recognised.
_SAMPLED_TOGETHER = 32

# Cells of one type in a row that show that a file is sorted there.
_RUN = 16

# Cells learn for so many epochs, or as many as make so many trials, as long as all are learned.
_EPOCHS, _TRIALS = 10, 1_000_000

# Probabilities of the joint machine are by so many of its like, of parts of cells.
_FOLDS = 3

# What leaves the algorithm open.
_OPEN = frozenset({"fit_intercept", "random_state", "shuffle", "n_jobs", "verbose"})


@dataclass(frozen=True)
class _Places:
    """Cells of files by their numbers, which go on from one file to the next."""

    cells: list[Cells]
    starts: np.ndarray
    numbers: np.ndarray

    def place_of(self, row: int) -> str:
        number = int(self.numbers[row])
        i = int(np.searchsorted(self.starts, number, side="right")) - 1
        return f"{self.cells[i].name}, cell {number - int(self.starts[i]) + 1}"

    def copied(self) -> _Places:
        return self


@dataclass
class CellCorpus(RowSource):
    """Cells of files whose genes become columns, normalised on the way.

    `codes` are those of each file's labels among `classes`, -1 for cells that are left out; None:
    there are none. `seed` mixes the cells: spans of them come in random order, and the cells of
    many in one; None: they come as they lie.
    """

    cells: list[Cells]
    genes: np.ndarray
    how: CellNormalizer
    cell_form: CellForm
    codes: list[np.ndarray] | None = None
    classes: np.ndarray = field(default_factory=lambda: np.zeros(0))
    seed: int | None = None

    form = "Each cell has a label and values of genes"

    def __post_init__(self) -> None:
        wide = any(each.data.dtype == np.float64 for each in self.cells)
        dtype = np.dtype(np.float64 if wide else np.float32)
        self.reading = Reading(dtype, zero_based=True, n_features=len(self.genes))
        self.columns = [columns_in(each, self.genes, self.cell_form) for each in self.cells]
        self.starts = np.cumsum([0, *(each.n_cells for each in self.cells)])
        samples = [
            sample_of(each, columns, self.reading.dtype)
            for each, columns in zip(self.cells, self.columns, strict=True)
        ]
        is_new = not hasattr(self.how, "form_")
        self.scale = self.how.agreed([each.scale for each in samples]) if is_new else self.how.scale
        values = self.cell_form.values
        self.ways = [
            self.how.way_of(each, self.scale, is_new=is_new, values=values) for each in samples
        ]

    def check_genes(self) -> None:
        """Check that genes of a model are there, and keep `weights`: see `check_shared`."""
        self.weights = [
            check_shared(each, columns, self.how, self.cell_form)
            for each, columns in zip(self.cells, self.columns, strict=True)
        ]

    @property
    def names(self) -> str:
        names = [each.name for each in self.cells]
        return ", ".join(names[:3]) + ", ..." * (len(names) > 3)

    @property
    def size(self) -> int:
        return sum(
            each.nbytes if each.source is None else each.source.size or 0 for each in self.cells
        )

    @property
    def rereadable(self) -> bool:
        return True

    def identity(self) -> dict[str, Any]:
        # What is in memory may change at any time.
        files = [
            time.time_ns() if each.source is None else each.source.identity() for each in self.cells
        ]
        how = {**self.how.get_params(), "form": str(self.cell_form), "seed": self.seed,
               "scale": str(self.scale)}  # fmt: skip
        genes = zlib.crc32("\n".join(map(str, self.genes)).encode())
        arrays = [*self.columns, *(self.codes or ())]
        told = [zlib.crc32(each.tobytes()) for each in arrays]
        return {"sources": files, "genes": genes, "how": how, "columns and labels": told}

    def scan(self, table: LabelTable, max_index: int | None = None) -> Generator[LabelledRows]:
        texts = list(map(label_text, self.classes.tolist()))
        ids = table.take(texts, map(number_of, texts))
        n_done, blocks = 0, map(self._made, self._groups())
        with ThreadPoolExecutor(1) as pool:
            ahead = pool.submit(next, blocks, None)
            while (rows := ahead.result()) is not None:
                ahead = pool.submit(next, blocks, None)
                n_done += rows.n_rows
                labels = ids[rows.labels] if self.codes is not None else rows.labels
                consumed = self.size * n_done // max(1, int(self.starts[-1]))
                yield replace(rows, labels=labels, consumed=consumed)
        for each in self.cells:
            if each.source is not None:
                each.source.check_unchanged()

    def _spans(self, i: int) -> np.ndarray:
        """Where parts of a file begin, and the last one ends, that are read at a time."""
        cells = self.cells[i]
        mean = max(1.0, cells.entries_before(cells.n_cells) / max(1, cells.n_cells))
        most = max(1, int(_BUFFERED / mean))
        if self.seed is None:
            return np.append(np.arange(0, cells.n_cells, most), cells.n_cells)
        step = min(max(_SPAN, ceil(_CHUNKS * cells.chunk / mean)), max(1, most // 4))
        cuts = [np.append(np.arange(0, cells.n_cells, step), cells.n_cells)]
        if self.codes is not None:
            # Where cells are sorted by type, each buffer is to have some of all types.
            n_cells = np.bincount(np.concatenate(self.codes) + 1)
            together = np.maximum(1, n_cells * most // int(self.starts[-1]))
            runs = np.flatnonzero(np.diff(self.codes[i], prepend=-2, append=-2))
            for start, stop in pairwise(runs.tolist()):
                part = int(together[self.codes[i][start] + 1])
                if stop - start >= _RUN and part < step:
                    cuts.append(np.append(np.arange(start, stop, part), stop))
        return np.unique(np.concatenate(cuts))

    def _groups(self) -> Iterator[list[tuple[int, int, int]]]:
        """Files, first cells and ends of spans that are in memory together."""
        spans = [
            (i, *span) for i in range(len(self.cells)) for span in pairwise(self._spans(i).tolist())
        ]
        if self.codes is not None:  # of cells without a label none is read
            spans = [(i, *span) for i, *span in spans if (self.codes[i][slice(*span)] >= 0).any()]
        if self.seed is not None:
            spans = [spans[i] for i in np.random.RandomState(self.seed).permutation(len(spans))]
        group, n_entries = list[tuple[int, int, int]](), 0
        for i, start, stop in spans:
            group.append((i, start, stop))
            n_entries += self.cells[i].entries_before(stop) - self.cells[i].entries_before(start)
            if n_entries >= _BUFFERED:
                yield group
                group, n_entries = [], 0
        if group:
            yield group

    def _made(self, spans: list[tuple[int, int, int]]) -> LabelledRows:
        """The cells of spans, mixed where there is a seed."""
        parts, numbers, codes = list[Part](), list[np.ndarray](), list[np.ndarray]()
        for i in dict.fromkeys(i for i, *_ in spans):
            of_file = [span[1:] for span in spans if span[0] == i]
            at = np.concatenate([np.arange(*span) for span in of_file])
            rows = self.cells[i].read(of_file, self.reading.dtype)
            parts.append(Part(rows, self.columns[i], self.ways[i]))
            numbers.append(self.starts[i] + at)
            codes.append(np.zeros(0, np.int32) if self.codes is None else self.codes[i][at])
        of, labels = np.concatenate(numbers), np.concatenate(codes)
        order = np.arange(len(of))
        if self.seed is not None:
            order = np.random.RandomState([self.seed, *spans[0]]).permutation(order)
        if self.codes is not None:
            order = order[labels[order] >= 0]
            labels = labels[order]
        places = partial(_Places, self.cells, self.starts)
        advice = advice_of([self.cells[i] for i, *_ in spans])
        X = normalised(parts, len(self.genes), places(of).place_of, order, advice)
        return LabelledRows(
            X.data, X.indices, X.indptr, labels, lowest=0, highest=len(self.genes) - 1,
            origin=places(of[order]),
        )  # fmt: skip

    def sample(self) -> LabelledRows:
        """Some thousand cells, from all over the files."""
        mixed = replace(self, seed=self.seed or 0)
        return mixed._made(next(mixed._groups(), []))

    def survey(self) -> tuple[csr_matrix, LabelledRows]:
        """Fit the normalizer to a sample, and return its matrix, too."""
        rows = self.sample()
        if self.how.normalize == "log1p" and self.ways[0] is CHECKED:
            warn_user(
                f"{self.names}: the values are not whole. They are taken for {self.scale}, and "
                "stay as they are."
            )
        X = csr_matrix((rows.data, rows.indices, rows.indptr), (rows.n_rows, len(self.genes)))
        self.how._keep(X, self.scale).feature_names_in_ = self.genes
        return X, rows


def sample_of(cells: Cells, columns: np.ndarray, dtype: np.dtype) -> Sample:
    """Some of the cells, by which their scale is recognised."""
    rows = cells.read(spread(cells.n_cells, _SAMPLED_TOGETHER), dtype)
    return Sample(cells.name, rows, columns, advice_of([cells]))


def advice_of(cells: list[Cells]) -> Advice:
    """What to advise where cells have wrong values."""
    return Advice.of_layers(list(dict.fromkeys(name for each in cells for name in each.layers)))


def labels_of(cells: list[Cells], label: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """Codes of the labels of each file's cells, -1 for those left out, and the classes: by a column
    of obs, or by a table, or a mapping, of barcodes."""
    found = [_labels_of(each, label) for each in cells]
    numeric = all(values.dtype.kind in "iuf" for _, values in found)
    texts = [list(map(label_text, values.tolist())) for _, values in found]
    numbers = [np.bincount(codes[codes >= 0], minlength=len(of)) for (codes, _), of in
               zip(found, texts, strict=True)]  # fmt: skip
    present = {text for of, n in zip(texts, numbers, strict=True)
               for text, count in zip(of, n.tolist(), strict=True) if count}  # fmt: skip
    names = sorted(present, key=float if numeric else None)
    classes = np.array(names, dtype=np.float64 if numeric else np.str_)
    LabelTable.of_classes(classes)  # refuses those that are one number
    code = {text: i for i, text in enumerate(names)}
    places = [np.array([*(code.get(text, -1) for text in of), -1], np.int32) for of in texts]
    return [at[codes] for at, (codes, _) in zip(places, found, strict=True)], classes


def _labels_of(cells: Cells, label: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(label, str) and label in cells.columns:
        codes, values = cells.column(label)
        missing = np.flatnonzero(codes < 0)
        if len(missing):
            raise ValueError(
                f"{cells.name}: {label!r} is missing for {len(missing):,} of {cells.n_cells:,} "
                f"cells, the first of them cell {missing[0] + 1}. Give them a label, or leave them "
                f"out: adata[adata.obs[{label!r}].notna()]."
            )
        return codes, values
    table: Any = label.to_dict() if hasattr(label, "to_dict") else label
    if not isinstance(table, Mapping):
        if cells.columns or not os.path.exists(label):
            told = ", ".join(cells.columns) or "none, so name a table of barcodes and labels"
            raise ValueError(f"{cells.name} has no column {label!r} in obs. There are: {told}.")
        with open(label, encoding="utf-8") as file:
            rows = csv.reader(file, delimiter="," if str(label).endswith(".csv") else "\t")
            table = {row[0]: row[1] for row in rows if len(row) > 1}
    table = {cell: each for cell, each in table.items() if each is not None and each == each}
    values = np.array(sorted(set(table.values())))
    code = {value: i for i, value in enumerate(values.tolist())}
    barcodes = map(str, cells.barcodes[:])
    codes = np.array([code.get(table.get(each), -1) for each in barcodes], dtype=np.int32)
    if (codes < 0).all():
        raise ValueError(
            f"{cells.name} has none of the barcodes with labels, {first_of(table)}, but "
            f"{first_of(cells.barcodes[:3])}."
        )
    return codes, values


def learn_cells(
    what: Any, label: Any, form: CellForm, how: CellNormalizer, *, genes: Any = None,
    batch: Any = None, **given: Any,
) -> Learner:  # fmt: skip
    """`sparsemargin.fit_anndata` without its pipeline: a learner, before which the normalizer `how`
    comes, which is fitted. `StreamOptions` are what it takes; all else is the estimator's."""
    for name in "n_features", "hash_bits", "zero_based", "multilabel", "dtype", "classes":
        if given.pop(name, None) not in (None, False, "auto"):
            raise SettingsError(f"{name} is not of cells. Leave it out.")
    options = StreamOptions.of(given)
    if options.init_model is not None:
        options, genes = going_on(options), how.feature_names_in_
    with form.open(what) as cells:
        return _learn(cells, label, form, how, genes, options, "max_iter" in given, batch)


def _batches_of(cells: list[Cells], batch: Any) -> np.ndarray:
    """The number of each cell's batch."""
    codes, batches = labels_of(cells, batch)
    found = np.concatenate(codes)
    if (found < 0).any():
        raise ValueError(f"batch: {np.count_nonzero(found < 0):,} cells are not in the table.")
    if len(batches) < 2:
        raise ValueError(
            f"batch={batch!r} has one value, {label_text(batches.tolist()[0])!r}, and what is new "
            "can't be told by one batch. Leave batch out."
        )
    return found


def _learn(
    cells: list[Cells], label: Any, form: CellForm, how: CellNormalizer, genes: Any,
    options: StreamOptions, is_told: bool, batch: Any,
) -> Learner:  # fmt: skip
    codes, classes = labels_of(cells, label)
    batches = None if batch is None else _batches_of(cells, batch)
    seed = mixing_seed(options.params)
    corpus = CellCorpus(cells, genes_of(cells, genes, form), how, form, codes, classes, seed)
    if options.init_model is not None:
        corpus.check_genes()
    sources = [each.source for each in cells if each.source is not None]
    options = with_cache_path(options, sources) if sources else options
    if options.positive is None:
        options = replace(options, classes=classes)
    counts = np.bincount(np.concatenate(codes) + 1)[1:]
    n_cells, chosen = int(counts.sum()), options
    if options.init_model is None:
        chosen = settled(options, n_cells, is_told=is_told)
    if is_chosen := chosen.params is not options.params:
        weights = (n_cells / (len(counts) * counts)).tolist()
        chosen.params["class_weight"] = dict(zip(classes.tolist(), weights, strict=True))
    X, some = corpus.survey()
    origin: Any = some.origin
    groups = None if batches is None else batches[origin.numbers]
    if groups is not None and len(np.unique(groups)) < 2:
        raise ValueError(
            f"batch={batch!r}: of {some.n_rows:,} cells from all over the files all are of one "
            "batch, so rare are the others. Leave batch out."
        )
    learner = learn_rows(corpus, chosen)
    if is_chosen:
        learner.class_weight = "balanced"  # as the counts of all labels make them
    if options.positive is None and (groups is not None or some.n_rows == n_cells):
        # All cells are few; or what is new is another batch than those learned from.
        keep_outputs(learner, X, some.labels, groups)
    return learner


def keep_outputs(
    learner: Learner, X: csr_matrix, codes: np.ndarray, groups: np.ndarray | None = None
) -> None:
    """Let a model tell probabilities by the outputs for some cells of models like it that have
    learned others, as CalibratedClassifierCV does; others of other groups, where there are any."""
    params, classes = learner._parameters(), learner._fitted.classes
    class_weight, y = params.pop("class_weight", None), classes[codes]
    outputs = np.zeros((len(y), 1 if len(classes) == 2 else len(classes)))
    n_folds = min(_FOLDS, len(y if groups is None else np.unique(groups)))
    for some, rest in (KFold if groups is None else GroupKFold)(n_folds).split(X, groups=groups):
        like = CLASSIFIERS[learner.classifier](**params)
        weights = dict[str, Any]()
        if class_weight is not None:  # ROMMA takes none
            weights["sample_weight"] = compute_sample_weight(class_weight, y[some])
        for _ in range(max(1, ceil(learner.n_iter_))):
            like.partial_fit(X[some], y[some], classes=classes, **weights)
        outputs[rest] = like.decision_function(X[rest]).reshape(len(rest), -1)
    n = 1 << (len(y).bit_length() - 1)
    kept = ProgressiveOutputs(outputs.shape[1], n, 1)
    kept.outputs[:], kept.steps[:] = outputs[:n], 1
    kept.positive[:] = codes[:n, np.newaxis] == np.arange(len(classes))[-outputs.shape[1] :]
    # As if twice as many had been tried, of which the later half counts.
    kept.n_trials = 2 * n
    learner._fitted.progress = kept


def mixing_seed(params: dict[str, Any]) -> int | None:
    """By what cells are mixed; None: they come as they lie."""
    seed = params.get("random_state")
    seed = int(seed) if isinstance(seed, int | np.integer) else 0
    return seed if params.get("shuffle", True) else None


def settled(options: Any, n_cells: int, *, is_told: bool) -> Any:
    """The options of a fit, with an algorithm and, unless told, epochs where these are open."""
    if not is_told:
        options = replace(options, max_iter=max(1, min(_EPOCHS, _TRIALS // max(1, n_cells))))
    is_open = options.algo is None and options.positive is None
    if not (is_open and _OPEN.issuperset(options.params)):
        return options
    chosen = {"multi_class": "joint", "class_weight": "balanced"}
    return replace(options, algo="alma", params={**options.params, **chosen})


def corpus_for(
    cells: list[Cells], how: CellNormalizer, form: CellForm, label: Any = None
) -> CellCorpus:
    """The cells in their order, with the genes of a fitted normalizer. See `check_shared`."""
    codes, classes = (None, np.zeros(0)) if label is None else labels_of(cells, label)
    corpus = CellCorpus(cells, how.feature_names_in_, how, form, codes, classes)
    corpus.check_genes()
    return corpus
