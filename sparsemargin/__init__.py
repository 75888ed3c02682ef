"""Large-margin online learning on sparse, high-dimensional data."""

from importlib.metadata import version

from sparsemargin.api import fit_csr
from sparsemargin.estimators import (
    ALMAClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    MarginPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    ROMMAClassifier,
    SecondOrderPerceptron,
)

__version__ = version("sparsemargin")

__all__ = [
    "ALMAClassifier",
    "CRAMMAClassifier",
    "HigherOrderPerceptron",
    "MarginPerceptron",
    "MaxMarginClassifier",
    "PNormPerceptron",
    "ROMMAClassifier",
    "SecondOrderPerceptron",
    "fit_csr",
]
