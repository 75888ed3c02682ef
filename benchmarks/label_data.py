"""Rows with many labels each, drawn to look like the topics of RCV1.

Topic l of n has a share f_l of the rows, from 45 % down to 0.1 %: the law (q + u)^-a in u = l / n,
with q and a such that 103 topics come to 3.24 labels a row, as RCV1 has them. What belongs to a
topic is decided by 20 words of its own, with weights drawn from the exponential distribution: a row
has the topic where the sum of its weighted words, and normal noise of a tenth of that sum's
standard deviation, is among the largest. The words are drawn with probability proportional to the
rows they appear in, among those in at most half as many rows as the topic is to have: common words
tell little. LinearSVC errs on one label in a hundred, as it does on RCV1.
"""

from dataclasses import dataclass

import numpy as np
from corpora import Shape, draw
from scipy.optimize import brentq
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.utils import check_random_state

LARGEST_SHARE, LEAST_SHARE = 0.45, 0.001
LABELS_A_ROW, OF_LABELS = 3.24, 103
WORDS_A_TOPIC = 20
COMMONEST = 0.5  # a topic's words have at most so many times its rows
NOISE = 0.1
BLOCK = 64  # topics scored at once, so that the scores of a thousand are never held together


@dataclass(frozen=True)
class LabelledCorpus:
    """Training and held-out rows of one draw; Y are indicators, uint8."""

    shape: Shape
    X: csr_matrix
    Y: np.ndarray
    X_test: csr_matrix
    Y_test: np.ndarray


def shares(n_labels: int) -> np.ndarray:
    """Return the share of the rows that each label has, falling; shape (n_labels,)."""

    def law(q: float, n: int) -> np.ndarray:
        u = np.linspace(0, 1, n)
        a = np.log(LARGEST_SHARE / LEAST_SHARE) / np.log((1 + q) / q)
        return LARGEST_SHARE * ((q + u) / q) ** -a

    q = brentq(lambda q: law(q, OF_LABELS).sum() - LABELS_A_ROW, 1e-4, 10)
    return law(q, n_labels)


def draw_labels(X: csr_matrix, n_train: int, n_labels: int, seed: int = 0) -> np.ndarray:
    """Label rows by sparse random targets.

    Parameters
    ----------
    X : csr_matrix of shape (m, n)
    n_train : int
        The first so many rows decide where a topic begins, and have one row of each at least.
    n_labels : int
    seed : int, default=0

    Returns
    -------
    Y : ndarray of shape (m, n_labels), uint8
        1 where the row has the label, else 0.
    """
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
    """Return the weights of each topic's words, a column for each topic."""
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


def draw_labelled(shape: Shape, n_labels: int) -> LabelledCorpus:
    """Draw the training rows and the held-out rows of a shape, in float32, and their labels."""
    X, _ = draw(shape, shape.n_train + shape.n_test)
    X = X.astype(np.float32)
    Y = draw_labels(X, shape.n_train, n_labels)
    head, tail = slice(None, shape.n_train), slice(shape.n_train, None)
    return LabelledCorpus(shape, X[head], Y[head], X[tail], Y[tail])
