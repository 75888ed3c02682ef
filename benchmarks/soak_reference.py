"""The reference of soak_reference.c, compiled on the spot and fed batches like an estimator."""

import ctypes
from pathlib import Path

import numpy as np
from floor import compiled, pointers
from scipy.sparse import csr_matrix

SOURCE = Path(__file__).with_name("soak_reference.c")
N_WATCHED = 64
_REAL = ctypes.c_longdouble


class _Model(ctypes.Structure):
    _fields_ = (
        ("scale", _REAL), ("power_sum", _REAL), ("threshold", _REAL), ("step", _REAL),
        ("trials", ctypes.c_int64), ("corrections", ctypes.c_int64), ("begin", ctypes.c_int64),
        ("p", ctypes.c_int32),
    )  # fmt: skip


def norms_of(X: csr_matrix, p: int) -> np.ndarray:
    """Return the rows' p-norms; no row is empty."""
    powers = np.abs(X.data.astype(np.longdouble)) ** p
    return np.add.reduceat(powers, X.indptr[:-1]) ** (1 / np.longdouble(p))


class Reference:
    """The p-norm Perceptron, or ALMA_p with its usual B and C, in `numpy.longdouble`.

    It makes its own decisions: as long as it has made as many corrections as the estimator after
    every batch, they are the same ones.

    Parameters
    ----------
    n_features : int
    p : int
    alpha : float or None
        Of ALMA; None: the Perceptron.

    Attributes
    ----------
    watched : ndarray of shape (N_WATCHED,)
        The coordinates whose average is kept.
    """

    def __init__(self, n_features: int, p: int, alpha: float | None):
        self._rows = compiled(SOURCE).soak_rows
        self._t, self._g = np.zeros((2, n_features), dtype=np.longdouble)
        self.watched = np.linspace(0, n_features - 1, N_WATCHED).astype(np.int32)
        self._sums = np.zeros(N_WATCHED, dtype=np.longdouble)
        threshold, step = 0.0, 0.0
        if alpha is not None:
            threshold = (1 - alpha) * np.sqrt(8) / alpha * np.sqrt(p - 1)
            step = np.sqrt(2) / np.sqrt(p - 1)
        self._model = _Model(1, 0, threshold, step, 0, 0, 0, p)

    def learn(self, X: csr_matrix, y: np.ndarray, norms: np.ndarray) -> None:
        """Take the rows in their order, each divided by its norm, of type `numpy.longdouble`."""
        arrays = (X.indptr, X.indices, X.data.astype(np.float64), norms, y.astype(np.int8))
        self._rows(
            ctypes.byref(self._model), ctypes.c_int64(len(y)), *pointers(arrays),
            ctypes.c_int64(len(self._t)), *pointers((self._t, self._g)),
            ctypes.c_int32(N_WATCHED), *pointers((self.watched, self._sums)),
        )  # fmt: skip

    @property
    def n_corrections(self) -> int:
        return self._model.corrections

    @property
    def n_trials(self) -> int:
        return self._model.trials

    @property
    def average(self) -> np.ndarray:
        """The averaged weights of the watched coordinates."""
        return self._sums / self._model.trials

    @property
    def theta_norm(self) -> np.longdouble:
        """``||theta||_p``, summed afresh."""
        theta = np.abs(self._t) * np.longdouble(self._model.scale)
        return (theta**self._model.p).sum() ** (1 / np.longdouble(self._model.p))
