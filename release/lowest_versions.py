"""Run all tests with the lowest versions that pyproject.toml allows: make test-lowest.

python release/lowest_versions.py [--print]

The versions are those of the requirements of the package, of its build, and of every extra that
the tests need: the extra `test`, and the extras that it names. They are installed into a new
environment, the engine is built there from the files that git keeps, and the tests are run.
"""

import argparse
import re
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

from distributions import ROOT, CleanEnvironment, kept_by_git

_LOWEST = re.compile(r"(?P<name>[\w.-]+)(?P<extras>\[[\w, -]+\])?>=(?P<version>[\w.]+)(,<[\w.]+)?")


def requirements(settings: dict, extra: str) -> list[str]:
    """Return the requirements of an extra and of the extras of this package that it names."""
    project = settings["project"]
    found = []
    for requirement in project["optional-dependencies"][extra]:
        name, _, extras = requirement.partition("[")
        if name == project["name"]:
            for each in extras.rstrip("]").split(","):
                found += requirements(settings, each)
        else:
            found.append(requirement)
    return found


def lowest_versions(settings: dict) -> list[str]:
    """Return a pin of the lowest version for each requirement.

    Raises
    ------
    ValueError
        If a requirement names no lowest version.
    """
    declared = [
        *settings["build-system"]["requires"],
        *settings["project"]["dependencies"],
        *requirements(settings, "test"),
    ]
    pins = []
    for requirement in dict.fromkeys(declared):
        match = _LOWEST.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement} in pyproject.toml names no lowest version (>=).")
        pins.append(f"{match['name']}{match['extras'] or ''}=={match['version']}")
    return pins


def run_tests(pins: list[str], folder: Path) -> int:
    """Build the engine and run the tests with these versions in an empty folder."""
    environment, project = CleanEnvironment(folder / "environment"), folder / "project"
    environment.install(*pins)
    for path in kept_by_git():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, project / path)
    environment.install("--no-build-isolation", "--no-deps", "-e", project)
    pytest = [environment.programs / "pytest", "-n", "auto", "--maxprocesses", "4"]
    command = [*pytest, "--dist", "worksteal"]
    return subprocess.run(command, cwd=project, env=environment.environment).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--print", action="store_true", help="print the versions, one per line")
    options = parser.parse_args()
    pins = lowest_versions(tomllib.loads((ROOT / "pyproject.toml").read_text()))
    print(*pins, sep="\n", flush=True)
    if not options.print:
        with tempfile.TemporaryDirectory() as name:
            raise SystemExit(run_tests(pins, Path(name)))


if __name__ == "__main__":
    main()
