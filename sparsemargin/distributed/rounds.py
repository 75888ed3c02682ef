"""The rounds of a fit over shards: an epoch on each shard, then the mixture."""

from __future__ import annotations

import copy
import os
import pickle
import time
import warnings
import zlib
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from math import inf
from typing import Any, Literal

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.fitting.epochs import Patience, count_trials
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.fitting.threads import uninterrupted
from sparsemargin._engine.mixing.coordinates import ColumnSet
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._version import __version__
from sparsemargin.distributed.backends import Backend, LostScheduler, imported_dask
from sparsemargin.distributed.dual_vectors import VectorMixer
from sparsemargin.distributed.labels_of_shards import warn_of_labels
from sparsemargin.distributed.mistakes import MistakesMixer
from sparsemargin.distributed.mixing import (
    Learned,
    Mixer,
    Mixing,
    Mixture,
    RingMixer,
    ShardEpoch,
    Update,
    bytes_of,
)
from sparsemargin.distributed.row_makers import RowMaker
from sparsemargin.distributed.schema import WHOLE, Part, Schema, Survey
from sparsemargin.distributed.shards import Shard, names_of
from sparsemargin.distributed.tally import Tally, added
from sparsemargin.files.remote import exists
from sparsemargin.models import Learner
from sparsemargin.models.inputs.rows import naming_bad_rows
from sparsemargin.saving.model_files import set_aside
from sparsemargin.saving.steps import encoded
from sparsemargin.saving.wrappers import unwrapped
from sparsemargin.streaming.checkpoints import Checkpoint
from sparsemargin.streaming.label_order import LabelOrder
from sparsemargin.streaming.options import FitOptions
from sparsemargin.streaming.report import Interruption, Progress


@dataclass(frozen=True)
class Plan:
    """The constant data of a fit."""

    learner: Learner  # a learner that has not been trained
    slice_seed: int
    epoch_type: type[ShardEpoch]
    schema: Schema
    seed: int | None  # seed of the shuffling
    library: str  # version of the library that all processes must have
    has_bias: bool
    n_shards: int

    def open(self, shard: Shard, part: Part) -> tuple[Learner, ColumnSet | None, tuple[Any, ...]]:
        """A learner for a part of the rows of a shard. If the space of the epoch has only the
        columns of these rows, also these columns, as a set and as an array."""
        learner, schema = copy.copy(self.learner), self.schema
        n, chosen = schema.n_columns, None
        at: tuple[Any, ...] = ()
        if self.epoch_type.narrows:
            n_all = n + self.has_bias
            chosen = ColumnSet(n_all)
            for indices in shard.indices(schema, part):
                chosen.add(indices)
            # The last column is always included. It belongs to the intercept, if there is one.
            chosen.add(np.array([n_all - 1], np.int64))
            columns = chosen.close()
            n, at = len(columns) + 1 - self.has_bias, (columns,)
        learner.open_stream(schema.beginning(n), self.slice_seed)
        return learner, chosen, at


def check_library(library: str) -> None:
    """Raise an error if the calling process has another version of the library."""
    if library != __version__:
        worker = imported_dask().distributed.get_worker()
        raise ConnectionError(
            f"The worker at {worker.address} has sparsemargin {__version__}, this process "
            f"{library}. Install the same version."
        )


def survey(shard: Shard, library: str) -> Survey:
    """The facts about a shard needed before training."""
    check_library(library)
    return shard.survey()


def terms_of(shard: Shard, step: Any) -> bytes:
    """The terms of the vectorizer's columns, pickled, because Dask would serialize each term
    separately."""
    return pickle.dumps(shard.terms(deepcopy(step)))


def learn_part(shard: Shard, plan: Plan, number: int, part: Part, *start: Any) -> Learned:
    """Train on a part of a shard once, as a fit on one machine would."""
    check_library(plan.library)
    learner, chosen, at = plan.open(shard, part)
    epoch = plan.epoch_type(learner, *at, *start)
    space = epoch.space
    corrections, trials = space.per_vector("corrections").copy(), space.trials
    mistakes: int | None = 0
    label_order = LabelOrder()
    kept = learner.fitted.progress if number == 1 else None
    if kept is not None:
        kept = kept.fewer(part.of * plan.n_shards // (part.stop - part.start))
    blocks = shard.epoch(plan.schema, plan.seed, number, part)
    for rows, targets, first_row, order in blocks:
        if not rows.n_rows:
            continue
        if chosen is not None:
            # An additional last feature stands for all other columns. No row has it.
            indices = chosen.positions(rows.indices)
            rows = Csr(rows.data, indices, rows.indptr, space.n_features)
        # Shuffling within parts is ignored, because it leaves a sorted shard sorted.
        label_order.add(targets, order if part == WHOLE else None)
        task = learner.make_task(
            rows, targets, None, first_row=first_row, progress=kept, distinct=True
        )
        with naming_bad_rows(rows, first_row):
            mistakes = added(mistakes, epoch.learn(learner, task, order))
    made, trials = space.per_vector("corrections") - corrections, space.trials - trials
    pieces = epoch.learned()
    progress = None if kept is None else epoch.sent_progress(kept)
    update = Update(
        trials, made, mistakes, learner.fitted.rows_by_class, label_order, epoch.scalars(),
        bytes_of(start), bytes_of(pieces), progress,
    )  # fmt: skip
    return Learned(update, pieces)


@dataclass(frozen=True)
class Round:
    """One epoch on every shard, and the resulting mixture.

    Attributes
    ----------
    epoch : int
        Number of the epoch, from 1.
    corrections : tuple of int
        Corrections of each shard in this epoch, summed over all vectors.
    trials : int
        Trials of all shards in this epoch.
    mixtures : int
        Number of mixtures in this epoch; for a ring, the number of visits to a shard.
    bytes_sent : int
        Bytes of the mixtures that are sent for one shard; the maximum over the shards.
    bytes_received : int
        Bytes of the changes of all shards.
    seconds : float
        Duration of the epoch in seconds.
    """

    epoch: int
    corrections: tuple[int, ...]
    trials: int
    mixtures: int
    bytes_sent: int
    bytes_received: int
    seconds: float
    _finished: Callable[[], Learner] = field(repr=False)

    def model(self) -> Any:
        """The current mixture as a classifier."""
        # Imported here because scikit-learn takes a second, and few callers need the model.
        from sparsemargin.estimators.classifiers import as_classifier

        return as_classifier(self._finished())


# Up to this number of shards, a ring is used if there is a vector for each shard.
_RING_SHARDS = 8


def suits_ring(n_vectors: int, n_shards: int) -> bool:
    """Return whether a ring is the default for vectors that are trained one by one.

    Each of the n_shards groups of vectors reads the rows of all shards, so that many shards need
    groups of several vectors. For 250 MB of texts with 20 classes and 2 million columns in 16
    shards, two workers took 81 s with a ring and 21 s with mixtures.
    """
    return n_vectors >= max(n_shards, n_shards**2 / _RING_SHARDS)


#: Default of `min_rows`, chosen on `zipf`, `reviews` and `messages` of benchmarks/scale.py. With
#: 250 or 500 rows, the error on `messages` is higher than on one machine; with 2,000 rows, the
#: error on `reviews` is.
MIN_ROWS = 1000


@dataclass
class ShardOptions(FitOptions):
    """The arguments of `fit_distributed`."""

    max_iter: int | Literal["auto"] | None = "auto"  # type: ignore[assignment]
    client: Any = None
    mixing: Mixing = "auto"
    min_rows: int = MIN_ROWS
    cache_dir: str | os.PathLike[str] | None = None
    on_round: Callable[[Round], None] | None = None
    row_maker: RowMaker | None = None


@dataclass(frozen=True)
class Position:
    """The mixture after an epoch, and everything needed to continue the fit from it. A position is
    never changed, so an interrupted epoch has no effect."""

    state: Any  # state of the mixer
    epoch: int = 0
    trials: int = 0  # trials of the epoch
    converged: bool = False
    is_over: bool = False
    patience: Patience | None = None
    # Progress at the end of the first epoch and of the last two.
    ended: tuple[Progress, ...] = ()
    rows_by_class: Any = None
    progress: ProgressiveOutputs | None = None

    def saved(self) -> dict[str, Any]:
        """The plain values that a checkpoint holds."""
        names = "epoch", "trials", "converged", "is_over"
        patience = None if self.patience is None else asdict(self.patience)
        more = {"patience": patience, "ended": [asdict(each) for each in self.ended]}
        return {name: getattr(self, name) for name in names} | more


class Rounds:
    """The rounds of one fit."""

    def __init__(
        self, backend: Backend, surveys: list[Survey], mixture: Mixture, options: ShardOptions
    ) -> None:
        self.backend, self.surveys, self.mixture = backend, surveys, mixture
        self.on_round, self.max_iter = options.on_round, mixture.learner.max_iter
        in_memory = "fit_csr" if mixture.schema.reading is None else "fit_svmlight"
        maker = options.row_maker
        self.on_one_machine = in_memory if maker is None else maker.on_one_machine
        self.mixer = self._mixer(options)
        self.checkpoint = self._checkpoint(options)
        space, saved = mixture.space, dict[str, Any]()
        patience = mixture.learner.patience
        if self.checkpoint is not None and options.resume and exists(self.checkpoint.path):
            found, saved = self.checkpoint.read(lambda _: mixture.learner)
            space = mixture.resume(found, saved.pop("seed"))
            if saved["patience"] is not None:
                patience = Patience(**saved["patience"])
            saved["ended"] = tuple(Progress(**each) for each in saved["ended"])
        self.mixer.take(space)
        if (schema := mixture.schema).mixed is not None:
            # Shards in memory that are used as a whole are shuffled in every epoch anyway.
            matters = schema.reading is not None or WHOLE not in self.mixer.parts(1)
            mixture.schema = replace(schema, mixed=mixture.seed if matters else None)
        fitted = mixture.fitted
        saved |= {"patience": patience, "rows_by_class": fitted.rows_by_class}
        self.at = Position(self.mixer.state, **saved, progress=fitted.progress)
        self.plan = backend.share(Plan(
            mixture.blank(), fitted.slice_seed, self.mixer.epoch_type, mixture.schema,
            mixture.seed, __version__, bool(mixture.space.bias), len(surveys),
        ))  # fmt: skip
        self.tally = Tally(surveys, mixture.schema.n_features, options.report)

    def _checkpoint(self, options: ShardOptions) -> Checkpoint | None:
        """The checkpoint for each epoch's mixture; `made_by` has facts that a model does not
        store."""
        if options.checkpoint is None:
            return None
        schema = self.mixture.schema
        made_by = {
            "mixing": options.mixing, "positive": options.positive,
            "shards or min_rows": [survey.identity() for survey in self.surveys],
            "classes": [schema.form, zlib.crc32(names_of(schema.classes).encode())],
            "features": {"n_features": schema.n_features, "reading": schema.reading},
        }  # fmt: skip
        steps, wrappers = list[Any](), list[Any]()
        if options.row_maker is not None:
            pipeline, wrappers = unwrapped(options.row_maker.estimator(None))
            steps = pipeline.steps
            encoded(steps[:1])  # raises an error now if a model file can't store the step
        path = os.fspath(options.checkpoint)
        return Checkpoint(path, made_by, ["max_iter"], steps, options.made_from, wrappers)

    def _mixer(self, options: ShardOptions) -> Mixer:
        space, mixing = self.mixture.space, options.mixing
        given = self.mixture, self.backend, [survey.n_rows for survey in self.surveys]
        n_shards = len(self.surveys)
        if n_shards == 1:
            return Mixer(*given)
        if not isinstance(space, LinearSpace):
            return MistakesMixer(*given)
        are_separate = space.takes_many_labels and not space.in_blocks
        if mixing == "ring" and not are_separate:
            raise ValueError(
                "mixing='ring' is of labels that are learned one by one, each with a vector of its "
                "own that fits into memory. Leave mixing out."
            )
        is_for_ring = are_separate and suits_ring(space.n_vectors, n_shards)
        if mixing == "ring" or (mixing == "auto" and is_for_ring):
            return RingMixer(*given)
        return VectorMixer(*given)

    def run(self) -> Learner:
        """Run the remaining rounds."""
        try:
            if self._continues():
                self.tally.resume(self.at.ended)
            while self._continues():
                self._make_round(self.at.epoch + 1)
        except KeyboardInterrupt:
            if not self.at.epoch:
                raise
            advice = "" if self.checkpoint is None else f" {self.checkpoint.advice}"
            warnings.warn(
                f"Interrupted: the model is the mixture after epoch {self.at.epoch}.{advice}",
                Interruption, stacklevel=4,
            )  # fmt: skip
        except LostScheduler as error:
            message = f"{error} in epoch {self.at.epoch + 1}. {self._what_is_left()}"
            raise LostScheduler(message) from error.__cause__
        return self._finished(self.at)

    def _continues(self) -> bool:
        most = inf if self.max_iter is None else self.max_iter
        return not (self.at.converged or self.at.is_over or self.at.epoch >= most)

    def _what_is_left(self) -> str:
        """A message that says which mixture is stored, and how to continue from it."""
        if not self.at.epoch or self.checkpoint is None:
            return "Nothing of it is on disk: pass a checkpoint to have each epoch's mixture there."
        return (
            f"The mixture after epoch {self.at.epoch} is in {self.checkpoint.path}. To "
            "continue from it, pass resume=True."
        )

    def _finished(self, at: Position, *, keep: bool = False) -> Learner:
        """The learner with the mixture of a position."""
        space = self.mixer.space_of(at.state, keep=keep)
        if at.converged and self.max_iter is not None:
            # The remaining epochs would make no correction, but their trials count in the average.
            space.count_trials(max(count_trials(self.max_iter, at.trials), space.trials))
        return self.mixture.finished(replace(
            self.mixture.fitted, space=space, n_iter=float(at.epoch),
            rows_by_class=at.rows_by_class, progress=at.progress,
            reading=self.mixture.schema.reading,
        ))  # fmt: skip

    def _make_round(self, epoch: int) -> None:
        """Run an epoch on every shard, with its mixtures."""
        began = time.perf_counter()
        self.mixer.state = self.at.state  # an interrupted epoch may have left another state
        updates, of_shards = list[Update](), [list[Update]() for _ in self.surveys]
        parts = self.mixer.parts(epoch)
        before = self.at.ended[-1].corrections if self.at.ended else 0
        self.tally.begin(epoch, before, parts)
        for step, part in enumerate(parts):
            found = self._learn(epoch, step, part)
            self.mixer.conclude(step, [*found.values()])
            for s, update in found.items():
                # In a ring, each group of vectors uses the rows of a shard once. They count as read
                # only once.
                if of_shards[s] and part in parts[:step]:
                    update = replace(update, **_NO_ROWS)
                of_shards[s].append(update)
                updates.append(update)
        at = self._position(epoch, updates, len(parts))
        if self.checkpoint is None:
            self.at = at
        else:
            learner = self._finished(at, keep=True)
            # The position and the file must agree if Ctrl-C arrives here.
            with uninterrupted():
                self.at = replace(at, state=self.mixer.state)
                self.write_checkpoint(learner)
        if epoch == 1:
            orders = [LabelOrder() for _ in of_shards]
            for order, own in zip(orders, of_shards, strict=True):
                for update in own:
                    order.join(update.label_order)
            is_mixed = self.mixture.schema.mixed is not None
            shuffled = [survey.label_order for survey in self.surveys if is_mixed]
            warn_of_labels(orders, self.backend.titles, self.on_one_machine, shuffled)
        if self.on_round is not None:
            self.on_round(Round(
                epoch, tuple(map(_corrections_of, of_shards)), self.at.trials, len(parts),
                max(sum(update.n_received for update in own) for own in of_shards),
                sum(update.n_sent for update in updates), time.perf_counter() - began,
                partial(self._finished, self.at),
            ))  # fmt: skip

    def _learn(self, epoch: int, step: int, part: Part) -> dict[int, Update]:
        """Train on a part of every shard, and mix; return the updates in the order of the
        shards."""
        starts = self.mixer.starts(step, part)
        given = {
            s: (self.plan, epoch, part, *start)
            for s, start in enumerate(starts) if start is not None
        }  # fmt: skip
        learned = self.backend.over_shards(learn_part, given)
        lists = self.mixer.merge([*learned.values()])
        with closing(self.backend.completed(learned, lists)) as completed:
            for s in completed:
                self.tally.add_rows(s, part, len(given))
        updates = dict(zip(learned, chain(*self.backend.gather(lists)), strict=True))
        self.tally.add_updates(updates.values())
        return updates

    def _position(self, epoch: int, updates: list[Update], n_parts: int) -> Position:
        """The position after an epoch."""
        progress = self.at.progress
        kept = [update.progress for update in updates if update.progress is not None]
        if progress is not None and kept:
            progress = self.mixer.merged_progress(kept, len(progress.steps), n_parts)
        if progress is not None:
            progress = copy.copy(progress)
            progress.spoiled |= epoch > 1
        made = _corrections_of(updates)
        patience = deepcopy(self.at.patience)
        return Position(
            self.mixer.state, epoch, sum(update.trials for update in updates), made == 0,
            patience is not None and patience.is_over(made), patience,
            (*self.at.ended[:1], *self.at.ended[1:][-1:], self.tally.latest),
            sum((update.rows_by_class for update in updates), self.at.rows_by_class), progress,
        )  # fmt: skip

    def write_checkpoint(self, learner: Learner) -> None:
        """Write the mixture, or a learner that was completed after the last round."""
        if self.checkpoint is None:
            return
        position = self.at.saved() | {"seed": self.mixture.seed}
        save = partial(self.checkpoint.write, learner, position)
        try:
            save(self.checkpoint.path)
        except OSError as error:
            set_aside(save, self.checkpoint.path, error)
            raise


def _corrections_of(updates: list[Update]) -> int:
    return sum(int(update.corrections.sum()) for update in updates)


# Values that replace fields of an update if its rows have been counted before.
_NO_ROWS: dict[str, Any] = {"trials": 0, "rows_by_class": 0, "label_order": LabelOrder()}
