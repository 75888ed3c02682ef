"""How good a model is: its margins, and the bounds the papers prove."""

from sparsemargin.evaluation import theory
from sparsemargin.evaluation.margins import margin_distribution, margins

__all__ = ["margin_distribution", "margins", "theory"]
