"""A fit and its predictions, in a process of its own: how long, how much memory, how many errors.

As a script it runs one contest and writes what came of it to standard output, as JSON.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from measure import timed
from peak_memory import resident_peak
from sklearn.preprocessing import normalize
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from papers.kernels import Data, load
from sparsemargin import ALMAClassifier

ALMA_4, ALMA_6 = "ALMA d=4, one epoch", "ALMA d=6, three epochs"
SVC_RAW, SVC_UNIT = "SVC d=4", "SVC d=4, rows normalised"
BOUNDED = "ALMA rbf, bounded pool"

N_FEATURES = 20
N_TEST = 20_000
SVC_CACHE = 1000  # MB


class Contest(NamedTuple):
    """Who learns what.

    Attributes
    ----------
    contestant : str
    n_rows : int
        The first so many training rows.
    n_jobs : int
        Threads; SVC has one, whatever is asked for.
    max_support : int
        Rows that a bounded pool may hold.
    """

    contestant: str
    n_rows: int
    n_jobs: int = 1
    max_support: int = 0

    @property
    def name(self) -> str:
        """What identifies the contest, for people and for files."""
        bound = f" of {self.max_support} rows" if self.max_support else ""
        return f"{self.contestant}{bound}, {self.n_rows} rows, n_jobs={self.n_jobs}"


def _poly(degree: int, gamma: float = 1 / 255) -> dict[str, Any]:
    return {"kernel": "poly", "degree": degree, "gamma": gamma, "coef0": 1.0}


def _alma(contest: Contest) -> ALMAClassifier:
    parameters: dict[str, Any] = {
        "alpha": 0.9, "B": 1 / 0.9, "random_state": 0, "n_jobs": contest.n_jobs, "max_iter": 1,
        "fit_intercept": False,
    }  # fmt: skip
    if contest.contestant == BOUNDED:
        bound = {"max_support": contest.max_support, "when_full": "skip"}
        return ALMAClassifier(**parameters, kernel="rbf", gamma=1 / N_FEATURES, **bound)
    if contest.contestant == ALMA_6:
        return ALMAClassifier(**parameters | {"max_iter": 3}, **_poly(6))
    return ALMAClassifier(**parameters, **_poly(4))


def _svc(contest: Contest) -> SVC:
    # On unit rows the kernel is (1 + x.z)^4.
    gamma = 1.0 if contest.contestant == SVC_UNIT else 1 / 255
    return SVC(**_poly(4, gamma), C=1.0, cache_size=SVC_CACHE)


ESTIMATORS: dict[str, Callable[[Contest], Any]] = {
    ALMA_4: _alma, ALMA_6: _alma, BOUNDED: _alma, SVC_RAW: _svc, SVC_UNIT: _svc,
}  # fmt: skip


def generate(n_rows: int, seed: int = 0) -> Data:
    """Draw rows of a standard normal distribution, their class the sign of a random quadratic form
    of mean 0."""
    random = np.random.default_rng(seed)
    form = random.standard_normal((N_FEATURES, N_FEATURES))
    form -= np.trace(form) / N_FEATURES * np.eye(N_FEATURES)
    X = random.standard_normal((n_rows + N_TEST, N_FEATURES), dtype=np.float32)
    y = np.where(np.einsum("ij,jk,ik->i", X, form, X, optimize=True) > 0, 1, -1)
    return Data(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def data_of(contest: Contest) -> Data:
    """Return the rows to learn from, as many as the contest has, and those to predict."""
    if contest.contestant == BOUNDED:
        return generate(contest.n_rows)
    X, y, X_test, y_test = load("mnist")
    X, y = X[: contest.n_rows], y[: contest.n_rows]
    if contest.contestant == SVC_UNIT:
        X, X_test = normalize(X), normalize(X_test)
    if contest.contestant in (SVC_RAW, SVC_UNIT):
        # libsvm takes them four times as fast as arrays as it does as CSR.
        X, X_test = X.toarray(), X_test.toarray()
    return Data(X, y, X_test, y_test)


def hold(contest: Contest) -> dict[str, Any]:
    """Fit and predict in this process.

    Returns
    -------
    dict
        Seconds of the fit and of the predictions, processor seconds of the fit (of all its threads;
        others on the machine hardly lengthen them), the test error in percent, support vectors,
        corrections passed over, and bytes: with the data loaded, and at the peak.
    """
    data = data_of(contest)
    model = ESTIMATORS[contest.contestant](contest)
    loaded = resident_peak()
    before = process_time()
    fit_seconds, _ = timed(lambda: model.fit(data.X, data.y))
    fit_processor_seconds = process_time() - before
    predict_seconds, predicted = timed(lambda: model.predict(data.X_test))
    return {
        "fit": fit_seconds,
        "fit_cpu": fit_processor_seconds,
        "predict": predict_seconds,
        "error": 100 * float(np.mean(predicted != data.y_test)),
        "support": len(model.support_),
        "passed_over": int(np.sum(getattr(model, "n_passed_over_", 0))),
        "loaded_bytes": loaded,
        "peak_bytes": resident_peak(),
    }


def hold_apart(contest: Contest) -> dict[str, Any]:
    """Fit and predict in a new process; return what `hold` does."""
    command = [sys.executable, __file__, json.dumps(contest)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


if __name__ == "__main__":
    asked = Contest(*json.loads(sys.argv[1]))
    with threadpool_limits(asked.n_jobs):
        print(json.dumps(hold(asked)))
