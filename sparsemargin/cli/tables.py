"""Tables and sizes for people to read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from shutil import get_terminal_size

import click

from sparsemargin.io.shown import shown


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table, its first column to the left and the others to the right.

    Control characters are escaped. On a terminal that is wide enough rich draws it; elsewhere it is
    aligned text.
    """
    header, *rows = [[shown(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    if sys.stdout.isatty() and sum(widths) + 2 * len(widths) < get_terminal_size().columns:
        _draw(header, rows, title)
        return
    if title:
        click.echo(title)
    for row in (header, *rows):
        cells = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        click.echo("  ".join([f"{row[0]:<{widths[0]}}", *cells]).rstrip())


def _draw(header: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(Text(name), justify="right" if i else "left", no_wrap=True)
    for row in rows:
        # As they are: a feature's name may look like a style.
        table.add_row(*map(Text, row))
    Console().print(table)


def lines_of_facts(facts: dict[str, str]) -> str:
    """Names and values, one pair a line; control characters in values are escaped."""
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {shown(value)}" for name, value in facts.items())


def some(values: Sequence[str], most: int = 10) -> str:
    """The first values, and how many there are."""
    if len(values) <= most:
        return ", ".join(values)
    return f"{len(values):,}: {', '.join(values[:most])}, ..."


def size_in_words(n_bytes: int) -> str:
    """Bytes as people read them.

    Examples
    --------
    >>> size_in_words(999), size_in_words(1_500_000)
    ('999 bytes', '1.5 MB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.3g} {unit}"
    return f"{n_bytes} bytes"


def percent(share: float | None) -> str:
    """A share in %; "-": there is none."""
    return "-" if share is None else f"{100 * share:.2f} %"
