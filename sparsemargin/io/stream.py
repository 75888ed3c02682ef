"""Learning from files row by row, in memory that does not depend on their length."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sparsemargin._checks import check_count
from sparsemargin._engine.fitting.epochs import Patience, count_trials
from sparsemargin._engine.fitting.task import warn_user
from sparsemargin._engine.fitting.threads import interruptible, uninterrupted
from sparsemargin._version import __version__
from sparsemargin.io.checkpoints import Checkpoint
from sparsemargin.io.label_order import LabelOrder
from sparsemargin.io.passes import Passes
from sparsemargin.io.reading import (
    FORM,
    Corpus,
    Reading,
    SettingsError,
    columns_of,
    located_index,
    located_label,
    threads_for,
)
from sparsemargin.io.row_cache import default_cache_path
from sparsemargin.io.rows import LabelledRows, joined
from sparsemargin.io.sources import File, PathLike, Source, open_sources
from sparsemargin.models import LEARNERS, Algorithm, Learner, find_algorithm, without_defaults
from sparsemargin.models.base import LARGEST_SEED
from sparsemargin.models.class_weights import Targets
from sparsemargin.models.fitted import Beginning, count_labels
from sparsemargin.models.labels import (
    LabelEncoder,
    MultilabelEncoder,
    UnknownLabelError,
    encoder_of,
    first_labels,
    label_sets,
    told_encoder,
)
from sparsemargin.models.outputs import (
    ROWS_TOLD,
    SampledRows,
    most_frequent,
    sample_of,
    warn_of_one_class,
)
from sparsemargin.models.rows import ROWS_MEASURED, Rows, refusing
from sparsemargin.models.selection import MOST_ROWS, select, settled

#: Bytes that the weights, or a kernel's pool, may take unless another limit is given.
WEIGHT_MEMORY = 1 << 30

# Of a float32 weight vector for one label.
_LEAST_PER_FEATURE = 4

# Mistakes that no loop could count: see `Loop.mistakes`.
_UNKNOWN = -(1 << 62)

# Seconds between two checkpoints.
_CHECKPOINT_EVERY = 300.0

# When features come that there is no room for, the weights get room for so many times as many.
_GROWTH = 1.5


MakeLearner = Callable[[], Learner]


@dataclass(frozen=True)
class Moment:
    """How far learning has come: the epoch under way, from 1; bytes and rows read in it; bytes of
    all files, None where not known; features and corrections so far; rows of this epoch predicted
    wrongly just before they were learned from, None where not known; seconds since it began."""

    epoch: int
    consumed: int
    size: int | None
    rows: int
    features: int
    corrections: int
    mistakes: int | None
    seconds: float


class Interruption(UserWarning):
    """Ctrl-C has ended learning from files; what had been learned by then is kept."""


class _NewClass(Exception):
    """A label turned up that is none of those the rows before it had."""


class _SortedRows(Exception):
    """The rows came sorted by their labels, and can be mixed by the seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed = seed


def learn_svmlight(
    path: File | Iterable[File],
    algo: Algorithm | None = None,
    *,
    classes: Any = None,
    positive: Any = None,
    multilabel: bool = False,
    n_features: int | None = None,
    hash_bits: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: Any = np.float64,
    cache: bool | PathLike = False,
    memory_limit: int = WEIGHT_MEMORY,
    init_model: Any = None,
    n_jobs: int | None = None,
    max_iter: int | None = 1,
    report: Callable[[Moment], None] | None = None,
    checkpoint: PathLike | None = None,
    resume: bool = False,
    **params: Any,
) -> Learner:
    """`sparsemargin.fit_svmlight` without scikit-learn: gives a learner. `report` is told the
    `Moment` whenever a block of rows has been learned from.

    `checkpoint` is a file that is written every few minutes, and when Ctrl-C ends learning, which
    then waits for the block under way; with `resume` it is gone on from, to the bit. The files
    must be such as can be read again.
    """
    sources = open_sources(path)
    with _blaming_settings():
        check_count("memory_limit", memory_limit, 1, sys.maxsize)
        features: dict[str, Any]
        if init_model is None:
            params |= {"max_iter": max_iter, "n_jobs": n_jobs}
            make = _new_learner(algo, params, multilabel, n_features is None and hash_bits is None)
            features = {"zero_based": zero_based, "n_features": n_features, "hash_bits": hash_bits}
        elif algo is not None or params or n_features or hash_bits:
            raise ValueError(
                "init_model goes on with its own algorithm, parameters and features: pass none "
                "with it."
            )
        else:
            make = partial(_copy, init_model, max_iter)
            multilabel, features = _form_of(make(), multilabel, zero_based)
        _check_one_of(multilabel, positive)
        reading = Reading(dtype=dtype, multilabel=multilabel or positive is not None, **features)
        balanced = params.get("class_weight") == "balanced"
        kept = _cache_of(cache, sources, max_iter)
        corpus = _corpus_of(sources, reading, n_jobs, kept, balanced=balanced)
        encoder = told_encoder(classes, positive, reading.multilabel)
    if algo is None and init_model is None and corpus.rereadable and not multilabel:
        one_class = told_encoder(classes, positive, False)
        make = _selected(corpus, one_class, params, memory_limit // _LEAST_PER_FEATURE) or make
    saved = None
    if checkpoint is not None:
        made_by = {"library": __version__, "files": corpus.identity(), "positive": positive}
        saved = Checkpoint(checkpoint, made_by, make() if resume else None)
    return _run(corpus, make, encoder, memory_limit, report, saved, balanced=balanced)


def _form_of(
    earlier: Learner, multilabel: bool, zero_based: bool | Literal["auto"]
) -> tuple[bool, dict[str, Any]]:
    """Whether a model that learning goes on with has many labels, and how its files are read."""
    if multilabel and not earlier._fitted.many:
        raise ValueError(
            "init_model has learned one class a row, and can't go on with multilabel=True. Leave "
            "one of the two out."
        )
    return earlier._fitted.many, columns_of(earlier, zero_based)


def _check_one_of(multilabel: bool, positive: Any) -> None:
    if multilabel and positive is not None:
        raise ValueError(
            f"positive={positive!r} is told from all other labels, and a model of many labels "
            "learns each of them. Leave one of the two out."
        )


def _corpus_of(
    sources: list[Source], reading: Reading, n_jobs: int | None, cache: Path | bool,
    *, balanced: bool,
) -> Corpus:  # fmt: skip
    """The files, which can be read as often as balanced weights ask for."""
    # The caller's thread reads and learns.
    corpus = Corpus(sources, reading, threads_for(n_jobs, beside=1), cache, purpose="learning")
    if balanced and not (cache or corpus.rereadable):
        raise ValueError(
            f"class_weight='balanced' counts the rows of each class first, and {corpus.names} can "
            "be read only once. Pass cache=PATH, which keeps the rows, or the weights themselves."
        )
    return corpus


def _run(
    corpus: Corpus, make: MakeLearner, encoder: LabelEncoder | None, memory_limit: int,
    report: Callable[[Moment], None] | None, saved: Checkpoint | None, *, balanced: bool,
) -> Learner:  # fmt: skip
    """Learn, again from the beginning where that was begun in a wrong way; balanced: the classes
    weigh by their rows."""
    # Until the number of labels is known, the weights of one bound the indices.
    passes = Passes(corpus, memory_limit // _LEAST_PER_FEATURE)
    if saved is not None and saved.found is not None:
        passes.mixing = saved.found[1]["mixing"]
    while True:
        try:
            stream = _Stream(passes, make, encoder, memory_limit, report, saved)
            return stream.run(balanced=balanced)
        except _NewClass:
            # What has been learned by then was for too few classes.
            with interruptible():
                labels = corpus.all_labels()
            encoder = encoder_of(labels, corpus.names, corpus.reading.multilabel)
        except _SortedRows as found:
            passes.mixing = found.seed
        if saved is not None:
            saved.found = None


@contextmanager
def _blaming_settings() -> Iterator[None]:
    """Let errors tell that it is the arguments that are wrong."""
    try:
        yield
    except ValueError as error:
        raise SettingsError(*error.args) from None


def _new_learner(algo: Any, params: dict[str, Any], multilabel: bool, grows: bool) -> MakeLearner:
    # Wrong names and values are told of before a file is read.
    learner, known = find_algorithm(algo, params)
    unopened = learner(**known)
    unopened._check_streams(grows=grows)
    if multilabel and not unopened._takes_many_labels:
        unopened._refuse_many_labels()

    return lambda: learner(**known)


def _selected(
    corpus: Corpus, encoder: LabelEncoder | None, params: dict[str, Any], max_index: int
) -> MakeLearner | None:
    """What the first rows of all are learned by best; None: the parameters or the rows don't leave
    that open."""
    params = without_defaults(params)
    if settled(params) is not None:
        return None
    passes, some, n_rows = Passes(replace(corpus, cache=False), max_index), [], 0
    with interruptible(), closing(passes.first()) as blocks:
        for block in blocks:
            some.append(block.copied())
            n_rows += block.n_rows
            if n_rows >= MOST_ROWS:
                break
    if encoder is None and len(passes.table.texts) > 1:
        encoder = encoder_of(passes.table.values(), corpus.names, False)
    if encoder is None or not n_rows:
        return None  # of which learning tells
    first = joined(some)
    try:
        codes = encoder.transform_ids(passes.table, first.labels, first.label_start)
    except UnknownLabelError:
        return None
    rows = first.with_columns(max(1, corpus.reading.columns_up_to(passes.highest)))
    # A class that comes later may have a weight.
    of_race = dict(params)
    if isinstance(weight := params.get("class_weight"), Mapping):
        known = encoder.classes.tolist()
        of_race["class_weight"] = {name: weight[name] for name in weight if name in known}
    return partial(select(rows, codes, encoder.classes, of_race).learner, params)


def _copy(model: Any, max_iter: int | None) -> Learner:
    """A learner that goes on where the model is, which stays as it is."""
    if isinstance(model, str | os.PathLike):
        raise ValueError(
            f"init_model={model!r} is a path. Pass the model: load_model of that path."
        )
    if model._learned is None:
        raise ValueError("init_model has not learned anything yet. Pass a fitted model, or None.")
    earlier = deepcopy(model)
    learner = LEARNERS[model.classifier](**earlier._parameters())._take_over(earlier)
    learner.max_iter = max_iter
    learner._check_structure("init_model")
    learner._check_streams(grows=False)
    return learner


def _cache_of(cache: bool | PathLike, sources: list[Source], max_iter: int | None) -> Path | bool:
    """Where the rows are kept, as `Corpus` says."""
    if not cache:
        return max_iter != 1
    if not isinstance(cache, bool):
        return Path(cache)
    once = [source.name for source in sources if not source.rereadable]
    if once:
        raise ValueError(
            f"{once[0]} can be read only once, and has no place beside it. Pass cache=PATH for a "
            "file that keeps its rows."
        )
    return default_cache_path([source.name for source in sources])


class _Stream:
    """One run over the files."""

    learner: Learner
    encoder: LabelEncoder
    seed: int | None
    # Number of the first row, for those that number rows; corrections before the epoch.
    first_row: int
    before: int

    def __init__(
        self,
        passes: Passes,
        make_learner: MakeLearner,
        encoder: LabelEncoder | None,
        memory_limit: int,
        report: Callable[[Moment], None] | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.passes, self.corpus, self.reading = passes, passes.corpus, passes.corpus.reading
        self.make_learner, self.memory_limit, self.report = make_learner, memory_limit, report
        self.label_order = LabelOrder()
        self.told_classes = encoder is not None
        if encoder is not None:
            self.encoder = encoder
        self.opened = False
        # Blocks of the first rows that are not learned from yet.
        self.beginning: list[LabelledRows] = []
        self.started = time.perf_counter()
        self.epoch = self.rows = self.mistakes = 0
        # As of `rows_by_class`, where class weights need them.
        self.counts: np.ndarray | None = None
        self.patience: Patience | None = None
        self.checkpoint, self.written = checkpoint, self.started
        # What a checkpoint tells of where the run is; None: there is nothing to go on from.
        self.position: dict[str, Any] | None = None
        # Where the run goes on, until it is there: rows before have been learned from.
        self.resumed: Moment | None = None
        # Some of the rows of the first block, and of those after it that have another class.
        self.samples: list[SampledRows] = []

    def run(self, *, balanced: bool) -> Learner:
        interrupted = False
        with uninterrupted() as held:
            try:
                with interruptible():
                    self._make_epochs(balanced=balanced)
            except KeyboardInterrupt:
                if not self.opened:
                    raise
                interrupted = True
                self._write_checkpoint()
            learner = self._finish()
            if interrupted or held:
                held.clear()
                warn_user(
                    f"Interrupted after {self.rows:,} rows of epoch {self.epoch}: the model keeps "
                    "what it had learned." + self._way_on(),
                    Interruption,
                )
        return learner

    def _make_epochs(self, *, balanced: bool) -> None:
        if self.checkpoint is not None and self.checkpoint.found is not None:
            self._resume(*self.checkpoint.found)
        elif balanced:
            self._count_rows()
        if self.epoch:
            self.passes.keep()
            going_on = True
        elif self.passes.mixing is None:
            with closing(self.passes.first()) as blocks:
                going_on = self._make_epoch((block, None) for block in self._begun(blocks))
            self._check_positive()
            self._check_order()
        else:
            self.passes.keep()
            going_on = self._make_epoch(self.passes.again(self.passes.mixing, 1))
        while going_on:
            going_on = self._make_epoch(self.passes.again(self.seed, self.epoch + 1))

    def _check_order(self) -> None:
        """Learn anew from rows that were sorted by their labels, in random order, or say that it
        must be done."""
        order, names = self.label_order, self.corpus.names
        if not order.is_sorted:
            return
        if self.seed is None or not (self.passes.cache or self.corpus.rereadable):
            warn_user(order.warning(names))
            return
        warn_user(
            f"{order.told(names)} So they are learned from anew in random order, by way of a row "
            "cache; shuffle=False keeps the order of the file."
        )
        raise _SortedRows(self.seed)

    def _count_rows(self) -> None:
        """Count the rows of each class, in a pass of their own, by which all classes are known."""
        table, n_rows, by_id = self.passes.table, 0, np.zeros(0, dtype=np.int64)
        with closing(self.passes.first()) as blocks:
            for block in blocks:
                ids, n_rows, n_ids = block.labels, n_rows + block.n_rows, len(table.texts)
                if block.label_start is not None:
                    ids = label_sets(ids, block.label_start, n_ids).labels
                by_id = np.append(by_id, np.zeros(n_ids - len(by_id), dtype=np.int64))
                by_id += np.bincount(ids, minlength=n_ids)
        if not n_rows:
            return  # of which learning tells
        if not self.told_classes:
            self.encoder = encoder_of(table.values(), self.corpus.names, self.reading.multilabel)
            self.told_classes = True
        self._check_positive()
        # One that no row has is found at the end.
        by_id, positive = np.append(by_id, 0), self.encoder.positive
        labels = self.encoder.classes.tolist() if positive is None else [positive]
        counts = by_id[[table.find(label) for label in labels]]
        if positive is not None:
            counts = np.append(n_rows - counts, counts)
        self.counts = np.vstack([n_rows - counts, counts])

    def _begun(self, blocks: Iterator[LabelledRows]) -> Iterator[LabelledRows]:
        """All blocks; the first ones wait until there are the rows that a model measures."""
        n_rows = 0
        for block in blocks:
            n_rows += block.n_rows
            enough = n_rows >= ROWS_MEASURED
            self.beginning.append(block if enough else block.copied())
            if enough:
                break
        while self.beginning:
            yield self.beginning.pop(0)
        yield from blocks

    def _make_epoch(self, blocks: Iterator[tuple[LabelledRows, np.ndarray | None]]) -> bool:
        """Learn from the blocks; whether another epoch is to follow."""
        self.epoch += 1
        self.rows = self.mistakes = 0
        if self.resumed is None:
            self.before = self._corrections() if self.opened else 0
        for block, order in blocks:
            if block.n_rows:
                self._learn(block, order)
        if not self.opened:
            raise ValueError(f"{self.corpus.names} has no rows. {FORM}.")
        max_iter, made = self.learner.max_iter, self._corrections() - self.before
        if self.epoch == 1:
            self.patience = self.learner._patience
        over = self.patience is not None and self.patience.is_over(made)
        if made:
            return not over and (max_iter is None or self.epoch < max_iter)
        # From here on there is nothing to resume.
        self.position = None
        if max_iter is not None:
            # The trials that would have followed without a correction count in the average.
            space = self.learner._space
            left = count_trials(max_iter, self.rows) - self.epoch * self.rows
            space.count_trials(space.trials + left)
        return False

    def _corrections(self) -> int:
        return int(self.learner._space.per_label("corrections").sum())

    def _learn(self, block: LabelledRows, order: np.ndarray | None) -> None:
        # A checkpoint is of whole blocks.
        with nullcontext() if self.checkpoint is None else uninterrupted():
            if not self.opened:
                self._open(block)
            targets = self._targets(block)
            self.label_order.see(targets, order)
            if self.resumed is not None:
                self._pass_over(block, targets)
                return
            self._make_room(block)
            rows = self._learn_rows(block, targets, order)
            self._sample(rows, targets)
            self.rows += block.n_rows
            moment = self._moment(self.passes.consumed(block, self.rows))
            self.position = self._position(moment)
            if self.report is not None:
                self.report(moment)
        if time.perf_counter() - self.written > _CHECKPOINT_EVERY:
            self._write_checkpoint()

    def _targets(self, block: LabelledRows) -> Targets:
        """The classes of the rows."""
        try:
            return self.encoder.transform_ids(self.passes.table, block.labels, block.label_start)
        except UnknownLabelError as error:
            if self.passes.labels_may_come and not self.told_classes:
                raise _NewClass from None
            known = self.encoder.classes.tolist()
            raise located_label(error.row, error.label, block.text, known) from None

    def _learn_rows(self, block: LabelledRows, targets: Targets, order: np.ndarray | None) -> Rows:
        learner = self.learner
        rows = block.with_columns(learner._space.n_features)
        first_row = self.rows if block.first_row is None else block.first_row
        task = learner._task(rows, targets, None, first_row=self.first_row + first_row)
        with refusing(rows, first_row):
            mistakes = learner._learn_stream(task, order)
        self._check_memory()
        self.mistakes = _UNKNOWN if mistakes is None else self.mistakes + mistakes
        return rows

    def _moment(self, consumed: int) -> Moment:
        mistakes = None if self.mistakes < 0 else self.mistakes
        return Moment(
            self.epoch, consumed, self.passes.n_bytes, self.rows, self._n_features(),
            self._corrections(), mistakes, time.perf_counter() - self.started,
        )  # fmt: skip

    def _position(self, moment: Moment) -> dict[str, Any]:
        """Where the run is; all of it plain, as it is then."""
        patience = None if self.patience is None else asdict(self.patience)
        return {
            "moment": asdict(moment), "before": self.before, "patience": patience,
            "seed": self.seed, "mixing": self.passes.mixing, "first_row": self.first_row,
            "told_classes": self.told_classes,
            "lowest": self.passes.lowest, "highest": self.passes.highest,
        }  # fmt: skip

    def _way_on(self) -> str:
        """What to do after Ctrl-C."""
        if self.checkpoint is None or self.position is None:
            return ""
        return f" resume=True goes on from {self.checkpoint.path}."

    def _write_checkpoint(self) -> None:
        if self.checkpoint is not None and self.position is not None:
            self.checkpoint.write(self.learner, self.position)
            self.written = time.perf_counter()

    def _resume(self, learner: Learner, position: dict[str, Any]) -> None:
        """Be where a checkpoint was written, but for the rows, which are to be passed over."""
        told = dict(position)
        moment, patience = Moment(**told["moment"]), told["patience"]
        self._keep_classes(learner)
        self.told_classes = told["told_classes"]
        self.patience = None if patience is None else Patience(**patience)
        self.seed, self.first_row, self.before = told["seed"], told["first_row"], told["before"]
        self.passes.lowest, self.passes.highest = told["lowest"], told["highest"]
        self.learner, self.position, self.resumed, self.opened = learner, position, moment, True
        self.epoch, self.started = moment.epoch - 1, self.started - moment.seconds
        if self.report is not None:
            if self.epoch:
                before = replace(moment, epoch=self.epoch, corrections=self.before, mistakes=None)
                self.report(before)
            self.report(moment)

    def _pass_over(self, block: LabelledRows, targets: Targets) -> None:
        """Take rows as learned from, up to where the run goes on."""
        assert self.resumed is not None
        self._sample(block.with_columns(self.learner._space.n_features), targets)
        self.rows += block.n_rows
        if self.rows > self.resumed.rows:
            raise ValueError(
                f"{self.corpus.names}: the rows come in other blocks than before, and the run "
                "can't be resumed. Leave resume out to learn from the beginning."
            )
        if self.rows == self.resumed.rows:
            mistakes, self.resumed = self.resumed.mistakes, None
            self.mistakes = _UNKNOWN if mistakes is None else mistakes

    def _open(self, block: LabelledRows) -> None:
        """Begin to learn from files whose first rows are these."""
        learner = self.learner = self.make_learner()
        goes_on = learner._learned is not None
        if goes_on:
            self._keep_classes(learner)
            learner._fitted.trials_before = learner._space.trials
        elif not self.told_classes:
            self._find_classes()
        random = learner._random()
        self.seed = random.randint(LARGEST_SEED) if learner.shuffle else None
        if not goes_on:
            n_columns = self.reading.n_columns
            rows = block.with_columns(n_columns or 1)
            needed = rows.n_features * self._bytes_per_feature(block, rows.n_features)
            if needed > self.memory_limit:
                raise ValueError(
                    f"{rows.n_features:,} features take {needed:,} bytes of weights, more than "
                    f"memory_limit={self.memory_limit:,}. Raise it, or pass a smaller hash_bits."
                )
            many = isinstance(self.encoder, MultilabelEncoder)
            first = Beginning(
                rows, self.encoder.classes, "lists" if many else None, self.counts,
                [each.with_columns(rows.n_features) for each in (block, *self.beginning)],
                grows=n_columns is None,
            )  # fmt: skip
            learner._open_stream(first, random.randint(LARGEST_SEED))
        self.first_row = learner._space.first_new_row
        self.opened = True

    def _keep_classes(self, learner: Learner) -> None:
        """Go on with the classes that a model has learned."""
        classes = learner.classes_
        if not self.told_classes:
            encoder = MultilabelEncoder if learner._fitted.many else LabelEncoder
            self.encoder, self.told_classes = encoder.of_text(classes), True
        elif not np.array_equal(self.encoder.classes, classes):
            raise ValueError(
                f"The model has learned the classes {first_labels(classes.tolist())}, not "
                f"{first_labels(self.encoder.classes.tolist())}. It can't learn others."
            )

    def _find_classes(self) -> None:
        table = self.passes.table
        weighted = self.learner.class_weight
        named = weighted if isinstance(weighted, dict) else {}
        least = 1 if self.reading.multilabel else 2
        if len(table.texts) < least or any(table.find(label) < 0 for label in named):
            if self.passes.labels_may_come:
                raise _NewClass
            if not self.corpus.rereadable:
                known = first_labels(table.texts)
                found = f"the labels {known} only" if known else "no labels"
                raise ValueError(
                    f"The first rows of {self.corpus.names} have {found}, and it can't be read "
                    "twice. Pass all labels there will be as classes=[...]."
                )
        self.encoder = encoder_of(table.values(), self.corpus.names, self.reading.multilabel)

    def _bytes_per_feature(self, block: LabelledRows, n_features: int) -> int:
        n_labels = count_labels(self.encoder.classes, isinstance(self.encoder, MultilabelEncoder))
        return self.learner._bytes_per_feature(block.data.dtype, n_labels, n_features)

    def _make_room(self, block: LabelledRows) -> None:
        """Let the weights reach as far as the rows do."""
        space = self.learner._space
        needed = self.reading.columns_up_to(block.highest)
        if needed <= space.n_features:
            return
        needs = partial(self._bytes_per_feature, block)
        most = self.memory_limit // needs(1)
        # Each takes less where they are so many that labels are learned in blocks.
        while (more := self.memory_limit // needs(most + 1)) > most:
            most = more
        if needed > most:
            raise located_index(block.highest, block.text, self.reading, most)
        known = self.reading.n_columns
        self.learner._resize(needed if known is not None else min(int(needed * _GROWTH), most))

    def _check_memory(self) -> None:
        """Refuse to let what corrections make take more memory than there is for it."""
        space = self.learner._space
        if space.growth is not None and space.nbytes > self.memory_limit:
            what, smaller = space.growth
            raise ValueError(
                f"{what} {space.nbytes:,} bytes, more than memory_limit={self.memory_limit:,}. "
                f"Raise it, or pass a smaller {smaller}."
            )

    def _sample(self, rows: Rows, targets: Targets) -> None:
        """Keep some rows by which the model is judged at the end, few of them of the most frequent
        class."""
        if self.epoch > 1 or sum(len(codes) for _, codes in self.samples) > 2 * ROWS_TOLD:
            return
        frequent = most_frequent(self.samples[0][1]) if self.samples else None
        sample = sample_of(self.learner, rows, targets, frequent=frequent)
        if sample is not None:
            self.samples.append(sample)

    def _n_features(self) -> int:
        """As many as there are known to be by now."""
        reading, passes = self.reading, self.passes
        return reading.columns_up_to(passes.highest) - reading.drops_column_0(passes.lowest)

    def _finish(self) -> Learner:
        """Let the features be those there turned out to be."""
        learner, reading, passes = self.learner, self.reading, self.passes
        n_features = learner._space.n_features
        warn_of_one_class(learner, [
            (Rows(*rows.arrays, n_features), codes) for rows, codes in self.samples
        ])  # fmt: skip
        first = int(reading.drops_column_0(passes.lowest))
        found = self._n_features()
        if passes.highest < 0:
            raise ValueError(
                f"{self.corpus.names} has labels but no features: nothing can be learned from it. "
                f"{FORM}."
            )
        before = vars(learner).get("n_features_in_", 0)
        n_features = reading.n_features or max(found, before)
        if found > n_features:
            raise ValueError(
                f"{self.corpus.names}: index {passes.highest} is beyond n_features={n_features}, "
                "as index 0 occurs too. Pass a larger n_features."
            )
        learner._resize(n_features, first)
        if n_features > before:
            # Features that come from a file have no names.
            vars(learner).pop("feature_names_in_", None)
        fitted, learner.n_features_in_ = learner._fitted, n_features
        fitted.n_iter = float(self.epoch)
        fitted.reading = reading.settled(passes.lowest)
        return learner

    def _check_positive(self) -> None:
        """Refuse a label that no row has: it may be misspelt."""
        positive, table = self.encoder.positive, self.passes.table
        if positive is not None and table.find(positive) < 0:
            raise ValueError(
                f"{self.corpus.names}: no row has the label positive={positive!r}. There are: "
                f"{first_labels(table.texts)}."
            )
