"""Several settings raced in one pass: the labels are learned by all of them side by side, and each
label keeps the setting whose outputs err least, one step ahead."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from sparsemargin._engine.first_order.label_blocks import how_of
from sparsemargin._engine.first_order.linear_loop import LinearLoop
from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.state import array_of, part, require, writable


class RaceLoop(LinearLoop):
    """The loop over all candidates; errors count in its first pass, before rows come again."""

    counted = None

    def run(self, order, seed, stop, n_passes, check):
        ended = super().run(order, seed, stop, n_passes, check)
        if self.counted is None:
            self.counted = self.errors.copy()
        return ended


class Candidates(LinearSpace):
    """The vectors of all settings, one label's after the other's."""

    loop_type = RaceLoop


class RacedSpace(LinearSpace):
    """The vectors of the labels, each learned by the setting that is best so far.

    Errors weigh what their rows do, as many times as trials have been made by then: early ones tell
    who learns fast.

    Parameters
    ----------
    n_features, n_labels, p, dtype, **how
        As those of `LinearSpace`.
    n_settings : int
        Of equal ones the first is preferred.

    Attributes
    ----------
    field : Candidates
    errors : ndarray of shape (n_labels, n_settings)
        Numbers of the trials before which the output had the wrong sign, times the rows' weights,
        added up.
    tried : ndarray of shape (n_labels,)
        What they come to if all were wrong.
    best : ndarray of shape (n_labels,)
        Each label's setting.
    """

    def __init__(self, n_features, n_labels, p, dtype, *, n_settings, **how):
        super().__init__(n_features, n_labels, p, dtype, **how)
        self.field = Candidates(n_features, n_labels * n_settings, p, dtype, **how)
        self.errors, self.tried = np.zeros((n_labels, n_settings)), np.zeros(n_labels)
        self.best = np.zeros(n_labels, np.int64)

    @contextmanager
    def loop(self, task, rule=None, *, skips=False):
        """As that of `LinearSpace`, `rule` being a list of the settings' rules."""
        swept = self.field.per_label("passes").sum()
        self.field.leading = self._leading() if task.positives is None else None
        with self.field.loop(self._of_all(task), list(rule) * self.n_labels) as loop:
            try:
                yield loop
            finally:
                self._choose(task, loop.errors if loop.counted is None else loop.counted, swept)

    def _leading(self):
        """Which of all candidates are the labels' best."""
        return np.arange(self.n_labels) * self.errors.shape[1] + self.best

    def _of_all(self, task):
        """The task of all candidates."""
        n_labels, n_settings = self.errors.shape
        starts, labels = task.positives or (None, task.codes)
        if starts is None and n_labels == 1:
            starts = np.append(0, np.cumsum(labels == 1))
            labels = np.zeros(starts[-1], np.int64)
        elif starts is None:
            starts = np.arange(len(labels) + 1)
        together = labels[:, np.newaxis] * n_settings + np.arange(n_settings)
        weights = np.repeat(task.class_weight, n_settings, axis=1)
        positives = Positives(starts * n_settings, together.ravel())
        return replace(task, positives=positives, class_weight=weights)

    def _choose(self, task, counted, swept):
        """Count the errors, and let each label be the best candidate's."""
        field = self.field
        wrong, tried = counted.reshape(2, *self.errors.shape)
        self.errors += wrong
        self.tried += tried[:, 0]
        best = self.errors.argmin(axis=1)
        some, met = slice(None), task.rows.indices
        same = (best == self.best).all() and field.per_label("passes").sum() == swept
        if same and not task.check and len(met) < len(field.t):
            # Nothing but the coordinates of the rows, which have been checked, has changed.
            some = np.append(met, len(field.t) - 1)
        self.best = best
        which, n = self._leading(), self.n_labels
        for name in ("t", "acc", "synced", "gain"):
            mine = getattr(self, name)
            if len(mine):
                mine[some, :n] = getattr(field, name)[some].take(which, axis=1)
        for name in ("labels", "sigma", "threshold"):
            getattr(self, name)[:] = getattr(field, name)[which]
        self.pending[:n] = field.pending[which]
        self.begin_after(field.trials)

    def begin_at(self, weights):
        super().begin_at(weights)
        self.field.begin_at(np.repeat(weights, self.errors.shape[1], axis=0))

    def count_trials(self, trials):
        super().count_trials(trials)
        self.field.count_trials(trials)

    def resize(self, n_features, first=0):
        super().resize(n_features, first)
        self.field.resize(n_features, first)

    @property
    def nbytes(self):
        """Bytes that all coordinates take."""
        return super().nbytes + self.field.nbytes

    def settle(self):
        """Become the vectors alone, as they are now."""
        del self.field, self.errors, self.tried, self.best
        self.__class__ = LinearSpace

    # --------------------------------------------------------------------------------- the state

    def __getstate__(self):
        return {**super().__getstate__(), "field": self.field, "errors": self.errors,
                "tried": self.tried, "best": self.best}  # fmt: skip

    def __setstate__(self, state):
        super().__setstate__(state)
        self.field, n = part(state, "field"), self.n_labels
        n_settings = array_of(state, "errors", np.float64, (n, None), 0.0, np.inf).shape[1]
        self.errors = writable(state["errors"])
        self.tried = writable(array_of(state, "tried", np.float64, (n,), 0.0, np.inf))
        self.best = writable(array_of(state, "best", np.int64, (n,), 0, n_settings - 1))
        require(
            isinstance(self.field, Candidates) and self.field.n_labels == n * n_settings
            and self.field.t.dtype == self.t.dtype and self.field.t.shape[0] == self.t.shape[0]
            and how_of(self.field) == how_of(self), "'field' is not of these labels' settings"
        )  # fmt: skip
