"""Large-margin online learning on sparse, high-dimensional data."""

from importlib.metadata import version

from sparsemargin.api import fit_csr
from sparsemargin.estimators import (
    ALMAClassifier,
    CRAMMAClassifier,
    MarginPerceptron,
    PNormPerceptron,
    ROMMAClassifier,
)

__version__ = version("sparsemargin")

__all__ = [
    "ALMAClassifier",
    "CRAMMAClassifier",
    "MarginPerceptron",
    "PNormPerceptron",
    "ROMMAClassifier",
    "fit_csr",
]
