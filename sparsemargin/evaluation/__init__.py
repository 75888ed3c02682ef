"""How good a model is: its margins, how algorithms compare, and the bounds the papers prove."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsemargin.evaluation import theory
    from sparsemargin.evaluation._margins import (
        MarginDistribution,
        margin_distribution,
        margins,
    )
    from sparsemargin.evaluation.hypotheses import hypothesis_errors
    from sparsemargin.evaluation.protocols import (
        compare_on_splits,
        learning_curve_over_epochs,
        random_splits,
    )
    from sparsemargin.evaluation.selection import select_setting
    from sparsemargin.evaluation.significance import wilcoxon_signed_rank

__all__ = [
    "MarginDistribution",
    "compare_on_splits",
    "hypothesis_errors",
    "learning_curve_over_epochs",
    "margin_distribution",
    "margins",
    "random_splits",
    "select_setting",
    "theory",
    "wilcoxon_signed_rank",
]

_MODULES = {
    "compare_on_splits": "protocols",
    "hypothesis_errors": "hypotheses",
    "learning_curve_over_epochs": "protocols",
    "MarginDistribution": "_margins",
    "margin_distribution": "_margins",
    "margins": "_margins",
    "random_splits": "protocols",
    "select_setting": "selection",
    "wilcoxon_signed_rank": "significance",
}


def __getattr__(name: str) -> Any:
    # On first use: the command line evaluates without scikit-learn, which is slow to import.
    if name == "theory":
        return import_module("sparsemargin.evaluation.theory")
    if name in _MODULES:
        return getattr(import_module(f"sparsemargin.evaluation.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'sparsemargin.evaluation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
