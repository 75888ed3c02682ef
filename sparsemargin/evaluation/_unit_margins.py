"""The arithmetic of margins: outputs of unit weight vectors on unit rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin._engine import kernels
from sparsemargin.learners import Learner
from sparsemargin.learners._rows import Rows


def norm(v: np.ndarray, q: float) -> float:
    """The q-norm of a vector, whatever its magnitude."""
    largest = float(np.abs(v).max())
    return largest * float(np.linalg.norm(v / largest, ord=q)) if largest else 0.0


def divided(outputs: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Quotients, 0 where the divisor is."""
    return np.divide(outputs, norms, out=np.zeros_like(outputs), where=norms > 0)


def row_norms(rows: Rows, p: float, bias: float) -> np.ndarray:
    """p-norm of every checked row, the intercept's coordinate included; shape (n_rows,)."""
    return kernels.for_rows(rows).row_norms(rows.data, rows.indptr, p, bias)


def own_margins(outputs: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Each row's output for its own class, less the largest other one.

    Parameters
    ----------
    outputs : ndarray of shape (n_rows, n_labels)
        n_labels is 1 for two classes: the output for class 1, whose opposite is that for class 0.
    codes : ndarray of shape (n_rows,), int
        Place of each row's class.
    """
    if outputs.shape[1] == 1:
        return np.where(codes == 1, outputs[:, 0], -outputs[:, 0])
    places = np.arange(len(codes))
    others = outputs.copy()
    others[places, codes] = -np.inf
    return outputs[places, codes] - others.max(axis=1)


class UnitMargins:
    """Margins of a learner on rows as they come, as `sparsemargin.evaluation.margins` defines them.

    Parameters
    ----------
    learner : Learner
        Of any hypothesis but "random".
    """

    def __init__(self, learner: Learner) -> None:
        self._votes = learner.hypothesis == "vote"
        if not self._votes:
            self._p, self._bias = float(learner.p_), float(learner._space.bias)
            q = self._p / (self._p - 1.0)
            self._norms = np.array([norm(weights, q) for weights in learner._weights()])

    def of_rows(self, rows: Rows, outputs: Any, codes: np.ndarray) -> np.ndarray:
        """Margins of checked rows with these outputs, shape (n_rows,)."""
        if not self._votes:
            lengths = row_norms(rows, self._p, self._bias)
            outputs = divided(divided(outputs, self._norms), lengths[:, np.newaxis])
        return own_margins(outputs, codes)
