"""Parameters and rule of CRAMMA: see `CRAMMAClassifier`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from sparsemargin._engine.first_order.labels import FirstOrderRule
from sparsemargin._engine.kernel.functions import KernelName
from sparsemargin.models._cramma_rate import automatic_rate
from sparsemargin.models._first_order import FirstOrderLearner, Sample
from sparsemargin.models._learner import Hypothesis
from sparsemargin.models._limits import NONE, Limit, real

#: The rate at ``beta=1`` where nothing is known of the margin.
HARD_RATE = 0.001


class CRAMMALearner(FirstOrderLearner):
    """What `CRAMMAClassifier` learns by."""

    classifier = "CRAMMAClassifier"

    _seeks_margin = True

    _limits: ClassVar[dict[str, tuple[Limit, ...]]] = {
        **FirstOrderLearner._limits,
        "beta": (real(0),),
        "eta0": (real(0), NONE),
        "delta": (real(0, closed="left"),),
        "epsilon": (real(0),),
        "radius": (real(0), NONE),
    }

    beta: float
    eta0: float | None
    delta: float
    epsilon: float
    radius: float | None
    radius_: float
    eta_eff_: float

    def __init__(
        self,
        *,
        beta: float = 1.0,
        eta0: float | None = None,
        delta: float = 1.0,
        epsilon: float = 0.5,
        radius: float | None = None,
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
        self.radius_ = self._find_radius(sample)
        with np.errstate(over="ignore", under="ignore"):
            falling = float(np.float64(self.beta) ** -self.delta)
        self.eta_eff_ = self._find_rate(sample) * falling
        if not 0 < self.eta_eff_ < np.inf:
            raise ValueError(
                f"eta0 * beta**-delta = {self.eta_eff_:g} is no rate to learn at, with "
                f"beta={self.beta} and delta={self.delta}. Pass a smaller delta."
            )
        return FirstOrderRule.cramma(
            float(self.beta), self.eta_eff_, float(self.epsilon), self.radius_
        )

    def _find_radius(self, sample: Sample | None) -> float:
        if self.radius is not None:
            return float(self.radius)
        if sample is None:
            raise ValueError(
                "partial_fit can't know the largest norm of all the data: pass it as radius."
            )
        # Any length will do for rows that are all zero, which never correct.
        return sample.largest_norm() or 1.0

    def _find_rate(self, sample: Sample | None) -> float:
        if self.eta0 is not None:
            return float(self.eta0)
        if not self.soft_margin:
            return HARD_RATE
        if sample is None:
            raise ValueError("partial_fit can't know how many rows will come: pass eta0.")
        return automatic_rate(float(self.soft_margin), self.radius_, sample.n_rows)
