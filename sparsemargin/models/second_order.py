"""Parameters and rule of the Second-order Perceptron: see `SecondOrderPerceptron`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from sparsemargin._engine.kernel.functions import KernelName
from sparsemargin._engine.matrix.base import MatrixSpace
from sparsemargin._engine.matrix.second_order import SecondOrderDual, SecondOrderSpace
from sparsemargin.models._learner import Hypothesis
from sparsemargin.models._limits import Limit, real
from sparsemargin.models._matrix import MatrixLearner, Solver


class SecondOrderLearner(MatrixLearner):
    """What `SecondOrderPerceptron` learns by."""

    classifier = "SecondOrderPerceptron"

    _limits: ClassVar[dict[str, tuple[Limit, ...]]] = {
        **MatrixLearner._limits,
        "a": (real(1e-12, 1e12, "both"),),
    }

    _structural = (*MatrixLearner._structural, "a")

    a: float

    def __init__(
        self,
        *,
        a: float = 1.0,
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
        return SecondOrderSpace(a=float(self.a), **settings)

    def _make_dual(self, **settings: Any) -> MatrixSpace:
        return SecondOrderDual(a=float(self.a), **settings)
