"""Fits and predictions of many labels, contestants in turn, each speed beside its test errors."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from floor import FloorLabels, row_orders
from label_data import LabelledCorpus
from measure import garbage_collection_off, in_turn, minimum_and_median, text_table, timed
from sklearn.linear_model import Perceptron
from sklearn.metrics import f1_score, hamming_loss
from sklearn.multiclass import OneVsRestClassifier

from sparsemargin import ALMAClassifier, PNormPerceptron

N_EPOCHS = 5
WARM_UP_ROWS = 200
NANOSECOND, MILLISECOND = 1e-9, 1e-3
OVR, FLOOR = "OneVsRest(Perceptron)", "C sweep"

Fit = Callable[[LabelledCorpus, int], Callable[[], Any]]


@dataclass(frozen=True)
class Contestant:
    """One line of the race; `prepare(corpus, seed)` returns the fit to be timed."""

    algorithm: str
    n_jobs: int
    prepare: Fit

    @property
    def name(self) -> str:
        return f"{self.algorithm}, {self.n_jobs} thread{'s' * (self.n_jobs > 1)}"


EPOCHS = {"max_iter": N_EPOCHS, "fit_intercept": False}
RAW = {"p": 2.0, "normalize": False}
OURS = {
    "Perceptron, last": partial(PNormPerceptron, **EPOCHS, **RAW, hypothesis="last"),
    "Perceptron, average": partial(PNormPerceptron, **EPOCHS, **RAW, hypothesis="average"),
    "p-norm p=6, last": partial(PNormPerceptron, **EPOCHS, p=6.0, hypothesis="last"),
    "p-norm p=6, average": partial(PNormPerceptron, **EPOCHS, p=6.0, hypothesis="average"),
    "ALMA p=2, average": partial(ALMAClassifier, **EPOCHS, p=2.0, hypothesis="average"),
    "ALMA p=6, average": partial(ALMAClassifier, **EPOCHS, p=6.0, hypothesis="average"),
}


def _ours(make: Callable[..., Any], n_jobs: int, corpus: LabelledCorpus, seed: int):
    return partial(make(random_state=seed, n_jobs=n_jobs).fit, corpus.X, corpus.Y)


def _ovr(n_jobs: int, corpus: LabelledCorpus, seed: int):
    one = Perceptron(**EPOCHS, tol=None, random_state=seed)
    return partial(OneVsRestClassifier(one, n_jobs=n_jobs).fit, corpus.X, corpus.Y)


def _floor(corpus: LabelledCorpus, seed: int):
    orders = row_orders(len(corpus.Y), N_EPOCHS, True, seed)
    return FloorLabels(corpus.X, corpus.Y, orders).run


CONTESTANTS = [
    Contestant(FLOOR, 1, _floor),
    *(Contestant(OVR, n_jobs, partial(_ovr, n_jobs)) for n_jobs in (1, 2)),
    *(
        Contestant(name, n_jobs, partial(_ours, make, n_jobs))
        for name, make in OURS.items()
        for n_jobs in (1, 2)
    ),
]


def errors(Y: Any, predicted: Any) -> dict[str, float]:
    """Return the share of (row, label) pairs that are wrong, and the F1 over all of them."""
    return {
        "hamming_error": float(hamming_loss(Y, predicted)),
        "micro_f1": float(f1_score(Y, predicted, average="micro")),
    }


def fit_race(corpus: LabelledCorpus, n_rounds: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Time the fits of all contestants in turn.

    Returns
    -------
    entries : list of dict
        One entry for each: nanoseconds per nonzero, label and epoch (``min`` and ``median``), the
        ratios of the former to those of OneVsRest on as many threads and of the C sweep, and the
        mean test errors.
    models : dict
        Each one's model of the last round, by its name.
    """
    seconds, wrong, models = defaultdict(list), defaultdict(list), {}
    _warm_up(corpus)
    with garbage_collection_off():
        for seed in range(n_rounds):
            for contestant in in_turn(CONTESTANTS, seed):
                elapsed, model = timed(contestant.prepare(corpus, seed))
                seconds[contestant.name].append(elapsed)
                wrong[contestant.name].append(errors(corpus.Y_test, model.predict(corpus.X_test)))
                models[contestant.name] = model
    unit = corpus.X.nnz * corpus.Y.shape[1] * N_EPOCHS * NANOSECOND
    entries = [
        {"contestant": contestant.algorithm, "n_jobs": contestant.n_jobs}
        | {"ns": minimum_and_median(seconds[contestant.name], unit)}
        | {
            measure: float(np.mean([each[measure] for each in wrong[contestant.name]]))
            for measure in ("hamming_error", "micro_f1")
        }
        for contestant in CONTESTANTS
    ]
    return _with_ratios(entries, "ns"), models


def _warm_up(corpus: LabelledCorpus) -> None:
    """A first fit pays for lazy imports, and for the processes of OneVsRest."""
    few = slice(None, WARM_UP_ROWS)
    little = LabelledCorpus(
        corpus.shape, corpus.X[few], corpus.Y[few], corpus.X_test, corpus.Y_test
    )
    for contestant in CONTESTANTS:
        contestant.prepare(little, 0)()


def _with_ratios(entries: list[dict[str, Any]], unit: str) -> list[dict[str, Any]]:
    """Add how many times as fast each is as OneVsRest, and what it takes of the floor's time."""
    times = {(entry["contestant"], entry["n_jobs"]): entry[unit]["min"] for entry in entries}
    return [
        entry
        | {
            "times_ovr": times[OVR, entry["n_jobs"]] / entry[unit]["min"],
            "of_floor": entry[unit]["min"] / times[FLOOR, 1],
        }
        for entry in entries
    ]


def predict_race(
    corpus: LabelledCorpus, models: dict[str, Any], n_rounds: int
) -> list[dict[str, Any]]:
    """Time the predictions of all labels for the training rows; the floor is `X @ W` alone.

    Returns
    -------
    list of dict
        Milliseconds (``min`` and ``median``), and the ratios as in `fit_race`.
    """
    weights = models[CONTESTANTS[0].name].weights
    calls = {
        contestant: partial(corpus.X.__matmul__, weights)
        if contestant.algorithm == FLOOR
        else partial(models[contestant.name].predict, corpus.X)
        for contestant in CONTESTANTS
    }
    seconds = defaultdict(list)
    with garbage_collection_off():
        for number in range(n_rounds):
            for contestant in in_turn(CONTESTANTS, number):
                seconds[contestant].append(timed(calls[contestant])[0])
    entries = [
        {"contestant": contestant.algorithm, "n_jobs": contestant.n_jobs}
        | {"ms": minimum_and_median(seconds[contestant], MILLISECOND)}
        for contestant in CONTESTANTS
    ]
    return _with_ratios(entries, "ms")


FIT_COLUMNS = [
    ("", ""), ("threads", "d"), ("ns min", ".3f"), ("median", ".3f"), ("x OneVsRest", ".1f"),
    ("of C sweep", ".2f"), ("Hamming error %", ".2f"), ("micro F1 %", ".1f"),
]  # fmt: skip
PREDICT_COLUMNS = [
    ("", ""), ("threads", "d"), ("ms min", ".0f"), ("median", ".0f"), ("x OneVsRest", ".1f"),
    ("of X @ W", ".2f"),
]  # fmt: skip


def show_fits(corpus: LabelledCorpus, entries: list[dict[str, Any]], n_rounds: int) -> None:
    """Print the table of the fits."""
    X, Y = corpus.X, corpus.Y
    print(
        f"\n{Y.shape[1]} labels, {corpus.shape.name}, {X.dtype.name}: {X.shape[0]:,} x "
        f"{X.shape[1]:,}, {X.nnz / X.shape[0]:.0f} nonzeros and {Y.sum() / len(Y):.2f} labels a "
        f"row; ns per nonzero, label and epoch, {N_EPOCHS} epochs, {n_rounds} rounds"
    )
    rows = [
        (
            entry["contestant"], entry["n_jobs"], entry["ns"]["min"], entry["ns"]["median"],
            entry["times_ovr"], entry["of_floor"], 100 * entry["hamming_error"],
            100 * entry["micro_f1"],
        )
        for entry in entries
    ]  # fmt: skip
    print(text_table(FIT_COLUMNS, rows))


def show_predictions(corpus: LabelledCorpus, entries: list[dict[str, Any]]) -> None:
    """Print the table of the predictions."""
    print(f"\nPredicting all {corpus.Y.shape[1]} labels of {corpus.X.shape[0]:,} rows")
    rows = [
        (
            entry["contestant"].replace(FLOOR, "X @ W"), entry["n_jobs"], entry["ms"]["min"],
            entry["ms"]["median"], entry["times_ovr"], entry["of_floor"],
        )
        for entry in entries
    ]  # fmt: skip
    print(text_table(PREDICT_COLUMNS, rows))
