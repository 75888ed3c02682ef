"""The linear spaces with the interface that models use: training and outputs."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from itertools import pairwise

import numpy as np

from sparsemargin._engine.core.vectors import set_thresholds
from sparsemargin._engine.first_order.linear_loop import JointLoop, LinearLoop
from sparsemargin._engine.first_order.prior import NaiveBayesPrior
from sparsemargin._engine.first_order.spaces import JointState, LinearState, counted_of
from sparsemargin._engine.first_order.trials import Hypothesis
from sparsemargin._engine.fitting.threads import run_together, threads_worth
from sparsemargin._engine.numerics.norms import norm
from sparsemargin._engine.replay.replay import LinearReplay
from sparsemargin._engine.replay.replayed import Replayed, points_of
from sparsemargin._engine.rows.csr import row_norms
from sparsemargin._engine.state import require, sparse

# Outputs (rows times vectors) computed at once. They fit into the CPU cache.
_OUTPUTS_PER_PART = 1 << 17

# Coordinates whose weights are computed at once to find norms, which limits the memory.
_COORDINATES_PER_PART = 1 << 15

# Names of the arrays with an entry for each coordinate, and of those with one for each vector.
_NUMBERS = "t", "g", "acc", "synced", "variances"
_PER_VECTOR = "vectors", "sigma", "threshold", "pending"


class LinearSpace(LinearState, Replayed):
    """The weight vectors of the one-vs-rest linear models; see `LinearState` for the parameters."""

    takes_many_labels = True

    loop_type = LinearLoop

    # Counts that determine the initial variances; None: they are 1.
    prior = None

    def take_prior(self, prior):
        """Set the variances of a new space to initial values. Coordinates without counts have the
        mean initial variance of their vector."""
        self.prior = prior
        held = None if self.in_blocks else self.of_vectors(self.variances)
        self.vectors["initial"] = prior.fill(held)

    @property
    def prior_in_arrays(self):
        """The prior of the coordinates in the arrays: all coordinates here, and none in
        `VectorBlocks`."""
        return self.prior

    def resize(self, n_features, first=0):
        super().resize(n_features, first)
        if self.prior is not None:
            self.prior = self.prior.moved(first)

    def __getstate__(self):
        state = super().__getstate__()
        if self.prior is not None:
            # Variances that have not changed are computed again from the counts.
            variances = self.of_vectors(self.variances).copy()
            self.prior_in_arrays.clear(variances)
            state |= {"variances": sparse(variances), "prior": self.prior.saved()}
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        if not self.in_blocks:
            self.restore_prior(state)

    def restore_prior(self, state):
        """Restore the prior, and the variances that have not changed."""
        if "prior" in state:
            require(self.adaptive, "its weights have no variances, but a prior")
            self.prior = NaiveBayesPrior.restored(state["prior"], self.n_features, self.n_vectors)
            self.prior_in_arrays.fill(self.of_vectors(self.variances))

    @contextmanager
    def loop(self, task, rule=None, *, skips=False):
        """Open the training loop; the rows have soft-margin coordinates until it is closed."""
        self.resume(task.max_corrections)
        set_thresholds(self, rule)
        self.open_rows(len(task.codes), task.row_state, rule.keeps_multipliers)
        try:
            yield self.loop_type(self, rule, task)
        finally:
            task.row_state = self.close_rows()

    def hypothesis_for(self, rows):
        """The last or averaged hypothesis, prepared for the outputs of checked rows."""
        return Hypothesis(self, rows)

    def outputs(self, rows, n_threads):
        n_rows, hypothesis = rows.n_rows, self.hypothesis_for(rows)
        out = np.empty((n_rows, self.n_vectors))
        n_threads = threads_worth(n_threads, int(rows.indptr[-1]) * self.n_vectors)
        cuts = [n_rows * i // n_threads for i in range(n_threads + 1)]
        calls = [partial(hypothesis.fill, out[a:b], a, b) for a, b in pairwise(cuts)]
        run_together(calls, n_threads)
        return out

    def outputs_in_parts(self, hypothesis, rows, seed, n_threads):
        if hypothesis in ("vote", "random"):
            return super().outputs_in_parts(hypothesis, rows, seed, n_threads)
        return self.hypothesis_for(rows).part, max(1, _OUTPUTS_PER_PART // self.n_vectors)

    def replays(self, rows, n_threads, n_points):
        X, exponents = points_of(rows, self.bias)
        for start in range(0, X.shape[0], n_points):
            some = slice(start, min(start + n_points, X.shape[0]))
            part = X[some]
            which = np.arange(some.start, some.stop)
            yield which, part, exponents[some], partial(LinearReplay, self, part)

    def norms(self, n_threads):
        n, step = self.n_features + (1 if self.bias else 0), _COORDINATES_PER_PART
        parts = [
            [norm(each, self.q) for each in self.weights(slice(start, start + step))]
            for start in range(0, n, step)
        ]
        return np.array([norm(np.array(each), self.q) for each in zip(*parts, strict=True)])

    def largest_norm(self, rows, weights):
        norms = row_norms(rows, self.p, self.bias, self.slack)
        return float(norms.max() if weights is None else norms[weights > 0].max())

    def summed(self):
        """Sum of the hypotheses over all trials, float64 of shape (n_coordinates, n_vectors)."""
        average, unit = self.vectors["average"], self.sigma
        if self.normalized:
            norms = self.vectors["norm"]
            unit = np.divide(unit, norms, out=np.zeros_like(unit), where=norms > 0.0)
        times = average["Z"] + (self.trials - average["begin"]) * unit
        every, (_, _, pending) = np.arange(self.width), self.factors()
        counted = counted_of(self.g, self.acc, self.synced, every, pending)
        return times * self.of_vectors(self.g) + self.of_vectors(counted)

    def take_sums(self, sums, trials):
        """Set the sums of the hypotheses over `trials` trials, from which the average continues."""
        for name in ("average", "idle", "flushes"):
            self.vectors[name] = 0
        self.vectors["stopped"], self.vectors["average"]["begin"] = -1, trials
        self.trials = trials
        if self.averaged:
            self.of_vectors(self.acc)[...] = sums
            self.synced[...] = 0
            self.pending[...] = 0.0

    def take_vectors(self, other, of_other, own):
        """Copy vectors `of_other` of a space with the same trials to the vectors `own`."""
        for name in _NUMBERS:
            if getattr(self, name).size:
                getattr(self, name)[:, own] = getattr(other, name)[:, of_other]
        for name in _PER_VECTOR:
            getattr(self, name)[own] = getattr(other, name)[of_other]
        self.trials = other.trials


class JointSpace(LinearSpace, JointState):
    """The vector of a joint model; see `JointState` for the parameters."""

    takes_many_labels = False

    loop_type = JointLoop

    @property
    def stretch(self):
        """Ratio of the p-norms of a joint instance and its row. The instance contains the row
        twice, once negated."""
        return 2.0 ** (1.0 / self.p)

    def hypothesis_for(self, rows):
        return Hypothesis(self.side_by_side(), rows)

    def norms(self, n_threads):
        return np.full(self.n_vectors, norm(super().norms(n_threads), self.q))

    def row_lengths(self, rows):
        return super().row_lengths(rows) * self.stretch

    def largest_norm(self, rows, weights):
        return super().largest_norm(rows, weights) * self.stretch
