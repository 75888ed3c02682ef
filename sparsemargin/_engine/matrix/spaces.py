"""Collections of matrix Perceptrons, one for each vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any, ClassVar

import numpy as np

from sparsemargin._engine.fitting.protocol import NumberedRows
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.kernel.functions import Kernel
from sparsemargin._engine.kernel.outputs import SupportSpace, single_blas
from sparsemargin._engine.kernel.support import Points, SupportSet
from sparsemargin._engine.kernel.user_kernels import restored_kernel
from sparsemargin._engine.matrix.base import learn_rows, outputs
from sparsemargin._engine.matrix.higher_order import HigherOrderDual, HigherOrderSpace
from sparsemargin._engine.matrix.loop import DualLoop, FeatureLoop
from sparsemargin._engine.matrix.second_order import SecondOrderDual, SecondOrderSpace
from sparsemargin._engine.numerics.norms import norm
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.state import (
    MAX_TRIALS,
    MOST_NUMBERS,
    array_of,
    integer,
    part,
    real,
    require,
    require_within,
)

#: Largest size of all matrices of a model in bytes. Beyond it, they are fixed; training continues.
MATRIX_MEMORY = 1 << 30


def _common(name: str) -> Any:
    """An attribute that all spaces have in common."""
    return property(lambda self: getattr(self.spaces[0], name))


class SpacePerVector(NumberedRows):
    """Independent spaces with the same settings, one for each vector."""

    #: The possible classes of the spaces, by name.
    kinds: ClassVar[dict[str, Any]] = {}

    def __init__(self, spaces: Sequence[Any]):
        self.spaces, self.n_vectors, self.rows_taken = list(spaces), len(spaces), 0

    def __getstate__(self) -> dict[str, Any]:
        return {
            "kind": type(self.spaces[0]).__name__,
            "rows_taken": self.rows_taken,
            "spaces": [space.__getstate__() for space in self.spaces],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        kind, states = part(state, "kind"), part(state, "spaces")
        require(isinstance(kind, str) and kind in self.kinds, f"there is no space {kind!r}")
        require(isinstance(states, list) and len(states) > 0, "it has no spaces")
        settings = part(states[0], "settings")
        integer(settings, "room", 0, MATRIX_MEMORY // len(states))
        spaces = []
        for each in states:
            require(part(each, "settings") == settings, "its spaces are not alike")
            spaces.append(self.kinds[kind].__new__(self.kinds[kind]))
            spaces[-1].__setstate__(each)
        SpacePerVector.__init__(self, spaces)
        self.rows_taken = integer(state, "rows_taken", 0, MAX_TRIALS)

    def per_vector(self, name: str) -> np.ndarray:
        return np.array([getattr(space, name) for space in self.spaces])

    @property
    def full(self) -> bool:  # type: ignore[override]
        return any(space.full for space in self.spaces)

    @property
    def trials_per_vector(self) -> np.ndarray:
        return self.per_vector("trials")

    @property
    def trials(self) -> int:
        return int(self.trials_per_vector.max())

    def count_trials(self, trials: int) -> None:
        more = trials - self.trials
        for space, done in zip(self.spaces, self.exhausted(), strict=True):
            if not done:
                space.count_trials(more)

    def resume(self, max_corrections: int | None = None) -> None:
        for space in self.spaces:
            space.resume(max_corrections)


class FeatureSpaces(SpacePerVector):
    """The spaces of all vectors, each over the features that its mistakes contain.

    Parameters
    ----------
    spaces : sequence of MatrixSpace
    """

    kinds: ClassVar = {kind.__name__: kind for kind in (HigherOrderSpace, SecondOrderSpace)}

    p, bias = _common("p"), _common("bias")
    n_features = _common("n_features")

    @contextmanager
    def loop(self, task: Task, rule: Any = None, *, skips: bool = False) -> Iterator[FeatureLoop]:
        self.resume(task.max_corrections)
        yield FeatureLoop(self, task)

    def number(self, task: Task, same: bool) -> None:
        task.first_row = 0

    def resize(self, n_features: int, first: int = 0) -> None:
        """See `LinearSpace.resize`."""
        for space in self.spaces:
            space.resize(n_features, first)

    def weights(self, columns: Any = slice(None)) -> np.ndarray:
        """Weights of the hypothesis, shape (n_vectors, n_coordinates), or only the given
        coordinates of it."""
        return np.vstack([space.weights(columns) for space in self.spaces])

    def norms(self, n_threads: int) -> np.ndarray:
        return np.array([norm(space.hypothesis(), self.q) for space in self.spaces])

    @property
    def solvers(self) -> list[str]:
        """The current form of each vector's matrix."""
        return ["primal" if primal else "implicit" for primal in self.per_vector("primal")]

    def outputs(self, rows: Csr, n_threads: int = 1) -> np.ndarray:
        result = np.empty((rows.n_rows, self.n_vectors))
        for space, out in zip(self.spaces, result.T, strict=True):
            outputs(space, rows, out)
        return result

    def absorb(
        self, vector: int, rows: Csr, which: np.ndarray, steps: np.ndarray, numbers: np.ndarray
    ) -> None:
        """Apply mistakes that another process made on the rows `which` to one vector."""
        learn_rows(self.spaces[vector], rows, which, steps, numbers, mistaken=True)

    def summed(self) -> np.ndarray:
        """Sum of each vector's hypotheses over all trials, shape (n_vectors, n_coordinates)."""
        return np.vstack([space.summed() for space in self.spaces])

    def take_sums(self, sums: np.ndarray, trials: int) -> None:
        """Set the sums of the hypotheses over `trials` trials, from which averages continue."""
        for space, summed in zip(self.spaces, sums, strict=True):
            space.take_sums(summed, trials)


class DualSpaces(SupportSpace, SpacePerVector):
    """The spaces of all vectors in dual variables, with the rows that any of them has mistaken.

    Parameters
    ----------
    kernel : Kernel
    n_features : int
    spaces : sequence of MatrixSpace
    """

    kinds: ClassVar = {kind.__name__: kind for kind in (HigherOrderDual, SecondOrderDual)}

    p = 2.0

    def __init__(self, kernel: Kernel, n_features: int, spaces: Sequence[Any]):
        super().__init__(spaces)
        self.kernel, self.n_features = kernel, n_features
        self.support = SupportSet()
        self.origin = np.empty(0, dtype=np.int64)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel.saved(), "bias": self.bias, "n_features": self.n_features,
            "support": self.support.filled, "origin": self.origin, **super().__getstate__(),
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.n_features = integer(state, "n_features", 1, MOST_NUMBERS)
        self.kernel = restored_kernel(part(state, "kernel"), real(state, "bias", 0.0, inf))
        self.support = self.kernel.restored_support(part(state, "support"), self.n_features)
        self.origin = array_of(state, "origin", np.int64, (self.n_support,))
        for space in self.spaces:
            require_within("slots", space.slots, 0, self.n_support - 1)

    @contextmanager
    def loop(self, task: Task, rule: Any = None, *, skips: bool = False) -> Iterator[DualLoop]:
        self.resume(task.max_corrections)
        loop = DualLoop(self, task)
        try:
            with single_blas():
                yield loop
            task.row_state = loop.slots, None
        finally:
            self.kernel.forget_rows()

    @property
    def solvers(self) -> list[str]:
        return ["dual"] * self.n_vectors

    def norms(self, n_threads: int) -> np.ndarray:
        if not self.has_row_lengths:
            raise ValueError(
                "kernel='precomputed' keeps no kernel of support rows, which the norm of a matrix "
                "Perceptron's vector takes. Pass the kernel as a function."
            )
        return super().norms(n_threads)

    @property
    def bias(self) -> float:
        return self.kernel.bias

    @property
    def nbytes(self) -> int:
        """Bytes of the support set and of the spaces."""
        return self.support.nbytes + sum(space.nbytes for space in self.spaces)

    def adopt(self, points: Points, rows: np.ndarray, slots: np.ndarray) -> None:
        """Append rows of a block to the support set.

        Parameters
        ----------
        points : Points
        rows : ndarray of shape (n_added,)
            Their numbers for `origin`.
        slots : ndarray of shape (n_block,)
            Slots of all rows of the block; spaces refer to new rows by provisional slots.
        """
        base = self.n_support
        for space in self.spaces:
            space.renumber(base, slots)
        if len(rows):
            self.support.extend(points)
            self.origin = np.concatenate([self.origin, rows])

    def coefficients(self) -> np.ndarray:
        result = np.zeros((self.n_vectors, self.n_support))
        lengths = self.support.points.lengths
        for space, coefficients in zip(self.spaces, result, strict=True):
            coefficients[space.slots] = space.hypothesis() / lengths[space.slots]
        return result

    def count_support(self) -> np.ndarray:
        return self.per_vector("n_support")
