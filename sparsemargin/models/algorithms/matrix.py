"""Base class of the Higher-order and Second-order Perceptron, which train a matrix and a vector."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import field
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin._engine.fitting.epochs import FitResult, StoppingRule
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.matrix.base import MatrixSpace
from sparsemargin._engine.matrix.spaces import MATRIX_MEMORY, DualSpaces, FeatureSpaces
from sparsemargin._engine.messages import warn_of_convergence, warn_user
from sparsemargin.models.inputs.training_set import Beginning
from sparsemargin.models.learner import Learner
from sparsemargin.models.parameters import (
    NONE,
    declared,
    integer,
    one_of,
    parameter,
    real,
)
from sparsemargin.models.shared_parameters import Hypothesis

Solver = Literal["auto", "implicit", "primal", "dual"]

#: Largest total size, in bytes, of the n x n matrices of all labels if ``solver="auto"`` selects
#: the primal form.
PRIMAL_MEMORY = 1 << 26

# Range of the allowed steps. Sums of other steps could overflow or underflow a double.
_SMALLEST_STEP, _LARGEST_STEP = 1e-150, 1e150


def _check_steps(task: Task) -> None:
    """Raise a ValueError if weights make steps that are too large or too small to be summed."""
    shares = task.class_weight[task.class_weight > 0]
    weights = np.ones(1) if task.weights is None else task.weights
    least = np.where(weights > 0, weights, 1.0) * shares.min(initial=1.0)
    largest = weights * shares.max(initial=1.0)
    bad = (least < _SMALLEST_STEP) | (largest > _LARGEST_STEP)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"sample_weight[{row}] makes steps smaller than {_SMALLEST_STEP:g} or larger than "
            f"{_LARGEST_STEP:g}, which can't be added up with others. Bring sample_weight and "
            "class_weight to a common scale."
        )


@declared
class MatrixLearner(Learner):
    """Base class of the learners that train a matrix from their mistakes."""

    spaces = (FeatureSpaces, DualSpaces)

    alpha: float | None = parameter(
        0.9,
        (real(1e-9, 1, "both"), NONE),
        "ALMA's alpha. A trial also corrects if its margin is at most ``(1 - alpha) sqrt(8) / "
        "(alpha sqrt(k))``, where k is the number of corrections so far plus one. Smaller values "
        "lead to more corrections; 1 and None (as in the paper) correct only on mistakes. 0.9 is "
        "best on microarrays and better than None on text, where 0.6 is even better for p = 2.",
        structural=True,
    )
    hypothesis: Hypothesis = parameter(
        "average",
        one_of(["average", "last"]),
        "The hypothesis used for prediction: the average of all weight vectors, each weighted by "
        "the number of trials it survived, or the last vector. The average costs one addition per "
        "correction and feature seen so far.",
    )
    normalize_hypotheses: bool = field(default=False, init=False)
    max_iter: float | None = parameter(
        5,
        more="The paper uses one epoch on text and five on microarrays, without an intercept and "
        "with ``max_updates=None, alpha=None``.",
    )
    max_updates: int | None = parameter(
        100,
        (integer(1), NONE),
        "Number of corrections that change the matrix. Later corrections change only v, so their "
        "cost does not grow with the length of a stream. More than 100 did not reduce the error on "
        "text with or without noise, on targets with few features, or with kernels. None (as in "
        "the paper): no limit.",
        structural=True,
    )
    solver: Solver = parameter(
        "auto",
        one_of(get_args(Solver)),
        'How the matrix is stored. ``"implicit"``: as the rows it is made of; ``"primal"``: as '
        'n x n numbers of 8 bytes; ``"dual"``: as k x k numbers for the k mistakes that changed '
        "the matrix, 4 k^2 bytes per vector, with one pool of rows for all vectors; it needs "
        'p = 2 and supports any kernel. ``"auto"``: "dual" if the kernel is not linear; otherwise '
        '"implicit" at first, then "primal" when this costs less and the matrices of all classes '
        "take at most 64 MB. Each form takes at most 1 GiB for all classes together. The matrix "
        "stops growing at this limit, with a warning.",
        structural=True,
    )

    @abstractmethod
    def _make_space(self, **settings: Any) -> MatrixSpace:
        """Return the space of one vector."""

    @abstractmethod
    def _make_dual(self, **settings: Any) -> MatrixSpace:
        """Return the space of one vector in dual variables."""

    @property
    def _is_dual(self) -> bool:
        return self.solver == "dual" or not self.is_linear

    @property
    def _most_rows_held_out(self) -> int:  # type: ignore[override]
        # If every mistake changes the matrix, the time grows at least with the squared number of
        # mistakes.
        return super()._most_rows_held_out if self.max_updates is not None else 2000

    @property
    def keeps_outputs(self) -> bool:
        return super().keeps_outputs and not self._is_dual

    def check_parameters(self) -> None:
        if self.hypothesis in ("vote", "random"):
            raise ValueError(
                f"{type(self).__name__} keeps no log of its corrections, from which "
                f"hypothesis={self.hypothesis!r} is replayed. Pass hypothesis='average' or 'last', "
                "or take a Perceptron with a kernel, PNormPerceptron(kernel='poly') for one."
            )
        super().check_parameters()
        if not self.is_linear and self.solver in ("implicit", "primal"):
            raise ValueError(
                f"solver={self.solver!r} keeps coordinates, and the feature space of "
                f"kernel={self.kernel!r} has none to keep. Pass solver='dual' or 'auto'."
            )
        if self.kernel_object.max_support is not None:
            raise ValueError(
                f"{self.classifier} limits the pool of its kernel by max_updates. Pass a kernel "
                "without max_support."
            )
        if self.standardize and self._is_dual:
            name, instead = ("solver", "'auto'") if self.is_linear else ("kernel", "'linear'")
            self.refuse_standardize(name, instead)
        if self.solver == "dual" and self.p != 2:
            raise ValueError(
                f"solver='dual' needs p=2, got p={self.p!r}. Pass p=2, or another solver."
            )

    def _kernel_faults(self, grows: bool) -> Iterator[str]:
        if self._is_dual:
            name, instead = ("solver", "'auto'") if self.is_linear else ("kernel", "'linear'")
            yield self._fault(name, "keeps the rows of all mistakes", instead)
        else:
            yield from self._needs_of_all_rows()

    def _stream_faults(self, grows: bool) -> Iterator[str]:
        yield from super()._stream_faults(grows)
        if self.max_updates is None:
            yield self._fault("max_updates", "keeps the rows of all mistakes", "100, say")
        if self.solver == "primal" and grows:
            yield "solver='primal' needs the number of features: pass n_features, or hash_bits."

    def new_space(self, first: Beginning) -> FeatureSpaces | DualSpaces:
        rows, n_vectors = first.rows, first.n_vectors
        n_features = rows.n_features
        settings: dict[str, Any] = {
            "averaged": self.hypothesis == "average",
            "most_updates": self.max_updates,
            "room": MATRIX_MEMORY // n_vectors,
            "share": 0.0 if self.alpha is None else (1 - self.alpha) * sqrt(8.0) / self.alpha,
        }
        if self._is_dual:
            kernel = self.kernel_object.for_model(self._bias(first), first)
            spaces = [self._make_dual(**settings) for _ in range(n_vectors)]
            return DualSpaces(kernel, n_features, spaces)
        primal = 8 * (n_features + self.fit_intercept + 1) ** 2 * n_vectors
        if self.solver == "primal" and primal > MATRIX_MEMORY:
            raise ValueError(
                f"solver='primal' would take {primal / 2**30:.3g} GiB: {n_vectors} matrices of "
                f"{n_features} features squared. At most {MATRIX_MEMORY / 2**30:g} GiB is "
                "allowed; pass solver='implicit' or 'auto'."
            )
        settings |= {
            "n_features": n_features,
            "bias": self._bias(first),
            "single": rows.data.dtype == np.float32,
            "solver": self.solver,
            # The primal form requires a fixed number of features.
            "primal_room": 0 if first.grows else PRIMAL_MEMORY // n_vectors,
        }
        return FeatureSpaces([self._make_space(**settings) for _ in range(n_vectors)])

    def bytes_per_feature(self, dtype: DTypeLike, n_vectors: int, n_features: int) -> int:
        return 4 * n_vectors

    def loop(self, task: Task) -> AbstractContextManager:
        _check_steps(task)
        return self.space.loop(task)  # type: ignore[no-any-return]

    def _begin(self, task: Task) -> StoppingRule:
        self.fitted.recall_rows(task, self.warm_start)
        return StoppingRule(self.max_iter, patience=self.patience)

    def _conclude(self, result: FitResult) -> None:
        if self.max_iter is None and not result.converged:
            warn_of_convergence(
                f"Stopped after {self.n_iter_:g} epochs, before a pass made no correction. Raise "
                f"max_corrections={self.max_corrections}, or pass None."
            )
        if self.space.full:
            self._warn_of_full()

    def _warn_of_full(self) -> None:
        warn_user(
            f"The matrix stopped growing after {np.max(self.n_updates_)} mistakes, at "
            f"{MATRIX_MEMORY / 2**30:g} GiB; learning went on without. Pass max_updates to "
            "stop it sooner, which is faster too."
        )

    @property
    def n_updates_(self) -> int | np.ndarray:
        """Number of corrections that changed the matrix: an int for two classes, else an array of
        shape (n_classes,)."""
        return self._counts("updates")

    def _listed(self, values: list) -> Any:
        return values[0] if len(values) == 1 else values

    @property
    def mistakes_(self) -> np.ndarray | list[np.ndarray]:
        """Row of each correction, in order, for at most the first `max_updates`: an int64 array for
        two classes, else a list of such arrays. After `fit`, these are rows of X. In `partial_fit`,
        row numbers continue from call to call."""
        return self._listed([space.mistaken_rows for space in self.space.spaces])

    @property
    def solver_(self) -> str | list[str]:
        """Current form of the matrix: "implicit", "primal" or "dual" for two classes, else a list
        of these for all classes."""
        return self._listed(self.space.solvers)
