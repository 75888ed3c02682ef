"""The C Perceptron loops of floor.c, compiled on the spot and driven like estimators."""

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state

SOURCE = Path(__file__).with_name("floor.c")


@cache
def compiled(source: Path) -> ctypes.CDLL:
    """Compile a C file, and load it.

    Raises
    ------
    SystemExit
        If there is no compiler, or it fails.
    """
    compiler = os.environ.get("CC", "gcc")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / f"{source.stem}.so"
        command = [
            *compiler.split(),
            "-O3",
            "-shared",
            "-fPIC",
            "-o",
            str(built),
            str(source),
            "-lm",
        ]
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(
                f"{source.name} needs a C compiler, and {compiler!r} failed ({error}): "
                "install gcc, or name another compiler in the variable CC"
            ) from error
        return ctypes.CDLL(str(built))


def pointers(arrays: Iterable[np.ndarray]) -> list[ctypes.c_void_p]:
    """Where the arrays lie, for a C function."""
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


def row_orders(n_rows: int, n_epochs: int, shuffle: bool, seed: int) -> list[np.ndarray]:
    """Draw the order of the rows in each epoch; or leave the rows in theirs."""
    random, rows = check_random_state(seed), np.arange(n_rows, dtype=np.int32)
    return [random.permutation(rows) if shuffle else rows for _ in range(n_epochs)]


class FloorPerceptron:
    """Epochs of the plain C Perceptron over rows whose orders were drawn beforehand.

    The zero weights are made here, so that `run` times the loop alone.

    Parameters
    ----------
    X : csr_matrix of shape (m, n), float32 or float64, int32 indices
    y : ndarray of shape (m,), values in {-1, 1}
    orders : list of ndarray of shape (m,), int32
        The row numbers in the order in which they are learned, for each epoch.
    """

    def __init__(self, X: csr_matrix, y: np.ndarray, orders: list[np.ndarray]):
        self.X = X
        self.y = y.astype(X.dtype)
        self.orders = orders
        self.weights = np.zeros(X.shape[1], dtype=X.dtype)
        self._epoch = getattr(compiled(SOURCE), f"perceptron_epoch_{X.dtype.name}")

    def run(self) -> "FloorPerceptron":
        """Learn from every row once in each epoch."""
        X = self.X
        for order in self.orders:
            arrays = (order, X.indptr, X.indices, X.data, self.y, self.weights)
            self._epoch(ctypes.c_int64(order.size), *pointers(arrays))
        return self

    def predict(self, X: csr_matrix) -> np.ndarray:
        """Return labels in {-1, 1}."""
        return np.where(X @ self.weights >= 0, 1, -1)


class FloorLabels:
    """Epochs of the plain C Perceptron over many labels at once, one sweep over a row for all.

    Parameters
    ----------
    X : csr_matrix of shape (m, n), float32, int32 indices
    Y : ndarray of shape (m, n_labels)
        1 where the row has the label, else 0.
    orders : list of ndarray of shape (m,), int32
        The row numbers in the order in which they are learned, for each epoch.
    """

    STRIDE = 16  # floats, so that the weights of a feature begin at a cache line

    def __init__(self, X: csr_matrix, Y: np.ndarray, orders: list[np.ndarray]):
        self.X = X
        self.orders = orders
        self.n_labels = Y.shape[1]
        self.signs = np.where(Y, 1, -1).astype(np.int8)
        self.stride = -(-self.n_labels // self.STRIDE) * self.STRIDE
        self.weights = _aligned_zeros(X.shape[1], self.stride)

    def run(self) -> "FloorLabels":
        """Learn from every row once in each epoch."""
        X, scores = self.X, np.empty(self.stride, dtype=np.float32)
        for order in self.orders:
            sizes = (ctypes.c_int64(n) for n in (order.size, self.n_labels, self.stride))
            arrays = (order, X.indptr, X.indices, X.data, self.signs, self.weights, scores)
            compiled(SOURCE).perceptron_labels_epoch(*sizes, *pointers(arrays))
        return self

    def predict(self, X: csr_matrix) -> np.ndarray:
        """Return an indicator array."""
        return (X @ self.weights)[:, : self.n_labels] >= 0


def _aligned_zeros(n_rows: int, n_columns: int) -> np.ndarray:
    """Zeros of float32 that begin at a cache line of 64 bytes."""
    room = np.zeros(n_rows * n_columns + 16, dtype=np.float32)
    first = -room.ctypes.data % 64 // 4
    return room[first : first + n_rows * n_columns].reshape(n_rows, n_columns)
