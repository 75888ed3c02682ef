"""Spaces of matrix Perceptrons in dual variables, one a label, over one pool of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemargin._engine._dual import DualSpace
from sparsemargin._engine.kernel_functions import Kernel
from sparsemargin._engine.label_spaces import SpacePerLabel
from sparsemargin._engine.points import Points, Pool


class DualSpaces(SpacePerLabel):
    """The spaces of all labels, and the rows that any of them has mistaken.

    Parameters
    ----------
    kernel : Kernel
    make : callable
        Makes an empty space.
    n_labels : int
    """

    p = 2.0

    spaces: list[DualSpace]

    def __init__(self, kernel: Kernel, make: Callable[[], DualSpace], n_labels: int):
        super().__init__([make() for _ in range(n_labels)])
        self.kernel = kernel
        self.pool = Pool()
        self.origin = np.empty(0, dtype=np.int64)
        self.rows_taken = 0

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
        if self.n_support:
            lengths = self.pool.points.lengths
            for space, of_label in zip(self.spaces, result, strict=True):
                places = space.support
                of_label[places] = space.hypothesis() / lengths[places]
        return result

    def support_counts(self) -> np.ndarray:
        """Rows that the last vector of each label is made of, shape (n_labels,)."""
        return self.per_label("n_nonzero")
