"""Large-margin online learning on sparse, high-dimensional data."""

from typing import TYPE_CHECKING, Any

from ._lazy import on_first_use

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import distributed as distributed
    from . import evaluation as evaluation
    from . import plotting as plotting
    from ._version import __version__ as __version__
    from .api import fit_csr as fit_csr
    from .api import fit_svmlight as fit_svmlight
    from .io.model_files import load_model as load_model
    from .io.model_files import save_model as save_model
    from .io.readable import write_readable as write_readable
    from .io.svmlight import load_svmlight as load_svmlight
    from .models.classifiers import ALMAClassifier as ALMAClassifier
    from .models.classifiers import CRAMMAClassifier as CRAMMAClassifier
    from .models.classifiers import HigherOrderPerceptron as HigherOrderPerceptron
    from .models.classifiers import MarginPerceptron as MarginPerceptron
    from .models.classifiers import MaxMarginClassifier as MaxMarginClassifier
    from .models.classifiers import PNormPerceptron as PNormPerceptron
    from .models.classifiers import ROMMAClassifier as ROMMAClassifier
    from .models.classifiers import SecondOrderPerceptron as SecondOrderPerceptron

# The command line does without scikit-learn.
__all__, _find, __dir__ = on_first_use(
    __name__,
    {
        "_version": ("__version__",),
        "api": ("fit_csr", "fit_svmlight"),
        "io.model_files": ("load_model", "save_model"),
        "io.readable": ("write_readable",),
        "io.svmlight": ("load_svmlight",),
        "models.classifiers": (
            "ALMAClassifier", "CRAMMAClassifier", "HigherOrderPerceptron", "MarginPerceptron",
            "MaxMarginClassifier", "PNormPerceptron", "ROMMAClassifier", "SecondOrderPerceptron",
        ),
    },
    parts=("datasets", "distributed", "evaluation", "plotting"),
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "reproduce":
        raise AttributeError("sparsemargin.reproduce is now python -m papers, in a checkout.")
    return _find(name)
