"""Speed of one epoch, one call and one fit, compared with scikit-learn and a bare C loop.

`race`: one epoch over sorted rows. `text`: rows with unsorted entries, as `TfidfVectorizer` leaves
them. The real text is the sources of the libraries that this one depends on, in three classes; the
generated text has 0 % or 5 % wrong training labels. Each is compared with the same matrix with
sorted rows, and `fit_csr(X, y)`, with an intercept, with averaged SGD. `rows`: calls on one row,
which is scored and then used for training. `memory`: memory added by a fit to the peak of a process
that holds only X; the limit is four float64 vectors of length n per class, plus O(m). `order`: rows
sorted by class, and shuffled.

    python benchmarks/epoch.py [--only race text rows memory order] [--quick] [--rounds N]
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import timing
from corpora import NEWS20, RCV1_LARGE, RCV1_MIDDLE, RCV1_SMALL, Corpus, Shape, draw, draw_corpus
from floor import ONE_EPOCH, RAW, FloorLoop, row_orders
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.model_selection import GroupShuffleSplit
from tables import ONE_CALL, OURS
from timing import minimum_and_median, ratios

from sparsemargin import ALMAClassifier, PNormPerceptron, fit_csr

sys.path.append(str(timing.FOLDER.parent / "examples"))
from corpus import collect_sources

PEER_EPOCH = ONE_EPOCH | {"tol": None}
# With a constant step and no penalty, SGD on the Perceptron loss is the Perceptron.
PERCEPTRON_SGD = {"loss": "perceptron", "penalty": None, "learning_rate": "constant", "eta0": 1.0}
SORTED, UNSORTED, BY_CLASS = "sorted", "unsorted", "by class"


@dataclass(frozen=True)
class Contestant:
    """A contestant of the race; `prepare(X, y, seed)` returns the call that makes the fitted model,
    and `baseline` names the contestant of scikit-learn that it is compared with."""

    name: str
    baseline: str
    prepare: Callable[[Any, np.ndarray, int], Callable[[], Any]]


FLOOR = "C loop, shuffled"
LAST_BASELINE = "sklearn Perceptron"
AVERAGE_BASELINE = "sklearn SGD perceptron, average"


def _loop(name: str, shuffle: bool) -> Contestant:
    def prepare(X: Any, y: np.ndarray, seed: int) -> Callable[[], Any]:
        return FloorLoop(X, y, row_orders(X.shape[0], 1, shuffle, seed)).run

    return Contestant(name, LAST_BASELINE, prepare)


def _fit(name: str, estimator: Any) -> Contestant:
    params = estimator.get_params()
    average = params.get("hypothesis") == "average" or params.get("average")

    def prepare(X: Any, y: np.ndarray, seed: int) -> Callable[[], Any]:
        return partial(clone(estimator).set_params(random_state=seed).fit, X, y)

    return Contestant(name, AVERAGE_BASELINE if average else LAST_BASELINE, prepare)


PNORM, ALMA = partial(PNormPerceptron, **ONE_EPOCH), partial(ALMAClassifier, **ONE_EPOCH)
SGD = partial(SGDClassifier, **PEER_EPOCH)
#: Estimators by the names used in tables.
ESTIMATORS = {
    LAST_BASELINE: Perceptron(**PEER_EPOCH),
    "Perceptron, last": PNORM(**RAW, hypothesis="last"),
    "p-norm p=6, last": PNORM(p=6.0, hypothesis="last"),
    "p-norm p=log, last": PNORM(p="log", hypothesis="last"),
    AVERAGE_BASELINE: SGD(**PERCEPTRON_SGD, average=True),
    "sklearn SGD hinge, average": SGD(loss="hinge", average=True),
    "Perceptron, average": PNORM(**RAW, hypothesis="average"),
    "p-norm p=6, average": PNORM(p=6.0, hypothesis="average"),
    "p-norm p=log, average": PNORM(p="log", hypothesis="average"),
    "ALMA p=2, average": ALMA(p=2.0, hypothesis="average"),
    "ALMA p=6, average": ALMA(p=6.0, hypothesis="average"),
}
CONTESTANTS = [
    _loop("C loop, rows in order", False), _loop(FLOOR, True),
    *(_fit(name, estimator) for name, estimator in ESTIMATORS.items()),
]  # fmt: skip


def race(
    corpora: Mapping[str, Corpus], contestants: Sequence[Contestant], n_rounds: int
) -> list[dict[str, Any]]:
    """Time the fits of every contestant on every corpus, taking turns. Ratios compare it with its
    baseline, with itself on sorted rows and with the C loop; None if one was not measured."""

    def error(name: tuple[str, str], model: Any) -> float:
        corpus = corpora[name[0]]
        return np.mean(model.predict(corpus.X_test) != corpus.y_test)

    fits = {
        (rows, contestant.name): partial(contestant.prepare, corpus.X, corpus.y)
        for (rows, corpus), contestant in product(corpora.items(), contestants)
    }
    seconds, errors = timing.race(fits, n_rounds, error)
    ns = {
        (rows, name): minimum_and_median(values, corpora[rows].X.nnz * 1e-9)
        for (rows, name), values in seconds.items()
    }
    return [
        {
            "shape": corpus.shape.name, "dtype": corpus.X.dtype.name, "rows": rows,
            "n_samples": corpus.X.shape[0], "n_features": corpus.X.shape[1],
            "contestant": contestant.name, "seconds": min(seconds[rows, contestant.name]),
            "ns_per_nonzero": (own := ns[rows, contestant.name]), "baseline": contestant.baseline,
            "times_baseline": ratios(own, ns.get((rows, contestant.baseline))),
            "times_sorted": ratios(own, ns.get((SORTED, contestant.name))),
            "times_floor": ratios(own, ns.get((rows, FLOOR))),
            "test_error": float(np.mean(errors[rows, contestant.name])),
        }
        for (rows, corpus), contestant in product(corpora.items(), contestants)
    ]  # fmt: skip


def sorted_rows(options: Namespace) -> dict[str, Any]:
    """Race on all shapes."""
    entries = []
    for shape in [RCV1_SMALL] if options.quick else [RCV1_SMALL, RCV1_LARGE, NEWS20]:
        drawn = draw_corpus(shape)
        for dtype in (np.float64, np.float32):
            corpus = drawn.astype(dtype)
            entries += race({SORTED: corpus}, CONTESTANTS, options.rounds)
    return {"epoch": entries}


NOISE = 0.05
QUICK_STEP = 20  # only every 20th file
TEST_SHARE = 0.25
IN_LIFE = [
    *(each for each in CONTESTANTS if each.name in (LAST_BASELINE, AVERAGE_BASELINE, *OURS)),
    Contestant(
        ONE_CALL, AVERAGE_BASELINE, lambda X, y, seed: partial(fit_csr, X, y, random_state=seed)
    ),
]


def read_texts(step: int = 1) -> Corpus:
    """Read the sources of every step-th file; a quarter of the files is the test set."""
    documents = collect_sources(step)
    parts = GroupShuffleSplit(n_splits=1, test_size=TEST_SHARE, random_state=0)
    train, test = next(parts.split(documents.texts, groups=documents.files))
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    X = vectorizer.fit_transform([documents.texts[i] for i in train])
    X_test = vectorizer.transform([documents.texts[i] for i in test])
    shape = Shape("text", X.shape[0], X_test.shape[0], X.shape[1], round(X.nnz / X.shape[0]))
    return Corpus(shape, X, documents.libraries[train], X_test, documents.libraries[test])


def text(options: Namespace) -> dict[str, Any]:
    """Race on real text, and on generated text with correct labels and with some wrong ones."""
    drawn = draw_corpus(RCV1_SMALL if options.quick else RCV1_MIDDLE).renumbered()
    shape = replace(drawn.shape, name=f"{drawn.shape.name}, {NOISE:.0%} wrong")
    noisy = replace(drawn.mislabelled(NOISE), shape=shape)
    entries = []
    for corpus in (read_texts(QUICK_STEP if options.quick else 1), drawn, noisy):
        each = {UNSORTED: corpus, SORTED: corpus.with_sorted_rows()}
        entries += race(each, IN_LIFE, options.rounds)
    return {"races": entries}


CALLS = ("decision_function", "partial_fit")
LEARNERS = (LAST_BASELINE, AVERAGE_BASELINE, *OURS)


def one_row_calls(shape: Shape, n_calls: int) -> list[dict[str, Any]]:
    """Time calls on one-row CSR matrices in microseconds. Every row is scored and then used for
    training, so that weights cannot be prepared once for many scores."""
    X, y = draw(shape, n_calls + 1)
    learners = {name: clone(ESTIMATORS[name]) for name in LEARNERS}
    for learner in learners.values():
        learner.partial_fit(X[:1], y[:1], classes=[-1, 1])
    seconds: dict[tuple[str, str], list[float]] = {each: [] for each in product(learners, CALLS)}
    for number, name in timing.turns(list(learners), n_calls):
        row, label = X[number + 1 : number + 2], y[number + 1 : number + 2]
        for call, arguments in zip(CALLS, ((row,), (row, label)), strict=True):
            elapsed, _ = timing.timed(partial(getattr(learners[name], call), *arguments))
            seconds[name, call].append(elapsed)
    return [
        {"n_features": shape.n_features, "learner": name}
        | {call: minimum_and_median(seconds[name, call], 1e-6) for call in CALLS}
        for name in learners
    ]


def rows(options: Namespace) -> dict[str, Any]:
    """Measure calls on one row with few features and with many."""
    n_calls = 100 if options.quick else 1000
    return {"one_row": one_row_calls(RCV1_SMALL, n_calls) + one_row_calls(NEWS20, n_calls)}


def peak_memory(shape: Shape, n_classes: int) -> list[dict[str, Any]]:
    """Measure the memory that fits add to a process with X, and the size of the vectors."""
    X, y = draw(shape, shape.n_train, n_classes)
    facts = {
        "shape": shape.name, "n_classes": n_classes, "n_samples": X.shape[0],
        "X_bytes": timing.bytes_of(X),
        "vector_bytes": 8 * X.shape[1] * (1 if n_classes == 2 else n_classes),
    }  # fmt: skip
    return [
        facts | {"estimator": name, "added_bytes": held["added_bytes"]}
        for name in (AVERAGE_BASELINE, *OURS)
        if (held := timing.apart(timing.fitted, ESTIMATORS[name], X, y))
    ]


def memory(options: Namespace) -> dict[str, Any]:
    """Peaks of fits with two classes and with more, on systems that report them."""
    cases = [(RCV1_LARGE, 2), (NEWS20, 2), (NEWS20, 5)]
    if options.quick:
        cases = [(RCV1_SMALL, 2), (RCV1_SMALL, 10)]
    cases = cases if timing.STATUS.exists() else []
    entries = [entry for case in cases for entry in peak_memory(*case)]
    return {"peak_memory": entries}


def order(options: Namespace) -> dict[str, Any]:
    """Compare test errors for rows sorted by class with those for rows in random order."""
    corpus = draw_corpus(RCV1_SMALL)
    of = {SORTED: corpus, BY_CLASS: corpus.by_class()}
    entries = race(of, [each for each in CONTESTANTS if each.name in OURS], options.rounds)
    return {"class_order": entries}


MEASUREMENTS = {"race": sorted_rows, "text": text, "rows": rows, "memory": memory, "order": order}

if __name__ == "__main__":
    timing.run(timing.parser_of(__doc__, "results/epoch.json"), MEASUREMENTS, (9, 3))
