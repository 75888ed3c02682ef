"""Spaces of matrix Perceptrons in dual variables, one a label, over one pool of rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from sparsemargin._engine.kernel.functions import Kernel
from sparsemargin._engine.kernel.states import (
    kernel_state,
    restored_kernel,
    restored_support,
    support_state,
)
from sparsemargin._engine.kernel.support import Points, SupportSet
from sparsemargin._engine.matrix.dual import DualSpace
from sparsemargin._engine.matrix.dual_higher_order import HigherOrderDual
from sparsemargin._engine.matrix.dual_second_order import SecondOrderDual
from sparsemargin._engine.matrix.label_spaces import MATRIX_MEMORY, SpacePerLabel
from sparsemargin._engine.state import (
    MAX_TRIALS,
    array_of,
    part,
    real,
    require,
    require_within,
    whole,
)

_KINDS = {kind.__name__: kind for kind in (HigherOrderDual, SecondOrderDual)}


def _restored(kind: Any, state: dict[str, Any]) -> DualSpace:
    space = kind.__new__(kind)
    space.__setstate__(state)
    return space


class DualSpaces(SpacePerLabel):
    """The spaces of all labels, and the rows that any of them has mistaken.

    Parameters
    ----------
    kernel : Kernel
    n_features : int
    make : callable
        Makes an empty space.
    n_labels : int
    """

    p = 2.0

    spaces: list[DualSpace]

    def __init__(
        self, kernel: Kernel, n_features: int, make: Callable[[], DualSpace], n_labels: int
    ):
        super().__init__([make() for _ in range(n_labels)])
        self.kernel, self.n_features = kernel, n_features
        self.pool = SupportSet()
        self.origin = np.empty(0, dtype=np.int64)
        self.rows_taken = 0

    def __getstate__(self) -> dict[str, Any]:
        return {
            "kernel": kernel_state(self.kernel), "bias": self.bias, "n_features": self.n_features,
            "pool": support_state(self.pool), "origin": self.origin, "rows_taken": self.rows_taken,
            "kind": type(self.spaces[0]).__name__,
            "spaces": [space.__getstate__() for space in self.spaces],
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        kind, spaces = part(state, "kind"), part(state, "spaces")
        require(kind in _KINDS, f"there is no space {kind!r}")
        require(isinstance(spaces, list) and len(spaces) > 0, "it has no spaces")
        super().__init__([_restored(_KINDS[kind], of_label) for of_label in spaces])
        settings = part(spaces[0], "settings")
        whole(settings, "room", 0, MATRIX_MEMORY // len(spaces))
        require(all(of_label["settings"] == settings for of_label in spaces),
                "its spaces are not alike")  # fmt: skip
        self.n_features = whole(state, "n_features", 1, sys.maxsize // 8)
        self.kernel = restored_kernel(part(state, "kernel"), real(state, "bias", 0.0, inf))
        self.pool = restored_support(part(state, "pool"), self.kernel, self.n_features)
        self.rows_taken = whole(state, "rows_taken", 0, MAX_TRIALS)
        self.origin = array_of(state, "origin", np.int64, (self.n_support,))
        for space in self.spaces:
            require_within("places", space.support, 0, self.n_support - 1)

    @property
    def bias(self) -> float:
        return self.kernel.bias

    @property
    def n_support(self) -> int:
        return len(self.pool)

    @property
    def nbytes(self) -> int:
        """Bytes of the pool and of the labels' spaces."""
        return self.pool.nbytes + sum(space.nbytes for space in self.spaces)

    def count_rows(self, n_rows: int) -> None:
        """Number the rows of the next stream on from these."""
        self.rows_taken += n_rows

    def adopt(self, points: Points, rows: np.ndarray, places: np.ndarray) -> None:
        """Let rows of a block into the pool, at its end.

        Parameters
        ----------
        points : Points
        rows : ndarray of shape (n_joined,)
            What they are called in `origin`.
        places : ndarray of shape (n_block,)
            Those of all rows of the block, which labels have numbered on from the pool's end.
        """
        base = self.n_support
        for space in self.spaces:
            space.renumber(base, places)
        if len(rows):
            self.pool.extend(points)
            self.origin = np.concatenate([self.origin, rows])

    def coefficients(self) -> np.ndarray:
        """Of each row of the pool in the hypothesis, shape (n_labels, n_support)."""
        result = np.zeros((self.n_labels, self.n_support))
        lengths = self.pool.points.lengths
        for space, of_label in zip(self.spaces, result, strict=True):
            places = space.support
            of_label[places] = space.hypothesis() / lengths[places]
        return result

    def count_support(self) -> np.ndarray:
        """Rows of the pool that each label's hypothesis is made of, shape (n_labels,)."""
        return self.per_label("n_support")
