"""Cells, whose genes are matched by name and whose counts are normalised, as a source of rows."""

from __future__ import annotations

import time
import zlib
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

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
from sparsemargin.io.cell_files import Cells, warn_of_left_out
from sparsemargin.io.cell_labels import labels_of
from sparsemargin.io.genes import CellForm, check_shared, columns_in, genes_of
from sparsemargin.io.label_tables import named_table
from sparsemargin.io.options import StreamOptions
from sparsemargin.io.reading import Reading, SettingsError
from sparsemargin.io.rows import LabelledRows, RowSource
from sparsemargin.io.stream import going_on, learn_rows, with_cache_path
from sparsemargin.models import Learner
from sparsemargin.models.fitted import Beginning
from sparsemargin.models.held_out import held_out_outputs
from sparsemargin.models.labels import LabelTable, label_text, number_of
from sparsemargin.models.rows import check_rows, open_rows

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
    many in one; None: they come as they lie. `tables` are files that hold the labels.
    """

    cells: list[Cells]
    genes: np.ndarray
    how: CellNormalizer
    cell_form: CellForm
    codes: list[np.ndarray] | None = None
    classes: np.ndarray = field(default_factory=lambda: np.zeros(0))
    seed: int | None = None
    tables: Sequence[str] = ()

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
    def files(self) -> list[str]:
        names = [name for each in self.cells if each.source for name in each.source.files]
        return [*names, *self.tables]

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
    tables = [found[0] for found in map(named_table, (label, batch)) if found is not None]
    corpus = CellCorpus(
        cells, genes_of(cells, genes, form), how, form, codes, classes, seed, tables
    )  # fmt: skip
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
    kept = learner._fitted.progress
    if kept is not None and (kept.spoiled or groups is not None or some.n_rows == n_cells):
        # Cells were learned more than once, or all of them are few; or new cells are of other
        # batches than those that were learned.
        of_cells = some.labels
        if options.positive is not None:
            names = np.array(list(map(label_text, classes.tolist())))
            of_cells = names[of_cells] == options.positive
        keep_outputs(learner, X, of_cells, groups)
    return learner


def keep_outputs(
    learner: Learner, X: csr_matrix, codes: np.ndarray, groups: np.ndarray | None = None
) -> None:
    """Fit the probabilities of a model to the outputs for some cells of models like it that have
    learned others of them; others of other groups, where there are any."""
    fitted, rows = learner._fitted, check_rows(open_rows(X))
    seed = mixing_seed(learner._parameters())
    task = learner._task(rows, codes.astype(np.int64), None, kept=None)
    found = held_out_outputs(learner, task, Beginning(rows, fitted.classes), seed, groups)
    if found is not None and fitted.progress is not None:
        fitted.progress = fitted.progress.held_out(*found)


def mixing_seed(params: dict[str, Any]) -> int | None:
    """By what cells are mixed; None: they come as they lie."""
    seed = params.get("random_state")
    seed = int(seed) if isinstance(seed, int | np.integer) else 0
    return seed if params.get("shuffle", True) else None


def settled(options: Any, n_cells: int, *, is_told: bool) -> Any:
    """The options of a fit, with ALMA's joint classifier unless an algorithm is named, or types are
    reduced to two, and, unless told, epochs where these are open."""
    if not is_told:
        options = replace(options, max_iter=max(1, min(_EPOCHS, _TRIALS // max(1, n_cells))))
    if options.algo is not None or options.positive is not None:
        return options
    chosen = {"multi_class": "joint", "class_weight": "balanced"}
    return replace(options, algo="alma", params={**chosen, **options.params})


def corpus_for(
    cells: list[Cells], how: CellNormalizer, form: CellForm, label: Any = None
) -> CellCorpus:
    """The cells in their order, with the genes of a fitted normalizer. See `check_shared`."""
    warn_of_left_out(cells)
    codes, classes = (None, np.zeros(0)) if label is None else labels_of(cells, label)
    corpus = CellCorpus(cells, how.feature_names_in_, how, form, codes, classes)
    corpus.check_genes()
    return corpus
