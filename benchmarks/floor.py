"""The C Perceptron loop of floor.c, compiled on the spot and driven like an estimator."""

import ctypes
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

SOURCE = Path(__file__).with_name("floor.c")


@cache
def _library() -> ctypes.CDLL:
    compiler = os.environ.get("CC", "gcc")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "floor.so"
        command = [*compiler.split(), "-O3", "-shared", "-fPIC", "-o", str(built), str(SOURCE)]
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(
                f"{SOURCE.name} needs a C compiler, and {compiler!r} failed ({error}): "
                "install gcc, or name another compiler in the variable CC"
            ) from error
        return ctypes.CDLL(str(built))


class FloorPerceptron:
    """One epoch of the plain C Perceptron over rows whose order was drawn beforehand.

    The order and the zero weights are made here, so that `run` times the loop alone.

    Parameters
    ----------
    X : csr_matrix of shape (m, n), float32 or float64, int32 indices
    y : ndarray of shape (m,), values in {-1, 1}
    order : ndarray of shape (m,), int32
        The row numbers in the order in which they are learned.
    """

    def __init__(self, X: csr_matrix, y: np.ndarray, order: np.ndarray):
        self.X = X
        self.y = y.astype(X.dtype)
        self.order = order
        self.weights = np.zeros(X.shape[1], dtype=X.dtype)
        self._epoch = getattr(_library(), f"perceptron_epoch_{X.dtype.name}")

    def run(self) -> "FloorPerceptron":
        """Learn from every row once."""
        arrays = (self.order, self.X.indptr, self.X.indices, self.X.data, self.y, self.weights)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in arrays)
        self._epoch(ctypes.c_int64(self.order.size), *pointers)
        return self

    def predict(self, X: csr_matrix) -> np.ndarray:
        """Return labels in {-1, 1}."""
        return np.where(X @ self.weights >= 0, 1, -1)
