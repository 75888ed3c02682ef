"""scikit-learn classifiers, one for each algorithm.

This module imports scikit-learn. Code that must start without scikit-learn imports it on first use.
"""

from __future__ import annotations

from sparsemargin.estimators.classifier import Classifier
from sparsemargin.models.algorithms.alma import ALMA
from sparsemargin.models.algorithms.arow import AROW
from sparsemargin.models.algorithms.cramma import CRAMMA
from sparsemargin.models.algorithms.higher_order import HigherOrder
from sparsemargin.models.algorithms.margin_perceptron import Margin
from sparsemargin.models.algorithms.max_margin import MaxMargin
from sparsemargin.models.algorithms.pnorm_perceptron import PNorm
from sparsemargin.models.algorithms.romma import ROMMA
from sparsemargin.models.algorithms.second_order import SecondOrder
from sparsemargin.models.learner import Learner

__all__ = [
    "ALMAClassifier",
    "AROWClassifier",
    "CRAMMAClassifier",
    "HigherOrderPerceptron",
    "MarginPerceptron",
    "MaxMarginClassifier",
    "PNormPerceptron",
    "ROMMAClassifier",
    "SecondOrderPerceptron",
    "as_classifier",
]


class ALMAClassifier(Classifier, ALMA): ...


class AROWClassifier(Classifier, AROW): ...


class CRAMMAClassifier(Classifier, CRAMMA): ...


class HigherOrderPerceptron(Classifier, HigherOrder): ...


class MarginPerceptron(Classifier, Margin): ...


class MaxMarginClassifier(Classifier, MaxMargin): ...


class PNormPerceptron(Classifier, PNorm): ...


class ROMMAClassifier(Classifier, ROMMA): ...


class SecondOrderPerceptron(Classifier, SecondOrder): ...


#: The classifiers by name.
CLASSIFIERS: dict[str, type[Classifier]] = {
    kind.__name__: kind
    for kind in (
        ALMAClassifier, AROWClassifier, CRAMMAClassifier, HigherOrderPerceptron, MarginPerceptron,
        MaxMarginClassifier, PNormPerceptron, ROMMAClassifier, SecondOrderPerceptron,
    )
}  # fmt: skip


def as_classifier(learner: Learner) -> Classifier:
    """Return the classifier of a learner. It takes over the learner's parameters and state."""
    return CLASSIFIERS[learner.classifier](**learner.parameters()).take_over(learner)
