"""Large-margin online learning on sparse, high-dimensional data."""

from typing import Any

from sparsemargin._lazy import on_first_use

__all__, _find, __dir__ = on_first_use(__name__)


def __getattr__(name: str) -> Any:
    if name == "reproduce":
        raise AttributeError("sparsemargin.reproduce is now python -m papers, in a checkout.")
    return _find(name)
