"""Labels of rows that may have several: those chosen by their outputs."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from sparsemargin._engine.fitting.task import Positives

#: What labels came as, and predictions are given back as.
Form = Literal["dense", "sparse", "lists"]
FORMS = get_args(Form)

# Outputs that are held at once.
_OUTPUTS_PER_PART = 1 << 21


class Choice:
    """Which labels are predicted.

    Parameters
    ----------
    n_labels : int
    threshold : float, array-like of shape (n_labels,) or None
        What an output must reach; None: 0, or nothing where `top_k` is given.
    top_k : int or None
        Only so many labels of largest output, the lowest of those that are equal.

    Raises
    ------
    ValueError
        If `threshold` or `top_k` can't be used.
    """

    def __init__(self, n_labels: int, threshold: Any = None, top_k: Any = None) -> None:
        if top_k is not None and not (_is_whole(top_k) and top_k >= 1):
            raise ValueError(f"top_k must be None or an int from 1, got {top_k!r}.")
        if threshold is None:
            threshold = 0.0 if top_k is None else -np.inf
        least = _numbers(threshold)
        if least is None or least.shape not in ((), (n_labels,)) or np.isnan(least).any():
            raise ValueError(
                f"threshold must be a number, or one for each of the {n_labels} labels, got "
                f"{threshold!r}."
            )
        self.threshold = least
        self.top_k = None if top_k is None or top_k >= n_labels else int(top_k)

    def of(self, outputs: np.ndarray) -> np.ndarray:
        """Whether each label is predicted, of outputs of shape (n_rows, n_labels)."""
        reached: np.ndarray = outputs >= self.threshold
        if self.top_k is None:
            return reached
        least = np.partition(outputs, -self.top_k, axis=1)[:, -self.top_k, np.newaxis]
        above, equal = outputs > least, outputs == least
        room = self.top_k - above.sum(axis=1, keepdims=True)
        return reached & (above | (equal & (np.cumsum(equal, axis=1) <= room)))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _numbers(values: Any) -> np.ndarray | None:
    """As float64; None: they are no real numbers."""
    try:
        array = np.asarray(values)
    except ValueError:
        return None
    return array.astype(np.float64) if array.dtype.kind in "iuf" else None


def positives_of(chosen: np.ndarray) -> Positives:
    """The labels that a boolean array of shape (n_rows, n_labels) has in each row."""
    n_rows, n_labels = chosen.shape
    places = np.flatnonzero(chosen)
    starts = np.searchsorted(places, np.arange(n_rows + 1) * n_labels)
    return Positives(starts.astype(np.int64, copy=False), places % n_labels)


def joined(parts: list[Positives]) -> Positives:
    """The labels of rows that follow upon each other."""
    counts = [np.diff(part.starts) for part in parts]
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return Positives(starts, np.concatenate([part.labels for part in parts]))


def rows_per_part(n_labels: int) -> int:
    """Rows whose outputs fit into memory at once."""
    return max(1, _OUTPUTS_PER_PART // n_labels)
