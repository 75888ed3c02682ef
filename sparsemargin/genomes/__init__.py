"""Cells and sequences made rows: counts of genes, and of k-mers."""

from sparsemargin._lazy import on_first_use

__all__, __getattr__, __dir__ = on_first_use(__name__)
