"""Names of a package that are imported on first use: scikit-learn takes a second to import."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def on_first_use(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__all__``, ``__getattr__`` and ``__dir__``, told the names by module."""
    homes = {name: module for module, own in names.items() for name in own}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return sorted(homes), find, lambda: sorted({*vars(sys.modules[package]), *homes})
