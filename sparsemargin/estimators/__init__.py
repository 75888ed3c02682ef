"""scikit-learn classifiers over the engine."""

from sparsemargin.estimators.alma import ALMAClassifier
from sparsemargin.estimators.cramma import CRAMMAClassifier
from sparsemargin.estimators.higher_order import HigherOrderPerceptron
from sparsemargin.estimators.margin_perceptron import MarginPerceptron
from sparsemargin.estimators.max_margin import MaxMarginClassifier
from sparsemargin.estimators.pnorm_perceptron import PNormPerceptron
from sparsemargin.estimators.romma import ROMMAClassifier
from sparsemargin.estimators.second_order import SecondOrderPerceptron

__all__ = [
    "ALMAClassifier",
    "CRAMMAClassifier",
    "HigherOrderPerceptron",
    "MarginPerceptron",
    "MaxMarginClassifier",
    "PNormPerceptron",
    "ROMMAClassifier",
    "SecondOrderPerceptron",
]
