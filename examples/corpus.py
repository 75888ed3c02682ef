"""Real text that is on every machine with this library: docstrings of the libraries beneath it."""

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

LIBRARIES = ("numpy", "scipy", "sklearn")
SHORTEST_DOCSTRING = 30

# Tests say little, and the other folders hold code that several of the libraries bundle.
SKIPPED_FOLDERS = {"tests", "externals", "_external", "_lib", "_vendored"}

# A library's own name, or the usual alias of its import, would give the answer away.
GIVEAWAYS = re.compile(r"numpy|\bnp\b|scipy|sklearn|scikit(?:[-_ ]?learn)?", re.IGNORECASE)

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Docstrings:
    """Docstrings, the library each belongs to, and the source file each comes from.

    Attributes
    ----------
    texts : list of str, length m
    libraries : ndarray of shape (m,), str
    files : ndarray of shape (m,), str
    """

    texts: list[str]
    libraries: np.ndarray
    files: np.ndarray


def _source_files(library: str) -> Iterator[Path]:
    # For a top-level package this looks the folder up and imports nothing.
    root = Path(find_spec(library).origin).parent
    for file in sorted(root.rglob("*.py")):
        if SKIPPED_FOLDERS.isdisjoint(file.relative_to(root).parts):
            yield file


def _docstrings(file: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED):
            text = GIVEAWAYS.sub(" ", ast.get_docstring(node) or "")
            if len(text) >= SHORTEST_DOCSTRING:
                yield text


def collect_docstrings() -> Docstrings:
    """Read the docstrings of modules, classes and functions, each distinct text once.

    Returns
    -------
    Docstrings
        In a fixed order for given versions of the libraries.
    """
    origin = {}
    for library in LIBRARIES:
        for file in _source_files(library):
            for text in _docstrings(file):
                origin.setdefault(text, (library, str(file)))
    libraries, files = zip(*origin.values(), strict=True)
    return Docstrings(list(origin), np.array(libraries), np.array(files))
