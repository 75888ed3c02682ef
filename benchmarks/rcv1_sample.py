"""The RCV1 sample on disk as binary problems: shuffled once, a training side and a test side."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.model_selection import GroupKFold

from sparsemargin.datasets import load_rcv1

N_TRAIN = N_TEST = 10_000


def load(topics: Iterable[str] | None = None) -> tuple[csr_matrix, dict]:
    """Read the first `N_TRAIN` + `N_TEST` rows of the sample in the loader's shuffled order.

    Parameters
    ----------
    topics : iterable of str or None, default=None
        None: all of them.

    Returns
    -------
    X : csr_matrix of shape (20000, 47236), float64
    labels : dict of ndarray of shape (20000,)
        By topic, in {-1, 1}.
    """
    stories = load_rcv1(topics, source="sample", n_train=N_TRAIN, n_test=N_TEST)
    labels = 2 * stories.target[: N_TRAIN + N_TEST].toarray().astype(np.int64) - 1
    X = stories.data[: N_TRAIN + N_TEST]
    return X, dict(zip(stories.target_names, labels.T.copy(), strict=True))


def number_vectors(X: csr_matrix) -> np.ndarray:
    """Number the rows so that equal vectors have the same number."""
    numbers: dict[bytes, int] = {}
    bounds = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    rows = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in bounds)
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows])


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to predict, with the labels of each topic."""

    X: csr_matrix
    X_test: csr_matrix
    labels: dict[str, np.ndarray]
    labels_test: dict[str, np.ndarray]

    def errors(self, fit: Callable[[Any, np.ndarray], Any]) -> dict[str, float]:
        """Return the test error in percent, by topic, of what `fit(X, y)` returns."""
        return {
            topic: 100 * float(np.mean(fit(self.X, y).predict(self.X_test) != y_test))
            for (topic, y), y_test in zip(
                self.labels.items(), self.labels_test.values(), strict=True
            )
        }


@dataclass(frozen=True)
class Topics:
    """Some topics of the sample. The test side lacks the vectors that are on the training side.

    Attributes
    ----------
    X : csr_matrix of shape (20000, 47236)
    labels : dict of ndarray of shape (20000,)
    vectors : ndarray of shape (20000,)
        What `number_vectors` says of X.
    """

    X: csr_matrix
    labels: dict[str, np.ndarray]
    vectors: np.ndarray

    def only(self, names: Iterable[str]) -> "Topics":
        """Return the same rows with the labels of some topics alone."""
        return Topics(self.X, {name: self.labels[name] for name in names}, self.vectors)

    def by_frequency(self) -> list[str]:
        """Return the names, the topic with the most rows on the training side first."""
        counts = {name: np.sum(y[:N_TRAIN] > 0) for name, y in self.labels.items()}
        return sorted(counts, key=lambda name: (-counts[name], name))

    def _split(self, train: np.ndarray, test: np.ndarray) -> Split:
        labels, labels_test = (
            {name: y[rows] for name, y in self.labels.items()} for rows in (train, test)
        )
        return Split(self.X[train], self.X[test], labels, labels_test)

    def folds(self, n_folds: int, seed: int) -> list[Split]:
        """Split the training side for cross-validation, equal vectors into the same fold."""
        train, vectors = self.X[:N_TRAIN], self.vectors[:N_TRAIN]
        splits = GroupKFold(n_folds, shuffle=True, random_state=seed).split(train, groups=vectors)
        return [self._split(*split) for split in splits]

    def sides(self) -> Split:
        """Split into the training side and the test side."""
        rows = np.arange(len(self.vectors))
        seen = np.isin(self.vectors, self.vectors[:N_TRAIN])
        return self._split(rows[:N_TRAIN], rows[N_TRAIN:][~seen[N_TRAIN:]])


def load_topics() -> Topics:
    """Load the sample with all its topics."""
    X, labels = load()
    return Topics(X, labels, number_vectors(X))


def halves(topics: Topics) -> tuple[Topics, Topics]:
    """Part the 20 most frequent topics: those of even rank to choose by, of odd rank to report."""
    ranked = topics.by_frequency()[:20]
    return topics.only(ranked[1::2]), topics.only(ranked[::2])
