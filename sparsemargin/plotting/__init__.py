"""Plots of margins, certificates and features, in scikit-learn's Display style."""

from sparsemargin._lazy import on_first_use

try:
    import matplotlib  # noqa: F401  (all modules of this package need it)
except ImportError:
    raise ImportError("Plots need matplotlib: pip install 'sparsemargin[plot]'.") from None

__all__, __getattr__, __dir__ = on_first_use(__name__)
