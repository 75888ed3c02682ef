"""Hashes of a hundred models, which show whether a change affects any bit of the results.

The models cover every algorithm, hypothesis and kind of rows and labels, on generated data in both
float types. ``golden.py --out FILE`` writes the hashes; ``golden.py --against FILE`` lists the
models whose hashes differ from those in the file. Hashes are valid for one machine, because other
processors sum in a different order.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.base

import sparsemargin
from sparsemargin.datasets import make_zipf_text
from sparsemargin.kernels import Polynomial

# Former defaults of the margin algorithms, used when the first hashes were written.
SEEKING: dict[str, Any] = {"hypothesis": "last", "early_stopping": False, "shuffle": False}

#: Names of algorithms with parameters that select special code.
ALGORITHMS: dict[str, dict[str, Any]] = {
    "perceptron": {},
    "pnorm": {"p": 5},
    "alma": {"p": 2},
    "alma p=3": {"p": 3, "alpha": 0.8},
    "margin": {"p": 2, "max_iter": 4} | SEEKING,
    "cramma": {"max_iter": 4} | SEEKING,
    "romma": {"max_iter": 3} | SEEKING,
    "maxmargin": {**SEEKING, "max_iter": 20, "soft_margin": 0.5, "tol": 0.01, "shuffle": True},
    "ho": {"p": 2},
    "ho p=4": {"p": 4},
    "so": {},
    "arow": {},
}
HYPOTHESES = ("last", "average", "vote", "random")
LAST_OR_AVERAGE = ("ho", "so", "arow")
COMMON = {"random_state": 0, "fit_intercept": True, "intercept_scaling": 0.3}

Model = Callable[[], Any]


def texts(n_classes: int = 2, dtype: Any = np.float64) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows with unsorted columns."""
    X, y = make_zipf_text(
        500, 900, mean_nnz=20, n_classes=n_classes, noise=0.05, dtype=dtype, random_state=1
    )
    columns = np.random.RandomState(2).permutation(X.shape[1]).astype(X.indices.dtype)
    return sp.csr_matrix((X.data, columns[X.indices], X.indptr), shape=X.shape), y


def fit(algo: str, X: Any, y: Any, **params: Any) -> Any:
    """Fit the algorithm to the rows."""
    settings = {"max_iter": 2} | COMMON | ALGORITHMS[algo] | params
    return sparsemargin.fit_csr(X, y, algo.split()[0], **settings)


def in_batches(algo: str, X: Any, y: Any, **params: Any) -> Any:
    """Feed the rows in three parts."""
    model = sklearn.base.clone(fit(algo, X[:20], y[:20], **params))
    for part in np.array_split(np.arange(X.shape[0]), 3):
        model.partial_fit(X[part], y[part], classes=np.unique(y))
    return model


def from_file(algo: str, X: Any, y: Any, **params: Any) -> Any:
    """Train on svmlight text."""
    from sklearn.datasets import dump_svmlight_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.svm")
        dump_svmlight_file(X, y, str(path), zero_based=False)
        settings = COMMON | ALGORITHMS[algo] | params | {"max_iter": 2}
        return sparsemargin.fit_svmlight(path, algo.split()[0], **settings)


def distributed(algo: str, X: Any, y: Any, **params: Any) -> Any:
    """Train on one shard."""
    from sparsemargin.distributed import fit_distributed

    settings = COMMON | ALGORITHMS[algo] | params
    return fit_distributed([(X, y)], algo=algo.split()[0], **settings)


def models() -> Iterator[tuple[str, Any, Model]]:
    """Yield the name, the rows to predict, and a function that makes the model."""
    X, y = texts()
    many_X, many_y = texts(5)
    single_X, single_y = texts(dtype=np.float32)
    indicator = sp.csr_matrix(np.random.RandomState(3).rand(500, 7) < 0.2).astype(int)
    for algo in ALGORITHMS:
        for hypothesis in HYPOTHESES[:2] if algo.split()[0] in LAST_OR_AVERAGE else HYPOTHESES:
            proof = {"tol": 0.01 if hypothesis == "last" else None} if algo == "maxmargin" else {}
            yield (
                f"{algo}, {hypothesis}", X,
                lambda a=algo, h=hypothesis, s=proof: fit(a, X, y, hypothesis=h, **s),
            )  # fmt: skip
        yield f"{algo}, float32", single_X, lambda a=algo: fit(a, single_X, single_y)
        yield f"{algo}, 5 classes", many_X, lambda a=algo: fit(a, many_X, many_y, n_jobs=2)
        if algo != "cramma":  # in `partial_fit`, CRAMMA does not know the radius of all rows
            yield f"{algo}, batches", X, lambda a=algo: in_batches(a, X, y)
        if algo in ("perceptron", "pnorm", "alma", "alma p=3"):
            joint = {"multi_class": "joint"}
            yield f"{algo}, joint", many_X, lambda a=algo, j=joint: fit(a, many_X, many_y, **j)
            yield f"{algo}, file", X, lambda a=algo: from_file(a, X, y)
            yield f"{algo}, one shard", X, lambda a=algo: distributed(a, X, y)
            yield f"{algo}, indicator", many_X, lambda a=algo: fit(a, many_X, indicator)
        if algo in ("perceptron", "alma", "margin", "cramma", "romma", "ho", "so"):
            yield f"{algo}, kernel", X, lambda a=algo: fit(a, X, y, kernel=Polynomial(gamma=1.0))
        if algo in ("ho", "so"):
            for solver in ("primal", "dual"):
                yield f"{algo}, {solver}", X, lambda a=algo, s=solver: fit(a, X, y, solver=s)


def digest(model: Any, X: Any) -> str:
    """Hash the predictions of the model, its corrections, and its weights if it has any."""
    parts = [model.decision_function(X), np.asarray(model.n_corrections_, dtype=np.int64)]
    with suppress(AttributeError):
        parts.append(model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_)
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(np.ascontiguousarray(part).tobytes())
    return hashed.hexdigest()[:16]


def main() -> int:
    """Make the models, and write or compare their hashes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for name, X, make in models():
        try:
            found[name] = digest(make(), X)
        except ValueError as error:
            found[name] = f"refused: {error}"[:100]
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.against is None:
        print(f"{len(found)} models")
        return 0
    before = json.loads(arguments.against.read_text())
    changed = sorted(n for n in found.keys() | before if found.get(n) != before.get(n))
    print(f"{len(found)} models, {len(changed)} changed", *changed, sep="\n  ")
    return len(changed) > 0


if __name__ == "__main__":
    sys.exit(main())
