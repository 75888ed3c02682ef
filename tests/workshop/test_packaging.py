"""pyproject.toml is complete, and other files with the same facts agree with it."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
SETTINGS = PYPROJECT["tool"]["setuptools"]
# Files that are created in the package's folders by compiling and running.
MADE = (".so", ".c", ".cpp", ".pyc", ".html")


def test_packages_and_package_data_are_complete():
    paths = [path for path in (ROOT / "sparsemargin").rglob("*") if path.is_file()]
    files = [path.relative_to(ROOT) for path in paths if path.suffix not in MADE]
    packages = {".".join(path.parent.parts) for path in files if path.name == "__init__.py"}
    assert sorted(SETTINGS["packages"]) == sorted(packages)
    data = SETTINGS["package-data"]
    for path in files:
        patterns = ["*.py", *data["*"], *data.get(".".join(path.parent.parts), ())]
        assert any(fnmatch(path.name, pattern) for pattern in patterns), path


@pytest.mark.parametrize("file", ["CITATION.cff", "conda/recipe.yaml"])
def test_all_files_have_the_same_version(file):
    lines = (ROOT / file).read_text().splitlines()
    assert f"version: {PROJECT['version']}" in map(str.strip, lines)


def requirements(names):
    """The requirements in the format of conda, sorted."""
    parted = [re.fullmatch(r"([\w-]+)(?:\[.*\])?(.*)", name.lower()).groups() for name in names]
    return sorted(f"{name} {bounds}" for name, bounds in parted if name != "sparsemargin")


def test_conda_recipe_has_the_same_requirements():
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    needs = recipe["requirements"]
    python = f"python {PROJECT['requires-python']}"
    assert sorted(needs["run"]) == sorted([python, *requirements(PROJECT["dependencies"])])
    build = requirements(PYPROJECT["build-system"]["requires"])
    assert sorted(needs["host"]) == sorted(["python", "pip", *build])
    extras = PROJECT["optional-dependencies"]
    optional = [extras[name] for name in ("cli", "plot", "files", "text", "distributed")]
    named = [each.replace("matplotlib-base", "matplotlib") for each in needs["run_constraints"]]
    assert sorted(named) == requirements([name for extra in optional for name in extra])
    assert recipe["build"]["python"]["entry_points"] == [
        f"{name} = {entry}" for name, entry in PROJECT["scripts"].items()
    ]


def test_every_test_requirement_has_a_lowest_version(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "release")
    lowest_versions = importlib.import_module("lowest_versions").lowest_versions
    pins = lowest_versions(PYPROJECT)
    names = [re.match(r"[\w.-]+", pin)[0] for pin in pins]
    assert len(names) == len(set(names))
    assert {"Cython", "numpy", "h5py", "numcodecs", "pytest", "setuptools"} <= set(names)
    unbounded = {**PROJECT, "dependencies": ["numpy"]}
    with pytest.raises(ValueError, match="numpy"):
        lowest_versions({**PYPROJECT, "project": unbounded})


def test_uncompiled_sources_raise_an_error_with_a_remedy(tmp_path):
    shutil.copytree(
        ROOT / "sparsemargin", tmp_path / "sparsemargin", ignore=shutil.ignore_patterns("*.so")
    )
    code = "import sparsemargin; sparsemargin.AROWClassifier"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: sparsemargin is imported from {tmp_path}"), last
    assert "start Python in another folder" in last
    assert "pip install -e ." in last
