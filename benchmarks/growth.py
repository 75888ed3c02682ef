"""Growth of the time of one epoch with nonzeros, features, labels, corrections and threads.

Every point is the minimum over several rounds, in which all points take turns. Exponents are
least-squares slopes of log time against log size, with the standard error of the slope. Rows have
the RCV1 shape, values are float32, and the fits shuffle.

    python benchmarks/growth.py [--only nonzeros features labels corrections threads] [--quick]
"""

from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import timing
from corpora import RCV1_SMALL, Corpus, draw, draw_labelled
from epoch import CONTESTANTS, LAST_BASELINE
from epoch import FLOOR as LOOP
from exponents import growth_exponent
from floor import ONE_EPOCH, RAW
from labels import FLOOR as SWEEP
from labels import ovr, sweep
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state
from tables import OURS as GROWING
from tables import OVR

from sparsemargin import PNormPerceptron


class Point(NamedTuple):
    """A point of a curve. `prepare(round)` returns the call to time. `unit` is the number of its
    nonzeros, times its labels and epochs."""

    curve: str
    size: float
    unit: float
    prepare: Callable[[int], Callable[[], Any]]


DTYPE = np.float32
ONE = "Perceptron, last"
# The smallest size is a 32nd of this; in fewer rows the fixed cost of a fit, 0.3 ms, would show.
MOST_ROWS, MOST_ROWS_QUICK = 800_000, 25_000
MORE_FEATURES = tuple(2**k for k in range(14, 22))
NOISE = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


def _points(
    names: tuple[str, ...], size: float, X: csr_matrix, y: np.ndarray, curve: str = "{}"
) -> Iterator[Point]:
    """Yield a point for each of these contestants."""
    for each in CONTESTANTS:
        if each.name in names:
            yield Point(curve.format(each.name), size, X.nnz, partial(each.prepare, X, y))


def nonzeros(quick: bool) -> Iterator[Point]:
    """Growing numbers of rows of the RCV1 shape. With the labels of the text, mistakes become rarer
    during training; with random labels every second trial is a correction at any size."""
    n_rows = MOST_ROWS_QUICK if quick else MOST_ROWS
    X, y = draw(RCV1_SMALL, n_rows)
    X = X.astype(DTYPE)
    coin = np.where(check_random_state(0).random_sample(len(y)) < 0.5, -1, 1)
    for n_part in (n_rows // 2**k for k in range(5, -1, -1)):
        part = X[:n_part]
        yield from _points((*GROWING, LOOP, LAST_BASELINE), part.nnz, part, y[:n_part])
        yield from _points(GROWING, part.nnz, part, coin[:n_part], "{}, random labels")


def features(quick: bool) -> Iterator[Point]:
    """Points with the same number of nonzeros among growing numbers of features.

    Words drawn from all features use more and more weights, which outgrow one cache after the
    other. The words of the narrowest text, scattered, are equally many, but each has a cache line
    and a page for itself. Unscattered, they show the cost of n in the library itself: creating
    vectors.
    """
    n_rows = 4000 if quick else RCV1_SMALL.n_train
    sizes = MORE_FEATURES[:-2] if quick else MORE_FEATURES
    narrow, y_narrow = draw(replace(RCV1_SMALL, n_features=sizes[0]), n_rows)
    narrow = narrow.astype(DTYPE)
    for n_features in sizes:
        X, y = draw(replace(RCV1_SMALL, n_features=n_features), n_rows)
        X = X.astype(DTYPE)
        wide = csr_matrix((narrow.data, narrow.indices, narrow.indptr), (n_rows, n_features))
        layouts = {
            "words of all features": (X, y),
            f"{sizes[0]:,} words, scattered": (_scatter(narrow, n_features), y_narrow),
            f"{sizes[0]:,} words, side by side": (wide, y_narrow),
        }
        for layout, (rows, labels) in layouts.items():
            yield from _points((ONE,), n_features, rows, labels, f"{{}}: {layout}")
        others = LOOP, "p-norm p=6, average"
        yield from _points(others, n_features, X, y, "{}: words of all features")


def _scatter(X: csr_matrix, n_features: int) -> csr_matrix:
    """Move the columns to random places among more columns, in the same order."""
    places = check_random_state(0).choice(n_features, X.shape[1], replace=False)
    columns = np.sort(places).astype(X.indices.dtype)[X.indices]
    return csr_matrix((X.data, columns, X.indptr), shape=(X.shape[0], n_features))


def corrections(quick: bool) -> Iterator[Point]:
    """Points of the same rows with growing shares of flipped labels; the size is the share."""
    X, y = draw(RCV1_SMALL, 4000 if quick else RCV1_SMALL.n_train)
    X = X.astype(DTYPE)
    flips = check_random_state(0).random_sample(len(y))
    for noise in NOISE:
        labels = np.where(flips < noise, -y, y)
        yield from _points(GROWING, noise, X, labels)


N_ROWS, N_ROWS_QUICK = 8000, 1000
LABELS = tuple(2**k for k in range(3, 11))
THREADED_LABELS = (104, 208, 416)
# Reading labels and allocating weights use one thread, so several epochs are measured.
THREADED_EPOCHS = 10
HYPOTHESES = ("last", "average")


def _perceptron(
    hypothesis: str, n_jobs: int, n_epochs: int, corpus: Corpus, seed: int
) -> Callable[[], Any]:
    params = ONE_EPOCH | RAW | {"max_iter": n_epochs, "n_jobs": n_jobs}
    model = PNormPerceptron(**params, hypothesis=hypothesis, random_state=seed)
    return partial(model.fit, corpus.X, corpus.y)


LABELLED = {f"Perceptron, {name}": partial(_perceptron, name, 1, 1) for name in HYPOTHESES} | {
    SWEEP: partial(sweep, 1),
    OVR: partial(ovr, None, 1),
}
THREADED = {
    f"Perceptron, {name}, {n_jobs} thread{'s' * (n_jobs > 1)}": partial(
        _perceptron, name, n_jobs, THREADED_EPOCHS
    )
    for name in HYPOTHESES
    for n_jobs in (1, 2)
}


def _labelled_points(
    numbers: tuple[int, ...], fits: dict[str, Callable], n_rows: int, n_epochs: int
) -> Iterator[Point]:
    for n_labels in numbers:
        corpus = draw_labelled(replace(RCV1_SMALL, n_train=n_rows, n_test=1), n_labels)
        for name, fit in fits.items():
            unit = corpus.X.nnz * n_labels * n_epochs
            yield Point(name, n_labels, unit, partial(fit, corpus))


def labels(quick: bool) -> Iterator[Point]:
    """Points of the same rows with growing numbers of labels of the same frequencies."""
    n_rows = N_ROWS_QUICK if quick else N_ROWS
    return _labelled_points(LABELS[:-2] if quick else LABELS, LABELLED, n_rows, 1)


def threads(quick: bool) -> Iterator[Point]:
    """Ten epochs of several numbers of labels on one thread and on two."""
    n_rows = N_ROWS_QUICK if quick else RCV1_SMALL.n_train
    return _labelled_points(THREADED_LABELS, THREADED, n_rows, THREADED_EPOCHS)


def speed_ups(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the speedup of two threads over one for each number of labels."""
    found = []
    for name in (f"Perceptron, {hypothesis}" for hypothesis in HYPOTHESES):
        one, two = (curve for curve in curves if curve["name"].startswith(name))
        for n_labels, *seconds in zip(one["sizes"], one["seconds"], two["seconds"], strict=True):
            times = seconds[0] / seconds[1]
            found.append({"name": name, "n_labels": n_labels, "times": times})
    return found


def measure(points: list[Point], n_rounds: int) -> list[dict[str, Any]]:
    """Time every point once in each round; curves have the minimum of seconds, and corrections."""

    def n_corrections(number: int, model: Any) -> int:
        return int(np.sum(getattr(model, "n_corrections_", 0)))

    fits = {number: point.prepare for number, point in enumerate(points)}
    seconds, counts = timing.race(fits, n_rounds, n_corrections)
    curves = []
    for name in dict.fromkeys(point.curve for point in points):
        of = [number for number, point in enumerate(points) if point.curve == name]
        of.sort(key=lambda number: points[number].size)
        sizes, least = [points[i].size for i in of], [min(seconds[i]) for i in of]
        curves.append(
            {
                "name": name, "sizes": sizes, "seconds": least,
                "nanoseconds": [1e9 * s / points[i].unit for s, i in zip(least, of, strict=True)],
                "counts": [counts[i][-1] for i in of],
                "exponent": growth_exponent(sizes, least)._asdict(),
            }
        )  # fmt: skip
    return curves


def against_corrections(curve: dict[str, Any]) -> dict[str, Any]:
    """The curve against the corrections caused by flipped labels. Half of the time is used by
    trials, so the exponent is that of the additional time against the additional corrections."""
    counts, seconds = (np.asarray(curve[key], float) for key in ("counts", "seconds"))
    added = growth_exponent(counts[1:] - counts[0], seconds[1:] - seconds[0])
    return curve | {"sizes": counts.tolist(), "exponent": added._asdict()}


def grow(points: Callable[[bool], Iterator[Point]], options: Namespace) -> dict[str, Any]:
    """Measure the curves of one kind of growth."""
    curves = measure(list(points(options.quick)), options.rounds)
    if points is corrections:
        curves = list(map(against_corrections, curves))
    more = {"speed_ups": speed_ups(curves)} if points is threads else {}
    return {points.__name__: {"curves": curves} | more}


GROWTHS = {
    points.__name__: partial(grow, points)
    for points in (nonzeros, features, labels, corrections, threads)
}

if __name__ == "__main__":
    timing.run(timing.parser_of(__doc__, "results/growth.json"), GROWTHS, (9, 3))
