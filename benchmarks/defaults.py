"""The choice of the defaults, and when other settings are better, by cross-validation.

`claims`: the error of `fit_csr(X, y)` compared with LinearSVC(), SGDClassifier(average=True) and
LogisticRegression(), and its time relative to LinearSVC. Its settings were chosen on the topics of
odd rank among the 20 most frequent of the RCV1 sample, and on Zipf text of seeds 0 to 4. The claims
use the topics of even rank and other seeds, which no choice depends on. 10,000 stories are the
training set and all others the test set, without vectors that occur in both; differences are paired
by split. On these, all four are also tuned with the same budget, among five settings each, by
cross-validation within the training set. All 102 topics are evaluated by micro and macro F1 as
well.

`classes`: errors and macro F1 if each story has one of many classes. The choice of two epochs was
made on topics of odd rank.

`rare`: the effect of balanced class weights on rare topics; the way weights are applied was chosen
on topics of odd rank.

`genomes`: ours with default settings, raw and standardized, ours tuned, and linear models tuned
among six settings each, by the same cross-validation within the training set, on random splits. C
has the range in which it matters. Epochs and `alpha` of the defaults were chosen on leukemia and
lymphoma.

`dense`: default settings on logarithms of intensities and on data of few features, raw, centered
and standardized; the choice of `fit_csr(X, y)` for dense rows was made on these.

`genotypes`: default settings compared with sparse linear models, on variants of which few are
informative.

All but `genotypes` need the files in the folder named by SPARSEMARGIN_DATA.

    python benchmarks/defaults.py [--only claims classes ...] [--rounds 5]
"""

import warnings
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from statistics import mean
from time import process_time
from typing import Any

import numpy as np
import timing
from corpora import N_TRAIN, number_vectors
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import (
    LogisticRegression,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from papers.data import load_letter, load_usps
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    HigherOrderPerceptron,
    SecondOrderPerceptron,
    datasets,
    fit_csr,
)

SVC, SGD, AS_IT_COMES = "LinearSVC()", "SGDClassifier(average=True)", "fit_csr(X, y)"
#: `fit(X, y, random_state=seed)` returns a fitted classifier.
CONTESTANTS: dict[str, Callable[..., Any]] = {
    AS_IT_COMES: fit_csr,
    SVC: lambda X, y, **seed: LinearSVC(**seed).fit(X, y),
    SGD: lambda X, y, **seed: SGDClassifier(average=True, **seed).fit(X, y),
    "LogisticRegression()": lambda X, y, **seed: LogisticRegression(**seed).fit(X, y),
}


def _tuned(model: Any, grid: Any, X: Any, y: np.ndarray, random_state: int) -> Any:
    return GridSearchCV(model.set_params(random_state=random_state), grid, cv=TUNED).fit(X, y)


#: Like `CONTESTANTS`; each chooses among five settings.
BY_VALIDATION: dict[str, Callable[..., Any]] = {
    "AROWClassifier, tuned": partial(
        _tuned, AROWClassifier(),
        [{"max_loss": [1.0], "r": [0.3, 1.0, 3.0]}, {"max_loss": [0.1], "r": [0.1, 0.3]}],
    ),
    "LinearSVC, tuned": partial(_tuned, LinearSVC(), {"C": 4.0 ** np.arange(-3, 2)}),
    "SGDClassifier, tuned": partial(
        _tuned, SGDClassifier(average=True), {"alpha": 1e-4 * 4.0 ** np.arange(-2, 3)}
    ),
    "LogisticRegression, tuned": partial(
        _tuned, LogisticRegression(solver="liblinear"), {"C": 4.0 ** np.arange(-1, 4)}
    ),
}  # fmt: skip
N_TOPICS = 20
CLAIM_SEEDS, NOISE = (10, 11, 12, 13, 14), (0.0, 0.05, 0.15)


def race(
    X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray, seed: int, *, tuned: bool
) -> dict[str, Any]:
    """The error in percent and the seconds of each contestant."""
    found = {}
    for name, fit in (CONTESTANTS | BY_VALIDATION if tuned else CONTESTANTS).items():
        seconds, model = timing.timed(partial(fit, X, y, random_state=seed))
        found[name] = 100 * float(np.mean(model.predict(X_test) != y_test)), seconds
    return found


def compared(races: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Contestants of all races: means over splits, each of which is the mean of several races, and
    the paired differences to ours with their standard errors."""
    entries = []
    for name in min((each for split in races for each in split), key=len):
        errors = np.array([mean(each[name][0] for each in split) for split in races])
        ours = np.array([mean(each[AS_IT_COMES][0] for each in split) for split in races])
        seconds, svc = (sum(each[of][1] for split in races for each in split) for of in (name, SVC))
        entries.append({
            "contestant": name, "error": errors.mean(), "less_by_ours": (errors - ours).mean(),
            "standard_error": (errors - ours).std(ddof=1) / len(errors) ** 0.5,
            "of_svc_seconds": seconds / svc,
        })  # fmt: skip
    return entries


def sides(vectors: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random training rows, and the other rows that differ from all of them."""
    order = np.random.default_rng(seed).permutation(len(vectors))
    train, rest = order[:N_TRAIN], order[N_TRAIN:]
    return train, rest[~np.isin(vectors[rest], vectors[train])]


def claims(options: Namespace) -> dict[str, Any]:
    """Compare ours with the others on data that no choice depends on."""
    stories = datasets.load_rcv1(None, source="sample")
    X, Y = stories.data, stories.target.toarray().astype(np.int64)
    vectors = number_vectors(X)
    ranked = sorted(
        range(Y.shape[1]), key=lambda t: (-Y[:N_TRAIN, t].sum(), stories.target_names[t])
    )
    races: dict[int, list[dict[str, Any]]] = {topic: [] for topic in ranked[:N_TOPICS]}
    scores: dict[str, list[tuple[float, float]]] = {AS_IT_COMES: [], SVC: []}
    for seed in range(options.rounds):
        train, test = sides(vectors, seed)
        for rank, (topic, found) in enumerate(races.items(), 1):
            y, tuned = Y[:, topic], rank % 2 == 0
            found.append(race(X[train], y[train], X[test], y[test], seed, tuned=tuned))
        if seed == 0 or not options.quick:
            models = (
                fit_csr(X[train], Y[train], random_state=seed),
                OneVsRestClassifier(LinearSVC()).fit(X[train], Y[train]),
            )
            for name, model in zip(scores, models, strict=True):
                predicted = model.predict(X[test])
                each = (f1_score(Y[test], predicted, average=of, zero_division=0.0)
                        for of in ("micro", "macro"))  # fmt: skip
                scores[name].append(tuple(100 * score for score in each))
    unseen = [list(split) for split in zip(*[races[t] for t in ranked[1:N_TOPICS:2]], strict=True)]
    every = [list(split) for split in zip(*races.values(), strict=True)]
    report = {"topics of even rank": compared(unseen), "20 topics": compared(every)}
    for noise in NOISE:
        text = []
        for seed in CLAIM_SEEDS[: options.rounds]:
            rows, y = datasets.make_zipf_text(30_000, random_state=seed)
            learned = flipped(y[:20_000], noise, seed)
            split = rows[:20_000], learned, rows[20_000:], y[20_000:]
            text.append([race(*split, seed, tuned=True)])
        report[f"Zipf text, {100 * noise:g} % wrong"] = compared(text)
    f1 = {name: dict(zip(("micro", "macro"), np.mean(each, axis=0), strict=True))
          for name, each in scores.items()}  # fmt: skip
    return {"claims": report, "f1": f1}


OF_CLASSES = CONTESTANTS | {
    "fit_csr(X, y, max_iter=1)": partial(fit_csr, max_iter=1),
    'fit_csr(X, y, "alma", multi_class="joint", max_iter=5)': partial(
        fit_csr, algo="alma", multi_class="joint", max_iter=5
    ),
}  # fmt: skip


def classes(options: Namespace) -> dict[str, Any]:
    """Errors and macro F1, in percent, of stories with one class each: the rarest of their topics
    of even rank among those with at least 60 stories."""
    stories = datasets.load_rcv1(None, source="sample")
    Y = stories.target.toarray().astype(bool)
    ranked = sorted(range(Y.shape[1]), key=lambda t: (-Y[:, t].sum(), stories.target_names[t]))
    topics = np.array([topic for topic in ranked[1::2] if Y[:, topic].sum() >= 60])[::-1]
    some = Y[:, topics].any(axis=1)
    X, y = stories.data[some], topics[Y[some][:, topics].argmax(axis=1)]
    vectors, found = number_vectors(X), {name: [] for name in OF_CLASSES}
    for seed in range(options.rounds):
        train, test = sides(vectors, seed)
        for name, fit in OF_CLASSES.items():
            predicted = fit(X[train], y[train], random_state=seed).predict(X[test])
            f1 = f1_score(y[test], predicted, average="macro", zero_division=0.0)
            found[name].append((100 * np.mean(predicted != y[test]), 100 * f1))
    ours, entries = np.array(found[AS_IT_COMES]), []
    for name, each in found.items():
        errors, f1 = np.transpose(each)
        entries.append({
            "contestant": name, "error": errors.mean(), "macro_f1": f1.mean(),
            "standard_error": (errors - ours[:, 0]).std(ddof=1) / len(errors) ** 0.5,
        })  # fmt: skip
    return {"classes": entries, "n_classes": len(topics)}


OF_RARE: dict[str, Callable[..., Any]] = {
    AS_IT_COMES: fit_csr,
    'algo="alma"': partial(fit_csr, algo="alma"),
    'algo="alma", alpha=0.7': partial(fit_csr, algo="alma", alpha=0.7),
    'algo="perceptron"': partial(fit_csr, algo="perceptron"),
    SVC: lambda X, y, **how: LinearSVC(**how).fit(X, y),
}
#: Ranges of the share of stories.
RARE = {"1 to 6 %": (0.01, 0.06), "0.2 to 1 %": (0.002, 0.01)}


def rare(options: Namespace) -> dict[str, Any]:
    """F1 and average precision, in percent, of rare topics of even rank, balanced and not."""
    stories = datasets.load_rcv1(None, source="sample")
    X, Y = stories.data, stories.target.toarray().astype(np.int64)
    shares = Y.mean(axis=0)
    ranked = sorted(range(Y.shape[1]), key=lambda t: (-shares[t], stories.target_names[t]))
    vectors, entries = number_vectors(X), []
    splits = [sides(vectors, seed) for seed in range(options.rounds)]
    for (of, (low, high)), (name, fit), weight in product(
        RARE.items(), OF_RARE.items(), (None, "balanced")
    ):
        found = []
        topics = [topic for topic in ranked[1::2] if low < shares[topic] < high]
        for (seed, (train, test)), topic in product(enumerate(splits), topics):
            y = Y[:, topic]
            model = fit(X[train], y[train], class_weight=weight, random_state=seed)
            outputs = model.decision_function(X[test])
            found.append((f1_score(y[test], outputs > 0, zero_division=0.0),
                          average_precision_score(y[test], outputs)))  # fmt: skip
        f1, precision = 100 * np.mean(found, axis=0)
        entries.append({"contestant": name, "class_weight": str(weight), "of": of, "f1": f1,
                        "average_precision": precision, "n_topics": len(topics)})  # fmt: skip
    return {"rare": entries}


Problem = tuple[Any, np.ndarray]
TUNED = StratifiedKFold(3, shuffle=True, random_state=0)
#: Six settings each, the most regularized first, because ties choose the first.
C, C_RAW, MARGINS = np.logspace(-3, 2, 6), np.logspace(-9, 1, 6), (0.95, 0.9, 0.8)


def tuned(estimator: Any, **grid: Any) -> Callable[[], Any]:
    """Make an estimator that is tuned by cross-validation within the training set."""
    return partial(GridSearchCV, estimator, grid, cv=TUNED)


class AsItComes:
    """`fit_csr(X, y)` as an estimator."""

    fit = staticmethod(partial(fit_csr, random_state=0))


HO, SO = (
    partial(HigherOrderPerceptron, random_state=0),
    partial(SecondOrderPerceptron, random_state=0),
)
RIDGE = partial(RidgeClassifierCV, np.logspace(-3, 12, 16))
CENTROIDS = tuned(NearestCentroid(), shrink_threshold=[8.0, 4.0, 2.0, 1.0, 0.5, None])
#: Contestants by name; whether genes are standardized on the training set; and whether rows may be
#: rotated, because the method depends on their products only.
OF_GENES: dict[str, tuple[Callable[[], Any], bool, bool]] = {
    f"`{AS_IT_COMES}`": (AsItComes, False, False),
    "`HigherOrderPerceptron()`": (HO, False, True),
    "`SecondOrderPerceptron()`": (SO, False, True),
    "`HigherOrderPerceptron(alpha=None)`": (partial(HO, alpha=None), False, True),
    f"`{AS_IT_COMES}`, standardised": (AsItComes, True, False),
    "`HigherOrderPerceptron()`, standardised": (HO, True, True),
    "`SecondOrderPerceptron()`, standardised": (SO, True, True),
    "AROW, r tuned": (
        tuned(AROWClassifier(max_iter=20, random_state=0), r=np.logspace(3, -2, 6)), False, False
    ),
    "ALMA, alpha and epochs tuned": (
        tuned(ALMAClassifier(random_state=0), alpha=MARGINS, max_iter=[20, 5]), False, True
    ),
    "Higher-order, alpha and c tuned": (tuned(HO(), alpha=MARGINS, c=[0.4, 0.0]), False, True),
    "Second-order, alpha and a tuned": (tuned(SO(), alpha=MARGINS, a=[1.0, 0.1]), False, True),
    "`LinearSVC`, C tuned": (tuned(LinearSVC(), C=C_RAW), False, True),
    "`LinearSVC`, standardised, C tuned": (tuned(LinearSVC(), C=C), True, True),
    "`LogisticRegression`, C tuned": (tuned(LogisticRegression(), C=C_RAW), False, True),
    "`LogisticRegression`, standardised, C tuned": (tuned(LogisticRegression(), C=C), True, True),
    "`RidgeClassifier`, alpha tuned": (RIDGE, False, True),
    "`RidgeClassifier`, standardised, alpha tuned": (RIDGE, True, True),
    "`NearestCentroid`, shrinkage tuned": (CENTROIDS, False, False),
    "`NearestCentroid`, standardised, shrinkage tuned": (CENTROIDS, True, False),
}  # fmt: skip
GENOMES = {
    "leukemia": datasets.load_leukemia, "lymphoma": datasets.load_lymphoma,
    "colon": datasets.load_colon, "breast": datasets.load_breast_er,
    "lymphoma, ACL": partial(datasets.load_lymphoma, "acl"),
}  # fmt: skip


def turned(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotate both sets to axes along the training rows, with one axis for the rest of a test row:
    the products are the same, with a hundred times fewer features."""
    axes = np.linalg.qr(X.T)[0]
    along = X_test @ axes
    left = np.maximum(0, np.sum(X_test**2, axis=1) - np.sum(along**2, axis=1)) ** 0.5
    return np.c_[X @ axes, np.zeros(len(X))], np.c_[along, left]


def genome_errors(X: np.ndarray, y: np.ndarray, n_splits: int) -> dict[str, np.ndarray]:
    """Errors of each contestant on the same random splits, in percent."""
    found: dict[str, list[float]] = {name: [] for name in OF_GENES}
    for train, test in StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=0).split(
        X, y
    ):
        scaler = StandardScaler().fit(X[train])
        raw, standardised = (X[train], X[test]), [*map(scaler.transform, (X[train], X[test]))]
        sides = {
            (False, False): raw, (True, False): standardised,
            (False, True): turned(*raw), (True, True): turned(*standardised),
        }  # fmt: skip
        for name, (make, *of) in OF_GENES.items():
            learned, asked = sides[tuple(of)]
            predicted = make().fit(learned, y[train]).predict(asked)
            found[name].append(100 * float(np.mean(predicted != y[test])))
    return {name: np.array(errors) for name, errors in found.items()}


def genomes(options: Namespace) -> dict[str, Any]:
    """Errors on the microarrays, and means of the first four and of all."""
    warnings.simplefilter("ignore")
    n_splits = 5 if options.quick else 40 * options.rounds
    found = {
        name: genome_errors(*load(return_X_y=True), n_splits) for name, load in GENOMES.items()
    }
    ours, names, entries = next(iter(OF_GENES)), list(GENOMES), []
    sets = {name: [name] for name in names} | {"mean of four": names[:4], "mean of five": names}
    for each, (of, members) in product(OF_GENES, sets.items()):
        more = [found[name][each] - found[name][ours] for name in members]
        entries.append({
            "contestant": each, "of": of,
            "error": mean(found[name][each].mean() for name in members),
            "less_by_ours": mean(d.mean() for d in more),
            "standard_error": sum(d.var(ddof=1) / n_splits for d in more) ** 0.5 / len(more),
        })  # fmt: skip
    return {"genomes": entries, "n_splits": n_splits}


AROW_OF_20 = "AROWClassifier(max_iter=20)"
OF_DENSE: dict[str, Callable[[], Any]] = {
    AS_IT_COMES: AsItComes,
    AROW_OF_20: partial(AROWClassifier, max_iter=20, random_state=0),
    "ALMAClassifier(max_iter=2)": partial(ALMAClassifier, max_iter=2, random_state=0),
    SVC: LinearSVC, "RidgeClassifier()": RidgeClassifier,
    "LogisticRegression()": LogisticRegression,
}  # fmt: skip
SCALERS = {"as they are": None, "centred": StandardScaler(with_std=False),
           "standardised": StandardScaler()}  # fmt: skip


def dense_errors(of: str, problem: Problem, splits: Any, left_out: set[str]) -> Iterator[Any]:
    """Mean errors of each contestant on raw values, and on values centered and standardized with
    the training set."""
    X, y = problem
    found = defaultdict(list)
    for train, test in splits.split(X, y):
        for scaled, scaler in SCALERS.items():
            sides = X[train], X[test]
            if scaler is not None:
                sides = scaler.fit(X[train]).transform(X[train]), scaler.transform(X[test])
            for name in OF_DENSE.keys() - left_out:
                model = OF_DENSE[name]().fit(sides[0], y[train])
                found[name, scaled].append(100 * (1 - model.score(sides[1], y[test])))
    for name, scaled in product(OF_DENSE, SCALERS):
        if name not in left_out:
            yield {"contestant": name, "values": scaled, "of": of,
                   "error": mean(found[name, scaled])}  # fmt: skip


def dense(options: Namespace) -> dict[str, Any]:
    """Errors on dense rows: data of few features, and logarithms of intensities, where genes differ
    more from each other than tumours do."""
    warnings.simplefilter("ignore")
    splits = partial(StratifiedShuffleSplit, test_size=1 / 3, random_state=0)
    logs, few = [], []
    for of in ("leukemia", "colon", "breast"):
        X, y = GENOMES[of](return_X_y=True)
        logarithms = np.log2(np.maximum(X, 20)), y
        left_out = {"ALMAClassifier(max_iter=2)"}
        logs += dense_errors(of, logarithms, splits(8 * options.rounds), left_out)
    for load in (load_breast_cancer, load_wine, load_digits, load_usps, load_letter):
        problem = load(return_X_y=True)
        of = load.__name__[5:].replace("_", " ")
        few += dense_errors(of, problem, splits(2 * options.rounds), {AROW_OF_20})
    return {"logs": logs, "few": few}


L1 = partial(LogisticRegression, penalty="l1", solver="liblinear", random_state=0)
#: `fit(X, y)` returns a fitted classifier.
OF_GENOTYPES: dict[str, Callable[[Any, Any], Any]] = {
    AS_IT_COMES: partial(fit_csr, random_state=0),
    'fit_csr(X, y, "pnorm", p="log", max_iter=5)': partial(
        fit_csr, algo="pnorm", p="log", max_iter=5, random_state=0
    ),
    AROW_OF_20: partial(fit_csr, algo="arow", max_iter=20, random_state=0),
    'LogisticRegression(penalty="l1", solver="liblinear")': lambda X, y: L1().fit(X, y),
    'LogisticRegression(penalty="l1", solver="liblinear", C=0.03)': (
        lambda X, y: L1(C=0.03).fit(X, y)
    ),
}


def genotypes(options: Namespace) -> dict[str, Any]:
    """Accuracy, area under the curve and CPU seconds on variants of which few are informative."""
    warnings.simplefilter("ignore")
    n_features, entries = 10_000 if options.quick else 100_000, []
    for seed in range(2):
        X, y, _ = datasets.make_genotypes(3000, n_features, random_state=seed)
        for name, fit in OF_GENOTYPES.items():
            started = process_time()
            model = fit(X[:2000], y[:2000])
            entries.append({
                "contestant": name, "of": f"seed {seed}", "seconds": process_time() - started,
                "accuracy": 100 * model.score(X[2000:], y[2000:]),
                "auc": 100 * roc_auc_score(y[2000:], model.decision_function(X[2000:])),
            })  # fmt: skip
    return {"genotypes": entries}


def flipped(y: np.ndarray, noise: float, seed: int) -> np.ndarray:
    """Labels of two classes, with a share of them flipped."""
    wrong = np.random.default_rng(seed).random(len(y)) < noise
    return np.where(wrong, y.min() + y.max() - y, y)


if __name__ == "__main__":
    timing.run(
        timing.parser_of(__doc__, "results/defaults.json"),
        {"claims": claims, "classes": classes, "rare": rare, "genomes": genomes, "dense": dense,
         "genotypes": genotypes},
        (5, 1),
    )  # fmt: skip
