"""How good a model is: its margins, and how algorithms compare."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsemargin.evaluation._margins import (
        MarginDistribution,
        margin_distribution,
        margins,
    )
    from sparsemargin.evaluation.growth import growth_exponent
    from sparsemargin.evaluation.hypotheses import HypothesisErrors, hypothesis_errors
    from sparsemargin.evaluation.passes import certificate_over_passes
    from sparsemargin.evaluation.protocols import (
        EpochCurve,
        compare_on_splits,
        learning_curve_over_epochs,
        random_splits,
    )
    from sparsemargin.evaluation.selection import select_setting
    from sparsemargin.evaluation.significance import wilcoxon_signed_rank
    from sparsemargin.evaluation.stability import (
        effective_number,
        mean_jaccard,
        selection_stability,
        weights_on_splits,
    )
    from sparsemargin.evaluation.strongest import strongest_features
    from sparsemargin.evaluation.trade_off import trade_off_over_alpha

__all__ = [
    "EpochCurve",
    "HypothesisErrors",
    "MarginDistribution",
    "certificate_over_passes",
    "compare_on_splits",
    "effective_number",
    "growth_exponent",
    "hypothesis_errors",
    "learning_curve_over_epochs",
    "margin_distribution",
    "margins",
    "mean_jaccard",
    "random_splits",
    "select_setting",
    "selection_stability",
    "strongest_features",
    "trade_off_over_alpha",
    "weights_on_splits",
    "wilcoxon_signed_rank",
]

_MODULES = {
    "EpochCurve": "protocols",
    "HypothesisErrors": "hypotheses",
    "MarginDistribution": "_margins",
    "certificate_over_passes": "passes",
    "compare_on_splits": "protocols",
    "effective_number": "stability",
    "growth_exponent": "growth",
    "hypothesis_errors": "hypotheses",
    "learning_curve_over_epochs": "protocols",
    "margin_distribution": "_margins",
    "margins": "_margins",
    "mean_jaccard": "stability",
    "random_splits": "protocols",
    "select_setting": "selection",
    "selection_stability": "stability",
    "strongest_features": "strongest",
    "trade_off_over_alpha": "trade_off",
    "weights_on_splits": "stability",
    "wilcoxon_signed_rank": "significance",
}


def __getattr__(name: str) -> Any:
    # On first use: the command line evaluates without scikit-learn, which is slow to import.
    if name in _MODULES:
        return getattr(import_module(f"sparsemargin.evaluation.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'sparsemargin.evaluation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
