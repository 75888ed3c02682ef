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
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
