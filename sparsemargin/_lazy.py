"""Names of a package that are imported on first use: scikit-learn takes a second to import."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def on_first_use(
    package: str, names: Mapping[str, Sequence[str]], parts: Sequence[str] = ()
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__all__``, ``__getattr__`` and ``__dir__``, told the names by module, and the
    packages within that have names of their own."""
    homes = {name: module for module, own in names.items() for name in own}
    module = sys.modules[package]

    def find(name: str) -> Any:
        if name in parts:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(module, name, value)
        return value

    def offered() -> list[str]:
        # What the package imports for itself is not.
        return sorted({*(own for own in vars(module) if own.startswith("__")), *homes, *parts})

    return sorted(name for name in homes if not name.startswith("_")), find, offered
