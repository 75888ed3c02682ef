"""Large-margin online learning on sparse, high-dimensional data."""

from sparsemargin._lazy import on_first_use

__all__, __getattr__, __dir__ = on_first_use(__name__)
