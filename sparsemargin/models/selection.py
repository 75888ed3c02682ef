"""Selection of a learner by progressive validation, as in `fit_csr(X, y)`."""

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
from sparsemargin.models import ALGORITHMS, Algorithm, Learner, find_algorithm, without_defaults
from sparsemargin.models.fitted.outputs import codes_of
from sparsemargin.models.inputs.rows import ROWS_MEASURED, Rows, check_rows, intercept_scale
from sparsemargin.models.inputs.training_set import (
    Beginning,
    Targets,
    counted_rows,
    named_weights,
    rows_by_class,
)

#: Numbers of rows. With fewer than LEAST_ROWS, errors are too noisy for a selection. Of more than
#: MOST_ROWS, a random sample is used.
LEAST_ROWS, MOST_ROWS = 500, 10_000

#: Parameters that all candidates have. Other parameters select AROW.
OPEN_PARAMETERS = frozenset({
    "class_weight", "fit_intercept", "intercept_scaling", "max_iter", "n_jobs", "random_state",
    "shuffle", "verbose",
})  # fmt: skip

# Leads in standard errors of the difference. An alternative needs a lead of _AHEAD over AROW at the
# end. Until then, it needs a lead over the best candidate that grows from _BEHIND to _AHEAD with
# the squared number of rows, like the sum of the weights of the rows.
_AHEAD, _BEHIND = 2.0, -2.0

# Error rate of AROW up to which label noise is taken to be low. The candidate for label noise is
# then not needed.
_MANY_WRONG = 0.1

# Number of rows before the first comparison if rows are sparse, and the factor by which the number
# of rows grows from one comparison to the next.
_FIRST, _GROWTH = 1000, 1.5

# Rows are sparse if the share of non-zero entries is below this value. It is below 0.003 for text,
# and 0.1 for log-transformed cells, on which the Second-order Perceptron is more accurate.
_SPARSE = 0.02

# Rows are dense if the share of non-zero entries is at least _DENSE. They are parallel if the mean
# of the normalized rows has a squared norm above _PARALLEL (raw microarrays: 0.02 to 0.88;
# log-transformed: 0.97 to 1).
_DENSE, _FEW_FEATURES, _PARALLEL = 0.15, 1000, 0.95

#: Training error above which AROW is trained for more epochs, and the least number of trials (rows
#: times epochs) that it then makes.
UNLEARNED, _ENOUGH_TRIALS = 0.1, 3000

# AROW runs one more epoch for each of these numbers that exceeds the rows of the rarer class.
_RARE = 500, 100


class Candidate(NamedTuple):
    """An algorithm, its non-default parameters, and the minimum numbers of epochs and trials if
    `max_iter` is not given."""

    algorithm: Algorithm
    settings: dict[str, Any]
    epochs: int
    trials: int

    def learner(self, params: Mapping[str, Any]) -> Learner:
        """Return the candidate's learner with additional parameters."""
        kind, fixed = ALGORITHMS[self.algorithm]
        return kind(**{**fixed, **self.settings, **params})

    def epochs_of(self, n_rows: int, counts: np.ndarray | None) -> int:
        """Return a suitable number of epochs for the number of rows and the rows of each class
        (None: multilabel). AROW gets more epochs for more than two classes or a rare class."""
        least = self.epochs
        many = counts is None or len(counts) > 2
        if self.algorithm == "arow" and many:
            least += 1
        elif self.algorithm == "arow" and counts is not None:
            least += sum(int(counts.min()) < rare for rare in _RARE)
        return max(least, ceil(self.trials / max(1, n_rows)))

    def epochs_if_unlearned(self, n_rows: int) -> int:
        """Return the number of epochs after which AROW has at least `_ENOUGH_TRIALS`, for rows of
        which more than `UNLEARNED` are predicted wrongly after fewer epochs; 0 for others."""
        return ceil(_ENOUGH_TRIALS / max(1, n_rows)) if self.algorithm == "arow" else 0


AROW = Candidate("arow", {}, 1, 1000)

# Scale of the intercept for several labels per row, relative to that for one label per row. Most
# labels are rare. With a smaller scale, corrections of the many rows without a label change its
# weights before the intercept is learned, which impairs the ranking of the rows.
_SCALE_OF_LABELS = 3.0
_SECOND_ORDER = Candidate("so", {}, 5, 3000)


def others(n_features: int, sparse: bool) -> list[Candidate]:
    """Return the candidates that may replace the default."""
    log_p = float(max(2.0, 2 * log(max(2, n_features))))
    return [
        # This candidate suits data with label noise or overlapping classes.
        Candidate("arow", {"r": 1.0, "max_loss": 0.5}, 1, 1000),
        # This candidate suits data with few informative features among very many.
        Candidate("pnorm", {"p": log_p}, 5, 3000),
        # This candidate suits data with correlated features. It is the slowest one.
        *([] if sparse else [_SECOND_ORDER]),
    ]


class DefaultAlgorithm:
    """The meaning of ``algo=None``: AROW, or another algorithm that is selected by training rows.

    A parameter that not every candidate has settles AROW. A ValueError is raised for a parameter
    that AROW does not have.

    Attributes
    ----------
    params : dict
        The parameters that differ from AROW's defaults, without ``max_iter="auto"``.
    settled : Candidate or None
        AROW, if the parameters settle it.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = without_defaults(params)
        if self.params.get("max_iter") == "auto":
            del self.params["max_iter"]
        find_algorithm(None, self.params)
        self.settled = None if OPEN_PARAMETERS.issuperset(self.params) else AROW

    def candidate(
        self, rows: Rows, targets: Targets, classes: np.ndarray, weights: np.ndarray | None = None,
        n_features: int | None = None,
    ) -> Candidate:  # fmt: skip
        """Return AROW, or another candidate if it is better on at most 10,000 of the training rows.

        Another candidate needs a lower error by progressive validation, with a lead of two standard
        errors (Blum, Kalai and Langford, COLT 1999). Each candidate predicts a row before it is
        trained on the row. On sparse rows, the Second-order Perceptron is not a candidate, and AROW
        is selected if its error on the first 1,000 rows is at most 10 % and lower than that of the
        most frequent class. With fewer than 500 rows, the Second-order Perceptron is selected if
        rows are dense and have few features or are nearly parallel.

        Rows need not be checked, and those of weight 0 are ignored. The weight of an error is the
        weight of the row, times that of its class, times the number of rows before it, because
        later errors are closer to those of the final model.

        `n_features` is the number of features if columns without entries have been left out.
        """
        if self.settled is not None or isinstance(targets, Positives):
            return AROW
        params = self.params
        # `class_weight` may name a class that does not occur in the first rows of a stream.
        if isinstance(weight := params.get("class_weight"), Mapping):
            known = set(classes.tolist())
            of_known = {name: weight[name] for name in weight if name in known}
            params = {**params, "class_weight": of_known}
        counted = counted_rows(params.get("class_weight"), classes, targets, weights)
        numbers = np.arange(rows.n_rows)
        if counted is not None:
            numbers = np.flatnonzero(counted)
            rows, targets = rows_at(rows, numbers), targets[numbers]
            weights = None if weights is None else weights[numbers]
        if rows.n_rows < LEAST_ROWS:
            return _SECOND_ORDER if _are_dense(rows, numbers) else AROW
        n_features = rows.n_features if n_features is None else n_features
        return _best(rows, targets, classes, params, weights, numbers, n_features)

    def for_labels(self, rows: Rows, counted: np.ndarray) -> Candidate:
        """Return AROW for several labels per row: with balanced class weights and a larger scale of
        the intercept, unless the parameters settle it or set class weights. Rows need not be
        checked; `counted` selects those with a weight above 0."""
        if self.settled is not None or "class_weight" in self.params:
            return AROW
        first = np.flatnonzero(counted)[:ROWS_MEASURED]
        measured = check_rows(rows_at(rows, first), repeats_allowed=True, numbers=first)
        # The scale is shown as an argument of the classifier, so it has few digits.
        scale = float(f"{_SCALE_OF_LABELS * intercept_scale([measured], 2.0):.3g}")
        return AROW._replace(settings={"class_weight": "balanced", "intercept_scaling": scale})

    def learner(self, candidate: Candidate, n_rows: int, counts: np.ndarray | None) -> Learner:
        """Return the learner for a number of rows and the rows of each class (None: multilabel)."""
        if "max_iter" in self.params:
            return candidate.learner(self.params)
        return candidate.learner({**self.params, "max_iter": candidate.epochs_of(n_rows, counts)})


def _best(
    rows: Rows, targets: np.ndarray, classes: np.ndarray, params: Mapping[str, Any],
    weights: np.ndarray | None, numbers: np.ndarray, n_features: int,
) -> Candidate:  # fmt: skip
    """Return the best candidate for rows with weights above 0; `numbers` are their positions."""
    # The seed is fixed, so that the selection depends only on the data.
    order = np.random.RandomState(0).permutation(rows.n_rows)[:MOST_ROWS]
    # Classes without rows count as one row, to avoid a division by zero in their weights.
    counts = np.maximum(1, rows_by_class(targets, len(classes)))
    codes, weights = targets[order], None if weights is None else weights[order]
    sparse = len(rows.data) < _SPARSE * rows.n_rows * n_features
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
            return AROW  # its fit raises an error that describes the invalid row
        if not where.start:
            if sparse and running[0].has_learned(codes[where]):
                return AROW
            running += map(enter, others(n_features, sparse))
        running[1:] = [each for each in running[1:] if each.read(some, codes, weights, where)]
        leads = [each.lead(running[0], share[: where.stop]) for each in running]
        best = running[int(np.argmax(leads))]
        running = _left_in(running, best, share[: where.stop], where.stop / len(order))
        if len(running) == 1:
            break
    return best.candidate


class _Entrant:
    """A candidate in training, and whether it has predicted each row wrongly."""

    def __init__(
        self, candidate: Candidate, params: dict[str, Any], first: Beginning, n_rows: int
    ) -> None:
        self.candidate, self.learner = candidate, candidate.learner(params)
        self.wrong = np.zeros(n_rows, dtype=bool)
        self.learner.open_stream(first, 0)

    def read(self, rows: Rows, codes: np.ndarray, weights: np.ndarray | None, where: slice) -> bool:
        """Predict the rows of a block, then train on them. Return False if a row is too large or
        too small for the algorithm."""
        learner, fitted = self.learner, self.learner.fitted
        n_places = 1 << (rows.n_rows - 1).bit_length()
        kept = ProgressiveOutputs(fitted.space.n_vectors, n_places, learner._weight_root)
        some = None if weights is None else weights[where]
        try:
            learner.learn_stream(learner.make_task(rows, codes[where], some, progress=kept))
        except BadRow:
            return False
        self.wrong[where] = codes_of(fitted, kept.outputs[: rows.n_rows]) != codes[where]
        return True

    def errs_much(self, n_rows: int) -> bool:
        """Return whether the error on the first rows exceeds `_MANY_WRONG`."""
        return bool(self.wrong[:n_rows].mean() > _MANY_WRONG)

    def has_learned(self, codes: np.ndarray) -> bool:
        """Return whether the error on the first rows is low, and lower than that of predicting the
        most frequent class."""
        n_rows = len(codes)
        of_others = n_rows - np.bincount(codes).max()
        return not self.errs_much(n_rows) and bool(self.wrong[:n_rows].sum() < of_others)

    def lead(self, first: _Entrant, share: np.ndarray) -> float:
        """Return the lead over `first`, AROW, in standard errors of the difference of the errors.
        For AROW itself, it is the lead that another candidate needs."""
        if self is first:
            return _AHEAD
        n_rows = len(share)
        fewer = share * (first.wrong[:n_rows].astype(float) - self.wrong[:n_rows])
        spread = sqrt(float(fewer @ fewer))
        return float(fewer.sum()) / spread if spread else 0.0


def _left_in(
    running: list[_Entrant], best: _Entrant, share: np.ndarray, part: float
) -> list[_Entrant]:
    """Return AROW and the candidates that may still be better, after the share `part` of rows."""
    first, *rivals = running
    # With label noise, AROW's other setting can catch up late, so it always remains. Without label
    # noise, it only remains if it is the best candidate.
    least = {"arow": -inf if first.errs_much(len(share)) else inf}
    of_others = _BEHIND + part**2 * (_AHEAD - _BEHIND)
    return [first] + [
        each for each in rivals
        if each is best or each.lead(best, share) > least.get(each.candidate.algorithm, of_others)
    ]  # fmt: skip


def _stretches(first: int, n_rows: int) -> Iterator[slice]:
    """Yield consecutive slices of the rows. Each ends at `_GROWTH` times the end of the last."""
    where = slice(0, min(n_rows, first))
    while where.start < n_rows:
        yield where
        where = slice(where.stop, min(n_rows, int(_GROWTH * where.stop)))


def _class_weights(
    params: Mapping[str, Any], codes: np.ndarray, classes: np.ndarray, counts: np.ndarray
) -> Any:
    """Return the weight of each row's class, shape (n_rows,), or 1.0 without class weights."""
    weight = params.get("class_weight")
    if isinstance(weight, Mapping):
        return named_weights(weight, classes)[codes]
    return 1.0 if weight is None else 1.0 / counts[1][codes]


def _are_dense(rows: Rows, numbers: np.ndarray) -> bool:
    """Return whether rows have few zeros, and few features or a common direction, as logarithms
    have. At most 100 evenly spaced rows are checked."""
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
    """Return whether the rows that are not zero have nearly the same direction."""
    rows = rows[rows.any(axis=1)]
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    mean = unit.sum(axis=0) / max(1, len(rows))
    return bool(mean @ mean > _PARALLEL)
