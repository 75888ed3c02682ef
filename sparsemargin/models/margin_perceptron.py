"""Parameters and rule of the Perceptron with margin: see `MarginPerceptron`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from sparsemargin._engine.first_order.labels import FirstOrderRule
from sparsemargin._engine.kernel.functions import KernelName
from sparsemargin.models._first_order import FirstOrderLearner, Sample
from sparsemargin.models._learner import Hypothesis
from sparsemargin.models._limits import FLAG, Limit, real
from sparsemargin.models._weighted import WeightedLearner


class MarginLearner(WeightedLearner, FirstOrderLearner):
    """What `MarginPerceptron` learns by."""

    classifier = "MarginPerceptron"

    _seeks_margin = True

    _limits: ClassVar[dict[str, tuple[Limit, ...]]] = {
        **FirstOrderLearner._limits,
        **WeightedLearner._limits,
        "margin": (real(0, closed="left"),),
        "eta": (real(0),),
        "normalize": (FLAG,),
    }

    margin: float
    eta: float
    normalize: bool

    def __init__(
        self,
        *,
        margin: float = 1.0,
        p: float | Literal["log"] = 2.0,
        eta: float = 1.0,
        normalize: bool = False,
        hypothesis: Hypothesis = "last",
        normalize_hypotheses: bool = False,
        max_iter: float | None = 1000,
        max_corrections: int | None = None,
        tol: float | None = None,
        shuffle: bool = False,
        random_state: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float | Literal["auto"] = "auto",
        soft_margin: float = 0.0,
        kernel: KernelName | Callable[[Any, Any], Any] = "linear",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        max_support: int | None = None,
        when_full: Literal["error", "skip"] = "error",
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        keep_history: bool = False,
    ):
        self._keep(locals())

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        return FirstOrderRule.perceptron(
            p, bool(self.normalize), float(self.margin), float(self.eta)
        )
