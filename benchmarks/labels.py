"""Speed, errors and memory for a hundred labels, compared with one-versus-rest and a C loop.

`race`: fits of 103 labels on the RCV1 shape, ns per nonzero, label and epoch, and predictions by
the models. `memory`: one fit of a thousand labels on a million features in a new process; target: a
peak below 4 GiB. `rcv1`: all topics of the real RCV1 sample in the folder named by
SPARSEMARGIN_DATA. Its stories are split once, three quarters for training, with equal vectors on
the same side; macro F1 is the mean over the topics that occur in the test part.

    python benchmarks/labels.py [--only race memory rcv1] [--quick] [--rounds N]
"""

import warnings
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import timing
from corpora import NEWS20, OF_LABELS, RCV1_SMALL, Corpus, draw_labelled, number_vectors
from floor import ONE_EPOCH, RAW, FloorLabels, row_orders
from sklearn.linear_model import Perceptron
from sklearn.metrics import f1_score, hamming_loss
from sklearn.model_selection import GroupShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from tables import OVR
from timing import minimum_and_median, timed

from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin.datasets import load_rcv1

N_EPOCHS = 5
WARM_UP_ROWS = 200
QUICK_ROWS = 4000
FLOOR = "C sweep"


@dataclass(frozen=True)
class Contestant:
    """A contestant of the race; `prepare(corpus, seed)` returns the fit to time."""

    algorithm: str
    n_jobs: int
    prepare: Callable[[Corpus, int], Callable[[], Any]]

    @property
    def name(self) -> str:
        return f"{self.algorithm}, {self.n_jobs} thread{'s' * (self.n_jobs > 1)}"


EPOCHS = {"max_iter": N_EPOCHS, "fit_intercept": False}
OURS = {
    f"{name}, {hypothesis}": partial(make, **EPOCHS, **params, hypothesis=hypothesis)
    for name, make, params, hypotheses in (
        ("Perceptron", PNormPerceptron, RAW, ("last", "average")),
        ("p-norm p=6", PNormPerceptron, {"p": 6.0}, ("last", "average")),
        ("ALMA p=2", ALMAClassifier, {"p": 2.0}, ("average",)),
        ("ALMA p=6", ALMAClassifier, {"p": 6.0}, ("average",)),
    )
    for hypothesis in hypotheses
}


def _ours(make: Callable[..., Any], n_jobs: int, corpus: Corpus, seed: int):
    return partial(make(random_state=seed, n_jobs=n_jobs).fit, corpus.X, corpus.y)


def ovr(n_jobs: int, n_epochs: int, corpus: Corpus, seed: int):
    """The fit of scikit-learn's Perceptron, label by label."""
    one = Perceptron(max_iter=n_epochs, fit_intercept=False, tol=None, random_state=seed)
    return partial(OneVsRestClassifier(one, n_jobs=n_jobs).fit, corpus.X, corpus.y)


def sweep(n_epochs: int, corpus: Corpus, seed: int):
    """The C loop over all labels."""
    return FloorLabels(corpus.X, corpus.y, row_orders(len(corpus.y), n_epochs, True, seed)).run


CONTESTANTS = [
    Contestant(FLOOR, 1, partial(sweep, N_EPOCHS)),
    *(Contestant(OVR, n_jobs, partial(ovr, n_jobs, N_EPOCHS)) for n_jobs in (1, 2)),
    *(
        Contestant(name, n_jobs, partial(_ours, make, n_jobs))
        for name, make in OURS.items()
        for n_jobs in (1, 2)
    ),
]


def errors(Y: Any, predicted: Any) -> dict[str, float]:
    """Return the share of wrong (row, label) pairs, and micro F1."""
    return {
        "hamming_error": float(hamming_loss(Y, predicted)),
        "micro_f1": float(f1_score(Y, predicted, average="micro")),
    }


def fit_race(corpus: Corpus, n_rounds: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Time the fits of all contestants, taking turns. Returns an entry for each, with ns per
    nonzero, label and epoch and mean test errors, and a dict of the models of the last round."""
    few, models = slice(None, WARM_UP_ROWS), {}
    little = replace(corpus, X=corpus.X[few], y=corpus.y[few])
    for contestant in CONTESTANTS:
        # A first fit pays for lazy imports, and for the processes of OneVsRest.
        contestant.prepare(little, 0)()

    def tell(name: str, model: Any) -> dict[str, float]:
        models[name] = model
        return errors(corpus.y_test, model.predict(corpus.X_test))

    fits = {each.name: partial(each.prepare, corpus) for each in CONTESTANTS}
    seconds, wrong = timing.race(fits, n_rounds, tell)
    unit = corpus.X.nnz * corpus.y.shape[1] * N_EPOCHS * 1e-9
    entries = _entries(seconds, "ns", unit)
    for contestant, entry in zip(CONTESTANTS, entries, strict=True):
        for key in ("hamming_error", "micro_f1"):
            entry[key] = float(np.mean([each[key] for each in wrong[contestant.name]]))
    return entries, models


def _entries(seconds: dict[str, list[float]], key: str, unit: float) -> list[dict[str, Any]]:
    """Times, speedups over OneVsRest, and times relative to the C loop."""
    times = {
        (each.algorithm, each.n_jobs): minimum_and_median(seconds[each.name], unit)
        for each in CONTESTANTS
    }
    return [
        {"contestant": name, "n_jobs": n_jobs, key: own,
         "times_ovr": times[OVR, n_jobs]["min"] / own["min"],
         "of_floor": own["min"] / times[FLOOR, 1]["min"]}
        for (name, n_jobs), own in times.items()
    ]  # fmt: skip


def predict_race(corpus: Corpus, models: dict[str, Any], n_rounds: int) -> list[dict[str, Any]]:
    """Time predictions of all labels for the training rows, in milliseconds, with the ratios of
    `fit_race`; the C loop is replaced by `X @ W`."""
    calls = {each.name: partial(models[each.name].predict, corpus.X) for each in CONTESTANTS}
    floor = CONTESTANTS[0].name
    calls[floor] = partial(corpus.X.__matmul__, models[floor].weights)
    prepare = {name: lambda number, call=call: call for name, call in calls.items()}
    seconds, _ = timing.race(prepare, n_rounds)
    return _entries(seconds, "ms", 1e-3)


def race(options: Namespace) -> dict[str, Any]:
    """Race fits, then predictions."""
    shape = replace(RCV1_SMALL, n_train=QUICK_ROWS) if options.quick else RCV1_SMALL
    corpus = draw_labelled(shape, OF_LABELS)
    fits, models = fit_race(corpus, options.rounds)
    predictions = predict_race(corpus, models, options.rounds)
    return {"race": {"fits": fits, "predictions": predictions}}


MANY_LABELS, QUICK_LABELS = 1000, 200


def fit_apart(model: Any, X: Any, Y: np.ndarray, X_test: Any, Y_test: np.ndarray) -> dict[str, Any]:
    """Run in a new process: fit, predict, and return the costs."""
    fitted = timing.fitted(model, X, Y)
    predict_seconds, predicted = timed(lambda: model.predict(X_test))
    return {
        "fit_seconds": fitted.pop("seconds"), "predict_seconds": predict_seconds,
        "X_bytes": timing.bytes_of(X), "dense_bytes": 4 * X.shape[1] * Y.shape[1], **fitted,
        **errors(Y_test, predicted),
    }  # fmt: skip


def memory(options: Namespace) -> dict[str, Any]:
    """Fit one model with very many weights."""
    if not timing.STATUS.exists():  # needed for the peak of a process
        return {"memory": None}
    shape = replace(NEWS20, n_train=QUICK_ROWS, n_test=QUICK_ROWS) if options.quick else NEWS20
    n_labels = QUICK_LABELS if options.quick else MANY_LABELS
    corpus = draw_labelled(shape, n_labels)
    model = PNormPerceptron(**ONE_EPOCH, **RAW, hypothesis="last", random_state=0)
    facts = {"n_samples": shape.n_train, "n_features": shape.n_features, "n_labels": n_labels}
    entry = facts | timing.apart(fit_apart, model, corpus.X, corpus.y, corpus.X_test, corpus.y_test)
    return {"memory": entry}


QUICK_STORIES = 4000
TEST_SHARE = 0.25
NORMS = (2, 3, 4, 6)
# The scale of the intercept is a tenth of the norm of the rows, which is 1.
OWN_SETTINGS = {
    "max_iter": 5, "hypothesis": "average", "fit_intercept": True, "intercept_scaling": 0.1,
    "random_state": 0,
}  # fmt: skip
MODELS: dict[str, Callable[[], Any]] = {
    "OneVsRest(LinearSVC)": partial(OneVsRestClassifier, LinearSVC(random_state=0)),
    "OneVsRest(Perceptron)": partial(OneVsRestClassifier, Perceptron(random_state=0)),
    **{f"p-norm, p={p}": partial(PNormPerceptron, p=p, **OWN_SETTINGS) for p in NORMS},
    **{f"ALMA, p={p}": partial(ALMAClassifier, p=p, **OWN_SETTINGS) for p in NORMS},
}


def rcv1(options: Namespace) -> dict[str, Any]:
    """Fit every model once on all topics of the stories, if the data is available."""
    try:
        stories = load_rcv1(None, source="sample", dtype=np.float32)
    except FileNotFoundError as error:
        print(f"\nLEFT OUT: the topics of RCV1. {error}")
        return {"rcv1": None}
    n_stories = QUICK_STORIES if options.quick else None
    X, Y = stories.data[:n_stories], stories.target[:n_stories].toarray()
    parts = GroupShuffleSplit(n_splits=1, test_size=TEST_SHARE, random_state=0)
    train, test = next(parts.split(X, groups=number_vectors(X)))
    (X, Y), (X_test, Y_test) = ((X[part], Y[part]) for part in (train, test))
    present = np.flatnonzero(Y_test.any(axis=0))
    entries = []
    for name, make in MODELS.items():
        fit_seconds, model = timed(partial(make().fit, X, Y))
        predict_seconds, predicted = timed(partial(model.predict, X_test))
        f1 = partial(f1_score, Y_test, predicted, zero_division=0.0)
        entries.append(
            {
                "contestant": name, "fit_seconds": fit_seconds, "predict_seconds": predict_seconds,
                "micro_f1": float(f1(average="micro")),
                "macro_f1": float(f1(average="macro", labels=present)),
            }
        )  # fmt: skip
    sizes = {"n_train": len(train), "n_test": len(test), "n_topics": Y.shape[1]}
    return {"rcv1": sizes | {"n_topics_in_test": len(present), "models": entries}}


if __name__ == "__main__":
    # The warning about labels without rows would be repeated a hundred times.
    warnings.filterwarnings("ignore", message="Label not .* is present in all training")
    MEASUREMENTS = {"race": race, "memory": memory, "rcv1": rcv1}
    timing.run(timing.parser_of(__doc__, "results/labels.json"), MEASUREMENTS, (5, 2))
