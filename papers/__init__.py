"""The tables and figures of five papers, run again and set beside what is printed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from papers._catalogue import recipes
    from papers._html import html_report
    from papers._run import run

#: Where records and reports go if no folder is named.
FOLDER = "reproduction"

_MODULES = {"html_report": "_html", "recipes": "_catalogue", "run": "_run"}

__all__ = ["html_report", "recipes", "run"]


def __getattr__(name: str) -> Any:
    # On first use: the recipes import most of the library.
    if name in _MODULES:
        return getattr(import_module(f"papers.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'papers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
