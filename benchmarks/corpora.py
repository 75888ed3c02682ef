"""Data of the benchmarks: generated text of several shapes, with two classes or many labels, and
RCV1.

Labels are drawn to resemble the topics of RCV1. Topic l of n has a share f_l of the rows, from
45 % down to 0.1 %: the law (q + u)^-a in u = l / n, with q and a such that 103 topics give 3.24
labels per row. A topic is defined by 20 words with exponential weights. A row has the topic if
the sum of its weighted words, plus normal noise of a tenth of that sum's standard deviation, is
among the largest. The words are drawn with probabilities proportional to their row counts, among
words in at most half as many rows as the topic has, because common words are uninformative. The
error of LinearSVC is 1 % of the labels, as on RCV1.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.model_selection import GroupKFold
from sklearn.utils import check_random_state

from sparsemargin.datasets import load_rcv1, make_zipf_text


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
    """Training and test rows of one draw."""

    shape: Shape
    X: csr_matrix
    y: np.ndarray
    X_test: csr_matrix
    y_test: np.ndarray

    def astype(self, dtype) -> "Corpus":
        """Return the same rows with values of another dtype."""
        return replace(self, X=self.X.astype(dtype), X_test=self.X_test.astype(dtype))

    def renumbered(self) -> "Corpus":
        """Return the corpus with renumbered columns, as `TfidfVectorizer` does in its last step."""
        new = np.random.default_rng(0).permutation(self.X.shape[1]).astype(self.X.indices.dtype)
        X, X_test = (
            csr_matrix((X.data, new[X.indices], X.indptr), shape=X.shape)
            for X in (self.X, self.X_test)
        )
        return replace(self, X=X, X_test=X_test)

    def with_sorted_rows(self) -> "Corpus":
        """Return the same matrices with sorted columns in each row."""
        return replace(self, X=self.X.sorted_indices(), X_test=self.X_test.sorted_indices())

    def by_class(self) -> "Corpus":
        """Return the corpus with the training rows sorted by class."""
        order = np.argsort(self.y, kind="stable")
        return replace(self, X=self.X[order], y=self.y[order])

    def mislabelled(self, share: float) -> "Corpus":
        """Return the corpus with this share of the training labels, -1 and 1, flipped."""
        wrong = np.random.default_rng(0).permutation(len(self.y)) < round(share * len(self.y))
        return replace(self, y=np.where(wrong, -self.y, self.y))


RCV1_SMALL = Shape("rcv1s", n_train=23_149, n_test=4_630, n_features=47_236, mean_nnz=76)
RCV1_MIDDLE = Shape("rcv1m", n_train=100_000, n_test=20_000, n_features=47_236, mean_nnz=76)
RCV1_LARGE = Shape("rcv1l", n_train=200_000, n_test=20_000, n_features=47_236, mean_nnz=76)
NEWS20 = Shape("news20", n_train=20_000, n_test=4_000, n_features=1_355_191, mean_nnz=455)


def draw(shape: Shape, n_samples: int, n_classes: int = 2) -> tuple[csr_matrix, np.ndarray]:
    """Draw rows of a shape; two classes are labelled -1 and 1."""
    return make_zipf_text(
        n_samples, shape.n_features, mean_nnz=shape.mean_nnz, n_classes=n_classes, dtype=np.float64,
        random_state=0,
    )  # fmt: skip


def draw_corpus(shape: Shape) -> Corpus:
    """Draw the training rows and the test rows of a shape."""
    X, y = draw(shape, shape.n_train + shape.n_test)
    head, tail = slice(None, shape.n_train), slice(shape.n_train, None)
    return Corpus(shape, X[head], y[head], X[tail], y[tail])


LARGEST_SHARE, LEAST_SHARE = 0.45, 0.001
LABELS_A_ROW, OF_LABELS = 3.24, 103
WORDS_A_TOPIC = 20
COMMONEST = 0.5  # largest row count of a topic's words, relative to that of the topic
NOISE = 0.1
BLOCK = 64  # topics scored at once, to limit the memory for the scores


def shares(n_labels: int) -> np.ndarray:
    """Return the decreasing shares of rows with each label, shape (n_labels,)."""

    def law(q: float, n: int) -> np.ndarray:
        u = np.linspace(0, 1, n)
        a = np.log(LARGEST_SHARE / LEAST_SHARE) / np.log((1 + q) / q)
        return LARGEST_SHARE * ((q + u) / q) ** -a

    q = brentq(lambda q: law(q, OF_LABELS).sum() - LABELS_A_ROW, 1e-4, 10)
    return law(q, n_labels)


def draw_labels(X: csr_matrix, n_train: int, n_labels: int, seed: int = 0) -> np.ndarray:
    """Label rows by sparse random targets: indicators of uint8, shape (m, n_labels). Thresholds are
    set on the first `n_train` rows, which have at least one row of each label."""
    random = check_random_state(seed)
    topics = _targets(X, n_labels, random)
    positives = np.maximum(1, np.rint(shares(n_labels) * n_train)).astype(int)
    Y = np.empty((X.shape[0], n_labels), dtype=np.uint8)
    for first in range(0, n_labels, BLOCK):
        block = slice(first, min(first + BLOCK, n_labels))
        scores = (X @ topics[:, block]).toarray()
        scores += NOISE * scores.std(axis=0) * random.standard_normal(scores.shape)
        for label, scores_of_label in zip(range(n_labels)[block], scores.T, strict=True):
            place = n_train - positives[label]
            threshold = np.partition(scores_of_label[:n_train], place)[place]
            Y[:, label] = scores_of_label >= threshold
    return Y


def _targets(X: csr_matrix, n_labels: int, random: np.random.RandomState) -> csc_matrix:
    """Return the word weights of each topic, one column per topic."""
    n_rows_with = np.bincount(X.indices, minlength=X.shape[1])
    rarest = np.sort(n_rows_with[n_rows_with > 0])[:WORDS_A_TOPIC]
    words = []
    for share in shares(n_labels):
        most = max(COMMONEST * share * X.shape[0], rarest[-1])
        p = np.where(n_rows_with <= most, n_rows_with, 0)
        words.append(random.choice(X.shape[1], len(rarest), replace=False, p=p / p.sum()))
    weights = random.standard_exponential(n_labels * len(rarest)).astype(X.dtype)
    ends = len(rarest) * np.arange(n_labels + 1)
    return csc_matrix((weights, np.concatenate(words), ends), shape=(X.shape[1], n_labels))


def draw_labelled(shape: Shape, n_labels: int) -> Corpus:
    """Draw the rows of a shape, in float32, and their labels, indicators of uint8."""
    X, _ = draw(shape, shape.n_train + shape.n_test)
    X = X.astype(np.float32)
    Y = draw_labels(X, shape.n_train, n_labels)
    head, tail = slice(None, shape.n_train), slice(shape.n_train, None)
    return Corpus(shape, X[head], Y[head], X[tail], Y[tail])


N_TRAIN = N_TEST = 10_000


def load_sample(topics: Iterable[str] | None = None) -> tuple[csr_matrix, dict]:
    """Read the first `N_TRAIN` + `N_TEST` rows of the sample in the loader's shuffled order, and
    the labels of some or all topics, in {-1, 1}."""
    stories = load_rcv1(topics, source="sample")
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
    """Training and test rows, with the labels of each topic."""

    X: csr_matrix
    X_test: csr_matrix
    labels: dict[str, np.ndarray]
    labels_test: dict[str, np.ndarray]

    def errors(self, fit: Callable[[Any, np.ndarray], Any]) -> dict[str, float]:
        """Return the test error in percent, by topic, of the model returned by `fit(X, y)`."""
        return {
            topic: 100
            * float(np.mean(fit(self.X, y).predict(self.X_test) != self.labels_test[topic]))
            for topic, y in self.labels.items()
        }


@dataclass(frozen=True)
class Topics:
    """Some topics of the sample; test rows that equal a training row are removed."""

    X: csr_matrix
    labels: dict[str, np.ndarray]
    vectors: np.ndarray

    def _split(self, train: np.ndarray, test: np.ndarray) -> Split:
        labels, labels_test = (
            {name: y[rows] for name, y in self.labels.items()} for rows in (train, test)
        )
        return Split(self.X[train], self.X[test], labels, labels_test)

    def folds(self, n_folds: int, seed: int) -> list[Split]:
        """Split the training side for cross-validation; equal vectors are in the same fold."""
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
    X, labels = load_sample()
    return Topics(X, labels, number_vectors(X))


def halves(topics: Topics) -> tuple[Topics, Topics]:
    """Divide the 20 topics that are most frequent in training: odd ranks, counted from 0, are used
    for choices, even ranks for reports."""
    labels = topics.labels
    ranked = sorted(labels, key=lambda name: (-np.sum(labels[name][:N_TRAIN] > 0), name))[:20]
    choosing, reporting = ({name: labels[name] for name in ranked[i::2]} for i in (1, 0))
    return replace(topics, labels=choosing), replace(topics, labels=reporting)
