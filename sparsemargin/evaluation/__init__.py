"""How good a model is: its margins, how algorithms compare, and the bounds the papers prove."""

from sparsemargin.evaluation import theory
from sparsemargin.evaluation.margins import margin_distribution, margins
from sparsemargin.evaluation.protocols import (
    compare_on_splits,
    learning_curve_over_epochs,
    random_splits,
)
from sparsemargin.evaluation.selection import select_setting
from sparsemargin.evaluation.significance import wilcoxon_signed_rank

__all__ = [
    "compare_on_splits",
    "learning_curve_over_epochs",
    "margin_distribution",
    "margins",
    "random_splits",
    "select_setting",
    "theory",
    "wilcoxon_signed_rank",
]
