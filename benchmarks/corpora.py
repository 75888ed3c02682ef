"""The shapes of text that the benchmarks run on, and what becomes of a corpus in life."""

from dataclasses import dataclass, replace

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
        return replace(self, X=self.X.astype(dtype), X_test=self.X_test.astype(dtype))

    def renumbered(self) -> "Corpus":
        """Return the corpus with columns renumbered at random, entries left where they lie.

        So `TfidfVectorizer` leaves its rows, which numbers words as it meets them, sorts the rows,
        and at the end renumbers the words by the alphabet.
        """
        new = np.random.default_rng(0).permutation(self.X.shape[1]).astype(self.X.indices.dtype)
        X, X_test = (
            csr_matrix((X.data, new[X.indices], X.indptr), shape=X.shape)
            for X in (self.X, self.X_test)
        )
        return replace(self, X=X, X_test=X_test)

    def with_sorted_rows(self) -> "Corpus":
        """Return the same matrices, the entries of each row in the order of their columns."""
        return replace(self, X=self.X.sorted_indices(), X_test=self.X_test.sorted_indices())

    def mislabelled(self, share: float) -> "Corpus":
        """Return the corpus with this share of the training labels, -1 and 1, wrong."""
        wrong = np.random.default_rng(0).permutation(len(self.y)) < round(share * len(self.y))
        return replace(self, y=np.where(wrong, -self.y, self.y))


RCV1_SMALL = Shape("rcv1s", n_train=23_149, n_test=4_630, n_features=47_236, mean_nnz=76)
RCV1_MIDDLE = Shape("rcv1m", n_train=100_000, n_test=20_000, n_features=47_236, mean_nnz=76)
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
