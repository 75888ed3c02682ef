"""How good a model is: its margins, and how algorithms compare."""

from typing import TYPE_CHECKING

from sparsemargin._lazy import on_first_use

if TYPE_CHECKING:
    from .curves import EpochCurve as EpochCurve
    from .curves import certificate_over_passes as certificate_over_passes
    from .curves import learning_curve_over_epochs as learning_curve_over_epochs
    from .curves import trade_off_over_alpha as trade_off_over_alpha
    from .growth import growth_exponent as growth_exponent
    from .hypotheses import HypothesisErrors as HypothesisErrors
    from .hypotheses import hypothesis_errors as hypothesis_errors
    from .protocols import compare_on_splits as compare_on_splits
    from .protocols import random_splits as random_splits
    from .protocols import select_setting as select_setting
    from .protocols import selection_stability as selection_stability
    from .protocols import wilcoxon_signed_rank as wilcoxon_signed_rank
    from .weights import MarginDistribution as MarginDistribution
    from .weights import margin_distribution as margin_distribution
    from .weights import margins as margins
    from .weights import strongest_features as strongest_features

__all__, __getattr__, __dir__ = on_first_use(
    __name__,
    {
        "curves": (
            "EpochCurve", "certificate_over_passes", "learning_curve_over_epochs",
            "trade_off_over_alpha",
        ),
        "growth": ("growth_exponent",),
        "hypotheses": ("HypothesisErrors", "hypothesis_errors"),
        "protocols": (
            "compare_on_splits", "random_splits", "select_setting", "selection_stability",
            "wilcoxon_signed_rank",
        ),
        "weights": ("MarginDistribution", "margin_distribution", "margins", "strongest_features"),
    },
)  # fmt: skip
