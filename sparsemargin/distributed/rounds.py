"""The rounds of a fit over shards: an epoch on each shard, then the mixture."""

from __future__ import annotations

import copy
import os
import pickle
import time
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import inf
from typing import Any, Literal

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.fitting.epochs import Patience, count_trials
from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.rows.columns import Chosen
from sparsemargin._version import __version__
from sparsemargin.distributed.backends import Backend, LostScheduler, imported_dask
from sparsemargin.distributed.dual_vectors import UnknownMixture, VectorMixer
from sparsemargin.distributed.mistakes import MistakesMixer
from sparsemargin.distributed.mixing import (
    Mixer,
    Mixing,
    Mixture,
    Part,
    RingMixer,
    ShardEpoch,
    Update,
)
from sparsemargin.distributed.row_makers import RowMaker
from sparsemargin.distributed.schema import Schema, Survey, all_columns
from sparsemargin.distributed.shards import Shard, names_of
from sparsemargin.files.remote import exists
from sparsemargin.models import Learner
from sparsemargin.models.inputs.rows import naming_bad_rows
from sparsemargin.saving.model_files import set_aside
from sparsemargin.saving.steps import encoded
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
    columns: np.ndarray | None  # columns of the mixture's space; None: all
    n_shards: int

    def open(self, shard: Shard, part: Part) -> tuple[Learner, Chosen | None, tuple[Any, ...]]:
        """A learner for a part of the rows of a shard, the coordinates of the rows, and, for epochs
        that use only these, their places in the mixture's space."""
        learner, schema = copy.copy(self.learner), self.schema
        n, chosen = schema.n_columns, None
        at: tuple[Any, ...] = ()
        if self.epoch_type.narrows:
            chosen = shard.columns(schema, part, n + self.has_bias)
            n, places = len(chosen.columns) + 1 - self.has_bias, chosen.columns
            if self.columns is not None:
                # The last column is that of the intercept, which is also the last coordinate here.
                places = np.searchsorted(self.columns, places)
            at = (places,)
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


def survey(shard: Shard, library: str, columns: bool, step: Any) -> tuple[Survey, bytes]:
    """The facts about a shard needed before training, and the terms of the columns for a
    vectorizer. The terms are pickled, because Dask would serialize them one by one."""
    check_library(library)
    terms = None if step is None else shard.terms(deepcopy(step))
    return shard.survey(columns), pickle.dumps(terms)


def learn_epoch(shard: Shard, plan: Plan, number: int, part: Part, start: Any) -> Update | None:
    """Train on a part of a shard once, as a fit on one machine would. None: the process needs more
    data about the starting mixture."""
    check_library(plan.library)
    learner, chosen, at = plan.open(shard, part)
    try:
        epoch = plan.epoch_type(learner, start, *at)
    except UnknownMixture:
        return None
    space = epoch.space
    corrections, trials = space.per_vector("corrections").copy(), space.trials
    mistakes: int | None = 0
    label_order = LabelOrder()
    kept = learner.fitted.progress if number == 1 else None
    if kept is not None:
        kept = kept.fewer(part[1] * plan.n_shards)
    blocks = shard.epoch(plan.schema, plan.seed, number, part, chosen, plan.has_bias)
    for rows, targets, first_row, order in blocks:
        label_order.add(targets, order)
        task = learner.make_task(
            rows, targets, None, first_row=first_row, progress=kept, distinct=True
        )
        with naming_bad_rows(rows, first_row):
            mistakes = _added(mistakes, epoch.learn(learner, task, order))
    made = space.per_vector("corrections") - corrections
    trials = space.trials - trials
    return Update(
        epoch.learned(), trials, made, mistakes, learner.fitted.rows_by_class, label_order,
        None if kept is None else epoch.sent_progress(kept),
    )  # fmt: skip


def _added(mistakes: int | None, more: int | None) -> int | None:
    """The sum, or None if either is unknown."""
    return None if mistakes is None or more is None else mistakes + more


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
        Bytes sent to each worker to start the epoch.
    bytes_received : int
        Bytes received from all shards.
    seconds : float
        Duration of the epoch in seconds.
    mixing_seconds : float
        Part of the duration that was used for mixing.
    """

    epoch: int
    corrections: tuple[int, ...]
    trials: int
    mixtures: int
    bytes_sent: int
    bytes_received: int
    seconds: float
    mixing_seconds: float
    _finished: Callable[[], Learner] = field(repr=False)

    def model(self) -> Any:
        """The current mixture as a classifier."""
        # It imports scikit-learn, which takes a second. Few rounds are asked for their model.
        from sparsemargin.estimators.classifiers import as_classifier

        return as_classifier(self._finished())


@dataclass
class ShardOptions(FitOptions):
    """The arguments of `fit_distributed`."""

    max_iter: int | Literal["auto"] | None = "auto"  # type: ignore[assignment]
    client: Any = None
    mixing: Mixing = "auto"
    mixes_per_epoch: int = 16
    cache_dir: str | os.PathLike[str] | None = None
    on_round: Callable[[Round], None] | None = None
    row_maker: RowMaker | None = None


class Rounds:
    """The rounds of one fit."""

    def __init__(
        self, backend: Backend, surveys: list[Survey], mixture: Mixture, options: ShardOptions
    ) -> None:
        self.backend, self.surveys, self.mixture = backend, surveys, mixture
        self.report, self.on_round = options.report, options.on_round
        self.max_iter, self.mixer = mixture.learner.max_iter, self._mixer(options)
        if isinstance(self.mixer, VectorMixer):
            mixture.narrow(all_columns(surveys, mixture.schema.n_columns))
        self.checkpoint = self._checkpoint(options)
        self.done, self.trials, self.converged, self.is_over = 0, 0, False, False
        space = mixture.space
        self.patience = mixture.learner.patience
        if self.checkpoint is not None and options.resume and exists(self.checkpoint.path):
            found, position = self.checkpoint.read(mixture.learner)
            space = mixture.resume(found, position["seed"])
            self.done, self.trials = position["epoch"], position["trials"]
            self.converged, self.is_over = position["converged"], position["is_over"]
            if self.patience is not None:
                self.patience = Patience(**position["patience"])
        self.mixer.take(space)
        self.mixer.store()
        self.plan = backend.share(Plan(
            mixture.blank(), mixture.fitted.slice_seed, self.mixer.epoch_type, mixture.schema,
            mixture.seed, __version__, bool(mixture.space.bias), mixture.columns, len(surveys),
        ))  # fmt: skip
        self.started = time.perf_counter()
        self.corrections = 0

    def _checkpoint(self, options: ShardOptions) -> Checkpoint | None:
        """The checkpoint for each epoch's mixture; `made_by` has facts that a model does not
        store."""
        if options.checkpoint is None:
            return None
        schema = self.mixture.schema
        made_by = {
            "mixing": [options.mixing, options.mixes_per_epoch], "positive": options.positive,
            "shards": [survey.identity() for survey in self.surveys],
            "classes": [schema.form, zlib.crc32(names_of(schema.classes).encode())],
            "features": {"n_features": schema.n_features, "reading": schema.reading},
        }  # fmt: skip
        steps = []
        if options.row_maker is not None:
            steps = [(options.row_maker.name, options.row_maker.step), ("classifier", None)]
            encoded(steps[:1])  # raises an error now if a model file can't store the step
        path = os.fspath(options.checkpoint)
        return Checkpoint(path, made_by, ["max_iter"], steps, options.made_from)

    def _mixer(self, options: ShardOptions) -> Mixer:
        n_shards, space, mixing = len(self.surveys), self.mixture.space, options.mixing
        if n_shards == 1:
            return Mixer(self.mixture, 1, 1)
        if not isinstance(space, LinearSpace):
            counts = [survey.n_rows for survey in self.surveys]
            return MistakesMixer(self.mixture, [0, *np.cumsum(counts)[:-1].tolist()])
        alone = space.takes_many_labels and not space.in_blocks
        if mixing == "ring" and not alone:
            raise ValueError(
                "mixing='ring' is of labels that are learned one by one, each with a vector of its "
                "own that fits into memory. Leave mixing out."
            )
        if mixing == "ring" or (mixing == "auto" and alone and space.n_vectors >= n_shards):
            return RingMixer(self.mixture, n_shards)
        mixes = min(options.mixes_per_epoch, *(survey.n_rows for survey in self.surveys))
        return VectorMixer(self.mixture, n_shards, mixes)

    def run(self) -> Learner:
        """Run the remaining rounds."""
        self._count_the_rest()
        try:
            with ThreadPoolExecutor(1) as thread:
                # This starts the thread before the first mixture. If Ctrl-C interrupted the start
                # during a mixture, nothing would wait for the end of that mixture.
                thread.submit(int).result()
                most = inf if self.max_iter is None else self.max_iter
                while not (self.converged or self.is_over or self.done >= most):
                    self._make_round(self.done + 1, thread)
        except KeyboardInterrupt:
            if not self.done:
                raise
            warnings.warn(
                f"Interrupted: the model is the mixture after epoch {self.done}.",
                Interruption, stacklevel=4,
            )  # fmt: skip
        except LostScheduler as error:
            message = f"{error} in epoch {self.done + 1}. {self._what_is_left()}"
            raise LostScheduler(message) from error.__cause__
        return self._finished()

    def _what_is_left(self) -> str:
        """A message about the remains of an interrupted fit, and how to continue."""
        if not self.done or self.checkpoint is None:
            return "Nothing of it is on disk: pass a checkpoint to have each epoch's mixture there."
        return (
            f"The mixture after epoch {self.done} is in {self.checkpoint.path}; with resume the "
            "fit goes on from it."
        )

    def _finished(self) -> Learner:
        return self.mixture.finished(self.done)

    def _make_round(self, epoch: int, thread: ThreadPoolExecutor) -> None:
        """Run an epoch on every shard, with its mixtures."""
        began, mixing, sent, received = time.perf_counter(), 0.0, 0, 0
        updates, met = list[Update](), set[tuple[int, Part]]()
        of_shards = [LabelOrder() for _ in self.surveys]
        for part in range(self.mixer.n_parts):
            starts = self.mixer.starts(part)
            # Sizes are measured before training. A start may be the mixture itself, which changes.
            if self.on_round is not None:
                sent += max(map(n_bytes, starts[:1] if starts[0] is starts[-1] else starts))
            found = self._learn(epoch, part, starts)
            now = time.perf_counter()
            # A separate thread is used, so that Ctrl-C waits for the end of the mixture.
            thread.submit(self.mixer.mix, part, found).result()
            mixing += time.perf_counter() - now
            if self.on_round is not None:
                received += sum(map(n_bytes, found))
            for s, update in enumerate(found):
                rows = s, self.mixer.rows_of(part)
                # In a ring, a shard's rows are used once by each visiting group of classes; they
                # count as read only once.
                if rows in met:
                    update = replace(update, **_NO_ROWS)
                if update.trials:
                    met.add(rows)
                of_shards[s].join(update.label_order)
                updates.append(replace(update, learned=None))
        now = time.perf_counter()
        thread.submit(self._conclude, epoch, updates).result()
        if epoch == 1:
            _warn_of_order(of_shards)
        ended = time.perf_counter()
        if self.on_round is not None:
            made = np.array([update.corrections.sum() for update in updates])
            made = made.reshape(-1, len(self.surveys)).sum(axis=0)
            times = ended - began, mixing + ended - now
            self.on_round(Round(
                epoch, tuple(made.tolist()), self.trials, self.mixer.n_parts, sent, received,
                *times, self._finished,
            ))  # fmt: skip

    def _learn(self, epoch: int, part: int, starts: list[Any]) -> list[Update]:
        """Train on a part of every shard; return the updates in the order of the shards."""
        size, n_parts = sum(survey.n_bytes for survey in self.surveys), self.mixer.n_parts
        done = part / n_parts
        rows = done * sum(survey.n_rows for survey in self.surveys)
        consumed = done * size
        if not part:
            self.mistakes: int | None = 0
        updates: dict[int, Update] = {}
        which, wanted = self.mixer.rows_of(part), list[int]()
        for s, start in enumerate(starts):
            if start is None:
                updates[s] = Update(None, corrections=np.zeros(1, int), mistakes=None, **_NO_ROWS)
            else:
                wanted.append(s)
        while wanted:
            given = {"starts": starts, "of": wanted}
            each = self.backend.each(learn_epoch, self.plan, epoch, which, **given)
            with closing(each) as coming:
                for s, update in coming:
                    if update is None:
                        continue
                    updates[s] = update
                    rows += self.surveys[s].n_rows / n_parts
                    consumed += self.surveys[s].n_bytes / n_parts
                    self.corrections += int(update.corrections.sum())
                    self.mistakes = _added(self.mistakes, update.mistakes)
                    if self.report is not None:
                        self.report(Progress(
                            epoch, round(consumed), size, round(rows),
                            self.mixture.schema.n_features, self.corrections, self.mistakes,
                            time.perf_counter() - self.started,
                        ))  # fmt: skip
            wanted = [s for s in wanted if s not in updates]
            if wanted:
                # Workers that joined late or worked for other fits lack earlier mixtures, so they
                # get the whole one.
                starts = self.mixer.starts(part, whole=True)
        return [updates[s] for s in range(len(updates))]

    def _conclude(self, epoch: int, updates: list[Update]) -> None:
        """Copy the mixture to the learner and to the checkpoint."""
        self.mixer.store()
        fitted = self.mixture.fitted
        for update in updates:
            fitted.rows_by_class = fitted.rows_by_class + update.rows_by_class
        kept = [update.progress for update in updates if update.progress is not None]
        if fitted.progress is not None and kept:
            fitted.progress = self.mixer.merged_progress(kept, len(fitted.progress.steps))
        if fitted.progress is not None:
            fitted.progress.spoiled |= epoch > 1
        self.done, self.trials = epoch, sum(update.trials for update in updates)
        made = sum(int(update.corrections.sum()) for update in updates)
        self.converged = made == 0
        self.is_over = self.patience is not None and self.patience.is_over(made)
        self._count_the_rest()
        self.write_checkpoint()

    def write_checkpoint(self, learner: Learner | None = None) -> None:
        """Write the mixture, or a learner that was completed after the last round."""
        if self.checkpoint is None:
            return
        position = {
            "epoch": self.done, "trials": self.trials, "seed": self.mixture.seed,
            "converged": self.converged, "is_over": self.is_over,
            "patience": None if self.patience is None else asdict(self.patience),
        }  # fmt: skip
        save = partial(self.checkpoint.write, learner or self._finished(), position)
        try:
            save(self.checkpoint.path)
        except OSError as error:
            set_aside(save, self.checkpoint.path, error)
            raise

    def _count_the_rest(self) -> None:
        """Count the trials that would have followed an epoch without a correction."""
        max_iter, space = self.max_iter, self.mixture.space
        if self.converged and max_iter is not None:
            space.count_trials(max(count_trials(max_iter, self.trials), space.trials))


# Values that replace fields of an update if its rows have been counted before.
_NO_ROWS: dict[str, Any] = {"trials": 0, "rows_by_class": 0, "label_order": LabelOrder()}


def _warn_of_order(orders: list[LabelOrder]) -> None:
    """Warn if the rows of shards are sorted by their labels."""
    are_sorted = [s for s, order in enumerate(orders) if order.is_sorted]
    if are_sorted:
        first, more = are_sorted[0], len(are_sorted) - 1
        names = f"Shard {first}" + f", and {more} more like it" * bool(more)
        warn_user(orders[first].warning(names))


def n_bytes(message: Any) -> int:
    """Size of the message in bytes when it is sent."""
    buffers: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    return len(rest) + sum(buffer.raw().nbytes for buffer in buffers)
