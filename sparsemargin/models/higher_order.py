"""Parameters and rule of the Higher-order Perceptron: see `HigherOrderPerceptron`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from sparsemargin._engine.kernel.functions import KernelName
from sparsemargin._engine.matrix.base import MatrixSpace
from sparsemargin._engine.matrix.higher_order import HigherOrderDual, HigherOrderSpace
from sparsemargin.models._learner import Hypothesis
from sparsemargin.models._limits import FLAG, Limit, real
from sparsemargin.models._matrix import MatrixLearner, Solver


class HigherOrderLearner(MatrixLearner):
    """What `HigherOrderPerceptron` learns by."""

    classifier = "HigherOrderPerceptron"

    _limits: ClassVar[dict[str, tuple[Limit, ...]]] = {
        **MatrixLearner._limits,
        "c": (real(0, 1, "left"),),
        "sparse_updates": (FLAG,),
    }

    _structural = (*MatrixLearner._structural, "c", "sparse_updates")

    c: float
    sparse_updates: bool

    def __init__(
        self,
        *,
        p: float | Literal["log"] = 2.0,
        c: float = 0.4,
        sparse_updates: bool = False,
        max_updates: int | None = 1000,
        solver: Solver = "auto",
        kernel: KernelName | Callable[[Any, Any], Any] = "linear",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        hypothesis: Hypothesis = "average",
        normalize_hypotheses: bool = False,
        max_iter: float | None = 5,
        max_corrections: int | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float | Literal["auto"] = "auto",
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self._keep(locals())

    def _make_space(self, **settings: Any) -> MatrixSpace:
        return HigherOrderSpace(
            p=self._p(settings["n_features"]), c=float(self.c),
            sparse_updates=bool(self.sparse_updates), **settings,
        )  # fmt: skip

    def _make_dual(self, **settings: Any) -> MatrixSpace:
        return HigherOrderDual(
            c=float(self.c), sparse_updates=bool(self.sparse_updates), **settings
        )  # fmt: skip
