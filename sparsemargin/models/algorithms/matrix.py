"""What the Higher-order and the Second-order Perceptron share: a matrix beside the vector."""

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
from sparsemargin._engine.matrix.spaces import MATRIX_MEMORY, DualSpaces, LabelSpaces
from sparsemargin._engine.messages import warn_user
from sparsemargin.models.algorithms.kernels import kernel_for
from sparsemargin.models.fitted.state import Beginning
from sparsemargin.models.learner import Learner
from sparsemargin.models.parameters import (
    NONE,
    Hypothesis,
    declared,
    integer,
    one_of,
    parameter,
    real,
)

Solver = Literal["auto", "implicit", "primal", "dual"]

#: Bytes the n x n form may take where it is chosen automatically.
PRIMAL_MEMORY = 1 << 26

# Steps beyond these might leave the range of a double once they are added up.
_SMALLEST_STEP, _LARGEST_STEP = 1e-150, 1e150


def _check_steps(task: Task) -> None:
    """Refuse weights that lead to steps too large or too small to be added up."""
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
    """Base of the learners that keep a matrix of their mistakes; not for use by itself."""

    spaces = (LabelSpaces, DualSpaces)

    alpha: float | None = parameter(
        0.9,
        (real(1e-9, 1, "both"), NONE),
        "ALMA's: where it is given, a trial corrects too whose margin is at most ``(1 - alpha) "
        "sqrt(8) / (alpha sqrt(k))``, k - 1 corrections having been made. The smaller, the more of "
        "them; 1 and None, which the paper has: on mistakes only. 0.9 is best on microarrays, and "
        "better than None on text, where 0.6 is better still for p = 2.",
        structural=True,
    )
    margin: float = parameter(
        0.0,
        real(0, closed="left"),
        "A trial corrects as well where ``y w.x``, x being of norm 1, is at most that; 0, which "
        "the paper has: on mistakes only.",
        structural=True,
    )
    hypothesis: Hypothesis = parameter(
        "average",
        one_of(["average", "last"]),
        "What predicts: the average of all weight vectors, each counted for the trials it lasted, "
        "which costs one addition a feature met and correction; or the last one.",
    )
    normalize_hypotheses: bool = field(default=False, init=False)
    max_iter: float | None = parameter(
        5,
        more="The paper's experiments make one on text, five on microarrays, without an intercept "
        "and with ``max_updates=None, alpha=None``.",
    )
    max_updates: int | None = parameter(
        100,
        (integer(1), NONE),
        "Corrections that change the matrix. After so many it stays as it is, and only v moves: a "
        "stream of any length then costs a bounded time a correction. More than 100 gained nothing "
        "on text with or without noise, targets of few features, and kernels. None, which the "
        "paper has: any number.",
        structural=True,
    )
    solver: Solver = parameter(
        "auto",
        one_of(get_args(Solver)),
        'How the matrix is kept. ``"implicit"``: by the rows it is made of; ``"primal"``: as n x n '
        'numbers, 8 n^2 bytes. ``"auto"`` begins with the first and goes over to the second where '
        "n^2 numbers take at most 64 MB, all classes together, and the first has come to cost "
        'more. ``"dual"``: by the k x k numbers of the k mistakes that changed the matrix, 4 k^2 '
        "bytes a label, over a pool of rows that all labels share; for p = 2, with any kernel, "
        'and what ``"auto"`` is with one that is not linear. Each takes at most 1 GiB, all classes '
        "together: there the matrix stops growing, and a warning says so.",
        structural=True,
    )

    @abstractmethod
    def _make_space(self, **settings: Any) -> MatrixSpace:
        """One label's space."""

    @abstractmethod
    def _make_dual(self, **settings: Any) -> MatrixSpace:
        """One label's space in dual variables."""

    @property
    def _is_dual(self) -> bool:
        return self.solver == "dual" or not self.is_linear

    @property
    def _most_rows_held_out(self) -> int:  # type: ignore[override]
        # Where every mistake changes the matrix, the time grows at least with their square.
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
        if self.solver == "dual" and self.p != 2:
            raise ValueError(
                f"solver='dual' needs p=2, got p={self.p!r}. Pass p=2, or another solver."
            )

    def _kernel_faults(self, grows: bool) -> Iterator[str]:
        if self._is_dual:
            name, instead = ("solver", "'auto'") if self.is_linear else ("kernel", "'linear'")
            yield self._fault(name, "keeps the rows of all mistakes", instead)

    def _stream_faults(self, grows: bool) -> Iterator[str]:
        yield from super()._stream_faults(grows)
        if self.max_updates is None:
            yield self._fault("max_updates", "keeps the rows of all mistakes", "100, say")
        if self.solver == "primal" and grows:
            yield "solver='primal' needs the number of features: pass n_features, or hash_bits."

    def new_space(self, first: Beginning) -> LabelSpaces | DualSpaces:
        rows, n_labels = first.rows, first.n_labels
        n_features = rows.n_features
        settings: dict[str, Any] = {
            "averaged": self.hypothesis == "average",
            "most_updates": self.max_updates,
            "room": MATRIX_MEMORY // n_labels,
            "share": 0.0 if self.alpha is None else (1 - self.alpha) * sqrt(8.0) / self.alpha,
            "margin": float(self.margin),
        }
        if self._is_dual:
            kernel = kernel_for(self, first)
            spaces = [self._make_dual(**settings) for _ in range(n_labels)]
            return DualSpaces(kernel, n_features, spaces)
        primal = 8 * (n_features + self.fit_intercept + 1) ** 2 * n_labels
        if self.solver == "primal" and primal > MATRIX_MEMORY:
            raise ValueError(
                f"solver='primal' would take {primal / 2**30:.3g} GiB: {n_labels} matrices of "
                f"{n_features} features squared. At most {MATRIX_MEMORY / 2**30:g} GiB is "
                "allowed; pass solver='implicit' or 'auto'."
            )
        settings |= {
            "n_features": n_features,
            "bias": self._bias(first),
            "single": rows.data.dtype == np.float32,
            "solver": self.solver,
            # Of features yet to come none are counted.
            "primal_room": 0 if first.grows else PRIMAL_MEMORY // n_labels,
        }
        return LabelSpaces([self._make_space(**settings) for _ in range(n_labels)])

    def bytes_per_feature(self, dtype: DTypeLike, n_labels: int, n_features: int) -> int:
        return 4 * n_labels

    def loop(self, task: Task) -> AbstractContextManager:
        _check_steps(task)
        return self.space.loop(task)  # type: ignore[no-any-return]

    def _begin(self, task: Task) -> StoppingRule:
        self._recall_rows(task)
        return StoppingRule(self.max_iter, patience=self.patience)

    def _conclude(self, result: FitResult) -> None:
        if self.max_iter is None and not (result.converged or result.interrupted):
            from sklearn.exceptions import ConvergenceWarning

            warn_user(
                f"Stopped after {self.n_iter_:g} epochs, before a pass made no correction. Raise "
                f"max_corrections={self.max_corrections}, or pass None.", ConvergenceWarning
            )  # fmt: skip
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
        """Corrections that changed the matrix: an int for two classes, else an array of shape
        (n_classes,)."""
        return self._counts("updates")

    def _listed(self, values: list) -> Any:
        return values[0] if len(values) == 1 else values

    @property
    def mistakes_(self) -> np.ndarray | list[np.ndarray]:
        """The row of each correction, in order, or of the first `max_updates`: an int64 array for
        two classes, else a list of them. In `fit`, rows of its X; in `partial_fit`, counted on from
        call to call."""
        return self._listed([space.mistaken_rows for space in self.space.spaces])

    @property
    def solver_(self) -> str | list[str]:
        """The form the matrix has come to: "implicit", "primal" or "dual" for two classes, else a
        list."""
        return self._listed(self.space.solvers)
