"""One soak in memory: the stream by `partial_fit`, cut in two ways, beside the reference.

    python benchmarks/soak_fit.py NONZEROS NAME FILE

prints what came out as one line of JSON, and keeps in the file what was learned.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from soak_memory import Samples
from soak_reference import Reference, norms_of
from soak_stream import N_FEATURES, Stream

from sparsemargin import ALMAClassifier, PNormPerceptron

ALPHA = 0.9
AVERAGE = {"hypothesis": "average", "fit_intercept": False}
#: What the Perceptron adds up of raw rows is exact in float32; of rows that are divided it is
#: not, and the decisions would soon be others than the reference's.
SOAKS = {
    "Perceptron, float32": {"p": 2, "dtype": "float32", "normalize": False},
    "Perceptron": {"p": 2},
    "p-norm, p=6": {"p": 6},
    "p-norm, p=6, float32": {"p": 6, "dtype": "float32"},
    "ALMA, p=2": {"p": 2, "alpha": ALPHA},
    "ALMA, p=6": {"p": 6, "alpha": ALPHA},
}


def make_estimator(p: int, normalize: bool = True, alpha: float | None = None) -> Any:
    """Make the estimator of a soak; it has seen nothing yet."""
    if alpha is not None:
        return ALMAClassifier(p=p, alpha=alpha, normalize=normalize, **AVERAGE)
    return PNormPerceptron(p=p, normalize=normalize, **AVERAGE)


def soak(
    n_nonzeros: int,
    path: Path,
    p: int,
    dtype: str = "float64",
    normalize: bool = True,
    alpha: float | None = None,
) -> dict[str, Any]:
    """Feed the stream to two estimators and to the reference.

    Parameters
    ----------
    n_nonzeros : int
    path : Path
        Where what was learned is kept, an .npz file.
    p, dtype, normalize, alpha
        As in `SOAKS`.

    Returns
    -------
    dict
        ``sizes``, ``memory``, ``cpu_seconds`` of the first estimator, and ``drift``.
    """
    stream, random = Stream(n_nonzeros, dtype), np.random.default_rng(0)
    whole, cut = (make_estimator(p, normalize, alpha) for _ in range(2))
    reference = Reference(N_FEATURES, p, alpha)
    norms = [norms_of(X, p) if normalize else _ones(X) for X in stream.rows]
    samples, seconds, parted_at, n_rows, done = Samples(os.getpid()), 0.0, None, 0, 0
    for number, y, done in stream.chunks():
        X = stream.rows[number]
        start = process_time()
        whole.partial_fit(X, y, classes=[-1, 1])
        seconds += process_time() - start
        for X_part, y_part in _parts(X, y, random):
            cut.partial_fit(X_part, y_part, classes=[-1, 1])
        reference.learn(X, y, norms[number])
        n_rows += len(y)
        if parted_at is None and whole.n_corrections_ != reference.n_corrections:
            parted_at = n_rows
        samples.take(done)
    np.savez(path, **learned(whole))
    return {
        "sizes": {"rows": n_rows, "nonzeros": done, "corrections": int(whole.n_corrections_)},
        "memory": samples.summary(),
        "cpu_seconds": seconds,
        "drift": {"parted_at": parted_at, **_drift(whole, cut, reference, p, n_rows)},
    }


def _ones(X: csr_matrix) -> np.ndarray:
    return np.ones(X.shape[0], dtype=np.longdouble)


def _parts(
    X: csr_matrix, y: np.ndarray, random: np.random.Generator
) -> Iterator[tuple[csr_matrix, np.ndarray]]:
    """Cut a chunk at up to twenty rows drawn at random."""
    cuts = np.unique(random.integers(1, len(y), size=random.integers(1, 20)))
    for first, last in zip([0, *cuts], [*cuts, len(y)], strict=True):
        yield X[first:last], y[first:last]


def _drift(whole: Any, cut: Any, reference: Reference, p: int, n_rows: int) -> dict[str, Any]:
    theta = np.abs(whole.theta_[0].astype(np.longdouble))
    exact = (theta**p).sum() ** (1 / np.longdouble(p))
    coef = whole.coef_[0]
    gap = np.abs(coef[reference.watched] - reference.average)
    return {
        "norm": _relative(whole.theta_norm_[0], exact),
        "norm_of_reference": _relative(whole.theta_norm_[0], reference.theta_norm),
        "average": float(gap.max() / np.abs(coef).max()),
        "same_bits": same_bits(learned(whole), learned(cut)),
        "trials_right": whole._space.trials == reference.n_trials == n_rows,
    }


def _relative(kept: float, exact: np.longdouble) -> float:
    return float(abs(kept - exact) / exact)


def learned(estimator: Any) -> dict[str, np.ndarray]:
    """Return the numbers that tell what an estimator has learned."""
    return {
        "theta": estimator.theta_,
        "theta_norm": estimator.theta_norm_,
        "average": estimator.coef_,
        "corrections": np.asarray(estimator.n_corrections_),
    }


def same_bits(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Whether two estimators have learned the same to the bit."""
    return all(
        first[name].dtype == second[name].dtype and first[name].tobytes() == second[name].tobytes()
        for name in first
    )


if __name__ == "__main__":
    print(json.dumps(soak(int(sys.argv[1]), Path(sys.argv[3]), **SOAKS[sys.argv[2]])))
