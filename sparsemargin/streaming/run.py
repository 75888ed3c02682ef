"""A training run over the rows of a source: epochs, growing weights, progress, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.epochs import Patience, count_trials
from sparsemargin._engine.fitting.threads import interruptible, uninterrupted
from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.rows.columns import NO_ROWS
from sparsemargin.models import Learner
from sparsemargin.models.fitted.outputs import (
    ROWS_SAMPLED,
    SampledRows,
    most_frequent,
    sample_of,
    warn_of_one_class,
)
from sparsemargin.models.inputs.labels import warn_of_many_classes
from sparsemargin.models.inputs.rows import ROWS_MEASURED, Rows, naming_bad_rows
from sparsemargin.models.inputs.training_set import (
    ROWS_COUNTED,
    Beginning,
    Targets,
    count_vectors,
    counted_rows,
)
from sparsemargin.models.learner import LARGEST_SEED
from sparsemargin.readers.rows import LabelledRows, join_blocks
from sparsemargin.readers.svmlight import located_index
from sparsemargin.streaming.checkpoints import Checkpoint
from sparsemargin.streaming.label_order import LabelOrder, SortedRowsError
from sparsemargin.streaming.options import FitOptions
from sparsemargin.streaming.report import Interruption, Progress
from sparsemargin.streaming.stream_labels import StreamLabels

# This value stands for an unknown number of mistakes (see `Loop.mistakes`). It is so low that sums
# with it stay negative.
_UNKNOWN = -(1 << 62)

# Seconds between two checkpoints. A run that is killed loses at most about this much work.
_CHECKPOINT_EVERY = 300.0

# Weights are allocated for this multiple of the features needed, so that they are seldom copied.
_GROWTH = 1.5


class Run:
    """A training run over a source. A `NewClassError` or a `SortedRowsError` means that the run
    must be restarted, with all classes or with mixed rows."""

    learner: Learner
    seed: int | None
    # `first_row` is the number of the first row, for learners that number rows. `before` is the
    # number of corrections before the current epoch.
    first_row: int
    before: int

    def __init__(
        self, labels: StreamLabels, make_learner: Callable[[], Learner], options: FitOptions,
        checkpoint: Checkpoint | None,
    ) -> None:  # fmt: skip
        self.labels, self.passes, self.source = labels, labels.passes, labels.source
        self.reading, self.make_learner = self.source.reading, make_learner
        self.options, self.memory_limit = options, options.memory_limit
        self.label_order = LabelOrder()
        self.opened = False
        # The first blocks determine the scale of the intercept, and the prior if there is one.
        self.beginning: list[LabelledRows] = []
        self.started = self.passes.started
        self.epoch = self.rows = self.mistakes = self.uncounted = 0
        self.n_counted = 0  # number of first rows that are counted for the prior of a new model
        # `rows_by_class` of all rows for balanced class weights; otherwise None.
        self.counts: np.ndarray | None = None
        self.patience: Patience | None = None
        self.checkpoint, self.written = checkpoint, time.perf_counter()
        # Position that a checkpoint stores; None if there is nothing to resume.
        self.position: dict[str, Any] | None = None
        # Progress at the checkpoint while a resumed run skips the rows before it; otherwise None.
        self.resumed: Progress | None = None
        # Training rows for the check at the end that more than one class is predicted.
        self.samples: list[SampledRows] = []

    def learn(self, start: tuple[Learner, dict[str, Any]] | None = None) -> Learner:
        """Train and return the learner. `start` is the learner and position of a checkpoint."""
        interrupted = False
        with uninterrupted() as held:
            try:
                with interruptible():
                    self._make_epochs(start)
            except KeyboardInterrupt:
                if not self.opened:
                    raise
                interrupted = True
                self._write_checkpoint()
            learner = self._finish()
            if interrupted or held:
                held.clear()
                advice = ""
                if self.checkpoint is not None and self.position is not None:
                    advice = f" {self.checkpoint.advice}"
                warn_user(
                    f"Interrupted after {self.rows:,} rows of epoch {self.epoch}. The model was "
                    f"trained on the rows before.{advice}",
                    Interruption,
                )
        return learner

    # ---------------------------------------------------------------------------------- epochs

    def _make_epochs(self, start: tuple[Learner, dict[str, Any]] | None) -> None:
        if start is not None:
            self._resume(*start)
        else:
            self.learner = self.make_learner()
            if self.options.balanced:
                self.counts = self.labels.count_rows()
        # A model from a checkpoint is also new, unless it had made trials before this stream.
        is_new = self.learner.state is None
        is_new |= start is not None and not self.learner.fitted.trials_before
        self.n_counted = ROWS_COUNTED if is_new and self.learner.counts_first_rows else 0
        n_first = max(ROWS_MEASURED, self.n_counted)
        if self.epoch:
            self.passes.keep()
            continues = True
        elif self.passes.shuffle_seed is None:
            if not self.opened:
                self.beginning = self.passes.peek(n_first)
            with closing(self.passes.first()) as blocks:
                continues = self._make_epoch((block, None) for block in blocks)
            self.labels.check_positive()
            self._check_order()
            self._check_classes()
        else:
            self.passes.keep()
            if not self.opened and self.n_counted:
                self.beginning = self.passes.peek(n_first)
            continues = self._make_epoch(self.passes.again(self.passes.shuffle_seed, 1))
        while continues:
            continues = self._make_epoch(self.passes.again(self.seed, self.epoch + 1))
        if self.epoch > 1 and self.passes.cache is not None and self.source.holds_rows_out:
            self._hold_out_rows()

    def _hold_out_rows(self) -> None:
        """Replace the stored outputs by outputs for held-out rows of the cache, as is done after
        several epochs over rows in memory. Models with the same settings are trained on parts of a
        sample. A model that was trained on other rows before is not changed."""
        learner, fitted = self.learner, self.learner.fitted
        if fitted.progress is None or not fitted.progress.spoiled or fitted.trials_before:
            return
        block = self.passes.sampled()
        rows, targets = block.with_columns(fitted.space.n_features), self.labels.targets_of(block)
        fitted.n_iter = float(self.epoch)  # the largest number of epochs of the similar models
        task = learner.make_task(
            rows, targets, None, progress=None, distinct=True, n_threads=learner.n_threads()
        )
        seed = 0 if learner.shuffle else None
        learner.hold_out(task, Beginning(NO_ROWS, fitted.classes, fitted.form), seed)

    def _check_classes(self) -> None:
        """Warn if the classes were found in the rows and are almost as many as the rows."""
        labels, source = self.labels, self.source
        are_named = self.options.classes is not None or self.learner.fitted.trials_before > 0
        if not (are_named or labels.many or source.warns_of_labels):
            warn_of_many_classes(len(labels.classes), self.rows, source.names)

    def _check_order(self) -> None:
        """Restart in random order if rows are sorted by label; warn if they can't be shuffled."""
        order, names = self.label_order, self.source.names
        if not order.is_sorted:
            return
        keeps_rows = self.passes.cache is not None or self.source.rereadable
        if self.seed is None or not keeps_rows:
            remedies = ["leave shuffle=False out"] * (self.seed is None)
            remedies += ["pass cache=PATH"] * (not keeps_rows)
            how = " and ".join(remedies)
            return warn_user(order.warning(names, f"To train in random order, {how}."))
        warn_user(
            f"{order.description(names)} Training starts again in random order, with a row cache. "
            "Pass shuffle=False to keep the order of the file."
        )
        raise SortedRowsError(self.seed)

    def _make_epoch(self, blocks: Iterator[tuple[LabelledRows, np.ndarray | None]]) -> bool:
        """Train on the blocks and return whether another epoch is to follow."""
        self.epoch += 1
        self.rows = self.mistakes = self.uncounted = 0
        if self.resumed is None:
            self.before = self._corrections() if self.opened else 0
        for block, order in blocks:
            left = self.n_counted - self.rows
            if order is None and 0 < left < block.n_rows:
                self._learn(block.part(0, left), None)
                block = block.part(left, block.n_rows)
            if block.n_rows:
                self._learn(block, order)
        if not self.opened:
            raise ValueError(f"{self.source.names} has no rows. {self.source.form}.")
        max_iter, made = self.learner.max_iter, self._corrections() - self.before
        if self.epoch == 1:
            self.patience = self.learner.patience
        over = self.patience is not None and self.patience.is_over(made)
        if made:
            return not over and (max_iter is None or self.epoch < max_iter)
        # The run has ended, so there is nothing to resume.
        self.position = None
        if max_iter is not None:
            # The remaining epochs would make no correction, but their trials count in the average.
            space = self.learner.space
            trials = space.trials - self.learner.fitted.trials_before
            left = count_trials(max_iter, trials // self.epoch) - trials
            space.count_trials(space.trials + left)
        return False

    def _corrections(self) -> int:
        return int(self.learner.space.per_vector("corrections").sum())

    # ---------------------------------------------------------------------------------- blocks

    def _learn(self, block: LabelledRows, order: np.ndarray | None) -> None:
        # Ctrl-C waits for the end of the block, because checkpoints are written between blocks.
        with nullcontext() if self.checkpoint is None else uninterrupted():
            if not self.opened:
                self._open(block)
            targets = self.labels.targets_of(block)
            if order is None:
                self.label_order.add(targets)
            if self.resumed is not None:
                self._pass_over(block, targets)
                return
            self._make_room(block)
            rows = self._learn_rows(block, targets, order)
            self._sample(rows, targets)
            self.rows += block.n_rows
            consumed = self.passes.consumed(block, self.rows)
            progress = Progress(
                self.epoch, consumed, self.passes.n_bytes, self.rows, self._n_features(),
                self._corrections(), None if self.mistakes < 0 else self.mistakes,
                time.perf_counter() - self.started, self.uncounted,
            )  # fmt: skip
            self.position = self._position(progress)
            if self.options.report is not None:
                self.options.report(progress)
        if time.perf_counter() - self.written > _CHECKPOINT_EVERY:
            self._write_checkpoint()

    def _learn_rows(self, block: LabelledRows, targets: Targets, order: np.ndarray | None) -> Rows:
        learner = self.learner
        rows = block.with_columns(learner.space.n_features)
        first_row = self.rows if block.first_row is None else block.first_row
        kept = learner.fitted.progress
        if self.epoch > 1 and kept is not None:  # the model has been trained on all rows before
            kept.spoiled, kept = True, None
        n_threads = learner.n_threads()
        if self.epoch == 1:  # half of the threads read meanwhile
            n_threads = max(1, n_threads // 2)
        task = learner.make_task(
            rows, targets, None, first_row=self.first_row + first_row, progress=kept, distinct=True,
            n_threads=n_threads,
        )  # fmt: skip
        if self.epoch == 1 and self.rows < self.n_counted:
            learner.fitted.skip_outputs(task)
        with naming_bad_rows(rows, first_row):
            mistakes = learner.learn_stream(task, order)
        self._check_memory()
        if self.epoch == 1 and self.rows < self.n_counted:  # the prior has used these labels
            mistakes, self.uncounted = 0, self.uncounted + block.n_rows
        self.mistakes = _UNKNOWN if mistakes is None else self.mistakes + mistakes
        return rows

    def _open(self, block: LabelledRows) -> None:
        """Open the learner with the first block; create its weights unless it continues a model."""
        learner, labels = self.learner, self.labels
        is_trained = learner.state is not None
        if is_trained:
            labels.add_classes(learner)
            labels.keep(learner)
            learner.fitted.trials_before = learner.space.trials
        else:
            labels.find(learner)
        random = learner.random_generator()
        self.seed = random.randint(LARGEST_SEED) if learner.shuffle else None
        if not is_trained:
            n_columns, prior = self.reading.n_columns, None
            blocks = self.beginning or [block]
            if self.n_counted:
                block = join_blocks(blocks).part(0, self.n_counted)
                n_columns = n_columns or self.reading.columns_up_to(self.passes.highest)
            rows = block.with_columns(n_columns or 1)
            needed = rows.n_features * self.bytes_per_feature(block, rows.n_features)
            if needed > self.memory_limit:
                raise ValueError(
                    f"{rows.n_features:,} features take {needed:,} bytes of weights, more than "
                    f"memory_limit={self.memory_limit:,}. Raise it, or pass a smaller hash_bits."
                )
            if self.n_counted:
                targets, weight = labels.targets_of(block), learner.class_weight
                counted = counted_rows(weight, labels.classes, targets, None)
                prior = learner.prior_of(rows, targets, labels.classes, counted)
            first = Beginning(
                rows, labels.classes, "lists" if labels.many else None, self.counts,
                [self.measured_rows(each, rows.n_features) for each in blocks],
                grows=self.reading.n_columns is None, prior=prior,
            )  # fmt: skip
            learner.open_stream(first, random.randint(LARGEST_SEED))
            self.beginning = []
        self.first_row = learner.space.first_new_row
        self.opened = True

    def measured_rows(self, block: LabelledRows, n_features: int) -> Rows:
        """Return the rows of a block, without rows of classes whose weight is 0."""
        learner, labels = self.learner, self.labels
        rows, weight = block.with_columns(n_features), learner.class_weight
        if not isinstance(weight, dict) or 0 not in weight.values():
            return rows
        counted = counted_rows(weight, labels.classes, labels.targets_of(block), None)
        return learner.measured_rows(rows, counted)

    def bytes_per_feature(self, block: LabelledRows, n_features: int) -> int:
        n_vectors = count_vectors(self.labels.classes, self.labels.many)
        return self.learner.bytes_per_feature(block.data.dtype, n_vectors, n_features)

    def _make_room(self, block: LabelledRows) -> None:
        """Enlarge the weights if the block has features beyond them."""
        space = self.learner.space
        needed = self.reading.columns_up_to(block.highest)
        if needed <= space.n_features:
            return
        needs = partial(self.bytes_per_feature, block)
        most = self.memory_limit // needs(1)
        # With more features, the learner may train vectors in blocks, which takes fewer bytes per
        # feature.
        while (more := self.memory_limit // needs(most + 1)) > most:
            most = more
        if needed > most:
            raise located_index(block, most)
        known = self.reading.n_columns
        self.learner.resize(needed if known is not None else min(int(needed * _GROWTH), most))

    def _check_memory(self) -> None:
        """Raise a ValueError if corrections have made the model larger than `memory_limit`."""
        space = self.learner.space
        if space.growth is not None and space.nbytes > self.memory_limit:
            what, smaller = space.growth
            raise ValueError(
                f"{what} {space.nbytes:,} bytes, more than memory_limit={self.memory_limit:,}. "
                f"Raise it, or pass a smaller {smaller}."
            )

    def _sample(self, rows: Rows, targets: Targets) -> None:
        """Keep rows for the check in `_finish`, but only few rows of the most frequent class."""
        if self.epoch > 1 or sum(len(codes) for _, codes in self.samples) > 2 * ROWS_SAMPLED:
            return
        frequent = most_frequent(self.samples[0][1]) if self.samples else None
        sample = sample_of(self.learner.fitted, rows, targets, frequent=frequent)
        if sample is not None:
            self.samples.append(sample)

    # ----------------------------------------------------------------------- progress and resuming

    def _position(self, progress: Progress) -> dict[str, Any]:
        """Return the position of the run as plain values that do not change later."""
        patience = None if self.patience is None else asdict(self.patience)
        return {
            "progress": asdict(progress), "before": self.before, "patience": patience,
            "seed": self.seed, "shuffle_seed": self.passes.shuffle_seed,
            "first_row": self.first_row, "classes_are_known": self.labels.are_known,
            "lowest": self.passes.lowest, "highest": self.passes.highest,
        }  # fmt: skip

    def _write_checkpoint(self) -> None:
        if self.checkpoint is not None and self.position is not None:
            try:
                self.checkpoint.write(self.learner, self.position)
            except OSError as error:
                warn_user(f"The checkpoint could not be written: {error}.")
            self.written = time.perf_counter()

    def _resume(self, learner: Learner, position: dict[str, Any]) -> None:
        """Restore the state at a checkpoint. `_pass_over` then skips the rows before it."""
        progress, patience = Progress(**position["progress"]), position["patience"]
        self.labels.keep(learner)
        self.labels.are_known = position["classes_are_known"]
        self.patience = None if patience is None else Patience(**patience)
        self.seed, self.before = position["seed"], position["before"]
        self.first_row = position["first_row"]
        self.passes.lowest, self.passes.highest = position["lowest"], position["highest"]
        self.learner, self.position, self.resumed = learner, dict(position), progress
        self.opened = True
        self.epoch, self.started = progress.epoch - 1, self.started - progress.seconds
        if self.options.report is not None:
            if self.epoch:
                self.options.report(
                    replace(progress, epoch=self.epoch, corrections=self.before, mistakes=None)
                )
            self.options.report(progress)

    def _pass_over(self, block: LabelledRows, targets: Targets) -> None:
        """Skip a block on which the model was trained before the checkpoint."""
        assert self.resumed is not None
        self._sample(block.with_columns(self.learner.space.n_features), targets)
        self.rows += block.n_rows
        if self.rows > self.resumed.rows:
            raise ValueError(
                f"{self.source.names}: the rows come in other blocks than before, and the run "
                "can't be resumed. Leave resume out to train from the beginning."
            )
        if self.rows == self.resumed.rows:
            mistakes, self.uncounted = self.resumed.mistakes, self.resumed.uncounted
            self.resumed = None
            self.mistakes = _UNKNOWN if mistakes is None else mistakes

    def _n_features(self) -> int:
        """Return the number of features found so far."""
        reading, passes = self.reading, self.passes
        return reading.columns_up_to(passes.highest) - reading.drops_column_0(passes.lowest)

    def _finish(self) -> Learner:
        """Check the learner, set its final number of features and return it."""
        learner, reading, passes = self.learner, self.reading, self.passes
        n_features = learner.space.n_features
        samples = [(Rows(*rows.arrays, n_features), codes) for rows, codes in self.samples]
        warn_of_one_class(learner.fitted, samples, learner.parameters, learner.n_threads())
        if passes.highest < 0:
            raise ValueError(
                f"{self.source.names} has labels but no features, so no model can be trained. "
                f"{self.source.form}."
            )
        found, before = self._n_features(), getattr(learner, "n_features_in_", 0)
        n_features = reading.n_features or max(found, before)
        if found > n_features:
            raise ValueError(
                f"{self.source.names}: index {passes.highest} is beyond n_features={n_features}, "
                "as index 0 occurs too. Pass a larger n_features."
            )
        learner.resize(n_features, int(reading.drops_column_0(passes.lowest)))
        if n_features > before and hasattr(learner, "feature_names_in_"):
            # The names do not cover the new features, because features in files have no names.
            del learner.feature_names_in_
        fitted, learner.n_features_in_ = learner.fitted, n_features
        fitted.n_iter = float(self.epoch)
        fitted.reading = reading.resolved(passes.lowest)
        return learner
