"""Plots of margins, certificates and features, in scikit-learn's Display style."""

from sparsemargin._lazy import on_first_use

__all__, __getattr__, __dir__ = on_first_use(__name__)
