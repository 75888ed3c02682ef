"""Import of a package's names on first use, because importing scikit-learn takes about 1 s."""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def on_first_use(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    The names are read from the imports in the package's stub file, which type checkers also read.
    """
    module = sys.modules[package]
    stub = Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: home for home, name in re.findall(r"^from \.(\S*) import (\w+) as", stub, re.M)}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # An import without a module (``from . import text``) names a subpackage.
        home = homes[name]
        value = import_module(f".{home or name}", package)
        value = getattr(value, name) if home else value
        setattr(module, name, value)
        return value

    def offered() -> list[str]:
        # Names that the package imports for internal use are not listed.
        return sorted({*(name for name in vars(module) if name.startswith("__")), *homes})

    public = sorted(name for name, home in homes.items() if home and not name.startswith("_"))
    return public, find, offered
