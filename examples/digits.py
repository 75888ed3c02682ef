"""Handwritten digits: those of MNIST, or the small ones that come with scikit-learn."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits

# There papers.data is, which an installed package lacks.
sys.path.append(str(Path(__file__).parents[1]))

from papers.data import load_mnist


@dataclass(frozen=True)
class Digits:
    """Greys by pixel and the digits they show, to learn from and to test on.

    Attributes
    ----------
    name, origin : str
        What they are, in a word and in a sentence.
    gamma : float
        By which dot products of greys are multiplied in a polynomial kernel.
    """

    X: csr_matrix
    y: np.ndarray
    X_test: csr_matrix
    y_test: np.ndarray
    name: str
    origin: str
    gamma: float

    def draw(self, greys: csr_matrix, titles: Any) -> Any:
        """Draw a dozen digits with their titles; return the figure."""
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(2, 6, figsize=(7.5, 3), layout="constrained")
        side = round(greys.shape[1] ** 0.5)
        for panel, row, title in zip(axes.flat, greys.toarray(), titles, strict=True):
            panel.imshow(row.reshape(side, side), cmap="gray_r")
            panel.set_title(title, fontsize=10)
            panel.set_axis_off()
        return figure


def load_digits_to_read(n_train: int, n_test: int) -> Digits:
    """Load the first digits of either part, as many as there are at most."""
    try:
        train, test = load_mnist("train"), load_mnist("test")
    except FileNotFoundError:
        return _small_digits(n_train, n_test)
    return Digits(
        train.data[:n_train], train.target[:n_train], test.data[:n_test], test.target[:n_test],
        "MNIST", "MNIST, 28 x 28 pixels", 1 / 255,
    )  # fmt: skip


def _small_digits(n_train: int, n_test: int) -> Digits:
    X, y = load_digits(return_X_y=True)
    cut = 2 * len(y) // 3
    rows, last = csr_matrix(X), cut + n_test
    return Digits(
        rows[:cut][:n_train], y[:cut][:n_train], rows[cut:last], y[cut:last], "small digits",
        "SMALL digits of scikit-learn, 8 x 8 pixels, since load_mnist found no MNIST", 1 / 16,
    )  # fmt: skip
