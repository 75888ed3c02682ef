"""Growth of one epoch over two classes: with nonzeros, with features, with corrections."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from contestants import CONTESTANTS, FLOOR, LAST_BASELINE, Contestant
from corpora import RCV1_SMALL, draw
from growth_curves import Point
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state

DTYPE = np.float32
GROWING = ("Perceptron, last", "Perceptron, average", "p-norm p=6, average", "ALMA p=2, average")
RANDOM = ", random labels"
PEERS = (FLOOR, LAST_BASELINE)
ONE = "Perceptron, last"
# From a 32nd of them on: in fewer rows a fit's fixed cost, some 0.3 ms, would tell.
MOST_ROWS, MOST_ROWS_QUICK = 800_000, 25_000
MORE_FEATURES = tuple(2**k for k in range(14, 22))
NOISE = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


def _named(names: tuple[str, ...]) -> list[Contestant]:
    return [contestant for contestant in CONTESTANTS if contestant.name in names]


def _point(
    contestant: Contestant, size: float, X: csr_matrix, y: np.ndarray, curve: str = ""
) -> Point:
    prepare = partial(contestant.prepare, X, y)
    return Point(curve or contestant.name, size, X.nnz, prepare)


def nonzeros(quick: bool) -> Iterator[Point]:
    """Ever more rows of the RCV1 shape; labels of the text, and random ones.

    With labels of the text mistakes get rarer as rows are learned; with random labels every second
    trial is a correction, however many rows there are.
    """
    n_rows = MOST_ROWS_QUICK if quick else MOST_ROWS
    X, y = draw(RCV1_SMALL, n_rows)
    X = X.astype(DTYPE)
    coin = np.where(check_random_state(0).random_sample(len(y)) < 0.5, -1, 1)
    for n_part in (n_rows // 2**k for k in range(5, -1, -1)):
        part = X[:n_part]
        for contestant in _named(GROWING + PEERS):
            yield _point(contestant, part.nnz, part, y[:n_part])
        for contestant in _named(GROWING):
            curve = f"{contestant.name}{RANDOM}"
            yield _point(contestant, part.nnz, part, coin[:n_part], curve)


def features(quick: bool) -> Iterator[Point]:
    """The same number of nonzeros among ever more features.

    Three ways to lay them out. Words drawn from all features meet ever more weights, which leave
    one cache after the other: that bends the curve, the C loop's too. The words of the narrowest
    text, scattered at random over all features, keep their number, but lie in cache lines and pages
    of their own. The same words side by side leave what the library itself does with n: to make one
    vector of zeros, for p > 2 and the average three and a quarter, of float64.
    """
    n_rows = 4000 if quick else RCV1_SMALL.n_train
    sizes = MORE_FEATURES[:-2] if quick else MORE_FEATURES
    narrow, y_narrow = draw(replace(RCV1_SMALL, n_features=sizes[0]), n_rows)
    narrow = narrow.astype(DTYPE)
    for n_features in sizes:
        X, y = draw(replace(RCV1_SMALL, n_features=n_features), n_rows)
        X = X.astype(DTYPE)
        layouts = {
            "words of all features": (X, y),
            f"{sizes[0]:,} words, scattered": (_scatter(narrow, n_features), y_narrow),
            f"{sizes[0]:,} words, side by side": (_widen(narrow, n_features), y_narrow),
        }
        for layout, (rows, labels) in layouts.items():
            for contestant in _named((ONE,)):
                yield _point(contestant, n_features, rows, labels, f"{ONE}: {layout}")
        for contestant in _named((FLOOR, "p-norm p=6, average")):
            curve = f"{contestant.name}: words of all features"
            yield _point(contestant, n_features, X, y, curve)


def _widen(X: csr_matrix, n_features: int) -> csr_matrix:
    return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def _scatter(X: csr_matrix, n_features: int) -> csr_matrix:
    """Move the columns to random places among more, in the order they had."""
    places = check_random_state(0).choice(n_features, X.shape[1], replace=False)
    columns = np.sort(places).astype(X.indices.dtype)[X.indices]
    return csr_matrix((X.data, columns, X.indptr), shape=(X.shape[0], n_features))


def corrections(quick: bool) -> Iterator[Point]:
    """The same rows with ever more of their labels flipped; the size is the share flipped."""
    X, y = draw(RCV1_SMALL, 4000 if quick else RCV1_SMALL.n_train)
    X = X.astype(DTYPE)
    flips = check_random_state(0).random_sample(len(y))
    for noise in NOISE:
        labels = np.where(flips < noise, -y, y)
        for contestant in _named(GROWING):
            yield _point(contestant, noise, X, labels)
