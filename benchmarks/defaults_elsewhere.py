"""How do the defaults that RCV1 chose do elsewhere? Beside LinearSVC on other data, small and wide.

Mean errors of five-fold cross-validation, stratified, three times over on less than 1000 rows, on
microarrays, Sonar, Wisconsin breast cancer and generated text. Nothing is chosen here.

Needs the microarrays, Sonar and WBC in the folder that SPARSEMARGIN_DATA names.

    python benchmarks/defaults_elsewhere.py [--out results/defaults-elsewhere.json]
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from margin_problems import SOURCES
from measure import describe_machine, text_table, write_json
from sklearn.base import ClassifierMixin
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.svm import LinearSVC

from papers.data import load_sonar, load_wbc
from sparsemargin import fit_csr
from sparsemargin.datasets import make_zipf_text

FEW_ROWS = 1000
CONTESTANTS: dict[str, Callable[[Any, Any], ClassifierMixin]] = {
    "LinearSVC()": LinearSVC(random_state=0).fit,
    "fit_csr(X, y)": partial(fit_csr, random_state=0),
    "20 epochs": partial(fit_csr, max_iter=20, random_state=0),
    "no intercept": partial(fit_csr, fit_intercept=False, random_state=0),
}


def corpora() -> Iterator[tuple[str, Any, Any]]:
    """Yield name, rows and labels of each data set."""
    for source in ("leukemia", "colon", "lymphoma"):
        for problem in SOURCES[source]():
            yield problem.name, problem.X, problem.y
    yield "Sonar", *load_sonar(return_X_y=True)
    yield "WBC", *load_wbc(return_X_y=True)
    yield "text, 2 classes", *make_zipf_text(4000, random_state=0)
    yield "text, a tenth mislabelled", *make_zipf_text(4000, noise=0.1, random_state=0)
    yield "text, 20 classes", *make_zipf_text(4000, n_classes=20, random_state=0)


def error(fit: Callable[[Any, Any], ClassifierMixin], X: Any, y: Any) -> float:
    """Return the mean error over the folds in percent."""
    n_repeats = 3 if X.shape[0] < FEW_ROWS else 1
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=n_repeats, random_state=0)
    scores = [fit(X[train], y[train]).score(X[test], y[test]) for train, test in folds.split(X, y)]
    return 100 * (1 - mean(scores))


def main() -> None:
    """Cross-validate everything, print the table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results/defaults-elsewhere.json"))
    arguments = parser.parse_args()
    rows = [
        [name, *X.shape, *(error(fit, X, y) for fit in CONTESTANTS.values())]
        for name, X, y in corpora()
    ]
    print(f"{describe_machine()}\n\nError in %, cross-validated\n")
    columns = [("", ""), ("rows", "d"), ("features", "d")]
    print(text_table([*columns, *((name, ".1f") for name in CONTESTANTS)], rows))
    entries = [dict(zip(["data", "rows", "features", *CONTESTANTS], r, strict=True)) for r in rows]
    write_json(arguments.out, {"errors": entries})


if __name__ == "__main__":
    main()
