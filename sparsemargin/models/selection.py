"""Which learner `fit_csr(X, y)` takes: the one that errs least one step ahead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import ceil, inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.rows.csr import BadRow
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin.models import ALGORITHMS, Algorithm, Learner
from sparsemargin.models.fitted.outputs import codes_of
from sparsemargin.models.fitted.state import Beginning
from sparsemargin.models.inputs.class_weights import (
    Targets,
    counted_rows,
    named_weights,
    rows_by_class,
)
from sparsemargin.models.inputs.rows import Rows, check_rows

#: From fewer rows errors tell nothing; more are not tried.
LEAST_ROWS, MOST_ROWS = 500, 10_000

#: What leaves the choice of the learner open.
OPEN_PARAMETERS = frozenset({
    "class_weight", "fit_intercept", "intercept_scaling", "max_iter", "n_jobs", "random_state",
    "shuffle", "verbose",
})  # fmt: skip

# How far ahead of the first candidate another has to be in the end, and how far behind the best it
# may be in the beginning, in standard errors of the difference. In between what is asked for grows
# with the square of the rows, as their weights add up.
_AHEAD, _BEHIND = 2.0, -2.0

# If AROW errs on no larger share of the rows, no more labels are wrong, and its setting for these
# is not for them.
_MANY_WRONG = 0.1

# The sparse rows before the first look, and how many there are by the end of each further stretch
# for one before it.
_FIRST, _GROWTH = 1000, 1.5

# Sparse rows have a smaller share of entries that are not 0. Text: less than 0.003; logarithms of
# cells, of which the Second-order Perceptron learns more: 0.1.
_SPARSE = 0.02

# Rows point one way if their mean, each divided by its length, is so long (squared; raw
# microarrays: 0.02 to 0.88, their logarithms 0.97 to 1).
_DENSE, _FEW_FEATURES, _PARALLEL = 0.15, 1000, 0.95

# Rows of the rarer class, each of which asks for an epoch more.
_RARE = 500, 100


class Candidate(NamedTuple):
    """An algorithm, what is not its default, and how long it learns where that is left open: for
    so many epochs, or as many as make so many trials."""

    algorithm: Algorithm
    settings: dict[str, Any]
    epochs: int
    trials: int

    def learner(self, params: Mapping[str, Any]) -> Learner:
        """One with these parameters too."""
        kind, fixed = ALGORITHMS[self.algorithm]
        return kind(**{**fixed, **self.settings, **params})

    def epochs_of(self, n_rows: int, counts: np.ndarray | None) -> int:
        """Return how many epochs pay for so many rows, these of each class; None: any number of
        labels a row. For AROW they are more where there are more than two classes, or one is
        rare."""
        least = self.epochs
        many = counts is None or len(counts) > 2
        if self.algorithm == "arow" and many:
            least += 1
        elif self.algorithm == "arow" and counts is not None:
            least += sum(int(counts.min()) < rare for rare in _RARE)
        return max(least, ceil(self.trials / max(1, n_rows)))


AROW = Candidate("arow", {}, 1, 1000)
_SECOND_ORDER = Candidate("so", {}, 5, 3000)


def others(n_features: int, sparse: bool) -> list[Candidate]:
    """What may take the place of the default."""
    log_p = float(max(2.0, 2 * log(max(2, n_features))))
    return [
        # Where many labels are wrong, or can't be told apart.
        Candidate("arow", {"r": 1.0, "max_loss": 0.5}, 1, 1000),
        # Where few of very many features tell anything.
        Candidate("pnorm", {"p": log_p}, 5, 3000),
        # Where features are correlated, which it costs most to see.
        *([] if sparse else [_SECOND_ORDER]),
    ]


def settled(params: Mapping[str, Any]) -> Candidate | None:
    """AROW, if parameters are given that not every candidate has; None: they leave it open."""
    return None if OPEN_PARAMETERS.issuperset(params) else AROW


def select(
    rows: Rows, targets: Targets, classes: np.ndarray, params: Mapping[str, Any],
    weights: np.ndarray | None = None,
) -> Candidate:  # fmt: skip
    """What rows like these are learned by.

    It is AROW unless another candidate errs less by two standard errors of the difference, by
    progressive validation (Blum, Kalai and Langford, COLT 1999): each predicts every row with what
    it has learned of those before, and then learns it. On sparse rows the Second-order Perceptron
    is no candidate, and none is where AROW errs on no more than a tenth of the first 1,000, and on
    fewer than the commonest class alone would. Fewer than 500 rows tell nothing: there it is the
    Second-order Perceptron where rows are dense and have few features or almost one direction, else
    AROW; which it is, too, where rows may have several labels.

    Parameters
    ----------
    rows : Rows
        They need not be checked; at most 10,000 are tried, in random order.
    params : Mapping
        Of `OPEN_PARAMETERS`: every candidate gets them.
    weights : ndarray of shape (n_rows,), default=None
        Of the rows; those of weight 0 are not there. An error counts for the weight of the row and
        of its class, and for the rows before it, as later ones tell more of the model to come.
    """
    if isinstance(targets, Positives):
        return AROW
    counted = counted_rows(params.get("class_weight"), classes, targets, weights)
    numbers = np.arange(rows.n_rows)
    if counted is not None:
        numbers = np.flatnonzero(counted)
        rows, targets = rows_at(rows, numbers), targets[numbers]
        weights = None if weights is None else weights[numbers]
    # Of one seed: which learner it is, is to depend on the rows alone.
    order = np.random.RandomState(0).permutation(rows.n_rows)[:MOST_ROWS]
    if len(order) < LEAST_ROWS:
        return _SECOND_ORDER if _are_dense(rows, numbers) else AROW
    # Of a class that comes later there are no rows yet, and its weight is not asked for.
    counts = np.maximum(1, rows_by_class(targets, len(classes)))
    codes, weights = targets[order], None if weights is None else weights[order]
    sparse = len(rows.data) < _SPARSE * rows.n_rows * rows.n_features
    of_race = {**params, "max_iter": 1, "n_jobs": None, "verbose": 0, "random_state": 0}
    share = np.arange(len(order)) * (1.0 if weights is None else weights)
    running: list[_Entrant] = []
    for where in _stretches(_FIRST if sparse else LEAST_ROWS, len(order)):
        some = check_rows(rows_at(rows, order[where]), numbers=numbers[order[where]])
        if not where.start:
            share = share * _class_weights(params, codes, classes, counts)
            first = Beginning(some, classes, counts=counts)
            enter = partial(_Entrant, params=of_race, first=first, n_rows=len(order))
            running = [enter(AROW)]
        if not running[0].read(some, codes, weights, where):
            return AROW  # of which the fit tells that it can't learn such rows
        if not where.start:
            if sparse and running[0].has_learned(codes[where]):
                return AROW
            running += map(enter, others(rows.n_features, sparse))
        running[1:] = [each for each in running[1:] if each.read(some, codes, weights, where)]
        leads = [each.lead(running[0], share[: where.stop]) for each in running]
        best = running[int(np.argmax(leads))]
        running = _left_in(running, best, share[: where.stop], where.stop / len(order))
        if len(running) == 1:
            break
    return best.candidate


class _Entrant:
    """A candidate in a race, and which rows it has predicted wrongly."""

    def __init__(
        self, candidate: Candidate, params: dict[str, Any], first: Beginning, n_rows: int
    ) -> None:
        self.candidate, self.learner = candidate, candidate.learner(params)
        self.wrong = np.zeros(n_rows, dtype=bool)
        self.learner.open_stream(first, 0)

    def read(self, rows: Rows, codes: np.ndarray, weights: np.ndarray | None, where: slice) -> bool:
        """Predict the rows of this stretch, and learn them; False: they are too large, or too
        small, for it."""
        learner, fitted = self.learner, self.learner.fitted
        n_places = 1 << (rows.n_rows - 1).bit_length()
        kept = ProgressiveOutputs(fitted.space.n_labels, n_places, learner._weight_root)
        some = None if weights is None else weights[where]
        try:
            learner.learn_stream(learner.make_task(rows, codes[where], some, kept=kept))
        except BadRow:
            return False
        self.wrong[where] = codes_of(fitted, kept.outputs[: rows.n_rows]) != codes[where]
        return True

    def errs_much(self, n_rows: int) -> bool:
        """Whether it was wrong of many of the first rows."""
        return bool(self.wrong[:n_rows].mean() > _MANY_WRONG)

    def has_learned(self, codes: np.ndarray) -> bool:
        """Whether it errs on few of the first rows, and on fewer than the commonest class alone."""
        n_rows = len(codes)
        of_others = n_rows - np.bincount(codes).max()
        return not self.errs_much(n_rows) and bool(self.wrong[:n_rows].sum() < of_others)

    def lead(self, first: _Entrant, share: np.ndarray) -> float:
        """By how many standard errors its errors are fewer than those of the first; of that itself
        what another has to have."""
        if self is first:
            return _AHEAD
        n_rows = len(share)
        fewer = share * (first.wrong[:n_rows].astype(float) - self.wrong[:n_rows])
        spread = sqrt(float(fewer @ fewer))
        return float(fewer.sum()) / spread if spread else 0.0


def _left_in(
    running: list[_Entrant], best: _Entrant, share: np.ndarray, part: float
) -> list[_Entrant]:
    """The first, and those that may still turn out better, after this part of all rows."""
    first, *rivals = running
    # AROW's other setting comes from behind where many labels are wrong.
    least = {"arow": -inf if first.errs_much(len(share)) else inf}
    of_others = _BEHIND + part**2 * (_AHEAD - _BEHIND)
    return [first] + [
        each for each in rivals
        if each is best or each.lead(best, share) > least.get(each.candidate.algorithm, of_others)
    ]  # fmt: skip


def _stretches(first: int, n_rows: int) -> Iterator[slice]:
    """All rows, in stretches that grow with those before them."""
    where = slice(0, min(n_rows, first))
    while where.start < n_rows:
        yield where
        where = slice(where.stop, min(n_rows, int(_GROWTH * where.stop)))


def _class_weights(
    params: Mapping[str, Any], codes: np.ndarray, classes: np.ndarray, counts: np.ndarray
) -> Any:
    """What the class of each row weighs."""
    weight = params.get("class_weight")
    if isinstance(weight, Mapping):
        return named_weights(weight, classes)[codes]
    return 1.0 if weight is None else 1.0 / counts[1][codes]


def _are_dense(rows: Rows, numbers: np.ndarray) -> bool:
    """Whether rows have few zeros, and few features or almost one direction, as logarithms' have:
    by a hundred of them, spread evenly."""
    n_rows, n_features = rows.n_rows, rows.n_features
    if len(rows.data) < _DENSE * n_rows * n_features:
        return False
    chosen = np.arange(0, n_rows, max(1, n_rows // 100))[:100]
    some = check_rows(rows_at(rows, chosen), numbers=numbers[chosen])
    entries = np.zeros((some.n_rows, n_features))
    entries[np.repeat(np.arange(some.n_rows), np.diff(some.indptr)), some.indices] = some.data
    if np.count_nonzero(entries) < _DENSE * entries.size:
        return False
    return n_features < _FEW_FEATURES or _are_parallel(entries)


def _are_parallel(rows: np.ndarray) -> bool:
    """Whether rows point almost one way, but for those of zeros."""
    rows = rows[rows.any(axis=1)]
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    mean = unit.sum(axis=0) / max(1, len(rows))
    return bool(mean @ mean > _PARALLEL)
