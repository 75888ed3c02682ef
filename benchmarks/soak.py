"""A long soak test: 10^9 nonzeros through every kind of model, with constant memory and no drift.

A stream of Zipf text with 10 % wrong labels is passed to `partial_fit` of each kind in a process of
its own. Two others are trained on the same rows: an estimator that gets them in random batches,
which must give bitwise equal results, and a reference in extended precision, which must make the
same corrections and sums the hypotheses for 64 coordinates. At the end the stored norm is compared
with the recomputed one, and the average with the reference's. The same rows as text go through a
pipe into `fit_svmlight("-")`, which must give bitwise equal results.

The status is 1 if memory has grown or anything has drifted. It takes about ten minutes and 400 MB.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from floor import compiled, pointers
from scipy.sparse import csr_matrix
from timing import FOLDER, apart, describe_machine, parser_of, show, write_json

from sparsemargin import ALMAClassifier, PNormPerceptron, fit_svmlight
from sparsemargin.datasets import make_zipf_text

N_FEATURES = 50_000
N_CHUNKS = 8
CHUNK_ROWS = 25_000
MEAN_NNZ = 50
#: Share of wrong labels, so that corrections never cease.
NOISE = 0.1
#: Values are multiples of this number, so that float32 sums are exact and the text is short.
UNIT = 1 / 64


class Stream:
    """Rows of Zipf text, none empty, in chunks that are repeated. It ends with the chunk in which
    the number of nonzeros is reached."""

    def __init__(self, n_nonzeros: int, dtype: str = "float64"):
        X, self._y = make_zipf_text(
            N_CHUNKS * CHUNK_ROWS, N_FEATURES, mean_nnz=MEAN_NNZ, random_state=0
        )
        X.data = (np.ceil(X.data / UNIT) * UNIT).astype(dtype)
        self.rows = [X[first : first + CHUNK_ROWS] for first in range(0, X.shape[0], CHUNK_ROWS)]
        self._n_nonzeros = n_nonzeros

    def chunks(self) -> Iterator[tuple[int, np.ndarray, int]]:
        """Yield the index of the next chunk, its labels in {-1, 1}, and the nonzeros including
        it."""
        done, turn = 0, 0
        while done < self._n_nonzeros:
            number = turn % N_CHUNKS
            done += self.rows[number].nnz
            yield number, self._labels(turn), done
            turn += 1

    def _labels(self, turn: int) -> np.ndarray:
        first = turn % N_CHUNKS * CHUNK_ROWS
        y = self._y[first : first + CHUNK_ROWS]
        return np.where(np.random.default_rng(turn).random(CHUNK_ROWS) < NOISE, -y, y)

    def texts(self) -> Iterator[tuple[bytearray, int]]:
        """Yield the chunks as svmlight text; each text is valid until the next one is requested."""
        texts = [_text(X) for X in self.rows]
        signs = [np.flatnonzero(np.frombuffer(b"\n" + text[:-1], "u1") == 10) for text in texts]
        for number, y, done in self.chunks():
            signed = np.frombuffer(texts[number], dtype=np.uint8)
            signed[signs[number]] = np.where(y > 0, ord("+"), ord("-"))
            yield texts[number], done


def _text(X: csr_matrix) -> bytearray:
    entries = [f"{column}:{value:.8g}" for column, value in zip(X.indices + 1, X.data, strict=True)]
    starts = zip(X.indptr, X.indptr[1:], strict=False)
    return bytearray("".join(f"+1 {' '.join(entries[i:j])}\n" for i, j in starts), "ascii")


def resident(process: int) -> int:
    """Return the resident memory of a process in bytes; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def summary(samples: list[tuple[int, int]]) -> dict[str, int]:
    """The largest memory in the second and in the last tenth of the work. In the first tenth,
    weights and buffers of their final size are allocated."""
    samples = [(done, held) for done, held in samples if held]
    tenth = samples[-1][0] / 10
    return {
        "early_bytes": max(held for done, held in samples if tenth <= done <= 2 * tenth),
        "late_bytes": max(held for done, held in samples if done >= 9 * tenth),
    }


N_WATCHED = 64
_REAL = ctypes.c_longdouble


class _Model(ctypes.Structure):
    _fields_ = (
        ("scale", _REAL), ("power_sum", _REAL), ("threshold", _REAL), ("step", _REAL),
        ("trials", ctypes.c_int64), ("corrections", ctypes.c_int64), ("begin", ctypes.c_int64),
        ("p", ctypes.c_int32),
    )  # fmt: skip


def norms_of(X: csr_matrix, p: int) -> np.ndarray:
    """Return the p-norms of the rows; no row is empty."""
    powers = np.abs(X.data.astype(np.longdouble)) ** p
    return np.add.reduceat(powers, X.indptr[:-1]) ** (1 / np.longdouble(p))


class Reference:
    """The p-norm Perceptron, or ALMA_p with its usual B and C, in `numpy.longdouble`. If the number
    of corrections equals the estimator's after every batch, the corrections are the same."""

    def __init__(self, n_features: int, p: int, alpha: float | None):
        self._rows = compiled().soak_rows
        self._t, self._g = np.zeros((2, n_features), dtype=np.longdouble)
        self.watched = np.linspace(0, n_features - 1, N_WATCHED).astype(np.int32)
        self._sums = np.zeros(N_WATCHED, dtype=np.longdouble)
        threshold, step = 0.0, 0.0
        if alpha is not None:
            threshold = (1 - alpha) * np.sqrt(8) / alpha * np.sqrt(p - 1)
            step = np.sqrt(2) / np.sqrt(p - 1)
        self.model = _Model(1, 0, threshold, step, 0, 0, 0, p)

    def learn(self, X: csr_matrix, y: np.ndarray, norms: np.ndarray) -> None:
        """Train on the rows in their order, each divided by its norm, of type
        `numpy.longdouble`."""
        arrays = (X.indptr, X.indices, X.data.astype(np.float64), norms, y.astype(np.int8))
        self._rows(
            ctypes.byref(self.model), ctypes.c_int64(len(y)), *pointers(arrays),
            ctypes.c_int64(len(self._t)), *pointers((self._t, self._g)),
            ctypes.c_int32(N_WATCHED), *pointers((self.watched, self._sums)),
        )  # fmt: skip

    @property
    def average(self) -> np.ndarray:
        """The averaged weights of the watched coordinates."""
        return self._sums / self.model.trials

    @property
    def theta_norm(self) -> np.longdouble:
        """``||theta||_p``, recomputed."""
        theta = np.abs(self._t) * np.longdouble(self.model.scale)
        return (theta**self.model.p).sum() ** (1 / np.longdouble(self.model.p))


ALPHA = 0.9
AVERAGE = {"hypothesis": "average", "fit_intercept": False}
#: For raw rows, the sums of the Perceptron are exact in float32. For divided rows they are not, and
#: the decisions would soon differ from the reference's.
SOAKS = {
    "Perceptron, float32": {"p": 2, "dtype": "float32", "normalize": False}, "Perceptron": {"p": 2},
    "p-norm, p=6": {"p": 6}, "p-norm, p=6, float32": {"p": 6, "dtype": "float32"},
    "ALMA, p=2": {"p": 2, "alpha": ALPHA}, "ALMA, p=6": {"p": 6, "alpha": ALPHA},
}  # fmt: skip


def make_estimator(p: int, normalize: bool = True, alpha: float | None = None) -> Any:
    """Create the untrained estimator of a soak."""
    if alpha is not None:
        return ALMAClassifier(p=p, alpha=alpha, normalize=normalize, **AVERAGE)
    return PNormPerceptron(p=p, normalize=normalize, **AVERAGE)


def soak(name: str, n_nonzeros: int) -> dict[str, Any]:
    """Run in a new process: feed the stream to two estimators and to the reference."""
    settings = dict(SOAKS[name])
    stream, random = Stream(n_nonzeros, settings.pop("dtype", "float64")), np.random.default_rng(0)
    whole, cut = (make_estimator(**settings) for _ in range(2))
    p = settings["p"]
    reference = Reference(N_FEATURES, p, settings.get("alpha"))
    raw = not settings.get("normalize", True)
    norms = [np.ones(X.shape[0], np.longdouble) if raw else norms_of(X, p) for X in stream.rows]
    samples, parted_at, n_rows, done = [], None, 0, 0
    for number, y, done in stream.chunks():
        X = stream.rows[number]
        whole.partial_fit(X, y, classes=[-1, 1])
        # Cut into at most twenty batches at random rows.
        cuts = np.unique(random.integers(1, len(y), size=random.integers(1, 20)))
        for first, last in zip([0, *cuts], [*cuts, len(y)], strict=True):
            cut.partial_fit(X[first:last], y[first:last], classes=[-1, 1])
        reference.learn(X, y, norms[number])
        n_rows += len(y)
        if parted_at is None and whole.n_corrections_ != reference.model.corrections:
            parted_at = n_rows
        samples.append((done, resident(os.getpid())))
    theta = np.abs(whole.theta_[0].astype(np.longdouble))
    exact = (theta**p).sum() ** (1 / np.longdouble(p))
    coef, kept = whole.coef_[0], whole.theta_norm_[0]
    gap = np.abs(coef[reference.watched] - reference.average)
    return {
        "sizes": {"rows": n_rows, "nonzeros": done, "corrections": int(whole.n_corrections_)},
        "memory": summary(samples), "learned": learned(whole),
        "drift": {
            "parted_at": parted_at, "norm": float(abs(kept - exact) / exact),
            "average": float(gap.max() / np.abs(coef).max()),
            "same_bits": same_bits(learned(whole), learned(cut)),
            "trials_right": whole.space.trials == reference.model.trials == n_rows,
        },
    }  # fmt: skip


def learned(estimator: Any) -> dict[str, np.ndarray]:
    """Return the numbers that describe the state of an estimator."""
    return {
        "theta": estimator.theta_, "theta_norm": estimator.theta_norm_, "average": estimator.coef_,
        "corrections": np.asarray(estimator.n_corrections_),
    }  # fmt: skip


def same_bits(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Return whether the states of two estimators are bitwise equal."""
    return all(
        first[name].dtype == second[name].dtype and first[name].tobytes() == second[name].tobytes()
        for name in first
    )


def learn_text(path: str) -> None:
    """Run in a new process: train on standard input, and save the state."""
    model = fit_svmlight("-", "alma", n_features=N_FEATURES, zero_based=False, **AVERAGE, p=2,
                         alpha=ALPHA)  # fmt: skip
    np.savez(path, **learned(model))


def soak_text(n_nonzeros: int) -> dict[str, Any]:
    """Write the stream into a pipe, and watch the process at its other end, as in `soak`."""
    texts = Stream(n_nonzeros).texts()
    text, done = next(texts)  # all texts have been made after this
    samples, n_bytes = [], 0
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/learned.npz"
        code = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import soak; "
        code += f"soak.learn_text({path!r})"
        with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
            while text:
                child.stdin.write(text)
                n_bytes += len(text)
                samples.append((done, resident(child.pid)))
                text, done = next(texts, (None, done))
        if child.returncode:
            raise SystemExit("The soak from text failed")
        found = dict(np.load(path))
    sizes = {"nonzeros": done, "text_bytes": n_bytes}
    return {"sizes": sizes, "memory": summary(samples), "learned": found}


TWIN = "ALMA, p=2"
MEGABYTE = 2**20
#: Tolerance for the allocator; a leak of one byte per row would be five times as much.
GROWTH_BYTES = 4 * MEGABYTE
#: With fewer nonzeros, not every tenth of the work has a sample.
LEAST_NONZEROS = 20_000_000
#: Relative errors; float32 averages are float32 numbers, summed in float32.
TOLERANCE = 1e-10
TOLERANCE_FLOAT32 = 1e-3


def faults(name: str, result: dict[str, Any]) -> list[str]:
    """Return short descriptions of all faults."""
    memory, drift = result["memory"], result["drift"]
    limit = TOLERANCE_FLOAT32 if name == "Perceptron, float32" else TOLERANCE
    grown = memory["late_bytes"] - memory["early_bytes"]
    found = {
        f"memory has grown by {grown / MEGABYTE:.1f} MB": grown > GROWTH_BYTES,
        "the bits hang on how the stream was cut": not drift["same_bits"],
        "the corrections part from the reference's": drift.get("parted_at") is not None,
        "the trials are counted wrongly": not drift.get("trials_right", True),
        "the norm has drifted": drift.get("norm", 0) > TOLERANCE,
        "the average has drifted": drift.get("average", 0) > limit,
    }
    return [f"{name}: {what}" for what, holds in found.items() if holds]


def main() -> None:
    """Soak, print, and write."""
    parser = parser_of(__doc__, "results/soak.json")
    parser.add_argument("--nonzeros", type=float, default=1e9)
    options = parser.parse_args()
    if options.nonzeros < LEAST_NONZEROS:
        parser.error(f"--nonzeros must be at least {LEAST_NONZEROS:.0e}")
    print(describe_machine())
    n_nonzeros = int(options.nonzeros)
    results = {name: apart(soak, name, n_nonzeros) for name in SOAKS}
    results[f"{TWIN}, text"] = from_text = soak_text(n_nonzeros)
    from_text["drift"] = {"same_bits": same_bits(results[TWIN]["learned"], from_text["learned"])}
    for result in results.values():
        del result["learned"]
    show("soaks", [{"soak": name} | each for name, each in results.items()])
    write_json(options.out, {"soaks": results})
    wrong = [fault for name, result in results.items() for fault in faults(name, result)]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
