"""Epochs over the compiled loops: order of rows, stopping rules and progress."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

import numpy as np

from sparsemargin._engine.fitting.certificate import SoftMargin
from sparsemargin._engine.fitting.protocol import PRODUCTS_PER_CALL
from sparsemargin._engine.rows.csr import shuffle
from sparsemargin._engine.state import (
    MAX_TRIALS,
    array_of,
    fields,
    flag,
    instance,
    optional,
    part,
    real,
)

# Least seconds between two progress lines of a verbose fit.
_OFTEN = 0.5
# Least seconds between two progress lines of other fits. They report their progress if the number
# of epochs is not limited.
_SELDOM = 10.0

# The matrix of dot products is computed when the plain loop has made PATIENCE times as many
# multiplications for each vector as the matrix takes. The epoch in which this happens does not
# depend on the number of vectors that are trained together. For one vector, the total cost is at
# most twice the cost of the better method.
PATIENCE = 1

# A certificate takes one pass over the rows. With `tol`, the next one follows when the number of
# epochs has grown by this share, so certificates take a limited share of the time.
PASSES_BETWEEN_CERTIFICATES = 0.1


def learn_once(opened, order=None):
    """Run one epoch over checked rows with the `Loop` that the context opens.

    `order` has the row of each trial; None: the order of the rows.

    Returns
    -------
    int or None
        Number of rows whose class was predicted wrongly before their trial, or None if unknown.
    """
    with opened as loop:
        if loop.task.n_trials:
            if order is None:
                order = loop.task.order()
            elif loop.task.weights is not None:
                order = order[loop.task.weights[order] != 0]
            loop.run(order, None, loop.task.n_trials, 1, False)
        return loop.mistakes


@dataclass
class StoppingRule:
    """When a fit stops, and what it reports.

    Attributes
    ----------
    max_iter : float or None
        Number of epochs, possibly fractional; None: until an epoch makes no correction.
    tol : float or None
        Stop if the margin is proven to be at least 1 - tol of the largest margin.
    certified : bool
        Whether the margin is computed at the end.
    patience : Patience or None
        Stop when it is exhausted; None: no such rule.
    """

    max_iter: float | None
    tol: float | None = None
    certified: bool = False
    patience: Patience | None = None


@dataclass
class Patience:
    """Early stopping if no epoch has fewer corrections than the best one so far.

    In the first epoch, corrections estimate the error on new rows (progressive validation).

    Attributes
    ----------
    passes, corrections : int, float
        Stop after at least this many epochs with at least this many corrections in all.
    fewest : float
        Number of corrections in the best epoch so far.
    """

    passes: int
    corrections: float = 0.0
    fewest: float = np.inf
    waited: int = 0
    made: int = 0

    def is_over(self, corrections):
        """Count an epoch with so many corrections, and return whether to stop."""
        if corrections < self.fewest:
            self.fewest, self.waited, self.made = corrections, 0, 0
        else:
            self.waited, self.made = self.waited + 1, self.made + corrections
        return self.waited >= self.passes and self.made >= self.corrections


# The numbers recorded at every check of `tol`.
_HISTORY = {
    "n_iter": np.float64, "n_corrections": np.int64, "margin": np.float64, "bound": np.float64
}  # fmt: skip


@dataclass
class FitResult:
    """The result of a fit.

    Attributes
    ----------
    n_iter : float
        Number of epochs. Epochs after one without a correction would change nothing; they are
        counted in the averages but not run.
    converged : bool
        Whether an epoch made no correction although more corrections were allowed.
    proven : bool
        Whether all margins are proven to be within `tol` of the largest.
    margin : ndarray of shape (n_vectors,) or None
    soft_margin : SoftMargin or None
    history : list of tuple
        Per check of `tol`: number of epochs, and corrections, margin and bound of each vector.
    """

    n_iter: float = 0.0
    converged: bool = False
    proven: bool = False
    margin: np.ndarray | None = None
    soft_margin: SoftMargin | None = None
    history: list = field(default_factory=list)

    def __getstate__(self):
        # The history becomes one array for each of the numbers that a check records.
        columns = zip(*self.history, strict=True) if self.history else ([],) * len(_HISTORY)
        history = {
            name: np.array(column, dtype)
            for (name, dtype), column in zip(_HISTORY.items(), columns, strict=True)
        }
        return {**vars(self), "history": history}

    def __setstate__(self, state):
        history = part(state, "history")
        shape = part(history, "margin").shape
        n_iter, *columns = fields(history, {
            name: (array_of, dtype, shape if i else shape[:1])
            for i, (name, dtype) in enumerate(_HISTORY.items())
        }).values()  # fmt: skip
        vars(self).update(fields(state, {
            "n_iter": (real, 0, np.inf), "converged": (flag,), "proven": (flag,),
            "margin": (optional, array_of, np.float64, (None,)),
            "soft_margin": (instance, SoftMargin, type(None)),
        }), history=list(zip(n_iter.tolist(), *columns, strict=True)))  # fmt: skip


def learn(opened, stopping, *, seed=None, verbose=0):
    """Train until the stopping rule ends the fit.

    Parameters
    ----------
    opened : context manager
        Opens a `Loop`.
    stopping : StoppingRule
    seed : int or None
        Seed of the shuffling; None: the order of the rows.
    verbose : int
        Whether progress is printed.

    Returns
    -------
    FitResult

    Raises
    ------
    BadRow
        If a row is invalid. The state must not be used if rows had been trained on before.
    """
    with opened as loop:
        fit = _Fit(loop, stopping, seed, verbose)
        fit.run()
        fit.result.n_iter = fit.epochs
        if fit.is_finished and stopping.max_iter is not None:
            fit.space.count_trials(fit.space.trials + fit.trials_left)
        if stopping.certified:
            fit.certify()
        return fit.result


class _Fit:
    """The state of a fit in progress."""

    def __init__(self, loop, stopping, seed, verbose):
        self.loop, self.stopping, self.seed, self.verbose = loop, stopping, seed, verbose
        self.space, self.task = loop.space, loop.task
        self.n_trials = self.n_active = self.task.n_trials  # trials of an epoch over all rows
        self.max_trials = count_trials(stopping.max_iter, self.n_trials)
        self.order = self.task.order(shuffled=seed is not None)
        self.first_corrections = loop.corrections
        self.trials_before = self.space.trials_per_vector
        self.trials = self.passes = 0  # numbers so far
        self.is_finished = False  # True if the remaining trials would make no correction
        self.gram = None  # the loop with dot products, while it is in use
        self.next_choice = np.inf
        self.certificate = None
        self.margin = None  # the last computed margin
        self.margin_after = -1  # number of corrections when `margin` was computed
        self.next_certificate = 1
        self.result = FitResult()
        endless = stopping.max_iter is None and self.task.max_corrections is None
        self.progress = _Progress(verbose) if verbose or endless else None

    @property
    def epochs(self):
        """Number of epochs made; epochs over some of the rows count as fractions."""
        return self.trials / self.n_trials

    @property
    def trials_left(self):
        """Number of trials that are still allowed."""
        return self.max_trials - self.trials

    @property
    def rate(self):
        """Corrections per epoch so far."""
        return (self.loop.corrections - self.first_corrections) / self.epochs

    def run(self):
        learning = True
        # The loops have different rounding errors. The choice between them therefore depends on
        # counts, not on measured times, so that results are reproducible. The first epoch is always
        # made by the plain loop.
        if self.max_trials > self.n_trials and self.loop.by_products is not None:
            cost = self.loop.by_products.cost_of_matrix(self.task)
            patience = PATIENCE * self.space.n_vectors * cost
            self.next_choice = self.first_choice = max(1, -(-patience // self.loop.products))
        while learning and self.trials_left > 0:
            if self.epochs >= self.next_choice:
                self._choose_loop()
            before = self.loop.corrections
            learning, converged = self._advance()
            if self.progress is not None:
                self.progress.report(self.epochs, self.loop.corrections)
            proven = self.stopping.certified and self._certify_on_the_way()
            if learning and converged:
                self.is_finished = True
                self.result.converged = not self.space.exhausted().any()
            # Early stopping ignores epochs that leave some rows out.
            whole = self.n_active == self.n_trials
            patience, made = self.stopping.patience, self.loop.corrections - before
            if converged or proven or (patience and whole and patience.is_over(made)):
                break

    def _take_rows(self, active):
        """Use the rows selected by the boolean array in the next epochs; None: all rows."""
        if active is not None:
            self.order = np.flatnonzero(active)
        elif self.n_active < self.n_trials:
            self.order = self.task.order(shuffled=self.seed is not None)
        self.n_active = self.n_trials if active is None else len(self.order)

    def _advance(self):
        """Run some epochs. Return whether any vector is still in training, and whether the last
        epoch covered all rows and made no correction."""
        stop = min(self.n_active, self.trials_left)
        several = self.loop.repeats or self.gram is not None
        n_passes = self._passes_per_call() if several and self.trials else 1
        seed = None
        if self.seed is not None:
            seed = (self.seed + self.passes) % 2**64
            shuffle(self.order, seed)
        check = self.task.check and self.epochs == 0
        loop = self.gram if self.gram is not None and stop == self.n_trials else self.loop
        learning, passes, converged = loop.run(self.order, seed, stop, n_passes, check)
        self.passes += passes
        # Vectors may have stopped at different trials. The longest training is counted.
        self.trials = int((self.space.trials_per_vector - self.trials_before).max())
        if converged and self.n_active < self.n_trials:
            self._take_rows(None)
            return learning, False
        return learning, converged and stop == self.n_trials

    def _passes_per_call(self):
        """Number of epochs until Python code must run again."""
        reports = self.verbose and self.epochs < 10
        if self.stopping.patience is not None or reports:
            return 1
        cost = self.loop.products
        if self.gram is not None:
            cost = self.gram.cost_of_pass(self.n_trials, self.space.n_vectors, self.rate)
        epochs = min(
            PRODUCTS_PER_CALL / cost, self.trials_left / self.n_trials,
            self.next_choice - self.epochs,
        )  # fmt: skip
        if self.stopping.tol is not None:
            epochs = min(epochs, self.next_certificate - self.epochs)
        return max(1, int(epochs * self.n_trials / self.n_active))

    def _choose_loop(self):
        """Select the cheaper loop for the rate of corrections so far. The next choice follows when
        the number of epochs has doubled."""
        rate = self.rate / self.space.n_vectors
        plain = self.loop.products * (1 + 2 * rate / self.n_trials)
        by_products = self.loop.by_products
        by_gram = by_products.cost_of_pass(self.n_trials, self.space.n_vectors, self.rate)
        if by_gram >= plain:
            self.gram = None
        elif self.gram is None:
            self.loop.sum_repeats()
            self.gram = by_products(self.space, self.loop.rule, self.task)
            self._take_rows(None)
        self.next_choice = self.epochs + max(self.first_choice, self.epochs)

    def _certify_on_the_way(self):
        """Stop the vectors whose margins are proven to be within `tol` of the largest, if a check
        is due. Return whether all vectors have stopped."""
        if self.stopping.tol is None or self.epochs < self.next_certificate:
            return False
        margin, per_vector = self._record_margin(), self.space.per_vector
        self.next_certificate = max(
            self.epochs + 1, self.epochs * (1 + PASSES_BETWEEN_CERTIFICATES)
        )
        self.space.stop(self._is_proven(margin))
        if self.space.multipliers is not None and self.gram is None:
            self._take_rows(self.certificate.active_rows())
        return bool((per_vector("stopped") >= 0).all())

    def _is_proven(self, margin):
        """Return whether the margin of each vector is within `tol` of the largest."""
        return margin >= (1.0 - self.stopping.tol) * self.space.per_vector("bound")

    def _margin(self):
        if self.certificate is None:
            self.certificate = self.loop.certificate()
        if self.margin_after != self.loop.corrections:
            self.margin, self.margin_after = self.certificate.margin(), self.loop.corrections
        return self.margin

    def _record_margin(self):
        """Compute the margins of the vectors, add them to the history, and return them."""
        margin, per_vector = self._margin(), self.space.per_vector
        history = self.result.history
        if not history or history[-1][0] < self.epochs:
            corrections, bound = per_vector("corrections").copy(), per_vector("bound").copy()
            history.append((self.epochs, corrections, margin, bound))
        return margin

    def certify(self):
        """Compute the margin at the end of the fit."""
        result = self.result
        result.margin = self._record_margin()
        if self.stopping.tol is not None:
            result.proven = bool(self._is_proven(result.margin).all())
        if self.space.slack and self.space.p == 2.0:
            result.soft_margin = self.certificate.soft_margin(result.margin)


class _Progress:
    """Progress lines. A verbose fit prints one for each of the first ten epochs, and then one every
    half second. A fit without a limit prints one every ten seconds to standard error.
    """

    def __init__(self, verbose):
        self.verbose = verbose
        self.started = self.spoke = time.perf_counter()
        self.corrections = 0

    def report(self, epochs, corrections):
        """Print the number of corrections since the last line, if a line is due."""
        now = time.perf_counter()
        if self.verbose:
            if epochs > 10 and now - self.spoke < _OFTEN:
                return
            out = sys.stdout
        elif now - self.spoke < _SELDOM:
            return
        else:
            out = sys.stderr
        made, took = corrections - self.corrections, now - self.started
        print(f"epoch {epochs:.10g}: {made} new corrections, {took:.2f} s in all", file=out)
        self.spoke, self.corrections = now, corrections


def count_trials(max_iter, n_rows):
    """Number of trials in so many epochs; infinite for None."""
    if max_iter is None:
        return np.inf
    if max_iter * n_rows > MAX_TRIALS:
        raise ValueError(
            f"max_iter={max_iter:g} epochs of {n_rows} rows are more trials than can be counted. "
            "Pass None to go on until a pass makes no correction."
        )
    return max(1, round(max_iter * n_rows))
