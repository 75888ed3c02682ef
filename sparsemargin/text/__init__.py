"""Faster versions of scikit-learn's text vectorizers with bit-identical results."""

from sparsemargin._lazy import on_first_use

__all__, __getattr__, __dir__ = on_first_use(__name__)
