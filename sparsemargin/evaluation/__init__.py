"""How good a model is: its margins, and how algorithms compare."""

from sparsemargin._lazy import on_first_use

__all__, __getattr__, __dir__ = on_first_use(__name__)
