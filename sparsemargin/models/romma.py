"""Parameters and rule of ROMMA: see `ROMMAClassifier`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from sparsemargin._engine.first_order.labels import FirstOrderRule
from sparsemargin._engine.kernel.functions import KernelName
from sparsemargin.models._first_order import FirstOrderLearner, Sample
from sparsemargin.models._learner import Hypothesis
from sparsemargin.models._limits import FLAG, Limit


class ROMMALearner(FirstOrderLearner):
    """What `ROMMAClassifier` learns by."""

    classifier = "ROMMAClassifier"

    _seeks_margin = True

    _limits: ClassVar[dict[str, tuple[Limit, ...]]] = {
        **FirstOrderLearner._limits,
        "aggressive": (FLAG,),
    }

    aggressive: bool

    def __init__(
        self,
        *,
        aggressive: bool = False,
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
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        keep_history: bool = False,
    ):
        self._keep(locals())

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        return FirstOrderRule.romma(bool(self.aggressive))

    @property
    def n_infeasible_(self) -> Any:
        """Trials passed over: an int for two classes, else an array of shape (n_classes,)."""
        return self._counts("unmoved")
