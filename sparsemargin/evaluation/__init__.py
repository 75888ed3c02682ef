"""How good a model is: its margins, and how algorithms compare."""

from typing import TYPE_CHECKING

from sparsemargin._lazy import on_first_use

if TYPE_CHECKING:
    from sparsemargin.evaluation.curves import (
        EpochCurve,
        certificate_over_passes,
        learning_curve_over_epochs,
        trade_off_over_alpha,
    )
    from sparsemargin.evaluation.growth import growth_exponent
    from sparsemargin.evaluation.hypotheses import HypothesisErrors, hypothesis_errors
    from sparsemargin.evaluation.protocols import (
        compare_on_splits,
        random_splits,
        select_setting,
        wilcoxon_signed_rank,
    )
    from sparsemargin.evaluation.stability import selection_stability
    from sparsemargin.evaluation.weights import (
        MarginDistribution,
        margin_distribution,
        margins,
        strongest_features,
    )

__all__ = [
    "EpochCurve",
    "HypothesisErrors",
    "MarginDistribution",
    "certificate_over_passes",
    "compare_on_splits",
    "growth_exponent",
    "hypothesis_errors",
    "learning_curve_over_epochs",
    "margin_distribution",
    "margins",
    "random_splits",
    "select_setting",
    "selection_stability",
    "strongest_features",
    "trade_off_over_alpha",
    "wilcoxon_signed_rank",
]

_MODULES = ("weights", "growth", "protocols", "curves", "stability", "hypotheses")
__getattr__, __dir__ = on_first_use(__name__, _MODULES, __all__)
