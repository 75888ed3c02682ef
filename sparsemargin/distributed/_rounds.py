"""A fit over shards: what is asked of them first, then an epoch on each, then the mixture, and
again."""

from __future__ import annotations

import copy
import time
import uuid
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.fitting.epochs import count_trials
from sparsemargin.distributed import _epoch
from sparsemargin.distributed._checkpoints import Checkpoint
from sparsemargin.distributed._crew import InTurn, LostScheduler, OnDask
from sparsemargin.distributed._mistakes import MistakesMixer
from sparsemargin.distributed._opening import Opened
from sparsemargin.distributed._trials import added
from sparsemargin.distributed._vectors import Mixing, VectorMixer
from sparsemargin.distributed._whole import OneShard
from sparsemargin.io.stream import Interruption, Moment
from sparsemargin.models import Learner
from sparsemargin.models.first_order import FirstOrderLearner


@dataclass(frozen=True)
class Round:
    """One epoch on every shard, and the mixture of what they came to.

    Attributes
    ----------
    epoch : int
        From 1.
    corrections : tuple of int
        Of each shard in this epoch, all labels together.
    trials : int
        Of all shards in this epoch.
    bytes_sent : int
        To each worker: what the epoch begins with.
    bytes_received : int
        From all shards.
    seconds : float
        The whole of it.
    mixing_seconds : float
        Of these, for the mixture.
    """

    epoch: int
    corrections: tuple[int, ...]
    trials: int
    bytes_sent: int
    bytes_received: int
    seconds: float
    mixing_seconds: float
    _finished: Callable[[], Learner] = field(repr=False)

    def model(self) -> Any:
        """A classifier that is the mixture."""
        from sparsemargin.models.classifiers import as_classifier

        return as_classifier(self._finished())


class Rounds:
    """The rounds of one fit.

    Parameters
    ----------
    crew : InTurn or OnDask
    opened : Opened
        What is learned, and from what.
    mixing : {"uniform", "errors"}
    checkpoint : Checkpoint
    report : callable or None
        Is told the `Moment` whenever a shard is done.
    on_round : callable or None
        Is told each `Round`.
    """

    def __init__(
        self, crew: InTurn | OnDask, opened: Opened, mixing: Mixing, checkpoint: Checkpoint,
        report: Callable[[Moment], None] | None, on_round: Callable[[Round], None] | None,
    ) -> None:  # fmt: skip
        self.crew, self.opened, self.checkpoint = crew, opened, checkpoint
        self.report, self.on_round = report, on_round
        self.learner = opened.learner
        self.run_id = uuid.uuid4().hex
        self.mixer = self._mixer(mixing)
        self.started = time.perf_counter()
        # The learner as it goes to the workers: its state travels apart.
        plain = copy.copy(self.learner)
        del plain._space
        self.plan = crew.share(
            _epoch.Plan(plain, self.mixer.epoch_type, opened.seed, opened.no_rows)
        )
        # Of the epoch under way.
        self.rows = self.bytes_read = self.corrections = 0
        self.mistakes: int | None = 0

    def _mixer(self, mixing: Mixing) -> Any:
        if len(self.opened.surveys) == 1:
            return OneShard(self.learner)
        if isinstance(self.learner, FirstOrderLearner):
            return VectorMixer(self.learner, self.run_id, mixing)
        return MistakesMixer(self.learner, self.opened.first_rows)

    def run(self, done: int, converged: bool) -> Learner:
        """Make the rounds that are left after so many."""
        max_iter = self.learner.max_iter
        self.done, self.converged = done, converged
        self._count_the_rest()
        try:
            with ThreadPoolExecutor(1) as thread:
                # Its thread is there from now on: if Ctrl-C came upon a thread that is about to
                # begin with a mixture, that would not be waited for.
                thread.submit(int).result()
                while not self.converged and (max_iter is None or self.done < max_iter):
                    self._make_round(self.done + 1, thread)
        except KeyboardInterrupt:
            if not self.done:
                raise
            warnings.warn(
                f"Interrupted: the model is the mixture after epoch {self.done}.",
                Interruption, stacklevel=4,
            )  # fmt: skip
        except LostScheduler as error:
            kept = self.checkpoint.tell(self.done)
            raise LostScheduler(f"{error} in epoch {self.done + 1}. {kept}") from error.__cause__
        return self._finished()

    def _finished(self) -> Learner:
        return self.opened.finished(self.done)

    def _make_round(self, epoch: int, thread: ThreadPoolExecutor) -> None:
        """An epoch on every shard, and the mixture."""
        began = time.perf_counter()
        self.rows = self.bytes_read = 0
        self.mistakes = 0
        updates, sent = self._learn(epoch)
        mixing = time.perf_counter()
        # To the end, even where Ctrl-C comes meanwhile, which is heard after.
        thread.submit(self._mix, epoch, updates).result()
        ended = time.perf_counter()
        if self.on_round is not None:
            made = tuple(int(update.made.sum()) for update in updates)
            trials = sum(update.trials for update in updates)
            received = sum(n_bytes(update) for update in updates)
            times = ended - began, ended - mixing
            self.on_round(Round(epoch, made, trials, sent, received, *times, self._finished))

    def _mix(self, epoch: int, updates: list[Any]) -> None:
        """Let the learner be the mixture, here and on disk."""
        self.mixer.mix(updates)
        self.done, self.converged = epoch, not any(update.made.any() for update in updates)
        self._count_the_rest()
        self.checkpoint.write(epoch, self.converged, self.opened.seed, self._finished)

    def _count_the_rest(self) -> None:
        """Count the trials that would have followed an epoch without a correction."""
        max_iter, space = self.learner.max_iter, self.learner._space
        if self.converged and max_iter is not None:
            trials = count_trials(max_iter, self.opened.n_rows)
            space.count_trials(max(trials, space.trials))

    def _learn(self, epoch: int) -> tuple[list[Any], int]:
        """The updates of all shards, and the bytes that each worker was sent."""
        start = self.mixer.start(epoch, whole=False)
        tell = self._tell(epoch)
        updates = self.crew.each(_epoch.learn_epoch, self.plan, start, done=tell)
        sent = n_bytes(start)
        missing = [s for s, each in enumerate(updates) if isinstance(each, _epoch.Missing)]
        if missing:
            start = self.mixer.start(epoch, whole=True)
            again = self.crew.each(_epoch.learn_epoch, self.plan, start, which=missing, done=tell)
            for s, update in zip(missing, again, strict=True):
                updates[s] = update
        return updates, sent

    def _tell(self, epoch: int) -> Callable[[int, Any], None]:
        """Counts what shards have come to, and reports it."""

        def tell(s: int, update: Any) -> None:
            if isinstance(update, _epoch.Missing):
                return
            survey = self.opened.surveys[s]
            self.rows += survey.n_rows
            self.bytes_read += survey.n_bytes
            self.corrections += int(update.made.sum())
            self.mistakes = added(self.mistakes, update.mistakes)
            if self.report is not None:
                self.report(
                    Moment(
                        epoch, self.bytes_read, self.opened.n_bytes, self.rows,
                        self.opened.n_features, self.corrections, self.mistakes,
                        time.perf_counter() - self.started,
                    )
                )  # fmt: skip

        return tell


def n_bytes(message: Any) -> int:
    """Of the arrays in a message; of a space, what it would be pickled to."""
    if isinstance(message, np.ndarray):
        return message.nbytes
    if is_dataclass(message):
        return sum(n_bytes(getattr(message, each.name)) for each in fields(message))
    if isinstance(message, dict):
        return sum(map(n_bytes, message.values()))
    if isinstance(message, list | tuple):
        return sum(map(n_bytes, message))
    if isinstance(message, LinearSpace):
        return n_bytes(message.__getstate__())
    if hasattr(message, "spaces"):
        return sum(n_bytes(space.__getstate__()) for space in message.spaces)
    return 0
