"""scikit-learn classifiers over the engine."""

from sparsemargin.estimators.alma import ALMAClassifier
from sparsemargin.estimators.cramma import CRAMMAClassifier
from sparsemargin.estimators.margin_perceptron import MarginPerceptron
from sparsemargin.estimators.max_margin import MaxMarginClassifier
from sparsemargin.estimators.pnorm_perceptron import PNormPerceptron
from sparsemargin.estimators.romma import ROMMAClassifier

__all__ = [
    "ALMAClassifier",
    "CRAMMAClassifier",
    "MarginPerceptron",
    "MaxMarginClassifier",
    "PNormPerceptron",
    "ROMMAClassifier",
]
