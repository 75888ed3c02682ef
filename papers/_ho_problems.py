"""The data of the Higher-order Perceptron paper, split as often as asked for, and its algorithms.

All as in section 4 of Brotto, Gentile & Vitale (2007): the last hypothesis, training rows in the
order the split draws, no intercept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from papers._ho_paper import AS_PRINTED, CS
from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron
from sparsemargin.datasets import (
    BROTTO_TOPICS,
    load_breast_er,
    load_colon,
    load_leukemia,
    load_lymphoma,
    load_rcv1,
    make_ho_target,
)
from sparsemargin.evaluation import random_splits
from sparsemargin.evaluation.protocols import Split

POSITIVE_CS = CS[1:]
#: The paper's "generous range of values" is not printed.
AS = tuple(float(f"{a:.2g}") for a in np.logspace(-3, 2, 11))

TOPICS = tuple(BROTTO_TOPICS.values())
NOISES = (0.0, 0.1)

# -- Algorithms ----------------------------------------------------------------------------------

#: Estimators by the name of the setting.
Settings = dict[str, Any]


def higher_order(p: int, cs: Iterable[float], n_epochs: int) -> Settings:
    """Return HO_p(c) for each c."""
    return {f"c={c:g}": HigherOrderPerceptron(p=p, c=c, **_run(n_epochs)) for c in cs}


def second_order(values: Iterable[float], n_epochs: int) -> Settings:
    """Return SO(a) for each a."""
    return {f"a={a:g}": SecondOrderPerceptron(a=a, **_run(n_epochs)) for a in values}


def _run(n_epochs: int) -> dict[str, Any]:
    return {"max_iter": n_epochs, "shuffle": False, **AS_PRINTED}


def settings_of(algorithm: str, n_epochs: int) -> Settings:
    """Return the settings that a table chooses from, by the table's name of the algorithm.

    HO_p has c > 0 where it stands without a c; FO and HO_p(0) are those with c = 0.
    """
    if algorithm == "SO":
        return second_order(AS, n_epochs)
    if algorithm == "FO":
        return higher_order(2, [0.0], n_epochs)
    p = int(algorithm.removeprefix("HO_").removesuffix("(0)"))
    return higher_order(p, [0.0] if algorithm.endswith("(0)") else POSITIVE_CS, n_epochs)


# -- Data ----------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """A data set, and splits of it into training and test rows."""

    X: Any
    y: np.ndarray
    splits: list[Split]


class _Microarray(NamedTuple):
    """Where rows come from, and how many of them are to train and to test on."""

    load: Callable[..., Any]
    n_train: int
    n_test: int


#: The paper has Lymphoma and, of 58 rows split into 47 and 11, Breast; that of West, and the two
#: sets that the paper has not, are split in the proportions of these.
_MICROARRAYS = {
    "Breast": _Microarray(partial(load_breast_er, "west2001"), 40, 9),
    "Lymphoma": _Microarray(partial(load_lymphoma, "malignant_66"), 60, 36),
    "Colon": _Microarray(load_colon, 39, 23),
    "Leukemia": _Microarray(load_leukemia, 45, 27),
}
MICROARRAYS = tuple(_MICROARRAYS)
_ARTIFICIAL = {f"Artificial {noise}": noise for noise in NOISES}
ARTIFICIAL = tuple(_ARTIFICIAL)

SPLITS_A_REPEAT = 20  # of microarrays, which are small; of other data it is one
_N_STORIES = 10_000  # to train on, and to test on


def epochs_of(problem: str) -> int:
    """How many epochs the paper's algorithms learn a problem for."""
    return 1 if problem in TOPICS else 5


def rows_of(problem: str, repeat: int) -> Rows:
    """Load or draw the rows of a problem, with the splits of one repeat.

    All repeats' splits are parts of one list, drawn once, which all algorithms and, of RCV1, all
    topics share.
    """
    if problem in _ARTIFICIAL:
        return _draw(_ARTIFICIAL[problem], repeat)
    if problem in TOPICS:
        X, labels = _stories()
        return Rows(X, labels[problem], _part(len(labels[problem]), _N_STORIES, _N_STORIES, repeat))
    microarray = _MICROARRAYS[problem]
    X, y = _load(problem)
    splits = _part(len(y), microarray.n_train, microarray.n_test, repeat, SPLITS_A_REPEAT)
    return Rows(X, y, splits)


def _part(n_rows: int, n_train: int, n_test: int, repeat: int, length: int = 1) -> list[Split]:
    first = repeat * length
    return random_splits(
        n_rows, train_size=n_train, test_size=n_test, n_splits=first + length, random_state=0
    )[first:]


@lru_cache
def _load(name: str) -> tuple[np.ndarray, np.ndarray]:
    return _MICROARRAYS[name].load(return_X_y=True)


@lru_cache
def _stories() -> tuple[Any, dict[str, np.ndarray]]:
    """The sample of RCV1, and its labels by topic."""
    X, topics = load_rcv1(TOPICS, source="sample", order="given", return_X_y=True)
    labels = np.where(csr_array(topics).toarray() == 1, 1, -1).T
    return X, dict(zip(TOPICS, labels, strict=True))


def _draw(noise: float, seed: int) -> Rows:
    X, y, X_test, y_test, _ = make_ho_target(noise=noise, random_state=seed)
    rows = np.arange(len(y) + len(y_test))
    split = rows[: len(y)], rows[len(y) :]
    return Rows(vstack([X, X_test], format="csr"), np.concatenate([y, y_test]), [split])
