"""Probabilities and thresholds, fitted to outputs for rows before a model was trained on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemargin._engine.fitting.progressive import ProgressiveOutputs

#: Error messages for models without probabilities; {} is the name of the classifier.
NO_OUTPUTS = (
    "{} has probabilities with a linear kernel and hypothesis='last' or 'average' (not with "
    "solver='dual'): they are fitted to outputs for rows that it had not learned, which are kept "
    "with these settings only. sklearn.calibration.CalibratedClassifierCV(model, cv=3) fits them "
    "with any settings."
)
COUNTED = (
    "{} has no probabilities: nearly all of its rows were counted for its prior, and its outputs "
    "for them depended on their labels. Train on more rows, pass algo='arow' and prior=None, or "
    "call fit on rows in memory."
)
LEARNED_AGAIN = (
    "{} has no probabilities: it was trained on some rows more than once (by partial_fit or "
    "init_model with the same rows again, or in interrupted epochs over a file) or by warm_start. "
    "Probabilities are fitted to outputs for rows before the model was trained on "
    "them, and those of the model have another scale now. Train on every row once, or call fit "
    "without warm_start on rows in memory. To fit probabilities of this model to other rows, use "
    "sklearn.calibration.CalibratedClassifierCV(sklearn.frozen.FrozenEstimator(model)).fit(X, y)."
)

#: Least number of rows with stored outputs after the rows that were counted for a prior.
LEAST_AFTER_COUNTING = 200

#: Least number of rows with stored outputs from which thresholds of outputs are computed.
LEAST_TRIALS = 30

# Number of bins into which the outputs of a label are sorted, which limits the time of the fit.
_BINS = 256

# Weight, in rows, of the common sigmoid as a prior for the sigmoid of each label.
_PRIOR = 2.0

# L2 penalty of the slopes of the common sigmoid, divided by the number of rows. With 12 rows and
# random classes, the log loss is 0.77 (1.01 without the penalty, 0.69 for the class frequencies).
_PULL = 4.0

# Minimum distance of a probability from 0 and 1.
_LEAST = 1e-15

# Largest number of Newton steps, and of halvings of a step that does not reduce the loss.
_NEWTON_STEPS, _HALVINGS = 50, 30
# Newton's method stops if the expected decrease of the loss, a sum over rows, is below this value.
_CONVERGED = 1e-9


@dataclass(frozen=True)
class Window:
    """Outputs for rows before a model was trained on them, shape (n_rows, n_vectors); whether each
    row has each label, same shape; and the weights of the rows, shape (n_rows,)."""

    outputs: np.ndarray
    positive: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, progress: ProgressiveOutputs) -> Window:
        """Return the outputs from the later half of all trials, in order."""
        recent = progress.recent()
        return cls(
            progress.outputs[recent], progress.positive[recent].astype(bool),
            progress.steps[recent] ** progress.weight_root,
        )  # fmt: skip

    @property
    def codes(self) -> np.ndarray:
        """Code of the class of each row, if rows have one class each; shape (n_rows,)."""
        lone = self.positive.shape[1] == 1
        return self.positive[:, 0].astype(np.intp) if lone else self.positive.argmax(axis=1)


class Sigmoids:
    """Probability that a row has a label, for each label.

    For an output s, the probability is ``1 / (1 + exp(-(a s + b)))``, with one slope a for negative
    outputs and another for positive outputs. Except for the second slope, this is Platt's sigmoid
    with his targets [1]_. A second slope is needed because the slopes for the presence and the
    absence of a rare label differ. The sigmoid common to all labels is a prior for the sigmoid of
    each label, with the weight of two rows.

    References
    ----------
    .. [1] J. Platt. Probabilistic outputs for support vector machines and comparisons to
       regularized likelihood methods. Advances in large margin classifiers, 1999.
    """

    def __init__(self, window: Window) -> None:
        self.scale = max(float(np.abs(window.outputs).max(initial=0.0)), 1e-300)
        rows, below, above, having = _binned(window, self.scale)
        # Platt replaces the targets 0 and 1 by values that are slightly closer to each other.
        n_having = having.sum(axis=1, keepdims=True)
        least = 1 / (rows.sum(axis=1, keepdims=True) - n_having + 2)
        targets = having * ((n_having + 1) / (n_having + 2) - least) + rows * least
        binned = np.stack([rows, below, above, targets])
        pull = np.append(np.full(2, _PULL / max(rows.sum(), 1.0)), 1e-6)
        common = _newton(binned.reshape(4, 1, -1), np.zeros((1, 3)), pull)
        if len(rows) > 1:
            size = np.append(np.maximum(common[0, :2], 1e-3), 2.0)
            common = _newton(binned, np.repeat(common, len(rows), axis=0), _PRIOR / size**2)
        self.coefficients = common

    def f1_thresholds(self, window: Window) -> np.ndarray:
        """Return the thresholds of the outputs that maximize the expected F1 of each label.

        The expectation is over labels drawn with these probabilities. The optimal threshold is the
        output whose probability is half of the largest F1 (Lipton, Elkan and Naryanaswamy, ECML
        2014). For rare labels, this is more accurate than counting their few rows.
        """
        shares = self(window.outputs)
        order = np.argsort(-shares, axis=0)
        shares = np.take_along_axis(shares, order, axis=0)
        weights = window.weights[order]
        right = np.cumsum(shares * weights, axis=0)
        f1 = 2 * right / np.maximum(np.cumsum(weights, axis=0) + right[-1], 1e-300)
        least = f1.max(axis=0) / 2
        below, above, constant = self.coefficients.T
        logit = np.log(least / (1 - least)) - constant
        slope = np.maximum(np.where(logit < 0, below, above), 1e-300)
        thresholds: np.ndarray = logit / slope * self.scale
        return thresholds

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probabilities for outputs of the same shape, (n_rows, n_vectors)."""
        scaled = outputs / self.scale
        below, above, constant = self.coefficients.T
        logits = below * np.minimum(scaled, 0) + above * np.maximum(scaled, 0) + constant
        return np.clip(_logistic(logits), _LEAST, 1 - _LEAST)


def _multipliers(features: np.ndarray, window: Window) -> np.ndarray:
    """Return the non-negative multipliers of features that minimize the log loss of the softmax.

    The softmax is that of the sum of features of shape (n_features, n_rows, n_classes), each times
    its multiplier. The targets are smoothed like Platt's, so that a few rows without an error do
    not lead to probabilities of 0 and 1.
    """
    n_classes, weights = features.shape[2], window.weights
    smoothing = 1 / (weights.sum() + 2)
    targets = np.full(features.shape[1:], smoothing / n_classes)
    targets[np.arange(len(targets)), window.codes] += 1 - smoothing
    # Dividing each feature by its largest value gives all multipliers a similar scale.
    sizes = np.maximum(np.abs(features).max(axis=(1, 2), initial=0.0), 1e-300)
    features = features / sizes[:, np.newaxis, np.newaxis]

    def loss(at: np.ndarray) -> tuple[np.ndarray, float]:
        logits = np.tensordot(at, features, axes=1)
        logits -= logits.max(axis=1, keepdims=True)
        sums = np.log(np.exp(logits).sum(axis=1))
        log_shares = logits - sums[:, np.newaxis]
        return np.exp(log_shares), -float(weights @ (targets * log_shares).sum(axis=1))

    at = np.ones(len(features))
    shares, now = loss(at)
    for _ in range(_NEWTON_STEPS):
        slope = ((shares - targets) * features).sum(axis=2) @ weights
        free = (at > 0) | (slope < 0)
        means = (shares * features).sum(axis=2)
        spread = shares * (features - means[:, :, np.newaxis])
        curve = np.einsum("r,arc,brc->ab", weights, spread, features) + _LEAST * np.eye(len(at))
        step = np.zeros(len(at))
        step[free] = np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        if slope @ step < _CONVERGED:
            break
        for halvings in range(_HALVINGS):
            new = np.maximum(at - step / 2**halvings, 0.0)
            shares, after = loss(new)
            if after <= now:
                break
        at, now = new, after
    return at / sizes


def _logistic(logits: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(logits))
    shares: np.ndarray = np.where(logits < 0, small, 1.0) / (1 + small)
    return shares


def _softmax(logits: np.ndarray) -> np.ndarray:
    shares: np.ndarray = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


class Calibration:
    """Probabilities of the classes, fitted to outputs for rows before training on them.

    With two classes, and if rows have several labels (not `exclusive`), the probabilities are those
    of `Sigmoids`. With more classes, they are the softmax of a weighted sum of two terms: the
    logarithm of the sigmoids normalized over the classes, and the outputs. The weights minimize the
    log loss. The sigmoids are better if classes are rare or lie between others, the outputs if
    there are many classes.
    With ``multi_class="joint"``, only differences of outputs have a meaning, so only the outputs
    are used.
    """

    def __init__(self, window: Window, exclusive: bool, joint: bool = False) -> None:
        self.sigmoids, self.joint = Sigmoids(window), joint
        self.multipliers, self.exclusive = None, exclusive
        if exclusive and window.outputs.shape[1] > 1:
            self.multipliers = _multipliers(self._features(window.outputs), window)

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """Return probabilities of the classes for outputs of shape (n_rows, n_vectors)."""
        if self.multipliers is None:
            alone = self.sigmoids(outputs)
            return np.hstack([1 - alone, alone]) if self.exclusive else alone
        return _softmax(np.tensordot(self.multipliers, self._features(outputs), axes=1))

    def _features(self, outputs: np.ndarray) -> np.ndarray:
        """Return the terms of the sum, shape (n_features, n_rows, n_classes)."""
        if self.joint:
            return outputs[np.newaxis]
        alone = self.sigmoids(outputs)
        return np.stack([np.log(alone / alone.sum(axis=1, keepdims=True)), outputs])


def _binned(window: Window, scale: float) -> np.ndarray:
    """Return sums over the rows in each bin of the outputs of a label.

    The result has shape (4, n_vectors, n_bins): the sums of the weights, of the weights times
    negative outputs, of the weights times positive outputs, and of the weights of the rows that
    have the label. Outputs are divided by `scale`.
    """
    outputs = window.outputs / scale
    n_vectors = outputs.shape[1]
    low = outputs.min(axis=0)
    step = np.maximum(outputs.max(axis=0) - low, 1e-300) / _BINS
    bins = np.minimum(((outputs - low) / step).astype(np.intp), _BINS - 1)
    bins += np.arange(n_vectors) * _BINS
    weights = np.broadcast_to(window.weights[:, np.newaxis], outputs.shape)
    below = np.minimum(outputs, 0.0)
    sums = [weights, weights * below, weights * (outputs - below), weights * window.positive]
    return np.array([
        np.bincount(bins.ravel(), each.ravel(), n_vectors * _BINS).reshape(n_vectors, _BINS)
        for each in sums
    ])  # fmt: skip


def _newton(binned: np.ndarray, centre: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """Return the coefficients of each label's sigmoid, shape (n_vectors, 3): two slopes and the
    constant. They minimize the log loss plus ``pull * (coefficients - centre)**2 / 2``, with slopes
    of at least 0."""
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
        shares = _logistic(logits)
        gradient = (features * (rows * shares - targets)).sum(axis=2).T + pull * (at - centre)
        curved = np.moveaxis(features * (rows * shares * (1 - shares)), 0, 1)
        curve = curved @ np.moveaxis(features, 0, 2) + pull[:, :, np.newaxis] * np.eye(3)
        step = np.linalg.solve(curve, gradient[:, :, np.newaxis])[:, :, 0]
        # A negative slope can only be due to chance, so it is fixed at 0.
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
