"""scikit-learn classifiers over the engine."""

from sparsemargin.estimators.alma import ALMAClassifier
from sparsemargin.estimators.pnorm_perceptron import PNormPerceptron

__all__ = ["ALMAClassifier", "PNormPerceptron"]
