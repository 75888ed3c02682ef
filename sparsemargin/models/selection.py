"""Selection of a learner by progressive validation, as in `fit_csr(X, y)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import ceil, inf
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.rows.columns import without_unused_columns
from sparsemargin._engine.rows.csr import BadRow
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin.models import Learner, find_algorithm, without_defaults
from sparsemargin.models.candidates import AROW, OF_TEXTS, PRIOR, Candidate, others
from sparsemargin.models.few_rows import best_of_few, lead, weights_of_rows
from sparsemargin.models.fitted.outputs import codes_of
from sparsemargin.models.inputs.rows import ROWS_MEASURED, Rows, check_rows, intercept_scale
from sparsemargin.models.inputs.standardized import scaling_of, standardized
from sparsemargin.models.inputs.training_set import (
    Beginning,
    Targets,
    counted_rows,
    rows_by_class,
    weights_by_class,
)
from sparsemargin.models.prior_choice import prior_pays

#: Numbers of rows. With fewer than LEAST_ROWS, errors by progressive validation are too noisy. Of
#: more than MOST_ROWS, a random sample is used.
LEAST_ROWS, MOST_ROWS = 500, 10_000

#: Parameters that all candidates have. Other parameters select AROW.
OPEN_PARAMETERS = frozenset({
    "class_weight", "fit_intercept", "intercept_scaling", "max_iter", "n_jobs", "random_state",
    "shuffle", "verbose",
})  # fmt: skip

# Leads in standard errors of the difference. An alternative needs a lead of _AHEAD over AROW at the
# end. Until then, it needs a lead over the best candidate that grows from _BEHIND to _AHEAD with
# the squared number of rows, because later errors have larger weights.
_AHEAD, _BEHIND = 2.0, -2.0

# Error rate of AROW up to which label noise is taken to be low. The candidate for label noise is
# then not needed.
_MANY_WRONG = 0.1

# Error rate of AROW above which the candidate for label noise only needs a lower error, without a
# lead of _AHEAD. Its steps are smaller, so that it falls behind at first, and with this much noise
# differences are small beside their standard error.
_MOST_WRONG = 0.3

# Number of rows before the first comparison if rows are sparse, and the factor by which the number
# of rows grows from one comparison to the next.
_FIRST, _GROWTH = 1000, 1.5

# Rows are sparse if the share of nonzero entries is below this value. The share is below 0.003 for
# text. It is 0.1 for log-transformed cells, for which the Second-order Perceptron is more accurate.
_SPARSE = 0.02

# Rows are dense if the share of non-zero entries is at least this value.
_DENSE = 0.15

# Largest number of entries of rows up to which features are standardized by default. Standardized
# rows have no zeros, and take 16 bytes for each entry.
_MOST_NUMBERS = 1 << 27

# Largest number of epochs in the comparison of AROW with and without a prior.
_MOST_EPOCHS = 3

# Scale of the intercept for several labels per row, relative to that for one label per row. Most
# labels are rare. With a smaller scale, corrections of the many rows without a label change its
# weights before the intercept is learned, which impairs the ranking of the rows.
_SCALE_OF_LABELS = 3.0


class DefaultAlgorithm:
    """The meaning of ``algo=None``: AROW, or another algorithm that is selected by training rows.

    AROW is used for any rows if there is a parameter that not every candidate has. A parameter that
    AROW does not have raises a ValueError. For the default features of texts (`of_texts`), the
    algorithm is always AROW with a Naive Bayes prior.

    Attributes
    ----------
    params : dict
        The parameters that differ from AROW's defaults, without ``max_iter="auto"``.
    settled : Candidate or None
        The algorithm, if it does not depend on the rows.
    """

    def __init__(self, params: Mapping[str, Any], *, of_texts: bool = False) -> None:
        self.params = without_defaults(params)
        if self.params.get("max_iter") == "auto":
            del self.params["max_iter"]
        find_algorithm(None, self.params)
        self._is_open = OPEN_PARAMETERS.issuperset(self.params)
        # ``prior=None`` is AROW's default value, but here it excludes the prior.
        self.settled = None if self._is_open and "prior" not in params else AROW
        if of_texts:
            # `self.params` lacks values that are AROW's defaults, such as ``prior=None``.
            settings = {name: params.get(name, own) for name, own in OF_TEXTS.settings.items()}
            self.settled = OF_TEXTS._replace(settings=settings)

    def candidate(
        self, rows: Rows, targets: Targets, classes: np.ndarray,
        weights: np.ndarray | None = None, *, whole: bool = False, prior: bool = True,
        checked: bool = False,
    ) -> Candidate:  # fmt: skip
        """Return AROW, or another candidate if it is better on at most 10,000 of the training rows.

        Another candidate needs a lower error by progressive validation, with a lead of two standard
        errors (Blum, Kalai and Langford, COLT 1999). Each candidate predicts a row before it is
        trained on the row. On sparse rows, the Second-order Perceptron is not a candidate, and AROW
        is selected if its error on the first 1,000 rows is at most 10 % and lower than that of the
        most frequent class. Fewer than 500 rows are compared by cross-validation if they are dense,
        otherwise AROW is selected.

        `whole` is True if these are all rows, as in a fit. Candidates on standardized features then
        take part, if rows are dense.

        If AROW is selected, it is compared with AROW with a prior on held-out rows, see
        `prior_pays`, unless `prior` is False or the share of non-zero entries is large.

        Rows need not be checked. If `checked` says that they are, candidates have no weights for
        columns without entries, which saves time and memory. Rows of weight 0 are ignored. The
        weight of an error is the weight of the row, times that of its class, times the number of
        rows before it, because later errors are closer to those of the final model.
        """
        if isinstance(targets, Positives):
            return AROW
        if self.settled is not None:
            return self.settled
        params = self.params
        # `class_weight` may name a class that does not occur in the first rows of a stream.
        if isinstance(weight := params.get("class_weight"), Mapping):
            known = set(classes.tolist())
            weight = weights_by_class(weight, classes)
            of_known = {name: weight[name] for name in weight if name in known}
            params = {**params, "class_weight": of_known}
        counted = counted_rows(params.get("class_weight"), classes, targets, weights)
        numbers = np.arange(rows.n_rows)
        if counted is not None:
            numbers = np.flatnonzero(counted)
            rows, targets = rows_at(rows, numbers), targets[numbers]
            weights = None if weights is None else weights[numbers]
        if rows.n_rows < LEAST_ROWS:
            if not _are_dense(rows):
                return AROW
            rows = check_rows(rows, numbers=numbers)
            return best_of_few(rows, targets, classes, params, weights, whole=whole)
        n_features = rows.n_features
        if checked:
            rows = without_unused_columns(rows)
        sample = _Sample(rows, targets, classes, params, weights, numbers)
        best = _best(sample, n_features, whole)
        if best == AROW and prior and len(rows.data) < _DENSE * rows.n_rows * n_features:
            return _with_prior(sample)
        return best

    def for_labels(self, rows: Rows, counted: np.ndarray) -> Candidate:
        """Return AROW for several labels per row. It has balanced class weights and a larger scale
        of the intercept, unless a parameter selects AROW or sets class weights. Rows need not be
        checked; `counted` selects those with a weight above 0."""
        if not self._is_open or "class_weight" in self.params:
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


class _Sample:
    """At most `MOST_ROWS` of the rows in random order. All have weights above 0; `numbers` are
    their positions.

    Attributes
    ----------
    share : ndarray of shape (n_rows,)
        Weight of the error of each row, see `DefaultAlgorithm.candidate`.
    params : dict
        Parameters of the candidates for one epoch in one thread.
    """

    def __init__(
        self, rows: Rows, targets: np.ndarray, classes: np.ndarray, params: Mapping[str, Any],
        weights: np.ndarray | None, numbers: np.ndarray,
    ) -> None:  # fmt: skip
        self.rows, self.classes, self.numbers = rows, classes, numbers
        # The seed is fixed, so that the selection depends only on the data.
        self.order = np.random.RandomState(0).permutation(rows.n_rows)[:MOST_ROWS]
        # Classes without rows count as one row, to avoid a division by zero in their weights.
        self.counts = np.maximum(1, rows_by_class(targets, len(classes)))
        self.codes = targets[self.order]
        self.weights = None if weights is None else weights[self.order]
        share = weights_of_rows(params, self.codes, classes, self.counts[1], self.weights)
        self.share = share * np.arange(len(self.order))
        quiet = {"max_iter": 1, "n_jobs": None, "verbose": 0, "random_state": 0}
        self.max_iter, self.params = params.get("max_iter"), {**params, **quiet}

    def part(self, where: slice) -> Rows:
        """Return the rows of a slice, checked."""
        which = self.order[where]
        return check_rows(rows_at(self.rows, which), numbers=self.numbers[which])

    def beginning(self, rows: Rows) -> Beginning:
        """Return what a learner is initialized with."""
        return Beginning(rows, self.classes, counts=self.counts)


def _best(sample: _Sample, n_features: int, whole: bool) -> Candidate:
    """Return the best candidate for the rows, see `DefaultAlgorithm.candidate`."""
    rows, codes, weights, share = sample.rows, sample.codes, sample.weights, sample.share
    sparse = len(rows.data) < _SPARSE * rows.n_rows * n_features
    scaling = None
    if whole and _are_dense(rows) and rows.n_rows * n_features <= _MOST_NUMBERS:
        # No labels are used, so the mean may include rows that have not been predicted yet.
        scaling = scaling_of(sample.part(slice(None)), None, weights)
    running: list[_Entrant] = []
    for where in _stretches(_FIRST if sparse else LEAST_ROWS, len(codes)):
        some = sample.part(where)
        if not where.start:
            enter = partial(
                _Entrant, params=sample.params, first=sample.beginning(some), n_rows=len(codes),
                scaling=scaling,
            )  # fmt: skip
            running = [enter(AROW)]
        if not running[0].read(some, codes, weights, where):
            return AROW  # its fit raises an error that describes the invalid row
        if not where.start:
            if sparse and running[0].has_learned(codes[where]):
                return AROW
            dense = scaling is not None
            running += map(enter, others(n_features, sparse=sparse, dense=dense))
        running[1:] = [each for each in running[1:] if each.read(some, codes, weights, where)]
        best = _best_of(running, share[: where.stop])
        running = _left_in(running, best, share[: where.stop], where.stop / len(codes))
        if len(running) == 1:
            break
    return _selected(running, best, share).candidate


def _with_prior(sample: _Sample) -> Candidate:
    """Return AROW, with a prior if this has a lower error on held-out rows."""
    some = sample.part(slice(None))
    n_epochs = ceil(sample.max_iter or AROW.epochs_of(sample.rows.n_rows, sample.counts[1]))
    pays = prior_pays(
        lambda prior: (PRIOR if prior else AROW).learner(sample.params), some, sample.codes,
        sample.weights, sample.share, sample.beginning(some), min(n_epochs, _MOST_EPOCHS),
    )  # fmt: skip
    return PRIOR if pays else AROW


class _Entrant:
    """A candidate in training, and whether it has predicted each row wrongly."""

    def __init__(
        self, candidate: Candidate, params: dict[str, Any], first: Beginning, n_rows: int,
        scaling: np.ndarray | None,
    ) -> None:  # fmt: skip
        # The rows are standardized here, because a stream can't do so.
        self.candidate, self.scaling = candidate, scaling if candidate.standardizes else None
        self.learner = candidate.learner({**params, **candidate.without_standardization})
        self.wrong = np.zeros(n_rows, dtype=bool)
        if self.scaling is not None:
            first = replace(first, rows=standardized(first.rows, self.scaling))
        self.learner.open_stream(first, 0)

    def read(self, rows: Rows, codes: np.ndarray, weights: np.ndarray | None, where: slice) -> bool:
        """Predict the rows of a block, then train on them. Return False if a row is too large or
        too small for the algorithm."""
        learner, fitted = self.learner, self.learner.fitted
        n_places = 1 << (rows.n_rows - 1).bit_length()
        kept = ProgressiveOutputs(fitted.space.n_vectors, n_places, learner._weight_root)
        some = None if weights is None else weights[where]
        if self.scaling is not None:
            rows = standardized(rows, self.scaling)
        try:
            learner.learn_stream(learner.make_task(rows, codes[where], some, progress=kept))
        except BadRow:
            return False
        self.wrong[where] = codes_of(fitted, kept.outputs[: rows.n_rows]) != codes[where]
        return True

    def error(self, n_rows: int) -> float:
        """Return the share of the first rows that were predicted wrongly."""
        return float(self.wrong[:n_rows].mean())

    def has_learned(self, codes: np.ndarray) -> bool:
        """Return whether the error on the first rows is low, and lower than that of predicting the
        most frequent class."""
        n_rows = len(codes)
        of_others = n_rows - np.bincount(codes).max()
        return self.error(n_rows) <= _MANY_WRONG and bool(self.wrong[:n_rows].sum() < of_others)

    def lead(self, first: _Entrant, share: np.ndarray) -> float:
        """Return the lead over `first`, AROW, in standard errors of the difference of the errors.
        For AROW itself, it is the lead that another candidate needs."""
        if self is first:
            return _AHEAD
        n_rows = len(share)
        return lead(first.wrong[:n_rows], self.wrong[:n_rows], share)


def _best_of(running: list[_Entrant], share: np.ndarray) -> _Entrant:
    """Return AROW, or the candidate without standardization that has the largest lead over it."""
    unchanged = [each for each in running if not each.candidate.standardizes]
    leads = [each.lead(running[0], share) for each in unchanged]
    return unchanged[int(np.argmax(leads))]


def _selected(running: list[_Entrant], best: _Entrant, share: np.ndarray) -> _Entrant:
    """Return the selected candidate after all rows; `best` is the result of `_best_of`."""
    # Comparing a standardized candidate with AROW is not enough. On images, where all features have
    # one scale, it is better than AROW, but worse than the Second-order Perceptron.
    standardized = [each for each in running if each.candidate.standardizes]
    leads = [each.lead(best, share) for each in standardized]
    if leads and max(leads) > _AHEAD:
        return standardized[int(np.argmax(leads))]
    if best is running[0] and best.error(len(share)) > _MOST_WRONG:
        ahead = (each for each in running if each.lead(best, share) > 0)
        return next((each for each in ahead if each.candidate.suits_noise), best)
    return best


def _left_in(
    running: list[_Entrant], best: _Entrant, share: np.ndarray, part: float
) -> list[_Entrant]:
    """Return AROW and the candidates that may still be better, after the share `part` of rows."""
    first, *rivals = running
    # With label noise, the candidate for it can catch up late, so it always remains. Without label
    # noise, it only remains if it is the best candidate.
    of_noise = -inf if first.error(len(share)) > _MANY_WRONG else inf
    of_others = _BEHIND + part**2 * (_AHEAD - _BEHIND)
    return [first] + [
        each for each in rivals
        if each is best
        or each.lead(best, share) > (of_noise if each.candidate.suits_noise else of_others)
    ]  # fmt: skip


def _stretches(first: int, n_rows: int) -> Iterator[slice]:
    """Yield consecutive slices of the rows. Each ends at `_GROWTH` times the end of the last."""
    where = slice(0, min(n_rows, first))
    while where.start < n_rows:
        yield where
        where = slice(where.stop, min(n_rows, int(_GROWTH * where.stop)))


def _are_dense(rows: Rows) -> bool:
    """Return whether rows have few zeros. Stored zeros do not count as entries."""
    return bool(np.count_nonzero(rows.data) >= _DENSE * rows.n_rows * rows.n_features)
