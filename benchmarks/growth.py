"""How does the time of one epoch grow: with nonzeros, features, labels, corrections and threads?

Every point is the least of several rounds, in which all points take turns. Exponents are slopes of
log time against log size by least squares, with the standard error of the slope. Rows have the
RCV1 shape, values are float32, the fits shuffle. The growth of the Higher-order Perceptron with its
mistakes is measured by higher_order.py, that of kernels with rows by kernels.py, and what a second
thread saves in scanning a file by files.py.

    python benchmarks/growth.py [--only nonzeros features labels corrections threads] [--quick]
"""

import inspect
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import timing
from corpora import RCV1_SMALL, LabelledCorpus, draw, draw_labelled
from epoch import CONTESTANTS, LAST_BASELINE, Contestant
from epoch import FLOOR as LOOP
from floor import RAW, FloorLabels, row_orders
from labels import FLOOR as SWEEP
from scipy.sparse import csr_matrix
from sklearn.linear_model import Perceptron
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import check_random_state
from tables import OURS as GROWING
from tables import OVR, show, text_table

from sparsemargin import PNormPerceptron
from sparsemargin.evaluation import growth_exponent
from sparsemargin.evaluation.growth import fit_line


class Point(NamedTuple):
    """One point of a curve; `prepare(round_number)` returns the call to be timed.

    `unit` is what the time is also told per: nonzeros, or nonzeros x labels.
    """

    curve: str
    size: float
    unit: float
    prepare: Callable[[int], Callable[[], Any]]


DTYPE = np.float32
RANDOM = ", random labels"
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
        for contestant in _named((*GROWING, LOOP, LAST_BASELINE)):
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
        for contestant in _named((LOOP, "p-norm p=6, average")):
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


N_ROWS, N_ROWS_QUICK = 8000, 1000
LABELS = tuple(2**k for k in range(3, 11))
THREADED_LABELS = (104, 208, 416)
ONE_EPOCH = {"max_iter": 1, "fit_intercept": False}
# What a fit does once, reading the labels and making room for weights, is one thread's.
THREADED_EPOCHS = 10
Call = Callable[[], Any]


def _perceptron(
    hypothesis: str, n_jobs: int, n_epochs: int, corpus: LabelledCorpus, seed: int
) -> Call:
    params = ONE_EPOCH | RAW | {"max_iter": n_epochs}
    model = PNormPerceptron(**params, hypothesis=hypothesis, n_jobs=n_jobs, random_state=seed)
    return partial(model.fit, corpus.X, corpus.Y)


def _floor(corpus: LabelledCorpus, seed: int) -> Call:
    return FloorLabels(corpus.X, corpus.Y, row_orders(len(corpus.Y), 1, True, seed)).run


def _ovr(corpus: LabelledCorpus, seed: int) -> Call:
    one = Perceptron(**ONE_EPOCH, tol=None, random_state=seed)
    return partial(OneVsRestClassifier(one).fit, corpus.X, corpus.Y)


HYPOTHESES = ("last", "average")
LABELLED = {f"Perceptron, {name}": partial(_perceptron, name, 1, 1) for name in HYPOTHESES} | {
    SWEEP: _floor,
    OVR: _ovr,
}
THREADED = {
    f"Perceptron, {name}, {n_jobs} thread{'s' * (n_jobs > 1)}": partial(
        _perceptron, name, n_jobs, THREADED_EPOCHS
    )
    for name in HYPOTHESES
    for n_jobs in (1, 2)
}


def _points(
    numbers: tuple[int, ...], fits: dict[str, Callable], n_rows: int, n_epochs: int
) -> Iterator[Point]:
    for n_labels in numbers:
        corpus = draw_labelled(replace(RCV1_SMALL, n_train=n_rows, n_test=1), n_labels)
        for name, fit in fits.items():
            unit = corpus.X.nnz * n_labels * n_epochs
            yield Point(name, n_labels, unit, partial(fit, corpus))


def labels(quick: bool) -> Iterator[Point]:
    """The same rows with ever more labels, of the same frequencies."""
    n_rows = N_ROWS_QUICK if quick else N_ROWS
    return _points(LABELS[:-2] if quick else LABELS, LABELLED, n_rows, 1)


def threads(quick: bool) -> Iterator[Point]:
    """Ten epochs of some numbers of labels on one thread and on two."""
    n_rows = N_ROWS_QUICK if quick else RCV1_SMALL.n_train
    return _points(THREADED_LABELS, THREADED, n_rows, THREADED_EPOCHS)


def speed_ups(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how many times as fast two threads are as one, for each number of labels."""
    found = []
    for name in (f"Perceptron, {hypothesis}" for hypothesis in HYPOTHESES):
        one, two = (curve for curve in curves if curve["name"].startswith(name))
        for n_labels, *seconds in zip(one["sizes"], one["seconds"], two["seconds"], strict=True):
            times = seconds[0] / seconds[1]
            found.append({"name": name, "n_labels": n_labels, "times": times})
    return found


TITLES: dict[Callable[[bool], Iterator[Point]], tuple[str, str]] = {
    nonzeros: ("One epoch over ever more rows of one shape", "nonzeros"),
    features: ("One epoch over as many nonzeros among ever more features", "features"),
    labels: ("One epoch with ever more labels", "labels"),
    corrections: (
        "One epoch with ever more labels flipped (exponents: of what further corrections add)",
        "corrections",
    ),
    threads: ("Ten epochs on one thread and on two", "labels"),
}


def measure(points: list[Point], n_rounds: int) -> list[dict[str, Any]]:
    """Time every point once in each round, and gather the curves, their points by size.

    Seconds are the least of the rounds; ``counts`` the corrections of the last fit, where the model
    tells them.
    """
    fits = {number: point.prepare for number, point in enumerate(points)}
    seconds, counts = timing.race(fits, n_rounds, lambda number, model: _corrections(model))
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


def _corrections(model: Any) -> int:
    return int(np.sum(getattr(model, "n_corrections_", 0)))


def against_corrections(curve: dict[str, Any]) -> dict[str, Any]:
    """A curve whose sizes are the corrections that the flipped labels led to.

    Half of the time goes to the trials whatever the corrections, so the exponent is that of what
    further corrections add, and beside it stands what one adds by the straight line.
    """
    counts, seconds = (np.asarray(curve[key], float) for key in ("counts", "seconds"))
    (each, rest), errors = fit_line(counts, seconds)
    added = growth_exponent(counts[1:] - counts[0], seconds[1:] - seconds[0])
    return curve | {
        "sizes": counts.tolist(), "exponent": added._asdict(), "seconds_each": float(each),
        "seconds_each_error": float(errors[0]), "seconds_without": float(rest),
    }  # fmt: skip


def grow(points: Callable[[bool], Iterator[Point]], options: Namespace) -> dict[str, Any]:
    """Measure and print the curves of one growth; its note is the docstring of `points`."""
    title, size_name = TITLES[points]
    print(f"growth with {size_name} ...", file=sys.stderr, flush=True)
    curves = measure(list(points(options.quick)), options.rounds)
    if points is corrections:
        curves = list(map(against_corrections, curves))
    report = {"title": title, "note": inspect.getdoc(points), "size_name": size_name}
    keys = "sizes", "seconds", "nanoseconds"
    rows = [
        {"name": curve["name"], **dict(zip(keys, values, strict=True))}
        for curve in curves
        for values in zip(*(curve[key] for key in keys), strict=True)
    ]
    columns = [
        ("", "{name}"), (size_name, "{sizes:,.6g}"), ("ms", "{seconds:.3m}"),
        ("ns per unit", "{nanoseconds:.3f}"),
    ]  # fmt: skip
    show(f"{title}\n\n{report['note']}", columns, rows)
    columns = [
        ("", "{name}"), ("time grows to the power of", "{exponent[slope]:.3f}"),
        ("±", "{exponent[standard_error]:.3f}"),
    ]  # fmt: skip
    if points is corrections:
        columns += [
            ("a correction adds us", "{seconds_each:.3u}"), ("±", "{seconds_each_error:.3u}"),
            ("ms without any", "{seconds_without:.2m}"),
        ]  # fmt: skip
    show(f"Against {size_name}", columns, curves)
    report["curves"] = curves
    if points is threads:
        report["speed_ups"] = speed_ups(curves)
        columns = [("", "{name}"), ("labels", "{n_labels}"), ("two threads x one", "{times:.2f}")]
        print("\n" + text_table(columns, report["speed_ups"]), flush=True)
    return {points.__name__: report}


GROWTHS = {points.__name__: partial(grow, points) for points in TITLES}

if __name__ == "__main__":
    timing.run(timing.parser_of(__doc__, "results/growth.json"), GROWTHS, (9, 3))
