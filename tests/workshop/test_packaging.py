"""pyproject.toml is complete, and other files with the same facts agree with it."""

import re
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


def test_every_package_is_listed_and_other_files_are_package_data():
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


def test_the_conda_recipe_requires_the_same():
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


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name
)
def test_workflows_use_existing_make_targets(path):
    lines = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text(), flags=re.M)
    known = {name for line in lines for name in line.split()}
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job["steps"]:
            for name in re.findall(r"^make (.+)$", step.get("run", ""), flags=re.M):
                assert known.issuperset(matrix["target"] if "matrix.target" in name else [name])
