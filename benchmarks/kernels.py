"""Kernels beside scikit-learn's SVC: MNIST in seconds, memory, growth, and a bounded pool.

Every contest runs in a process of its own and is kept in the output folder: interrupted, the
command goes on where it was. Of several rounds the fastest fit counts, and the fastest predictions;
fits of over a minute are not repeated: SVC takes several for the 60,000 rows. "fit_cpu" are
processor seconds, of all threads: what else the machine does hardly counts there. Quote the ratios;
the times belong to the machine.

    python benchmarks/kernels.py [--rounds 3] [--sizes 10000 20000 40000 60000]
        [--bounded-rows 1000000] [--out DIR]

One-versus-rest ALMA, and SVC, which takes every pair of classes, have the kernel
(1 + x.z / 255)^d on the greys, 0 to 255; "rows normalised" has (1 + x.z)^4 on rows of length 1, the
best of SVC seen. SVC has C = 1, 1 GB of cache, and arrays, which it takes four times as fast as
CSR. The bounded pool learns generated rows, whose class is the sign of a quadratic form.
"""

import json
import sys
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.svm import SVC
from tables import show
from threadpoolctl import threadpool_limits
from timing import (
    apart,
    cannot_run,
    describe_machine,
    parser_of,
    replace_text,
    resident_peak,
    timed,
    write_json,
)

from papers.kernels import Data, load
from sparsemargin import ALMAClassifier

ALMA_4, ALMA_6 = "ALMA d=4, one epoch", "ALMA d=6, three epochs"
SVC_RAW, SVC_UNIT = "SVC d=4", "SVC d=4, rows normalised"
BOUNDED = "ALMA rbf, bounded pool"
N_FEATURES = 20
N_TEST = 20_000
SVC_CACHE = 1000  # MB
SIZES = (10_000, 20_000, 40_000, 60_000)
BOUNDS = (1000, 2000, 4000, 8000)
BOUNDED_ROWS = 1_000_000
TIMES = ("fit", "fit_cpu", "predict")
PATIENCE = 60.0  # seconds after which a fit is not repeated
Result = dict[str, Any]


class Contest(NamedTuple):
    """Who learns what: the first so many training rows, with so many threads (SVC has one, whatever
    is asked for); a bounded pool may hold so many of them."""

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


def hold(*asked: Any) -> Result:
    """Run apart: fit and predict.

    Returned: seconds of the fit and of the predictions, processor seconds of the fit (of all
    its threads; others on the machine hardly lengthen them), the test error in percent, support
    vectors, corrections passed over, and bytes: with the data loaded, and at the peak.
    """
    contest = Contest(*asked)
    data = data_of(contest)
    model = (_svc if contest.contestant in (SVC_RAW, SVC_UNIT) else _alma)(contest)
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


def result(contest: Contest, folder: Path, n_rounds: int) -> Result:
    """Return the result of a contest, held now, several times if it is soon over, if the folder has
    none."""
    path = folder / f"{contest.name.replace(' ', '_')}.json"
    if not path.exists():
        rounds: list[Result] = []
        while len(rounds) < n_rounds and all(each["fit"] < PATIENCE for each in rounds):
            print(f"{contest.name} ...", file=sys.stderr, flush=True)
            rounds.append(apart(hold, *contest))
        fastest = {name: min(each[name] for each in rounds) for name in TIMES}
        replace_text(path, json.dumps(rounds[0] | fastest | {"rounds": len(rounds)}) + "\n")
    return contest._asdict() | json.loads(path.read_text())


FIELDS = [
    ("fit s", "{fit:.2f}"), ("fit_cpu s", "{fit_cpu:.2f}"), ("predict s", "{predict:.2f}"),
    ("test error %", "{error:.2f}"), ("support", "{support:,d}"),
    ("loaded MB", "{loaded_bytes:,.0M}"), ("peak MB", "{peak_bytes:,.0M}"),
]  # fmt: skip


def beside(ours: str, peer: str, n_rows: int, folder: Path, n_rounds: int) -> list[Result]:
    """Hold the contests of a pair at one size; each result tells how many times as fast it is."""
    contests = [Contest(ours, n_rows, 1), Contest(ours, n_rows, 2), Contest(peer, n_rows)]
    results = [result(contest, folder, n_rounds) for contest in contests]
    reference = results[-1]
    results = [
        each | {"ratios": {step: reference[step] / each[step] for step in TIMES}}
        for each in results
    ]
    lead = [("", "{contestant}, {n_jobs} threads"), *FIELDS]
    show(f"{n_rows:,} rows", lead + [(f"{t} x", f"{{ratios[{t}]:.1f}}") for t in TIMES], results)
    return results


def bounded(n_rows: int, folder: Path, n_rounds: int) -> list[Result]:
    """Learn so many rows with pools of several bounds."""
    contests = [Contest(BOUNDED, n_rows, 2, bound) for bound in BOUNDS]
    entries = [result(each, folder, n_rounds) for each in contests]
    best = entries[-1]["error"]
    columns = [
        ("rows in the pool", "{max_support:,}"), *FIELDS, ("passed over", "{passed_over:,d}"),
        ("points more", lambda entry: f"{entry['error'] - best:+.2f}"),
    ]  # fmt: skip
    show(f"{n_rows:,} rows, one epoch", columns, entries)
    return entries


def main() -> None:
    """Hold the contests, print the tables, write it all as JSON."""
    parser = parser_of(__doc__, "results/kernels")
    parser.add_argument("--rounds", type=int, default=3, help="of each contest (default 3)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="training rows")
    parser.add_argument(
        "--bounded-rows", type=int, default=BOUNDED_ROWS, help="rows for the bounded pools"
    )
    options = parser.parse_args()
    if min(options.rounds, options.bounded_rows, *options.sizes) < 1:
        parser.error("--rounds, --sizes and --bounded-rows must be at least 1")
    try:
        load("mnist")
    except FileNotFoundError as error:
        cannot_run(error)
    print(f"{__doc__}\n{describe_machine()}", flush=True)
    where = options.out, options.rounds
    of_bounds = bounded(options.bounded_rows, *where)
    growth = [beside(ALMA_4, SVC_RAW, n_rows, *where) for n_rows in sorted(options.sizes)]
    best = beside(ALMA_6, SVC_UNIT, max(options.sizes), *where)
    report = {"growth": growth, "three epochs": best, "bounded": of_bounds}
    write_json(options.out / "report.json", report)


if __name__ == "__main__":
    main()
