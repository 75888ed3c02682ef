"""pyproject.toml names every package and every file that an installation needs."""

import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from long import distribution_contents as contents

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
# What compiling and running leave in the package's folders.
MADE = (".so", ".c", ".cpp", ".pyc", ".html")


def files():
    folder = ROOT / contents.PACKAGE
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in MADE]
    return [path.relative_to(ROOT) for path in paths]


def test_every_package_is_named():
    assert sorted(SETTINGS["packages"]) == contents.packages(map(str, files()))


@pytest.mark.parametrize("path", [path for path in files() if path.suffix != ".py"], ids=str)
def test_every_other_file_is_package_data(path):
    data = SETTINGS["package-data"]
    patterns = [*data["*"], *data.get(".".join(path.parent.parts), ())]
    assert any(fnmatch(path.name, pattern) for pattern in patterns)


def test_a_forgotten_file_and_a_stray_one_are_told():
    kept = ["sparsemargin/__init__.py", "sparsemargin/_engine/rows/csr.pyx", "tests/test_a.py"]
    expected = contents.expected_in_wheel(kept, "0.1.0")
    (engine,) = (path for path in expected if path.startswith("sparsemargin/_engine/rows/csr.c"))
    found = expected - {engine} | {"tests/test_a.py"}
    assert contents.differences(expected, expected) == []
    assert contents.differences(expected, found) == [
        f"missing: {engine}", "not meant to be there: tests/test_a.py"
    ]  # fmt: skip
