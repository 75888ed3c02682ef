"""How fast is one epoch, one call and one fit, beside scikit-learn and a bare C loop?

`race`: one epoch over sorted rows. `text`: rows as `TfidfVectorizer` leaves them, their entries in
no order; real text, the sources of the libraries beneath this one in three classes, and generated
text with none and with one in twenty of its training labels wrong; each beside the same matrix with
sorted rows. `fit_csr(X, y)`, which makes two epochs with an intercept, is measured against the
`fit` of the estimator that it makes. `rows`: calls on one row, scored and then learned. `memory`:
what a fit adds to the peak of a process that holds X and nothing else of size; promised are four
float64 vectors of length n per class, plus O(m). `order`: test errors where rows come by class.

Quote the ratios: they were measured side by side in one run. The times belong to the machine.

    python benchmarks/epoch.py [--only race text rows memory order] [--quick] [--rounds N]
"""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import timing
from corpora import (
    NEWS20,
    RCV1_LARGE,
    RCV1_MIDDLE,
    RCV1_SMALL,
    Corpus,
    Shape,
    draw,
    draw_corpus,
    load_rows,
    save_rows,
)
from floor import ONE_EPOCH, RAW, FloorPerceptron, row_orders
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.model_selection import GroupShuffleSplit
from tables import ONE_CALL, show
from tables import OURS as IN_TABLES
from timing import minimum_and_median, ratios

from sparsemargin import ALMAClassifier, PNormPerceptron, fit_csr

sys.path.append(str(timing.FOLDER.parent / "examples"))
from corpus import collect_sources

PEER_EPOCH = ONE_EPOCH | {"tol": None}
# With a constant step and no penalty, SGD on the Perceptron loss is the Perceptron.
# With a constant step and no penalty, SGD on the Perceptron loss is the Perceptron.
PERCEPTRON_SGD = {"loss": "perceptron", "penalty": None, "learning_rate": "constant", "eta0": 1.0}
SORTED, UNSORTED = "sorted", "unsorted"


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


def race(
    corpora: Mapping[str, Corpus], contestants: Sequence[Contestant], n_rounds: int
) -> list[dict[str, Any]]:
    """Time the fits of every contestant on every corpus, all in turn.

    Returned: one entry per corpus and contestant: nanoseconds per nonzero (``min``,
    ``median``), the ratios of both to its baseline on these rows, to itself on sorted ones and
    to the C loop, None where that did not run, and the mean test error.
    """

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
            "times_baseline": ratios(own, ns[rows, contestant.baseline]),
            "times_sorted": ratios(own, ns.get((SORTED, contestant.name))),
            "times_floor": ratios(own, ns.get((rows, FLOOR))),
            "test_error": float(np.mean(errors[rows, contestant.name])),
        }
        for (rows, corpus), contestant in product(corpora.items(), contestants)
    ]  # fmt: skip


def show_race(corpus: Corpus, entries: list[dict[str, Any]], n_rounds: int) -> None:
    """Print the table of one race."""
    X = corpus.X
    columns = [
        ("", "{contestant}"), ("rows", "{rows}"), ("ms min", "{seconds:.1m}"),
        ("ns/nnz min", "{ns_per_nonzero[min]:.2f}"), ("median", "{ns_per_nonzero[median]:.2f}"),
        ("x baseline", "{times_baseline[min]:.2f}"), ("x sorted", "{times_sorted[min]:.2f}"),
        ("x C loop", "{times_floor[min]:.2f}"), ("test error %", "{test_error:.2%}"),
    ]  # fmt: skip
    show(
        f"{corpus.shape.name}, {X.dtype.name}: {X.shape[0]:,} x {X.shape[1]:,}, "
        f"{X.nnz / X.shape[0]:.0f} nonzeros a row, {n_rounds} rounds",
        columns, entries,
    )  # fmt: skip


def sorted_rows(options: Namespace) -> dict[str, Any]:
    """Race on all shapes."""
    entries = []
    for shape in [RCV1_SMALL] if options.quick else [RCV1_SMALL, RCV1_LARGE, NEWS20]:
        drawn = draw_corpus(shape)
        for dtype in (np.float64, np.float32):
            corpus = drawn.astype(dtype)
            entries += (measured := race({SORTED: corpus}, CONTESTANTS, options.rounds))
            show_race(corpus, measured, options.rounds)
    return {"epoch": entries}


NOISE = 0.05
QUICK_STEP = 20  # every so manieth file
TEST_SHARE = 0.25
ITS_FIT = "ALMA as fit_csr makes it"


def make_default(seed: int) -> ALMAClassifier:
    """Make the estimator that `fit_csr` makes of 500 rows or more."""
    return ALMAClassifier(max_iter=2, random_state=seed)


def _call(X: Any, y: Any, seed: int) -> partial:
    return partial(fit_csr, X, y, random_state=seed)


def _fit(X: Any, y: Any, seed: int) -> partial:
    return partial(make_default(seed).fit, X, y)


IN_LIFE = [
    *(each for each in CONTESTANTS if each.name in (LAST_BASELINE, AVERAGE_BASELINE, *IN_TABLES)),
    Contestant(ITS_FIT, ITS_FIT, _fit),
    Contestant(ONE_CALL, ITS_FIT, _call),
]


def read_texts(step: int = 1) -> Corpus:
    """Read the sources of every step-th file; a quarter of the files is held out."""
    documents = collect_sources(step)
    parts = GroupShuffleSplit(n_splits=1, test_size=TEST_SHARE, random_state=0)
    train, test = next(parts.split(documents.texts, groups=documents.files))
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    X = vectorizer.fit_transform([documents.texts[i] for i in train])
    X_test = vectorizer.transform([documents.texts[i] for i in test])
    shape = Shape("text", X.shape[0], X_test.shape[0], X.shape[1], round(X.nnz / X.shape[0]))
    return Corpus(shape, X, documents.libraries[train], X_test, documents.libraries[test])


def text(options: Namespace) -> dict[str, Any]:
    """Race on real text, and on generated text with right labels and with some wrong ones."""
    drawn = draw_corpus(RCV1_SMALL if options.quick else RCV1_MIDDLE).renumbered()
    shape = replace(drawn.shape, name=f"{drawn.shape.name}, {NOISE:.0%} wrong")
    noisy = replace(drawn.mislabelled(NOISE), shape=shape)
    entries = []
    for corpus in (read_texts(QUICK_STEP if options.quick else 1), drawn, noisy):
        each = {UNSORTED: corpus, SORTED: corpus.with_sorted_rows()}
        entries += (measured := race(each, IN_LIFE, options.rounds))
        show_race(corpus, measured, options.rounds)
    return {"races": entries}


CALLS = ("decision_function", "partial_fit")
#: Estimators of a p-norm for rows as they come, and for the memory of a fit.
ESTIMATORS = {
    "sklearn Perceptron": Perceptron(**PEER_EPOCH),
    AVERAGE_BASELINE: SGDClassifier(**PEER_EPOCH, **PERCEPTRON_SGD, average=True),
    "Perceptron, last": PNormPerceptron(**ONE_EPOCH, **RAW, hypothesis="last"),
    "Perceptron, average": PNormPerceptron(**ONE_EPOCH, **RAW, hypothesis="average"),
    "p-norm p=6, average": PNormPerceptron(**ONE_EPOCH, p=6.0, hypothesis="average"),
    "ALMA p=2, average": ALMAClassifier(**ONE_EPOCH, p=2.0, hypothesis="average"),
    "ALMA p=6, average": ALMAClassifier(**ONE_EPOCH, p=6.0, hypothesis="average"),
}


def one_row_calls(shape: Shape, n_calls: int) -> list[dict[str, Any]]:
    """Time `decision_function` and `partial_fit` on one-row CSR matrices, classes known.

    Every row is scored and then learned, which is the on-line protocol: weights prepared once for
    many scores can't flatter the result. One entry per learner, microseconds per call.
    """
    X, y = draw(shape, n_calls + 1)
    learners = {name: clone(estimator) for name, estimator in ESTIMATORS.items()}
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
    """Calls on one row of few features and of many."""
    n_calls = 100 if options.quick else 1000
    columns = [("", "{learner}")]
    for call in CALLS:
        columns += [(call, f"{{{call}[min]:.1f}}"), ("median", f"{{{call}[median]:.1f}}")]
    entries = []
    for shape in (RCV1_SMALL, NEWS20):
        entries += (measured := one_row_calls(shape, n_calls))
        title = f"One-row calls at {shape.n_features:,} features: microseconds, minimum and median"
        show(f"{title} of {n_calls} calls", columns, measured)
    return {"one_row": entries}


PROMISED_VECTORS = 4
WARM_UP_ROWS, WARM_UP_FEATURES = 300, 100
MEASURED = (AVERAGE_BASELINE, *IN_TABLES[:3], "ALMA p=6, average")


def added_by_fit(folder: str, name: str) -> float:
    """Run apart: load the rows, then return the bytes by which a fit raises the peak."""
    X, y = load_rows(Path(folder), "rows")
    fit = ESTIMATORS[name].fit
    little = X[:WARM_UP_ROWS, :WARM_UP_FEATURES], y[:WARM_UP_ROWS]
    return timing.added_by(lambda: fit(*little), lambda: fit(X, y))["added_bytes"]


def peak_memory(shape: Shape, n_classes: int) -> list[dict[str, Any]]:
    """Measure what a fit adds to the peak memory of a process that holds X, an entry per estimator.

    One-versus-rest needs one set of vectors per class, and a single one for two classes.
    """
    X, y = draw(shape, shape.n_train, n_classes)
    facts = {
        "shape": shape.name, "n_classes": n_classes, "n_samples": X.shape[0],
        "X_bytes": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes,
        "vector_bytes": 8 * X.shape[1] * (1 if n_classes == 2 else n_classes),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        save_rows(Path(folder), "rows", X, y)
        return [
            facts | {"estimator": name, "added_bytes": timing.apart(added_by_fit, folder, name)}
            for name in MEASURED
        ]


def _excess(entry: dict[str, Any]) -> str:
    excess = entry["added_bytes"] - PROMISED_VECTORS * entry["vector_bytes"]
    return f"{max(0, excess) / entry['n_samples']:.1f}"


def memory(options: Namespace) -> dict[str, Any]:
    """Peaks of fits to two classes and to more; none where the system doesn't tell."""
    cases = [(RCV1_LARGE, 2), (NEWS20, 2), (NEWS20, 5)]
    if options.quick:
        cases = [(RCV1_SMALL, 2), (RCV1_SMALL, 10)]
    if not timing.STATUS.exists():
        print("\nPeak memory: left out, this system doesn't tell the peak of a process")
        cases = []
    columns = [
        ("", "{estimator}"), ("X MB", "{X_bytes:.1M}"), ("fit adds MB", "{added_bytes:.1M}"),
        ("promised MB", lambda e: f"{PROMISED_VECTORS * e['vector_bytes'] / 2**20:.1f}"),
        ("vectors used", lambda e: f"{e['added_bytes'] / e['vector_bytes']:.2f}"),
        ("excess, bytes/row", _excess),
    ]  # fmt: skip
    entries = []
    for shape, n_classes in cases:
        entries += (measured := peak_memory(shape, n_classes))
        title = f"Peak memory of a fit, {shape.name}, {n_classes} classes; promised: "
        show(f"{title}{PROMISED_VECTORS} vectors per class, plus O(m)", columns, measured)
    return {"peak_memory": entries}


N_SEEDS = 5
ORDERS = (
    ("random order, shuffled", False, True),
    ("sorted, shuffled", True, True),
    ("sorted, given order", True, False),
)


def class_order(corpus: Corpus, n_seeds: int) -> list[dict[str, Any]]:
    """Compare the test error on class-sorted rows with that on rows in random order: mean and
    standard deviation over so many shuffles, an entry per estimator."""
    by_class = np.argsort(corpus.y, kind="stable")
    rows = {False: (corpus.X, corpus.y), True: (corpus.X[by_class], corpus.y[by_class])}
    entries = []
    for name in IN_TABLES:
        entry: dict[str, Any] = {"estimator": name}
        for case, is_sorted, shuffle in ORDERS:
            errors = []
            for seed in range(n_seeds):
                model = clone(ESTIMATORS[name]).set_params(shuffle=shuffle, random_state=seed)
                model.fit(*rows[is_sorted])
                errors.append(1 - model.score(corpus.X_test, corpus.y_test))
            entry[case] = {"mean": float(np.mean(errors)), "std": float(np.std(errors))}
        entries.append(entry)
    return entries


def order(options: Namespace) -> dict[str, Any]:
    """Errors by the order of the rows."""
    corpus = draw_corpus(RCV1_SMALL)
    entries = class_order(corpus, N_SEEDS)
    columns = [("", "{estimator}")]
    columns += [(case, f"{{{case}[mean]:.2%}} ({{{case}[std]:.2%}})") for case, _, _ in ORDERS]
    title = f"Test error in % (and its standard deviation over {N_SEEDS} shuffles) by the order of"
    show(f"{title} the rows, {corpus.shape.name}", columns, entries)
    return {"class_order": entries}


MEASUREMENTS = {"race": sorted_rows, "text": text, "rows": rows, "memory": memory, "order": order}

if __name__ == "__main__":
    timing.run(timing.parser_of(__doc__, "results/epoch.json"), MEASUREMENTS, (9, 3))
