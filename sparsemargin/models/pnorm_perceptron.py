"""Parameters and rule of the p-norm Perceptron: see `PNormPerceptron`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from sparsemargin._engine.first_order.labels import FirstOrderRule
from sparsemargin._engine.kernel.functions import KernelName
from sparsemargin.models._first_order import Sample
from sparsemargin.models._joint import JointLearner, MultiClass
from sparsemargin.models._learner import Hypothesis
from sparsemargin.models._limits import FLAG, Limit
from sparsemargin.models._weighted import WeightedLearner


class PNormLearner(WeightedLearner, JointLearner):
    """What `PNormPerceptron` learns by."""

    classifier = "PNormPerceptron"

    _limits: ClassVar[dict[str, tuple[Limit, ...]]] = {
        **JointLearner._limits,
        **WeightedLearner._limits,
        "normalize": (FLAG,),
    }

    normalize: bool

    def __init__(
        self,
        *,
        p: float | Literal["log"] = 2.0,
        normalize: bool = True,
        hypothesis: Hypothesis = "average",
        normalize_hypotheses: bool = False,
        max_iter: float | None = 10,
        max_corrections: int | None = None,
        tol: float | None = None,
        shuffle: bool = True,
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
        multi_class: MultiClass = "ovr",
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        keep_history: bool = False,
    ):
        self._keep(locals())

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        return FirstOrderRule.perceptron(p, bool(self.normalize))
