"""All short tables of the charter, for its report and for the documentation."""

from typing import Any

import tables_files
import tables_growth
import tables_kernels
import tables_labels
import tables_memory
from charter_table import Entries

TABLES = (
    tables_memory.TABLES
    | tables_labels.TABLES
    | tables_growth.TABLES
    | tables_files.TABLES
    | tables_kernels.TABLES
)


def select(parts: dict[str, Any]) -> dict[str, Entries]:
    """Return the figures of all tables that the measured parts suffice for."""
    chosen = {
        name: table.select(parts[table.part]["report"])
        for name, table in TABLES.items()
        if "report" in parts.get(table.part, {})
    }
    return {name: entries for name, entries in chosen.items() if entries}


def render(chosen: dict[str, Entries]) -> dict[str, str]:
    """Return the tables of these figures, in Markdown."""
    return {name: TABLES[name].render(entries) for name, entries in chosen.items()}
