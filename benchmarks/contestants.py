"""Who takes part in the race over one epoch, each with the same epochs, shuffling and threads."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from floor import FloorPerceptron, row_orders
from sklearn.linear_model import Perceptron, SGDClassifier

from sparsemargin import ALMAClassifier, PNormPerceptron

ONE_EPOCH = {"max_iter": 1, "fit_intercept": False, "n_jobs": None}
PEER_EPOCH = ONE_EPOCH | {"tol": None}
# With a constant step and no penalty, SGD on the Perceptron loss is the Perceptron.
PERCEPTRON_SGD = {
    "loss": "perceptron",
    "penalty": None,
    "learning_rate": "constant",
    "eta0": 1.0,
}


@dataclass(frozen=True)
class Contestant:
    """One line of the race.

    `prepare(X, y, seed)` returns the call to be timed; that call returns the fitted model.
    `baseline` names the scikit-learn contestant it is measured against.
    """

    name: str
    baseline: str
    prepare: Callable[[Any, np.ndarray, int], Callable[[], Any]]


def _prepare_estimator(estimator_class, params, X, y, seed):
    return partial(estimator_class(**params, random_state=seed).fit, X, y)


def _prepare_floor(shuffle, X, y, seed):
    return FloorPerceptron(X, y, row_orders(X.shape[0], 1, shuffle, seed)).run


FLOOR = "C loop, shuffled"
LAST_BASELINE = "sklearn Perceptron"
AVERAGE_BASELINE = "sklearn SGD perceptron, average"


def _ours(name, estimator_class, **params) -> Contestant:
    baseline = LAST_BASELINE if params["hypothesis"] == "last" else AVERAGE_BASELINE
    prepare = partial(_prepare_estimator, estimator_class, ONE_EPOCH | params)
    return Contestant(name, baseline, prepare)


def _peer(name, estimator_class, **params) -> Contestant:
    baseline = AVERAGE_BASELINE if params.get("average") else LAST_BASELINE
    prepare = partial(_prepare_estimator, estimator_class, PEER_EPOCH | params)
    return Contestant(name, baseline, prepare)


RAW = {"p": 2.0, "normalize": False}

CONTESTANTS = [
    Contestant("C loop, rows in order", LAST_BASELINE, partial(_prepare_floor, False)),
    Contestant(FLOOR, LAST_BASELINE, partial(_prepare_floor, True)),
    _peer(LAST_BASELINE, Perceptron),
    _peer("sklearn SGD perceptron", SGDClassifier, **PERCEPTRON_SGD),
    _peer("sklearn SGD hinge", SGDClassifier, loss="hinge"),
    _ours("Perceptron, last", PNormPerceptron, **RAW, hypothesis="last"),
    _ours("p-norm p=6, last", PNormPerceptron, p=6.0, hypothesis="last"),
    _ours("p-norm p=log, last", PNormPerceptron, p="log", hypothesis="last"),
    _peer(AVERAGE_BASELINE, SGDClassifier, **PERCEPTRON_SGD, average=True),
    _peer("sklearn SGD hinge, average", SGDClassifier, loss="hinge", average=True),
    _ours("Perceptron, average", PNormPerceptron, **RAW, hypothesis="average"),
    _ours("p-norm p=6, average", PNormPerceptron, p=6.0, hypothesis="average"),
    _ours("p-norm p=log, average", PNormPerceptron, p="log", hypothesis="average"),
    _ours("ALMA p=2, average", ALMAClassifier, p=2.0, hypothesis="average"),
    _ours("ALMA p=6, average", ALMAClassifier, p=6.0, hypothesis="average"),
]
