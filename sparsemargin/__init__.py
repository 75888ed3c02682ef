"""Large-margin online learning on sparse, high-dimensional data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsemargin import datasets as datasets
    from sparsemargin import distributed as distributed
    from sparsemargin import evaluation as evaluation
    from sparsemargin import plotting as plotting
    from sparsemargin._version import __version__ as __version__
    from sparsemargin.api import fit_csr, fit_svmlight
    from sparsemargin.io.model_files import load_model, save_model
    from sparsemargin.io.readable import write_readable
    from sparsemargin.io.svmlight import load_svmlight
    from sparsemargin.models.classifiers import (
        ALMAClassifier,
        CRAMMAClassifier,
        HigherOrderPerceptron,
        MarginPerceptron,
        MaxMarginClassifier,
        PNormPerceptron,
        ROMMAClassifier,
        SecondOrderPerceptron,
    )

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
    "fit_svmlight",
    "load_model",
    "load_svmlight",
    "save_model",
    "write_readable",
]

_MODULES = {
    "__version__": "sparsemargin._version",
    "fit_csr": "sparsemargin.api",
    "fit_svmlight": "sparsemargin.api",
    "load_model": "sparsemargin.io.model_files",
    "load_svmlight": "sparsemargin.io.svmlight",
    "save_model": "sparsemargin.io.model_files",
    "write_readable": "sparsemargin.io.readable",
}

# Packages with names of their own, imported when they are asked for.
_PARTS = ("datasets", "distributed", "evaluation", "plotting")


def __getattr__(name: str) -> Any:
    # On first use: scikit-learn takes a second to import, and the command line does without.
    if name in __all__ or name == "__version__":
        value = getattr(import_module(_MODULES.get(name, "sparsemargin.models.classifiers")), name)
        globals()[name] = value
        return value
    if name in _PARTS:
        return import_module(f"sparsemargin.{name}")
    if name == "reproduce":
        raise AttributeError("sparsemargin.reproduce is now python -m papers, in a checkout.")
    raise AttributeError(f"module 'sparsemargin' has no attribute {name!r}")


def __dir__() -> list[str]:
    # What this module imports for itself is not offered.
    own = [name for name in globals() if name.startswith("__")]
    return sorted({*own, *__all__, *_PARTS, "__version__"})
