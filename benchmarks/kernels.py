"""Kernels compared with scikit-learn's SVC: MNIST in seconds, memory, growth, and a bounded pool.

Every run has a new process. Times are the minimum over several rounds; fits of more than a
minute are not repeated. "fit_cpu" is the CPU time of all threads.
One-versus-rest ALMA, and SVC, which trains every pair of classes, use the kernel
(1 + x.z / 255)^d on gray values from 0 to 255. "rows normalised" means (1 + x.z)^4 on rows of
length 1, the best result of SVC in our tests. SVC has C = 1, a cache of 1 GB, and dense arrays, for
which it is four times faster than for CSR. The bounded pool is trained on generated rows, whose
class is the sign of a quadratic form.
"""

from argparse import Namespace
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from timing import apart, parser_of, resident_peak, run, timed

from papers.kernels import Data, load
from papers.theory import alma_alpha
from sparsemargin import ALMAClassifier
from sparsemargin.kernels import RBF, Polynomial

ALMA_4, ALMA_6 = "ALMA d=4, one epoch", "ALMA d=6, three epochs"
SVC_RAW, SVC_UNIT = "SVC d=4", "SVC d=4, rows normalised"
BOUNDED = "ALMA rbf, bounded pool"
N_FEATURES, N_TEST = 20, 20_000
SIZES, SIZES_QUICK = (10_000, 20_000, 40_000, 60_000), (1000, 2000, 4000)
BOUNDS = (1000, 2000, 4000, 8000)
BOUNDED_ROWS, BOUNDED_ROWS_QUICK = 1_000_000, 20_000
TIMES = ("fit", "fit_cpu", "predict")
PATIENCE = 60.0  # seconds after which a fit is not repeated
Result = dict[str, Any]


class Contest(NamedTuple):
    """The model and its data: the number of training rows, the number of threads (SVC always uses
    one), and the limit of a bounded pool."""

    contestant: str
    n_rows: int
    n_jobs: int = 1
    max_support: int = 0


def _poly(degree: int) -> Polynomial:
    return Polynomial(degree, gamma=1 / 255, coef0=1.0)


def _alma(contest: Contest, **params: Any) -> ALMAClassifier:
    alpha = alma_alpha(0.9, B=1 / 0.9)
    settings: dict[str, Any] = {"alpha": alpha, "random_state": 0, "max_iter": 1}
    settings |= {"n_jobs": contest.n_jobs, "fit_intercept": False}
    return ALMAClassifier(**settings | params)


def model_of(contest: Contest) -> Any:
    """The model to fit."""
    name = contest.contestant
    if name in (SVC_RAW, SVC_UNIT):
        # On unit rows the kernel is (1 + x.z)^4.
        gamma = 1.0 if name == SVC_UNIT else 1 / 255
        return SVC(kernel="poly", degree=4, gamma=gamma, coef0=1.0, C=1.0, cache_size=1000)
    if name == BOUNDED:
        bounded = RBF(1 / N_FEATURES, max_support=contest.max_support, when_full="skip")
        return _alma(contest, kernel=bounded)
    if name == ALMA_6:
        return _alma(contest, max_iter=3, kernel=_poly(6))
    return _alma(contest, kernel=_poly(4))


def generate(n_rows: int, seed: int = 0) -> Data:
    """Draw rows from a standard normal distribution. The class is the sign of a random quadratic
    form of mean 0."""
    random = np.random.default_rng(seed)
    form = random.standard_normal((N_FEATURES, N_FEATURES))
    form -= np.trace(form) / N_FEATURES * np.eye(N_FEATURES)
    X = random.standard_normal((n_rows + N_TEST, N_FEATURES), dtype=np.float32)
    y = np.where(np.einsum("ij,jk,ik->i", X, form, X, optimize=True) > 0, 1, -1)
    return Data(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def data_of(contest: Contest) -> Data:
    """Return the training rows of the contest, and the test rows."""
    if contest.contestant == BOUNDED:
        return generate(contest.n_rows)
    X, y, X_test, y_test = load("mnist")
    X, y = X[: contest.n_rows], y[: contest.n_rows]
    if contest.contestant == SVC_UNIT:
        X, X_test = normalize(X), normalize(X_test)
    if contest.contestant in (SVC_RAW, SVC_UNIT):
        X, X_test = X.toarray(), X_test.toarray()
    return Data(X, y, X_test, y_test)


def hold(*asked: Any) -> Result:
    """Run in a new process: fit and predict; return seconds, test error in percent, and bytes."""
    contest = Contest(*asked)
    data, model = data_of(contest), model_of(contest)
    loaded = resident_peak()
    with threadpool_limits(contest.n_jobs):
        before = process_time()
        fit_seconds, _ = timed(lambda: model.fit(data.X, data.y))
        fit_processor_seconds = process_time() - before
        predict_seconds, predicted = timed(lambda: model.predict(data.X_test))
    return {
        "fit": fit_seconds, "fit_cpu": fit_processor_seconds, "predict": predict_seconds,
        "error": 100 * float(np.mean(predicted != data.y_test)), "support": len(model.support_),
        "passed_over": int(np.sum(getattr(model, "n_passed_over_", 0))), "loaded_bytes": loaded,
        "peak_bytes": resident_peak(),
    }  # fmt: skip


def result(contest: Contest, n_rounds: int) -> Result:
    """Return the result of a contest, the minimum over several rounds if it is short."""
    rounds: list[Result] = []
    while len(rounds) < n_rounds and all(each["fit"] < PATIENCE for each in rounds):
        rounds.append(apart(hold, *contest))
    fastest = {name: min(each[name] for each in rounds) for name in TIMES}
    return contest._asdict() | rounds[0] | fastest | {"rounds": len(rounds)}


def beside(ours: str, peer: str, n_rows: int, n_rounds: int) -> list[Result]:
    """Run the contests of a pair at one size; add the speedup of each against the peer."""
    load("mnist")  # fails before processes are started if the data is missing
    contests = [Contest(ours, n_rows, 1), Contest(ours, n_rows, 2), Contest(peer, n_rows)]
    results = [result(contest, n_rounds) for contest in contests]
    for each in results:
        each["ratios"] = {step: results[-1][step] / each[step] for step in TIMES}
    return results


def bounded(options: Namespace) -> dict[str, Any]:
    """Train on generated rows with pools of several limits."""
    n_rows = BOUNDED_ROWS_QUICK if options.quick else BOUNDED_ROWS
    entries = [result(Contest(BOUNDED, n_rows, 2, bound), options.rounds) for bound in BOUNDS]
    return {"bounded": entries}


def growth(options: Namespace) -> dict[str, Any]:
    """Compare ALMA with SVC for growing numbers of rows."""
    sizes = SIZES_QUICK if options.quick else SIZES
    return {"growth": [beside(ALMA_4, SVC_RAW, n_rows, options.rounds) for n_rows in sizes]}


def best(options: Namespace) -> dict[str, Any]:
    """Compare both with their best settings."""
    n_rows = max(SIZES_QUICK if options.quick else SIZES)
    return {"three epochs": beside(ALMA_6, SVC_UNIT, n_rows, options.rounds)}


if __name__ == "__main__":
    MEASUREMENTS = {"bounded": bounded, "growth": growth, "best": best}
    run(parser_of(__doc__, "results/kernels.json"), MEASUREMENTS, (3, 1))
