"""The three shapes of text that the benchmarks run on."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from sparsemargin.datasets import make_zipf_text


@dataclass(frozen=True)
class Shape:
    """The size of a corpus; its rows are drawn by `sparsemargin.datasets.make_zipf_text`."""

    name: str
    n_train: int
    n_test: int
    n_features: int
    mean_nnz: int


@dataclass(frozen=True)
class Corpus:
    """Training and held-out rows of one draw."""

    shape: Shape
    X: csr_matrix
    y: np.ndarray
    X_test: csr_matrix
    y_test: np.ndarray

    def astype(self, dtype) -> "Corpus":
        """Return the same rows with values of another type."""
        X, X_test = self.X.astype(dtype), self.X_test.astype(dtype)
        return Corpus(self.shape, X, self.y, X_test, self.y_test)


RCV1_SMALL = Shape("rcv1s", n_train=23_149, n_test=4_630, n_features=47_236, mean_nnz=76)
RCV1_LARGE = Shape("rcv1l", n_train=200_000, n_test=20_000, n_features=47_236, mean_nnz=76)
NEWS20 = Shape("news20", n_train=20_000, n_test=4_000, n_features=1_355_191, mean_nnz=455)


def draw(shape: Shape, n_samples: int, n_classes: int = 2) -> tuple[csr_matrix, np.ndarray]:
    """Draw rows of a shape; two classes are labelled -1 and 1."""
    return make_zipf_text(
        n_samples,
        shape.n_features,
        mean_nnz=shape.mean_nnz,
        n_classes=n_classes,
        dtype=np.float64,
        random_state=0,
    )


def draw_corpus(shape: Shape) -> Corpus:
    """Draw the training rows and the held-out rows of a shape."""
    X, y = draw(shape, shape.n_train + shape.n_test)
    head, tail = slice(None, shape.n_train), slice(shape.n_train, None)
    return Corpus(shape, X[head], y[head], X[tail], y[tail])
