"""Iterative parameter mixing as printed: dense, slow, and independent of the engine.

It is Figure 3 of McDonald, Hall & Mann (2010) with dual vectors instead of weights; the sums of
hypotheses and the trials are added. The mixture of matrix Perceptrons applies all mistakes of all
shards. Instances, rules and matrices are those of the other references; rows are used in order.
"""

from dataclasses import dataclass

import numpy as np

from references.higher_order import threshold
from references.runs import link, p_norm


@dataclass
class Mixture:
    """The result of a fit; theta is the dual vector, or the weights of a matrix Perceptron.

    ``smallest_gap`` is the smallest distance of a decision to its threshold, relative to the terms
    of the score.
    """

    theta: np.ndarray
    sums: np.ndarray
    trials: int = 0
    k: int = 0
    smallest_gap: float = np.inf

    @property
    def average(self):
        return self.sums / self.trials

    def decided(self, score, threshold, size):
        if size:
            self.smallest_gap = min(self.smallest_gap, abs(score - threshold) / size)
        return score <= threshold

    def after_trial(self, w):
        self.sums, self.trials = self.sums + w, self.trials + 1


def _instances(X, y, p, normalize):
    rows = []
    for x, label in zip(np.asarray(X, dtype=np.longdouble), y, strict=True):
        norm = p_norm(x, p)
        rows.append(label * (x / norm if normalize and norm else x))
    return rows


def mix_vectors(parts, rule, p, n_epochs):
    """Mix the Perceptron or ALMA over shards (X, y) with labels -1 and 1, after each part of an
    epoch."""
    parts = [[_instances(X, y, p, rule.normalize) for X, y in shards] for shards in parts]
    zero = np.zeros_like(next(yx for shards in parts for rows in shards for yx in rows))
    mixed = Mixture(zero, zero)
    for shards in n_epochs * parts:
        thetas, counts = [], []
        for rows in shards:
            theta, k = mixed.theta, mixed.k
            for yx in rows:
                w, threshold = link(theta, p), rule.threshold(k + 1, p)
                size = w.any() and max(np.abs(w) @ np.abs(yx), abs(threshold))
                if yx.any() and mixed.decided(w @ yx, threshold, size):
                    k += 1
                    theta = theta + rule.step(k, p) * yx
                    theta = theta / rule.divisor(theta, p)
                mixed.after_trial(link(theta, p))
            thetas.append(theta)
            counts.append(k - mixed.k)
        mixed.theta = sum(thetas) / np.longdouble(len(shards))
        mixed.k += max(counts)
    return mixed


def mix_mistakes(shards, rule, n_epochs):
    """Mix the Higher- or Second-order Perceptron."""
    shards = [_instances(X, y, rule.p, True) for X, y in shards]
    n = len(shards[0][0])
    mixed = Mixture(np.zeros(n, np.longdouble), np.zeros(n, np.longdouble))
    state = rule.first_matrix(n, np.longdouble), np.zeros(n, np.longdouble), 0

    def taken_in(state, yx):
        matrix, v, k = state
        rate = rule.rate(yx, v, k + 1)
        return (rule.grown(matrix, yx, rate) if rate else matrix), v + yx, k + 1

    for _ in range(n_epochs):
        mistakes = []
        for rows in shards:
            own = state
            w = rule.weights(*own[:2])
            for yx in rows:
                least = threshold(rule, *own[:2], w, own[2] + 1)
                if yx.any() and mixed.decided(w @ yx, least, np.abs(w) @ np.abs(yx)):
                    mistakes.append(yx)
                    own = taken_in(own, yx)
                    w = rule.weights(*own[:2])
                mixed.after_trial(w)
        for yx in mistakes:
            state = taken_in(state, yx)
        mixed.k = state[2]
    mixed.theta = rule.weights(*state[:2])
    return mixed
