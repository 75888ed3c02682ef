"""Learning from files row by row, in memory that does not depend on their length."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparsemargin._engine.task import Task
from sparsemargin.io.labels import ClassCodes, LabelTable, OneAgainstTheRest, UnknownLabelError
from sparsemargin.io.reading import LARGEST_INDEX, Reading
from sparsemargin.io.row_cache import CachedRows, RowCache, RowCacheWriter, find_cache, shuffled
from sparsemargin.io.scan_errors import refuse_index, refuse_label
from sparsemargin.io.scanning import RowBlock, scan
from sparsemargin.io.sources import Source
from sparsemargin.learners import Learner
from sparsemargin.learners._learner import LARGEST_SEED
from sparsemargin.learners._rows import Rows

#: Bytes that the weights may take unless another limit is given.
WEIGHT_MEMORY = 1 << 30

# When features come that there is no room for, the weights get room for so many times as many.
_GROWTH = 1.5


@dataclass(frozen=True)
class Moment:
    """How far learning has come.

    Attributes
    ----------
    epoch : int
        The one under way, from 1.
    consumed, size : int
        Bytes read in this epoch, and of all files; size None: not known.
    rows : int
        Read in this epoch.
    features : int
        Known so far.
    corrections : int
        Of all labels, so far.
    mistakes, trials : int
        Rows predicted wrongly just before they were learned from, in this epoch, and of how many;
        mistakes None: not known.
    seconds : float
        Since learning began.
    """

    epoch: int
    consumed: int
    size: int | None
    rows: int
    features: int
    corrections: int
    mistakes: int | None
    seconds: float


@dataclass
class Corpus:
    """The files learned from, and how they are read.

    Attributes
    ----------
    sources : list of Source
    reading : Reading
    n_threads : int
        That scan text.
    cache : Path or None
        Where the rows are kept for further epochs and runs; None: nowhere.
    """

    sources: list[Source]
    reading: Reading
    n_threads: int
    cache: Path | None = None

    @property
    def size(self) -> int | None:
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def rereadable(self) -> bool:
        return all(source.rereadable for source in self.sources)

    def names(self) -> str:
        return ", ".join(source.name for source in self.sources)

    def bytes_before(self, source: Source) -> int:
        return sum(other.size or 0 for other in self.sources[: self.sources.index(source)])

    def identity(self) -> dict[str, Any]:
        """What a cache of these rows is known by."""
        # What can be read only once is never the same again.
        read = None if self.rereadable else time.time_ns()
        return {
            "sources": [source.identity for source in self.sources],
            "reading": self.reading.settings(), "read": read,
        }  # fmt: skip

    def scan(self, table: LabelTable, max_index: int) -> Iterator[RowBlock]:
        return scan(
            self.sources, self.reading, table, max_index=max_index, n_threads=self.n_threads
        )


class _NewClass(Exception):
    """A label turned up that is none of those the rows before it had."""


def learn_from(
    corpus: Corpus,
    make_learner: Callable[[RowBlock], Learner],
    *,
    classes: Any = None,
    positive: Any = None,
    memory_limit: int = WEIGHT_MEMORY,
    report: Callable[[Moment], None] | None = None,
) -> Learner:
    """Learn from files, for as many epochs as the learner's `max_iter` says.

    The first epoch takes the rows in their order. Further ones read the cache, which more than
    one need; with `shuffle` they take its blocks, and the rows of each, in a new random order.

    Parameters
    ----------
    corpus : Corpus
    make_learner : callable
        Gives a learner for files whose first rows are these: a new one, or one to go on with.
    classes : array-like or None
        All classes; None: the labels of the files.
    positive : str or number, default=None
        A label that is to be told from all others.
    memory_limit : int
        Bytes that the weights may take.
    report : callable or None
        Is told the `Moment` whenever a block is done.

    Returns
    -------
    Learner

    Raises
    ------
    ValueError, OSError
        Says where, and what helps.
    """
    coder = None
    if positive is not None:
        coder = OneAgainstTheRest(positive)
    elif classes is not None:
        coder = ClassCodes(_checked_classes(np.array(classes)))
    try:
        return _Stream(corpus, make_learner, coder, memory_limit, report).run()
    except _NewClass:
        # Rare: what has been learned by then was for too few classes.
        coder = ClassCodes(_checked_classes(_all_labels(corpus)))
        return _Stream(corpus, make_learner, coder, memory_limit, report).run()


def _all_labels(corpus: Corpus) -> np.ndarray:
    table = LabelTable()
    for _ in corpus.scan(table, LARGEST_INDEX):
        pass
    return table.values()


def _checked_classes(labels: np.ndarray) -> np.ndarray:
    """The sorted classes among the labels.

    Raises
    ------
    ValueError
        If there is but one, or they are no classes but measurements.
    """
    if labels.dtype.kind == "f" and (labels % 1).any():
        odd = labels[labels % 1 != 0][0]
        raise ValueError(
            f"Labels such as {odd:g} are not classes but measurements, which a classifier can't "
            "learn. Give each class a number, or a word."
        )
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(f"There is one class only, {classes.tolist()}; at least 2 are needed.")
    return classes


class _Stream:
    """One run over the files."""

    def __init__(
        self,
        corpus: Corpus,
        make_learner: Callable[[RowBlock], Learner],
        coder: ClassCodes | OneAgainstTheRest | None,
        memory_limit: int,
        report: Callable[[Moment], None] | None,
    ) -> None:
        self.corpus, self.reading = corpus, corpus.reading
        self.make_learner, self.memory_limit, self.report = make_learner, memory_limit, report
        self.coder, self.told_classes = coder, coder is not None
        self.table = LabelTable()
        self.cache: RowCache | None = None
        self.lowest, self.highest = LARGEST_INDEX, -1
        self.started = time.perf_counter()
        self.epoch = self.rows = 0
        self.mistakes: int | None = 0

    # --------------------------------------------------------------------------------- epochs

    def run(self) -> Learner:
        self.learner: Learner | None = None
        try:
            with closing(self._first_pass()) as blocks:
                going_on = self._make_epoch((block, None) for block in blocks)
            while going_on:
                going_on = self._make_epoch(self._further_pass())
        except KeyboardInterrupt:
            if self.learner is None:
                raise
            warnings.warn(
                f"Interrupted after {self.rows:,} rows of epoch {self.epoch}: the model keeps what "
                "it had learned.",
                stacklevel=4,
            )
        return self._finish()

    def _first_pass(self) -> Generator[RowBlock]:
        if self.corpus.cache is None:
            yield from self._scan()
            return
        identity = self.corpus.identity()
        self.cache = find_cache(self.corpus.cache, identity)
        if self.cache is None:
            yield from self._write_cache(identity)
            self.cache = RowCache.open(self.corpus.cache)
        else:
            self.table.take(self.cache.label_texts, self.cache.label_numbers)
            for rows in self.cache.blocks():
                yield self._as_block(rows)

    def _scan(self) -> Iterator[RowBlock]:
        # Labels are not known yet, so the weights of one bound the indices; more when they are.
        return self.corpus.scan(self.table, self.memory_limit // 4)

    def _write_cache(self, identity: dict[str, Any]) -> Iterator[RowBlock]:
        reading = self.reading
        with RowCacheWriter(
            self.corpus.cache, identity, reading.dtype, reading.multilabel
        ) as writer:
            for block in self._scan():
                writer.append(
                    block.data, block.indices, block.indptr, block.labels, block.label_start
                )
                yield block
            writer.finish(self.table.texts, self.table.numbers, self.lowest, self.highest)

    def _further_pass(self) -> Iterator[tuple[RowBlock, np.ndarray | None]]:
        if self.seed is None:
            return ((self._as_block(rows), None) for rows in self.cache.blocks())
        passes = shuffled(self.cache, self.seed, self.epoch)
        return ((self._as_block(rows), order) for rows, order in passes)

    def _as_block(self, rows: CachedRows) -> RowBlock:
        return RowBlock(*rows, self.cache.lowest, self.cache.highest)

    def _make_epoch(self, blocks: Iterator[tuple[RowBlock, np.ndarray | None]]) -> bool:
        """Learn from the blocks; whether another epoch is to follow."""
        self.epoch += 1
        self.rows, self.mistakes = 0, 0
        before = self._corrections()
        for block, order in blocks:
            if block.n_rows:
                self._learn(block, order)
        if self.learner is None:
            raise ValueError(f"{self.corpus.names()}: no rows to learn from.")
        if self._corrections() == before:
            self._count_the_rest()
            return False
        return self.learner.max_iter is None or self.epoch < self.learner.max_iter

    def _corrections(self) -> int:
        if self.learner is None:
            return 0
        return int(self.learner._space.per_label("corrections").sum())

    def _count_the_rest(self) -> None:
        """Count the trials that would have followed without a correction."""
        if self.learner.max_iter is not None:
            space, left = self.learner._space, int(self.learner.max_iter) - self.epoch
            space.count_trials(space.trials + left * self.rows)

    # --------------------------------------------------------------------------------- blocks

    def _learn(self, block: RowBlock, order: np.ndarray | None) -> None:
        learner = self.learner or self._open(block)
        codes = self._codes(block)
        self._make_room(block)
        rows = Rows(block.data, block.indices, block.indptr, learner._space.n_features)
        mistakes = learner._learn_stream(Task(rows, codes, None, learner._class_weight), order)
        self.rows += block.n_rows
        self.mistakes = None if mistakes is None else self.mistakes + mistakes
        if self.report is not None:
            self.report(self._moment(block))

    def _open(self, block: RowBlock) -> Learner:
        """Begin to learn from files whose first rows are these."""
        learner = self.make_learner(block)
        if hasattr(learner, "classes_"):
            self.coder, self.told_classes = ClassCodes(learner.classes_), True
            learner._coef = None
        elif self.coder is None:
            labels = self.table.values()
            if len(labels) == 1 and self.corpus.rereadable and self.cache is None:
                raise _NewClass
            self.coder = ClassCodes(_checked_classes(labels))
        random = learner._random()
        self.seed = random.randint(LARGEST_SEED) if learner.shuffle else None
        if not hasattr(learner, "classes_"):
            self._open_stream(learner, block, random.randint(LARGEST_SEED))
        self.learner = learner
        return learner

    def _open_stream(self, learner: Learner, block: RowBlock, slice_seed: int) -> None:
        width = self.reading.n_columns
        learner._check_streams(grows=width is None)
        learner._coef = None
        rows = Rows(block.data, block.indices, block.indptr, width or 1)
        learner._open_stream(rows, self.coder.classes, slice_seed, grows=width is None)
        needed = (width or 1) * learner._bytes_per_feature()
        if needed > self.memory_limit:
            raise ValueError(
                f"{width} features take {needed:,} bytes of weights, more than "
                f"memory_limit={self.memory_limit:,}. Raise it, or pass a smaller hash_bits."
            )

    def _codes(self, block: RowBlock) -> np.ndarray:
        try:
            return self.coder.of_rows(self.table, block.labels, block.label_start)
        except UnknownLabelError as error:
            if self.told_classes or not self.corpus.rereadable:
                refuse_label(error, block, self.coder.classes)
            raise _NewClass from None

    def _make_room(self, block: RowBlock) -> None:
        """Let the weights reach as far as the rows do."""
        self.lowest = min(self.lowest, block.lowest)
        self.highest = max(self.highest, block.highest)
        space = self.learner._space
        needed = self.reading.columns_up_to(self.highest)
        if needed <= space.n_features:
            return
        most = self.memory_limit // self.learner._bytes_per_feature()
        if needed > most:
            refuse_index(block, self.reading, most)
        space.resize(min(int(needed * _GROWTH), most))

    def _moment(self, block: RowBlock) -> Moment:
        return Moment(
            self.epoch, self._consumed(block), self.corpus.size, self.rows,
            self.reading.columns_up_to(self.highest), self._corrections(), self.mistakes,
            time.perf_counter() - self.started,
        )  # fmt: skip

    def _consumed(self, block: RowBlock) -> int:
        """Bytes of the files that this epoch's rows so far take there."""
        if block.text is not None:
            return self.corpus.bytes_before(block.text.source) + block.text.consumed
        return (self.corpus.size or 0) * self.rows // self.cache.n_rows

    def _finish(self) -> Learner:
        """Let the features be those there turned out to be."""
        learner, reading = self.learner, self.reading
        first = 1 if reading.drops_index_0(self.lowest) else 0
        found = max(reading.columns_up_to(self.highest) - first, 1)
        n_features = reading.n_features or max(found, getattr(learner, "n_features_in_", 0))
        if found > n_features:
            raise ValueError(
                f"{self.corpus.names()}: index {self.highest} is beyond n_features={n_features}, as "
                "index 0 occurs too. Pass a larger n_features."
            )
        learner._space.resize(n_features, first)
        learner.n_features_in_ = learner._space.n_features
        learner.n_iter_ = float(self.epoch)
        learner._reading = reading.columns_with(first)
        return learner
