"""How far a command has come: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from sparsemargin.cli.options import is_quiet
from sparsemargin.io.passes import Corpus
from sparsemargin.io.report import Lines, one_step_ahead, speed
from sparsemargin.io.scanning import RowBlock
from sparsemargin.io.stream import Moment

# Seconds between two states of the live display.
_REDRAWN = 0.1
_BAR_WIDTH = 40


class Display(Protocol):
    """Shows a share of the work, if it is known, and what there is to say."""

    def __call__(self, share: float | None, words: Callable[[], str]) -> None: ...


@contextmanager
def live_display(*, shown: bool) -> Iterator[Display | None]:
    """A display on standard error; None where that is no terminal, or where it is not to be shown
    or standard output is on the same terminal and not done yet."""
    if is_quiet() or not shown or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        drawn = 0.0

        def display(share: float | None, words: Callable[[], str]) -> None:
            nonlocal drawn
            now = time.monotonic()
            if now - drawn >= _REDRAWN:
                drawn = now
                live.update(_drawn(share, words()), refresh=True)

        yield display


def _drawn(share: float | None, words: str) -> Any:
    """A bar and a line below it."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    bar = ProgressBar(total=1.0, completed=share or 0.0, width=_BAR_WIDTH, pulse=share is None)
    line = Table.grid(padding=(0, 1))
    line.add_row(bar, "" if share is None else f"{share:.0%}")
    return Group(line, Text(words, no_wrap=True, overflow="ellipsis"))


@contextmanager
def learning_progress() -> Iterator[Callable[[Moment], None]]:
    """What is told the moments of learning, and shows them."""
    with live_display(shown=True) as display:
        if display is not None:
            yield lambda moment: display(_share(moment), lambda: _words(moment))
        elif is_quiet():
            yield lambda moment: None
        else:
            yield Lines()


def _share(moment: Moment) -> float | None:
    return moment.consumed / moment.size if moment.size else None


def _words(moment: Moment) -> str:
    return (
        f"epoch {moment.epoch}, {speed(moment):.0f} MB/s, error {one_step_ahead(moment)} %, "
        f"{moment.rows:,} rows, {moment.corrections:,} corrections, {moment.features:,} features"
    )


@contextmanager
def reading_progress(corpus: Corpus, *, shown: bool = True) -> Iterator[Callable[[RowBlock], Any]]:
    """What is told the blocks of a corpus as they are done, and shows on a terminal how far that
    is."""
    started, rows = time.monotonic(), 0
    with live_display(shown=shown) as display:

        def report(block: RowBlock) -> None:
            nonlocal rows
            rows += block.n_rows
            if display is None or block.text is None:
                return
            done = corpus.bytes_before(block.text.source) + block.text.consumed
            share = done / corpus.size if corpus.size else None
            rate = done / 1e6 / max(time.monotonic() - started, 1e-9)
            display(share, lambda: f"{rate:.0f} MB/s, {rows:,} rows")

        yield report
