"""The arithmetic of margins: outputs of unit weight vectors on unit rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin.models import Learner
from sparsemargin.models._rows import Rows


def divided(outputs: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Quotients, 0 where the divisor is."""
    return np.divide(outputs, norms, out=np.zeros_like(outputs), where=norms > 0)


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
        self._learner = learner
        self._votes = learner.hypothesis == "vote"
        if not self._votes:
            self._norms = learner._hypothesis_norms()

    def of_rows(self, rows: Rows, outputs: Any, codes: np.ndarray) -> np.ndarray:
        """Margins of checked rows with these outputs, shape (n_rows,)."""
        if not self._votes:
            lengths = self._learner._row_lengths(rows)
            outputs = divided(divided(outputs, self._norms), lengths[:, np.newaxis])
        return own_margins(outputs, codes)
