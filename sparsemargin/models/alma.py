"""Parameters and rule of ALMA_p: see `ALMAClassifier`."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, ClassVar, Literal

from sparsemargin._engine.first_order.labels import FirstOrderRule
from sparsemargin._engine.kernel.functions import KernelName
from sparsemargin.models._first_order import Sample
from sparsemargin.models._joint import JointLearner, MultiClass
from sparsemargin.models._learner import Hypothesis
from sparsemargin.models._limits import FLAG, NONE, Limit, one_of, real
from sparsemargin.models._weighted import WeightedLearner


class ALMALearner(WeightedLearner, JointLearner):
    """What `ALMAClassifier` learns by."""

    classifier = "ALMAClassifier"

    _limits: ClassVar[dict[str, tuple[Limit, ...]]] = {
        **JointLearner._limits,
        **WeightedLearner._limits,
        "alpha": (real(0, 1, "right"),),
        "B": (real(0), NONE),
        "C": (real(0),),
        "normalize": (FLAG, one_of(["running", "max"])),
    }

    alpha: float
    B: float | None
    C: float
    normalize: bool | Literal["running", "max"]

    def __init__(
        self,
        *,
        p: float | Literal["log"] = 2.0,
        alpha: float = 0.9,
        B: float | None = None,
        C: float = sqrt(2.0),
        normalize: bool | Literal["running", "max"] = True,
        hypothesis: Hypothesis = "average",
        normalize_hypotheses: bool = False,
        max_iter: float | None = 5,
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
        radius = 0.0
        if self.normalize == "max":
            if sample is None:
                raise ValueError(
                    "normalize='max' needs the largest norm of all the data, which partial_fit "
                    "can't know. Use normalize='running', or call fit first."
                )
            radius = sample.largest_norm()
        B = sqrt(8.0) / self.alpha if self.B is None else float(self.B)
        return FirstOrderRule.alma(p, self.normalize, float(self.alpha), B, float(self.C), radius)
