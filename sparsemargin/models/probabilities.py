"""Probabilities, and thresholds, by what a model said of rows just before it learned them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsemargin._engine.fitting.progressive import ProgressiveOutputs

#: Fewer trials tell nothing of probabilities.
LEAST_TRIALS = 30

# Outputs of a label are told apart by so many steps from the least to the largest.
_BINS = 256

# What the sigmoids of all labels together count for in that of each, in rows.
_PRIOR = 2.0

# Of two classes, outputs over the largest are told apart by so many steps.
_STEPS = 500

# No sigmoid comes nearer to 0 or 1.
_LEAST = 1e-15

# Outputs over their largest are multiplied by no less, and hardly ever by more.
_FACTORS = 1e-3, 1e6
# Of the logarithm of what outputs are multiplied by.
_EXACT = 1e-9

_NEWTON_STEPS, _HALVINGS = 50, 30
# Of the loss, which is of one row or more.
_CONVERGED = 1e-9


@dataclass(frozen=True)
class Window:
    """Outputs of rows not yet learned from, of shape (n_rows, n_labels), whether each row has each
    label, and what rows count for."""

    outputs: np.ndarray
    positive: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, progress: ProgressiveOutputs) -> Window:
        """Those of the later half of all trials, in order."""
        trials, n = progress.trials(), progress.n_trials
        recent = np.flatnonzero(trials >= n // 2)
        recent = recent[np.argsort(trials[recent])]
        return cls(
            progress.outputs[recent], progress.positive[recent].astype(bool),
            progress.steps[recent] ** progress.weight_root,
        )  # fmt: skip

    @property
    def codes(self) -> np.ndarray:
        """The class of each row, where it has one."""
        lone = self.positive.shape[1] == 1
        return self.positive[:, 0].astype(np.intp) if lone else self.positive.argmax(axis=1)


class Sigmoids:
    """Of each label the probability that a row has it: ``1 / (1 + exp(-(a s + b)))`` of its output
    s, with one slope a for outputs below 0 and another for those above.

    They are Platt's with his targets [1]_, but for the second slope: a label that few rows have is
    told by another one than its absence. The sigmoid of each label is drawn to that of all labels
    together, which counts for two rows.

    References
    ----------
    .. [1] J. Platt. Probabilistic outputs for support vector machines and comparisons to
       regularized likelihood methods. Advances in large margin classifiers, 1999.
    """

    def __init__(self, window: Window) -> None:
        self.scale = max(float(np.abs(window.outputs).max(initial=0.0)), 1e-300)
        rows, below, above, having = _binned(window, self.scale)
        # Platt's targets.
        n_having = having.sum(axis=1, keepdims=True)
        least = 1 / (rows.sum(axis=1, keepdims=True) - n_having + 2)
        targets = having * ((n_having + 1) / (n_having + 2) - least) + rows * least
        binned = np.stack([rows, below, above, targets])
        common = _newton(binned.reshape(4, 1, -1), np.zeros((1, 3)), np.full(3, 1e-6))
        if len(rows) > 1:
            size = np.append(np.maximum(common[0, :2], 1e-3), 2.0)
            common = _newton(binned, np.repeat(common, len(rows), axis=0), _PRIOR / size**2)
        self.coefficients = common

    def f1_thresholds(self, window: Window) -> np.ndarray:
        """What the output of each label must reach, for F1 to be largest if the rows had it with
        these probabilities. That is where the probability is half of the F1 reached (Lipton,
        Elkan and Naryanaswamy, ECML 2014), and the error less than if rare labels' rows, few as
        they are, were counted."""
        told = self(window.outputs)
        order = np.argsort(-told, axis=0)
        told = np.take_along_axis(told, order, axis=0)
        weights = window.weights[order]
        right = np.cumsum(told * weights, axis=0)
        f1 = 2 * right / np.maximum(np.cumsum(weights, axis=0) + right[-1], 1e-300)
        least = f1.max(axis=0) / 2
        below, above, constant = self.coefficients.T
        logit = np.log(least / (1 - least)) - constant
        slope = np.maximum(np.where(logit < 0, below, above), 1e-300)
        thresholds: np.ndarray = logit / slope * self.scale
        return thresholds

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """Probabilities of outputs of shape (n_rows, n_labels)."""
        scaled = outputs / self.scale
        below, above, constant = self.coefficients.T
        logits = below * np.minimum(scaled, 0) + above * np.maximum(scaled, 0) + constant
        return np.clip(_logistic(logits), _LEAST, 1 - _LEAST)


def _temperature(window: Window) -> float:
    """What outputs are multiplied by for their softmax to have the least log loss."""
    outputs = _of_classes(window.outputs)
    outputs = outputs - outputs[np.arange(len(outputs)), window.codes][:, np.newaxis]
    scale = max(float(np.abs(outputs).max(initial=0.0)), 1e-300)
    outputs, weights, (least, most) = outputs / scale, window.weights, _FACTORS
    if window.outputs.shape[1] == 1:
        # What is off by as much, whichever the class, counts together.
        off, places = np.unique(np.rint(outputs.sum(axis=1) * _STEPS), return_inverse=True)
        outputs = np.stack([np.zeros_like(off), off / _STEPS], axis=1)
        weights = np.bincount(places, weights)

    def slope(exponent: float) -> tuple[float, float]:
        """The derivative of the loss by the factor, and how fast that grows with the exponent."""
        factor = np.exp(exponent)
        told = _softmax(factor * outputs)
        means = (told * outputs).sum(axis=1)
        spread = (told * (outputs - means[:, np.newaxis]) ** 2).sum(axis=1)
        # The prior keeps it finite where no row is told wrongly.
        return weights @ means + factor / most, factor * (weights @ spread + 1 / most)

    if slope(np.log(least))[0] >= 0:
        return least / scale
    return float(np.exp(_root(slope, np.log(least), np.log(most**2)))) / scale


def _root(function: Callable[[float], tuple[float, float]], low: float, high: float) -> float:
    """Where a growing function, which comes with its derivative, is 0: by Newton's steps, and
    halves of what is left where these lead out of it or bring no less than half of the value."""
    at, last = (low + high) / 2, np.inf
    while True:
        value, growth = function(at)
        low, high = (at, high) if value < 0 else (low, at)
        new = at - value / growth
        if not low <= new <= high or abs(value) > last / 2:
            new = (low + high) / 2
        if abs(new - at) < _EXACT:
            return new
        at, last = new, abs(value)


def _of_classes(outputs: np.ndarray) -> np.ndarray:
    """An output for each class, where two have one."""
    return np.hstack([np.zeros_like(outputs), outputs]) if outputs.shape[1] == 1 else outputs


def _logistic(logits: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(logits))
    told: np.ndarray = np.where(logits < 0, small, 1.0) / (1 + small)
    return told


def _softmax(logits: np.ndarray) -> np.ndarray:
    told: np.ndarray = np.exp(logits - logits.max(axis=1, keepdims=True))
    return told / told.sum(axis=1, keepdims=True)


class Calibration:
    """Probabilities of a model's outputs, by outputs of rows not yet learned from.

    Where rows may have several labels they are those of the `Sigmoids`. Where rows have one class,
    they are the mean of these, divided by their sum, and of the softmax of the outputs over one
    temperature. The first are best where classes are few or rare, the second where they have few
    rows, and the mean is as good as the better one or better.

    Parameters
    ----------
    window : Window
    exclusive : bool
        Whether rows have one class each.
    """

    def __init__(self, window: Window, exclusive: bool) -> None:
        self.sigmoids = Sigmoids(window)
        self.factor = _temperature(window) if exclusive else None

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """Probabilities of the classes for outputs of shape (n_rows, n_labels)."""
        alone = self.sigmoids(outputs)
        if self.factor is None:
            return alone
        if outputs.shape[1] == 1:
            alone = np.hstack([1 - alone, alone])
        total = alone.sum(axis=1, keepdims=True)
        alone = np.divide(alone, total, out=np.full_like(alone, 1 / alone.shape[1]),
                          where=total > 0)  # fmt: skip
        return (alone + _softmax(self.factor * _of_classes(outputs))) / 2


def _binned(window: Window, scale: float) -> np.ndarray:
    """Sums over the rows whose outputs of a label lie within a step of each other, shape (4,
    n_labels, n_bins): of their weights, of these times outputs below 0 and above it, and of the
    weights of those that have the label."""
    outputs = window.outputs / scale
    n_labels = outputs.shape[1]
    low = outputs.min(axis=0)
    step = np.maximum(outputs.max(axis=0) - low, 1e-300) / _BINS
    bins = np.minimum(((outputs - low) / step).astype(np.intp), _BINS - 1)
    bins += np.arange(n_labels) * _BINS
    weights = np.broadcast_to(window.weights[:, np.newaxis], outputs.shape)
    below = np.minimum(outputs, 0.0)
    sums = [weights, weights * below, weights * (outputs - below), weights * window.positive]
    return np.array([
        np.bincount(bins.ravel(), each.ravel(), n_labels * _BINS).reshape(n_labels, _BINS)
        for each in sums
    ])  # fmt: skip


def _newton(binned: np.ndarray, centre: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """Coefficients of each label's sigmoid, shape (n_labels, 3), the slopes at least 0: of least
    log loss plus ``pull * (coefficients - centre)**2 / 2``."""
    rows, *sums, targets = binned
    means = np.divide(sums, rows, out=np.zeros_like(sums), where=rows > 0)
    features = np.stack([*means, np.ones_like(rows)])
    at, centre, pull = centre, centre.copy(), np.broadcast_to(pull, centre.shape).copy()

    def loss(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits = (at.T[:, :, np.newaxis] * features).sum(axis=0)
        pulled = (pull * (at - centre) ** 2).sum(axis=1) / 2
        return logits, (rows * np.logaddexp(0, logits) - targets * logits).sum(axis=1) + pulled

    logits, now = loss(at)
    for _ in range(_NEWTON_STEPS):
        told = _logistic(logits)
        gradient = (features * (rows * told - targets)).sum(axis=2).T + pull * (at - centre)
        curved = np.moveaxis(features * (rows * told * (1 - told)), 0, 1)
        curve = curved @ np.moveaxis(features, 0, 2) + pull[:, :, np.newaxis] * np.eye(3)
        step = np.linalg.solve(curve, gradient[:, :, np.newaxis])[:, :, 0]
        # A probability that falls as the output grows tells of chance alone.
        falling = at[:, :2] < 0
        if (step * gradient).sum(axis=1).max() < _CONVERGED:
            if not falling.any():
                break
            centre[:, :2][falling], pull[:, :2][falling] = 0.0, 1e12
            at = np.where(np.pad(falling, [(0, 0), (0, 1)]), 0.0, at)
            logits, now = loss(at)
            continue
        size = np.ones((len(at), 1))
        for _ in range(_HALVINGS):
            logits, new = loss(at - size * step)
            worse = new > now + _CONVERGED
            if not worse.any():
                break
            size[worse] /= 2
        at, now = at - size * step, new
    return at
