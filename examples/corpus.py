"""Texts from the source files of numpy, scipy and scikit-learn, which need no download.

The texts are either docstrings, or the source code of classes and functions.
"""

import ast
import re
import tokenize
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np

LIBRARIES = ("numpy", "scipy", "sklearn")
SHORTEST_TEXT = 30

# Folders with code that several of the libraries bundle.
SHARED_FOLDERS = frozenset({"externals", "_external", "_lib", "_vendored"})
TESTS = "tests"

# Names of the libraries, and numpy's usual alias. They are removed, as they reveal the label.
GIVEAWAYS = re.compile(r"numpy|\bnp\b|scipy|sklearn|scikit(?:[-_ ]?learn)?", re.IGNORECASE)

DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, *DEFINITIONS)


@dataclass(frozen=True)
class Documents:
    """Texts with their libraries, parts of the libraries, and source files.

    Attributes
    ----------
    texts : list of str, length m
    libraries : ndarray of shape (m,), str
    parts : ndarray of shape (m,), str
        Subpackages, such as ``"scipy.stats"``.
    files : ndarray of shape (m,), str
    """

    texts: list[str]
    libraries: np.ndarray
    parts: np.ndarray
    files: np.ndarray


def _source_files(library: str, skipped: frozenset[str]) -> Iterator[tuple[str, Path]]:
    """Yield each source file after the part of the library that it belongs to."""
    # find_spec finds the folder of a top-level package without importing it.
    root = Path(find_spec(library).origin).parent
    for file in sorted(root.rglob("*.py")):
        place = file.relative_to(root).parts
        if skipped.isdisjoint(place):
            yield f"{library}.{place[0].removesuffix('.py')}", file


def _parse(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return ast.parse(source)


def _statements(source: str) -> Iterator[ast.AST]:
    """Yield the module and all statements in it. Expressions are skipped to save time."""
    nodes: list[ast.AST] = [_parse(source)]
    for node in nodes:
        yield node
        for within in ("body", "handlers", "orelse", "finalbody", "cases"):
            nodes += getattr(node, within, ())


def _docstrings(source: str) -> Iterator[str]:
    for node in _statements(source):
        if isinstance(node, DOCUMENTED):
            yield ast.get_docstring(node) or ""


def _definitions(source: str) -> Iterator[str]:
    lines = source.split("\n")
    for node in _statements(source):
        if isinstance(node, DEFINITIONS):
            yield "\n".join(lines[node.lineno - 1 : node.end_lineno])


def _collect(
    texts_of: Callable[[str], Iterator[str]], skipped: frozenset[str], step: int
) -> Documents:
    origin = {}
    for library in LIBRARIES:
        for part, file in islice(_source_files(library, skipped), None, None, step):
            with tokenize.open(file) as opened:
                source = opened.read()
            for text in texts_of(source):
                cleaned = GIVEAWAYS.sub(" ", text)
                if len(cleaned) >= SHORTEST_TEXT:
                    origin.setdefault(cleaned, (library, part, str(file)))
    return Documents(list(origin), *map(np.array, zip(*origin.values(), strict=True)))


def collect_docstrings(step: int = 1) -> Documents:
    """Read the docstrings of modules, classes and functions, each distinct text once.

    Docstrings of tests are left out, because they are short.

    Parameters
    ----------
    step : int, default=1
        Read every step-th source file.

    Returns
    -------
    Documents
        Their order is fixed for given versions of the libraries.
    """
    return _collect(_docstrings, SHARED_FOLDERS | {TESTS}, step)


def collect_sources(step: int = 1) -> Documents:
    """Read the source code of classes, functions and methods, each distinct text once.

    Tests are included.

    Parameters
    ----------
    step : int, default=1
        Read every step-th source file.

    Returns
    -------
    Documents
        Their order is fixed for given versions of the libraries.
    """
    return _collect(_definitions, SHARED_FOLDERS, step)
