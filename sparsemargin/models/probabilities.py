"""Probabilities, and thresholds, by what a model said of rows just before it learned them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.messages import warn_user

#: Fewer trials tell nothing of probabilities.
LEAST_TRIALS = 30

# Outputs of a label are told apart by so many steps from the least to the largest.
_BINS = 256

# What the sigmoids of all labels together count for in that of each, in rows.
_PRIOR = 2.0

# Outputs over their largest are hardly ever multiplied by more.
_FLATTEST = 1e3

_NEWTON_STEPS, _HALVINGS, _CONVERGED = 50, 30, 1e-10


@dataclass(frozen=True)
class Window:
    """Outputs of rows not yet learned from, of shape (n_rows, n_labels), whether each row has each
    label, and what rows count for."""

    outputs: np.ndarray
    positive: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, progress: ProgressiveOutputs, power: int) -> Window:
        """The later half of those kept, in order; weights of rows were made steps by the root of
        that power."""
        trials, n = progress.trials(), progress.n_trials
        recent = np.flatnonzero(trials >= n // 2)
        recent = recent[np.argsort(trials[recent])]
        return cls(
            progress.outputs[recent], progress.positive[recent].astype(bool),
            progress.weights[recent] ** power,
        )  # fmt: skip

    def __getitem__(self, rows: slice) -> Window:
        return Window(self.outputs[rows], self.positive[rows], self.weights[rows])

    @property
    def codes(self) -> np.ndarray:
        """The class of each row, where it has one."""
        return self.positive[:, 0] if self.positive.shape[1] == 1 else self.positive.argmax(axis=1)


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

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """Probabilities of outputs of shape (n_rows, n_labels)."""
        scaled = outputs / self.scale
        below, above, constant = self.coefficients.T
        return _logistic(below * np.minimum(scaled, 0) + above * np.maximum(scaled, 0) + constant)


def _temperature(window: Window, exclusive: bool) -> float:
    """What outputs are multiplied by for their softmax, or each label's logistic function, to have
    the least log loss."""
    outputs, having = window.outputs, window.positive
    scale = max(float(np.abs(outputs).max(initial=0.0)), 1e-300)
    outputs, weights, at = outputs / scale, window.weights[:, np.newaxis], 1.0
    for _ in range(_NEWTON_STEPS):
        told = _softmax(at * outputs) if exclusive else _logistic(at * outputs)
        if exclusive:
            mean = (told * outputs).sum(axis=1, keepdims=True)
            curve = weights * told * (outputs - mean) ** 2
        else:
            curve = weights * told * (1 - told) * outputs**2
        # The prior keeps it finite where no row is told wrongly.
        gradient = (weights * (told - having) * outputs).sum() + at / _FLATTEST**2
        step = gradient / (curve.sum() + 1 / _FLATTEST**2)
        at = max(at / 10, min(10 * at, at - step))
        if abs(step) < _CONVERGED * at:
            break
    return at / scale


def _logistic(logits: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    result: np.ndarray = expit(logits)
    return result


def _softmax(logits: np.ndarray) -> np.ndarray:
    from scipy.special import softmax

    result: np.ndarray = softmax(logits, axis=1)
    return result


class Calibration:
    """Probabilities of a model's outputs: the mean of two that are fitted to outputs of rows not
    yet learned from.

    One are the labels' `Sigmoids`, divided by their sum where a row has one class each; the other
    is the softmax of all outputs over one temperature, of each label the logistic function where
    rows may have several.

    Parameters
    ----------
    window : Window
    exclusive : bool
        Whether rows have one class each.
    """

    def __init__(self, window: Window, exclusive: bool) -> None:
        self.exclusive = exclusive and window.outputs.shape[1] > 1
        self.sigmoids = Sigmoids(window)
        self.factor = _temperature(window, self.exclusive)

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """Probabilities of the labels for outputs of shape (n_rows, n_labels)."""
        alone = self.sigmoids(outputs)
        if not self.exclusive:
            return (alone + _logistic(self.factor * outputs)) / 2
        total = alone.sum(axis=1, keepdims=True)
        alone = np.divide(alone, total, out=np.full_like(alone, 1 / alone.shape[1]),
                          where=total > 0)  # fmt: skip
        return (alone + _softmax(self.factor * outputs)) / 2


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
    features = np.stack([*np.divide(sums, rows, out=np.zeros_like(sums), where=rows > 0),
                         np.ones_like(rows)], axis=-1)  # fmt: skip
    pull = np.broadcast_to(pull, centre.shape).copy()
    centre = centre.copy()

    def loss(at: np.ndarray) -> Any:
        logits = (features @ at[:, :, np.newaxis])[:, :, 0]
        pulled = (pull * (at - centre) ** 2).sum(axis=1) / 2
        return logits, (rows * np.logaddexp(0, logits) - targets * logits).sum(axis=1) + pulled

    at = centre.copy()
    logits, now = loss(at)
    for _ in range(_NEWTON_STEPS):
        told = _logistic(logits)
        gradient = ((rows * told - targets)[:, :, np.newaxis] * features).sum(axis=1)
        gradient += pull * (at - centre)
        curved = (rows * told * (1 - told))[:, :, np.newaxis] * features
        curve = np.swapaxes(curved, 1, 2) @ features + pull[:, :, np.newaxis] * np.eye(3)
        step = np.linalg.solve(curve, gradient[:, :, np.newaxis])[:, :, 0]
        if ((step * gradient).sum(axis=1) < _CONVERGED * (1 + now)).all():
            falling = at[:, :2] < 0
            if not falling.any():
                break
            # A probability that falls as the output grows tells of chance alone.
            centre[:, :2][falling], pull[:, :2][falling] = 0.0, 1e12
            at[:, :2][falling] = 0.0
            logits, now = loss(at)
            continue
        size = np.ones((len(at), 1))
        for _ in range(_HALVINGS):
            logits, new = loss(at - size * step)
            if (new <= now).all():
                break
            size[new > now] /= 2
        at, now = at - size * step, new
    return at
