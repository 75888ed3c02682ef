"""Separable real data for the benchmark of margins, and the yardstick all solvers are held to."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from rcv1_sample import load
from scipy.sparse import csr_matrix, hstack
from sklearn.preprocessing import scale

from papers.data import load_sonar
from sparsemargin.datasets import load_colon, load_leukemia, load_lymphoma

TOPICS = ("GCAT", "CCAT", "C15")
SOFT_MARGINS = (1.0, 0.3, 0.1)


@dataclass(frozen=True)
class Problem:
    """Rows to separate by a hyperplane through the origin with the largest margin, p = 2.

    Attributes
    ----------
    name : str
    X : csr_matrix of shape (m, n), float64
    y : ndarray of shape (m,), values in {-1, 1}
    rho : float
        The constant coordinate that every row gets; 0 for none.
    soft_margin : float
        Delta, the value of the coordinate that each row has for itself; 0 for a hard margin.
    online : bool
        Whether the on-line rules take part, which take the longest by far.
    """

    name: str
    X: csr_matrix
    y: np.ndarray
    rho: float = 0.0
    soft_margin: float = 0.0
    online: bool = True

    @cached_property
    def rows(self) -> csr_matrix:
        """X with the constant coordinate as its last column."""
        if not self.rho:
            return self.X
        constant = np.full((self.X.shape[0], 1), self.rho)
        return hstack([self.X, constant], format="csr")

    def margin(self, w: np.ndarray) -> float:
        """Return the margin of a weight vector over `rows`.

        With a soft margin it is that in the extended space where w, up to its scale, has the
        slacks that are best for it: J^(-1/2), J being least over the margin aimed at.
        """
        outputs = self.y * (self.rows @ w)
        if self.soft_margin:
            return _least_objective(outputs, w @ w, self.soft_margin) ** -0.5
        return outputs.min() / np.linalg.norm(w)


def _least_objective(outputs: np.ndarray, square: float, soft_margin: float) -> float:
    """The least ``s^2 ||w||^2 + sum max(0, 1 - s y w.x)^2 / Delta^2`` over the scales s >= 0.

    Its derivative is increasing, concave and piecewise linear, so Newton's method from 0 comes up
    to the root from below, through finitely many pieces.
    """
    s, previous = 0.0, -1.0
    while s > previous:
        violated = outputs[s * outputs < 1.0]
        previous, s = s, violated.sum() / (soft_margin**2 * square + violated @ violated)
    slacks = np.maximum(0.0, 1.0 - previous * outputs)
    return previous**2 * square + slacks @ slacks / soft_margin**2


def _leukemia_problems() -> Iterator[Problem]:
    X, y = load_leukemia(return_X_y=True)
    yield Problem("leukemia, raw", csr_matrix(X), y)
    yield Problem("leukemia, standardised", csr_matrix(scale(X)), y)


def _colon_problems() -> Iterator[Problem]:
    X, y = load_colon(return_X_y=True)
    yield Problem("colon, raw", csr_matrix(X), y)
    yield Problem("colon, standardised", csr_matrix(scale(X)), y)


def _lymphoma_problems() -> Iterator[Problem]:
    X, y = load_lymphoma("acl", missing="mean", return_X_y=True)
    yield Problem("lymphoma", csr_matrix(X), y)


def _sonar_problems() -> Iterator[Problem]:
    X, y = load_sonar(return_X_y=True)
    yield Problem("sonar", csr_matrix(X), y, rho=1.0)


def _rcv1_problems() -> Iterator[Problem]:
    X, labels = load(TOPICS)
    for topic in TOPICS:
        for soft_margin in SOFT_MARGINS:
            name = f"RCV1 {topic}, Delta={soft_margin:g}"
            yield Problem(
                name, X, labels[topic], soft_margin=soft_margin, online=topic == TOPICS[0]
            )


#: What makes the problems of each source, read when asked for.
SOURCES = {
    "leukemia": _leukemia_problems,
    "colon": _colon_problems,
    "lymphoma": _lymphoma_problems,
    "sonar": _sonar_problems,
    "rcv1": _rcv1_problems,
}
