"""Real text that is on every machine with this library: docstrings of the libraries beneath it."""

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
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
    """Docstrings, the library and part of it each belongs to, and the source file each comes from.

    Attributes
    ----------
    texts : list of str, length m
    libraries : ndarray of shape (m,), str
    parts : ndarray of shape (m,), str
        Such as ``"scipy.stats"``.
    files : ndarray of shape (m,), str
    """

    texts: list[str]
    libraries: np.ndarray
    parts: np.ndarray
    files: np.ndarray


def _source_files(library: str) -> Iterator[tuple[str, Path]]:
    """Each source file with the part of the library it belongs to."""
    # For a top-level package this looks the folder up and imports nothing.
    root = Path(find_spec(library).origin).parent
    for file in sorted(root.rglob("*.py")):
        place = file.relative_to(root).parts
        if SKIPPED_FOLDERS.isdisjoint(place):
            yield f"{library}.{place[0].removesuffix('.py')}", file


def _docstrings(file: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED):
            text = GIVEAWAYS.sub(" ", ast.get_docstring(node) or "")
            if len(text) >= SHORTEST_DOCSTRING:
                yield text


def collect_docstrings(step: int = 1) -> Docstrings:
    """Read the docstrings of modules, classes and functions, each distinct text once.

    Parameters
    ----------
    step : int, default=1
        Read every step-th source file.

    Returns
    -------
    Docstrings
        In a fixed order for given versions of the libraries.
    """
    origin = {}
    for library in LIBRARIES:
        for part, file in islice(_source_files(library), None, None, step):
            for text in _docstrings(file):
                origin.setdefault(text, (library, part, str(file)))
    return Docstrings(list(origin), *map(np.array, zip(*origin.values(), strict=True)))
