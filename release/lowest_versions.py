#!/usr/bin/env python3
"""Print the lowest versions that pyproject.toml allows, one pin per line: make test-lowest.

The pins cover the requirements of the package, of its build, and of every extra that the tests
need: those of the extra `test`, and of the extras that it names.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

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


if __name__ == "__main__":
    print(*lowest_versions(tomllib.loads((ROOT / "pyproject.toml").read_text())), sep="\n")
