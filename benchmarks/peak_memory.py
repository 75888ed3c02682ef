"""Peak memory of a fit, measured in a child process that holds X and nothing else of size.

The promise is: X, plus four float64 vectors of length n per class, plus O(m).
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from contestants import ONE_EPOCH, PEER_EPOCH, PERCEPTRON_SGD, RAW
from corpora import Shape, draw
from measure import text_table
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier

from sparsemargin import ALMAClassifier, PNormPerceptron

STATUS = Path("/proc/self/status")
MEGABYTE = 2**20
PROMISED_VECTORS = 4
WARM_UP_ROWS, WARM_UP_FEATURES = 300, 100
ARRAYS = ("data", "indices", "indptr", "y")

ESTIMATORS = {
    "sklearn SGD perceptron, average": SGDClassifier(**PEER_EPOCH, **PERCEPTRON_SGD, average=True),
    "Perceptron, last": PNormPerceptron(**ONE_EPOCH, **RAW, hypothesis="last"),
    "Perceptron, average": PNormPerceptron(**ONE_EPOCH, **RAW, hypothesis="average"),
    "p-norm p=6, average": PNormPerceptron(**ONE_EPOCH, p=6.0, hypothesis="average"),
    "ALMA p=6, average": ALMAClassifier(**ONE_EPOCH, p=6.0, hypothesis="average"),
}

COLUMNS = [
    ("", ""),
    ("X MB", ".1f"),
    ("fit adds MB", ".1f"),
    ("promised MB", ".1f"),
    ("vectors used", ".2f"),
    ("excess, bytes/row", ".1f"),
]


def resident_peak() -> int:
    fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024


def _added_by_fit(folder: Path, name: str) -> int:
    """Run in the child: load X, then return the bytes by which a fit raises the peak."""
    data, indices, indptr, y = (np.load(folder / f"{array}.npy") for array in ARRAYS)
    n_features = int((folder / "n_features").read_text())
    X = csr_matrix((data, indices, indptr), shape=(y.size, n_features), copy=False)
    estimator = ESTIMATORS[name]
    # A first fit pays for lazy imports and thread pools, which are no memory of the fit. It gets
    # little, or the memory it frees would be reused and hide what the second one needs.
    estimator.fit(X[:WARM_UP_ROWS, :WARM_UP_FEATURES], y[:WARM_UP_ROWS])
    # Sets the peak back to what is resident now, so that loading X leaves no trace in it.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident_peak()
    estimator.fit(X, y)
    return resident_peak() - before


def peak_memory(shape: Shape, n_classes: int) -> list[dict]:
    """Measure what a fit adds to the peak memory of a process that holds X.

    Parameters
    ----------
    shape : Shape
    n_classes : int
        One-versus-rest needs one set of vectors per class, and a single one for two classes.

    Returns
    -------
    list of dict
        One entry per estimator, sizes in bytes. Empty where the system doesn't tell the peak of a
        process (only Linux does).
    """
    if not STATUS.exists():
        return []
    X, y = draw(shape, shape.n_train, n_classes)
    n_machines = 1 if n_classes == 2 else n_classes
    vector_bytes = 8 * X.shape[1] * n_machines
    facts = {
        "shape": shape.name,
        "n_classes": n_classes,
        "n_samples": X.shape[0],
        "X_bytes": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes,
        "vector_bytes": vector_bytes,
    }
    with tempfile.TemporaryDirectory() as folder:
        for array, values in zip(ARRAYS, (X.data, X.indices, X.indptr, y), strict=True):
            np.save(Path(folder) / f"{array}.npy", values)
        (Path(folder) / "n_features").write_text(str(X.shape[1]))
        return [
            facts | {"estimator": name, "added_bytes": _run_child(folder, name)}
            for name in ESTIMATORS
        ]


def _run_child(folder: str, name: str) -> int:
    command = [sys.executable, __file__, folder, name]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def show(entries: list[dict]) -> None:
    """Print the table of one shape."""
    if not entries:
        print("\nPeak memory: left out, this system doesn't tell the peak of a process")
        return
    facts = entries[0]
    print(
        f"\nPeak memory of a fit, {facts['shape']}, {facts['n_classes']} classes; promised: "
        f"{PROMISED_VECTORS} float64 vectors of length n per class, plus O(m)"
    )
    print(text_table(COLUMNS, [_row(entry) for entry in entries]))


def _row(entry: dict) -> tuple:
    promised = PROMISED_VECTORS * entry["vector_bytes"]
    return (
        entry["estimator"],
        entry["X_bytes"] / MEGABYTE,
        entry["added_bytes"] / MEGABYTE,
        promised / MEGABYTE,
        entry["added_bytes"] / entry["vector_bytes"],
        max(0, entry["added_bytes"] - promised) / entry["n_samples"],
    )


if __name__ == "__main__":
    print(_added_by_fit(Path(sys.argv[1]), sys.argv[2]))
