"""Names of a package that are imported on first use: scikit-learn takes a second to import."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any


def find(package: str, modules: Sequence[str], names: Sequence[str], name: str) -> Any:
    """What a package's ``__getattr__`` returns: a public name, from the first module that has it.

    Raises
    ------
    AttributeError
        If the name is not among the public ones.
    """
    for module in modules if name in names else ():
        found = import_module(f"{package}.{module}")
        if hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
