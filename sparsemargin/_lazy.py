"""Names of a package that are imported on first use: scikit-learn takes a second to import."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def on_first_use(
    package: str, modules: Sequence[str], names: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__``: each name is of the first module that has it."""

    def find(name: str) -> Any:
        for module in modules if name in names else ():
            found = import_module(f"{package}.{module}")
            if hasattr(found, name):
                return getattr(found, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: sorted({*vars(sys.modules[package]), *names})
