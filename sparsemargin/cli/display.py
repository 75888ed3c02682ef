"""Progress display and tables of the commands."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from sparsemargin._shown import folded, shown
from sparsemargin.cli.options import is_quiet
from sparsemargin.readers.rows import LabelledRows, RowSource
from sparsemargin.streaming.report import Progress, ProgressLines, shown_error, speed

Display = Callable[[float | None, str], None]
_Item = TypeVar("_Item")

# Smallest width, in characters, to which a column of names is folded.
_NARROWEST = 16


@contextmanager
def live_display(*, visible: bool = True) -> Iterator[Display | None]:
    """Give a function that draws a progress bar on standard error, or None for no display.

    The function takes the finished fraction of the work (None: unknown) and a text. There is no
    display with --quiet, if `visible` is False, or if standard error is not a terminal.
    """
    if is_quiet() or not visible or not sys.stderr.isatty():
        yield None
        return
    # Imported here because rich takes 0.1 s, and redirected output does not need it.
    from rich import console, progress

    # On a terminal with 80 columns, 50 remain for the text.
    words = progress.TextColumn("{task.description}", markup=False)
    columns = progress.BarColumn(bar_width=20), progress.TaskProgressColumn(), words
    error_output = console.Console(stderr=True)
    with progress.Progress(*columns, console=error_output, transient=True) as live:
        task = live.add_task("", total=None)

        def display(share: float | None, words: str) -> None:
            total = None if share is None else 1.0
            live.update(task, completed=share or 0.0, total=total, description=words)

        yield display


@contextmanager
def learning_progress() -> Iterator[Callable[[Progress], None]]:
    """Give a function that shows training progress: live on a terminal, otherwise in lines."""
    with live_display() as display:

        def show(moment: Progress) -> None:
            if display is not None:
                display(moment.consumed / moment.size if moment.size else None, _words(moment))

        yield show if display is not None or is_quiet() else ProgressLines()


def _words(moment: Progress) -> str:
    error = "error" if moment.epoch == 1 else "training error"
    return (
        f"epoch {moment.epoch}, {error} {shown_error(moment)} %, {moment.rows:,} rows, "
        f"{speed(moment):.0f} MB/s"
    )


def watched(
    items: Iterable[_Item], corpus: RowSource, *, visible: bool = True,
    block_of: Callable[[Any], LabelledRows] = lambda item: item,
) -> Iterator[_Item]:  # fmt: skip
    """Yield the items, made from the blocks of a corpus, and show the progress on a terminal."""
    started, rows = time.monotonic(), 0
    with live_display(visible=visible) as display:
        for item in items:
            yield item
            block = block_of(item)
            rows += block.n_rows
            if display is not None and (done := block.consumed) is not None:
                rate = done / 1e6 / max(time.monotonic() - started, 1e-9)
                share = done / corpus.size if corpus.size else None
                display(share, f"{rate:.0f} MB/s, {rows:,} rows")


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", *,
    left: Container[int] = (0,),
) -> None:  # fmt: skip
    """Print a table with left-aligned columns `left` and all others right-aligned.

    Control characters are escaped, and no cell is truncated. On a narrow terminal, left-aligned
    cells are folded to several lines if the table then fits.
    """
    # Imported here because rich takes 0.1 s, and most commands print no table.
    from rich import box, console, table, text

    output = console.Console()
    drawing = table.Table(
        box=box.SIMPLE_HEAD if output.is_terminal else None, pad_edge=False,
        collapse_padding=output.is_terminal, title=text.Text(title) if title else None,
        title_justify="left",
    )  # fmt: skip
    foldable = 0
    for i, name in enumerate(header):
        folds = i in left and output.is_terminal
        drawing.add_column(
            text.Text(shown(name)), justify="left" if i in left else "right", no_wrap=not folds,
            overflow="fold",
        )  # fmt: skip
        if folds:
            widest = max(len(shown(line[i])) for line in (header, *rows))
            foldable += max(0, widest - _NARROWEST)
    for row in rows:
        # Text objects are not parsed as markup: the name of a feature may look like a style.
        drawing.add_row(*(text.Text(shown(cell)) for cell in row))
    wanted = output.measure(drawing, options=output.options.update(width=1 << 20)).maximum
    if wanted - foldable > output.width or not output.is_terminal:
        output.width = max(output.width, wanted)
    # click prints the table, because rich exits the process if a pipe is closed.
    with output.capture() as drawn:
        output.print(drawing)
    lines = [line.rstrip() for line in drawn.get().splitlines()]
    click.echo("\n".join(lines).strip("\n"))


def print_facts(facts: dict[str, str], *, err: bool = False) -> None:
    """Print one name and value per line, folded between words on a terminal.

    Control characters in values are escaped.
    """
    stream, indent = sys.stderr if err else sys.stdout, max(map(len, facts)) + 2
    for name, value in facts.items():
        click.echo(folded(f"{name:<{indent}}{shown(value)}", stream, indent), err=err)


def listed(values: Sequence[str], most: int = 10) -> str:
    """Return the values as a list, or their number and the first `most` values."""
    if len(values) <= most:
        return ", ".join(values)
    return f"{len(values):,}: {', '.join(values[:most])}, ..."


def size_in_words(n_bytes: int) -> str:
    """Return a number of bytes in GB, MB, KB or bytes.

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
    """Return a fraction in percent, or "-" for None."""
    return "-" if share is None else f"{100 * share:.2f} %"
