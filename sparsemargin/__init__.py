"""Large-margin online learning on sparse, high-dimensional data."""

from importlib.metadata import version

from sparsemargin.api import fit_csr
from sparsemargin.estimators import (
    ALMAClassifier,
    CRAMMAClassifier,
    MarginPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    ROMMAClassifier,
)

__version__ = version("sparsemargin")

__all__ = [
    "ALMAClassifier",
    "CRAMMAClassifier",
    "MarginPerceptron",
    "MaxMarginClassifier",
    "PNormPerceptron",
    "ROMMAClassifier",
    "fit_csr",
]
