"""Parameters and rule of the largest margin in any p-norm: see `MaxMarginClassifier`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from sparsemargin._engine.first_order.label_blocks import LabelBlocks
from sparsemargin._engine.first_order.labels import FirstOrderRule
from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin.models._first_order import FirstOrderLearner, Sample
from sparsemargin.models._learner import Hypothesis
from sparsemargin.models._limits import FLAG, Limit


class MaxMarginLearner(FirstOrderLearner):
    """What `MaxMarginClassifier` learns by."""

    classifier = "MaxMarginClassifier"

    spaces = (LinearSpace, LabelBlocks)

    _seeks_margin = True

    _limits: ClassVar[dict[str, tuple[Limit, ...]]] = {
        **FirstOrderLearner._limits,
        "normalize": (FLAG,),
    }

    normalize: bool

    def __init__(
        self,
        *,
        p: float | Literal["log"] = 2.0,
        normalize: bool = False,
        hypothesis: Hypothesis = "last",
        normalize_hypotheses: bool = False,
        max_iter: float | None = 1000,
        max_corrections: int | None = None,
        tol: float | None = 0.01,
        shuffle: bool = True,
        random_state: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float | Literal["auto"] = "auto",
        soft_margin: float = 0.0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        keep_history: bool = False,
    ):
        self._keep(locals())

    def _check_streams(self, *, grows: bool) -> None:
        raise ValueError(
            "'maxmargin' keeps a number for every row, and a stream is learned in memory that "
            "doesn't grow with its rows. Take 'alma', or load the file and fit: "
            "fit_csr(*load_svmlight(path), 'maxmargin')."
        )

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        return FirstOrderRule.ascent(p, bool(self.normalize))
