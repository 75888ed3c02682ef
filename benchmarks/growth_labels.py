"""Growth of one epoch with labels, and what a second thread saves of several."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from corpora import RCV1_SMALL
from floor import FloorLabels, row_orders
from growth_curves import Point
from label_data import LabelledCorpus, draw_labelled
from label_race import FLOOR, OVR, RAW
from sklearn.linear_model import Perceptron
from sklearn.multiclass import OneVsRestClassifier

from sparsemargin import PNormPerceptron

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
GROWING = {f"Perceptron, {name}": partial(_perceptron, name, 1, 1) for name in HYPOTHESES} | {
    FLOOR: _floor,
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
    return _points(LABELS[:-2] if quick else LABELS, GROWING, n_rows, 1)


def threads(quick: bool) -> Iterator[Point]:
    """Ten epochs of some numbers of labels on one thread and on two."""
    n_rows = N_ROWS_QUICK if quick else RCV1_SMALL.n_train
    return _points(THREADED_LABELS, THREADED, n_rows, THREADED_EPOCHS)


def speed_ups(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how many times as fast two threads are as one, for each number of labels."""
    by_name = {curve["name"]: curve for curve in curves}
    return [
        {
            "name": f"Perceptron, {name}",
            "n_labels": n_labels,
            "times": one / two,
        }
        for name in HYPOTHESES
        for n_labels, one, two in zip(
            by_name[f"Perceptron, {name}, 1 thread"]["sizes"],
            by_name[f"Perceptron, {name}, 1 thread"]["seconds"],
            by_name[f"Perceptron, {name}, 2 threads"]["seconds"],
            strict=True,
        )
    ]
