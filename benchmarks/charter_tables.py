"""All short tables of the charter, for its report and for the documentation."""

from typing import Any, TypedDict

import tables_files
import tables_growth
import tables_kernels
import tables_labels
import tables_memory
from charter_table import Entries

PACKAGES = ("numpy", "scipy", "scikit-learn")
TABLES = (
    tables_memory.TABLES
    | tables_labels.TABLES
    | tables_growth.TABLES
    | tables_files.TABLES
    | tables_kernels.TABLES
)


class Told(TypedDict):
    """The figures of a table, and the machine that they were measured on."""

    machine: dict[str, Any]
    entries: Entries


def select(parts: dict[str, Any]) -> dict[str, Told]:
    """Return the figures of all tables that the measured parts suffice for."""
    reports = {
        name: parts[table.part]["report"]
        for name, table in TABLES.items()
        if "report" in parts.get(table.part, {})
    }
    return {
        name: {"machine": report["machine"], "entries": entries}
        for name, report in reports.items()
        if (entries := TABLES[name].select(report))
    }


def render(chosen: dict[str, Told]) -> dict[str, str]:
    """Return the tables of these figures, in Markdown, each with its machine."""
    return {
        name: f"{TABLES[name].render(told['entries'])}\n\n{_measured_on(told['machine'])}"
        for name, told in chosen.items()
    }


def _measured_on(machine: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {machine[name]}" for name in PACKAGES)
    return f"*Measured on {machine['cpu']}, {machine['cpus']} processors; {packages}.*"
