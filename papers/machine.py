"""The facts of a machine that belong to what is measured on it."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = ("numpy", "scipy", "scikit-learn", "sparsemargin")


def machine() -> dict[str, Any]:
    """Return the facts without which a timing means nothing."""
    return {
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    } | {package: version(package) for package in _PACKAGES}


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    first = cpuinfo.read_text().partition("\n\n")[0] if cpuinfo.exists() else ""
    lines = (line.partition(":") for line in first.splitlines())
    facts = {name.strip(): fact.strip() for name, _, fact in lines}
    if not {"model name", "cpu family", "model"} <= facts.keys():
        return platform.processor() or platform.machine()
    # Virtual machines often tell a name that many processors share.
    return f"{facts['model name']} (family {facts['cpu family']}, model {facts['model']})"
