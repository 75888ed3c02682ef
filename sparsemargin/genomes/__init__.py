"""Transformers for single cells (gene counts) and for sequences (k-mer counts)."""

from sparsemargin._lazy import on_first_use

__all__, __getattr__, __dir__ = on_first_use(__name__)
