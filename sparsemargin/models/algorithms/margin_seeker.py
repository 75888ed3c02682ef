"""Base classes of the first-order learners whose last vector tends to the largest margin."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, Literal, get_args

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.vector_blocks import VectorBlocks
from sparsemargin._engine.fitting.epochs import Patience
from sparsemargin._engine.kernel.loop import KernelSpace
from sparsemargin.models.algorithms.first_order import FirstOrderLearner
from sparsemargin.models.parameters import NONE, declared, one_of, parameter, real
from sparsemargin.models.shared_parameters import Hypothesis


@declared
class MarginSeeker(FirstOrderLearner):
    """Base class of the learners whose last vector tends to the largest margin, one-vs-rest."""

    spaces: ClassVar[tuple[type, ...]] = (LinearSpace, VectorBlocks, KernelSpace)
    seeks_margin = True

    multi_class: Literal["ovr"] = field(default="ovr", init=False)
    hypothesis: Hypothesis | Literal["auto"] = parameter(  # type: ignore[assignment]
        "auto",
        one_of([*get_args(Hypothesis), "auto"]),
        more='``"auto"``: the last vector if `tol` or ``max_iter=None`` requests a margin, because '
        "only its margin is known; else the average, which also suits data that are not "
        "separable.",
    )
    warm_start: bool = parameter(
        False,
        more="If the rows differ from those of the last `fit`, the margin is unknown, and `tol` "
        "raises an error because the margin can't be proven.",
    )
    max_iter: float | None = 1000
    early_stopping: bool = parameter(
        True,
        more="It has no effect if `tol` or ``max_iter=None`` requests a margin.",
    )
    tol: float | None = parameter(  # type: ignore[misc]
        None,
        (real(0, 1), NONE),
        "Stop when `margin_` is at least ``(1 - tol) * margin_upper_bound_``, which proves that "
        'the margin is at least ``1 - tol`` of the largest margin. Requires ``hypothesis="last"``, '
        "because the proof holds for the last vector.",
    )

    @property
    def hypothesis_name(self) -> str:
        if self.hypothesis != "auto":
            return self.hypothesis
        return "last" if self._asks_for_margin else "average"

    @property
    def patience(self) -> Patience | None:
        return None if self._asks_for_margin else super().patience

    @property
    def _asks_for_margin(self) -> bool:
        """True if the parameters request the margin, or training until no row is corrected."""
        return self.tol is not None or self.max_iter is None


@declared
class EuclideanMarginSeeker(MarginSeeker):
    """Base class of the margin seekers for p = 2 without normalization and without weights."""

    p: float = field(default=2.0, init=False)
    normalize: bool = field(default=False, init=False)
    class_weight: Any = field(default=None, init=False)
