"""Selection of a learner for few rows by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import inf, sqrt
from typing import Any

import numpy as np

from sparsemargin._engine.messages import collected_warnings
from sparsemargin._engine.rows.csr import BadRow
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin.models.candidates import AROW, SECOND_ORDER, Candidate, for_few_rows
from sparsemargin.models.fitted.held_out import stratified_folds
from sparsemargin.models.fitted.outputs import codes_of, predicted
from sparsemargin.models.inputs.rows import Rows
from sparsemargin.models.inputs.training_set import TrainingSet, named_weights, rows_by_class

_FOLDS = 5

# Lead over the default, in standard errors of the difference, that a candidate needs. It is smaller
# than for many rows, because few rows rarely show a lead of 2. On tables with 30 to 450 rows, a
# lead of 1 reduced the errors of the default to 79 %, and a lead of 2 to 85 %.
_AHEAD = 1.0

# The default is the Second-order Perceptron for fewer than _FEW_FEATURES features, and for nearly
# parallel rows, where the mean of the normalized rows has a squared norm above _PARALLEL (raw
# microarrays: 0.02 to 0.88; log-transformed: 0.97 to 1).
_FEW_FEATURES, _PARALLEL = 1000, 0.95


def best_of_few(
    rows: Rows, codes: np.ndarray, classes: np.ndarray, params: Mapping[str, Any],
    weights: np.ndarray | None, *, whole: bool,
) -> Candidate:  # fmt: skip
    """Return the candidate with the lowest error in stratified cross-validation if its lead over
    the default is sufficient, else the default. Rows are dense, checked, and of weight above 0."""
    # Classes without rows count as one row, to avoid a division by zero in their weights.
    counts = np.maximum(1, rows_by_class(codes, len(classes))[1])
    share = weights_of_rows(params, codes, classes, counts, weights)
    if params.get("class_weight") == "balanced":
        # A class may have no rows in a fold, so the weights are computed from all rows.
        of_classes = dict(zip(classes.tolist(), (1.0 / counts).tolist(), strict=True))
        params = {**params, "class_weight": of_classes}
    data = TrainingSet(rows, codes, classes, None, weights, sparse=True)
    # The seed is fixed, so that the selection depends only on the data.
    folds = stratified_folds(codes, _FOLDS, np.random.RandomState(0))
    default, candidates = _default(rows), for_few_rows(rows.n_features, whole=whole)
    before = _wrong(default, data, folds, params)
    wrong = [_wrong(each, data, folds, params) for each in candidates]
    best = int(np.argmin([(share * each).sum() for each in wrong]))
    return candidates[best] if lead(before, wrong[best], share) > _AHEAD else default


def _default(rows: Rows) -> Candidate:
    """Return the Second-order Perceptron if dense rows have few features or are nearly parallel, as
    log-transformed rows are; otherwise AROW. At most 100 evenly spaced rows are used."""
    if rows.n_features < _FEW_FEATURES:
        return SECOND_ORDER
    some = rows_at(rows, np.arange(0, rows.n_rows, max(1, rows.n_rows // 100))[:100])
    entries = np.zeros((some.n_rows, some.n_features))
    entries[np.repeat(np.arange(some.n_rows), np.diff(some.indptr)), some.indices] = some.data
    entries = entries[entries.any(axis=1)]
    entries /= np.abs(entries).max(axis=1, keepdims=True)
    entries /= np.linalg.norm(entries, axis=1, keepdims=True)
    mean = entries.sum(axis=0) / max(1, len(entries))
    return SECOND_ORDER if mean @ mean > _PARALLEL else AROW


def _wrong(
    candidate: Candidate, data: TrainingSet, folds: np.ndarray, params: Mapping[str, Any]
) -> np.ndarray:
    """Return whether each row is predicted wrongly by a model trained on the other folds, shape
    (n_rows,)."""
    wrong = np.ones(len(folds), dtype=bool)
    for fold in range(_FOLDS):
        left, rest = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(left) and len(rest):
            wrong[rest] = _predicted(candidate, data, left, rest, params) != data.targets[rest]
    return wrong


def _predicted(
    candidate: Candidate, data: TrainingSet, left: np.ndarray, rest: np.ndarray,
    params: Mapping[str, Any],
) -> np.ndarray:  # fmt: skip
    """Return the codes that a model trained on the rows `left` predicts for the rows `rest`; -1
    if the model can't be trained."""
    codes = data.targets[left]
    counts = np.bincount(codes, minlength=len(data.classes))
    fixed = {"max_iter": candidate.epochs_of(len(left), counts), **params}
    learner = candidate.learner({**fixed, "n_jobs": None, "verbose": 0, "random_state": 0})
    weights = None if data.weights is None else data.weights[left]
    part = data._replace(rows=rows_at(data.rows, left), targets=codes, weights=weights)
    try:
        with collected_warnings():
            learner.train(part)
            convert = partial(codes_of, learner.fitted)
            return np.concatenate(predicted(learner.fitted, rows_at(data.rows, rest), 1, convert))
    except (BadRow, ValueError):  # the values are too large or too small for the algorithm
        return np.full(len(rest), -1)


def lead(wrong_before: np.ndarray, wrong: np.ndarray, share: np.ndarray) -> float:
    """Return the reduction of the weighted error in standard errors of the difference."""
    fewer = share * (wrong_before.astype(float) - wrong)
    spread = sqrt(float(fewer @ fewer))
    return float(fewer.sum()) / spread if spread else 0.0


def weights_of_rows(
    params: Mapping[str, Any], codes: np.ndarray, classes: np.ndarray, counts: np.ndarray,
    weights: np.ndarray | None,
) -> np.ndarray:  # fmt: skip
    """Return the weight of each row, times that of its class, shape (n_rows,). Both are divided by
    the largest one, so that their sums and squares do not overflow. `counts` are the rows of each
    class."""
    weight = params.get("class_weight")
    of_classes = np.ones(len(classes)) if weight is None else 1.0 / counts
    if isinstance(weight, Mapping):
        of_classes = named_weights(weight, classes)
    of_rows = np.ones(len(codes)) if weights is None else weights
    result: np.ndarray = _relative(of_rows) * _relative(of_classes)[codes]
    return result


def _relative(weights: np.ndarray) -> np.ndarray:
    """Divide weights by the largest one, unless it is 0 or not finite."""
    largest = float(weights.max(initial=0.0))
    return weights / largest if 0.0 < largest < inf else weights
