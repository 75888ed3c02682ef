"""``sparsemargin reproduce``: the papers' tables and figures, printed beside measured."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from sparsemargin.cli.errors import Failure
from sparsemargin.cli.options import is_quiet, make_command
from sparsemargin.cli.progress import live_display
from sparsemargin.cli.tables import lines_of_facts
from sparsemargin.reproduce import FOLDER

if TYPE_CHECKING:
    from sparsemargin.reproduce._outcome import Outcome
    from sparsemargin.reproduce._runner import Progress

_EXAMPLES = """
sparsemargin reproduce                            # what there is
sparsemargin reproduce alma-table6 ho-figure2
sparsemargin reproduce all --quick --jobs 2
"""

# Exit code where a figure is further from the paper's than its recipe allows, or data are missing.
_NOT_AS_ALLOWED = 1
# Where output is no terminal.
_WIDTH = 120


@make_command("reproduce", _EXAMPLES)
@click.argument(
    "tables", nargs=-1, metavar="[TABLE...|all]", shell_complete=lambda *given: _names(given[2])
)
@click.option("--quick", is_flag=True, help="Few repeats and first epochs: minutes, not hours.")
@click.option(
    "--jobs",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Processes to work on; -1 for one on every core.",
)
@click.option(
    "-o", "--out", "folder", type=click.Path(file_okay=False), default=FOLDER,
    show_default=True, metavar="DIR",
    help="Where the report goes, and what is measured on the way.",
)  # fmt: skip
def command(tables: tuple[str, ...], quick: bool, jobs: int, folder: str) -> None:
    """Run the papers' tables again, beside what they print.

    Without a TABLE they are listed. What is measured is kept in DIR as it comes, so that the same
    command goes on where it was interrupted; DIR/report.html shows all that was asked for, with
    pictures, and DIR/report.json has its figures. Ends with 1 where a figure differs by more than
    its recipe allows, or its data are not at hand.
    """
    if not tables:
        _list()
        return
    from sparsemargin.reproduce._catalogue import choose
    from sparsemargin.reproduce._run import run

    if jobs == 0:
        raise click.BadParameter("there must be a process to work on.", param_hint="--jobs")
    try:
        choose(tables)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with _progress() as progress:
        outcomes = run(tables, quick=quick, n_jobs=jobs, folder=folder, progress=progress)
    _print(outcomes)
    _write(outcomes, Path(folder), quick)
    if not all(outcome.is_as_allowed and not outcome.missing for outcome in outcomes):
        click.get_current_context().exit(_NOT_AS_ALLOWED)


def _names(start: str) -> list[str]:
    from sparsemargin.reproduce._catalogue import ALL, recipes

    return [name for name in (ALL, *recipes()) if name.startswith(start)]


def _list() -> None:
    from sparsemargin.reproduce import recipes

    facts = {
        name: f"{recipe.paper.short}, {recipe.item}: {recipe.title}"
        for name, recipe in recipes().items()
    }
    click.echo(lines_of_facts(facts))


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """A live display on a terminal; elsewhere a line for every twentieth of the work."""
    with live_display(shown=True) as display:
        if display is not None:
            yield lambda done: display(done.n_done / done.n_pieces, lambda: _words(done))
        else:
            yield _lines


def _lines(done: Progress) -> None:
    step = max(1, done.n_pieces // 20)
    if not is_quiet() and (done.n_done % step == 0 or done.n_done == done.n_pieces):
        click.echo(_words(done), err=True)


def _words(done: Progress) -> str:
    return f"{done.n_done:,} of {done.n_pieces:,}: {done.work.title}, {done.seconds:.1f} s"


def _print(outcomes: list[Outcome]) -> None:
    from sparsemargin.reproduce._text import text_report

    width = get_terminal_size((_WIDTH, 0)).columns
    for outcome in outcomes:
        click.echo(text_report(outcome, width) + "\n")


def _write(outcomes: list[Outcome], folder: Path, quick: bool) -> None:
    from sparsemargin.io.files import replacing
    from sparsemargin.reproduce import html_report
    from sparsemargin.reproduce._outcome import as_json

    figures = {"quick": quick, "recipes": list(map(as_json, outcomes))}
    with replacing(folder / "report.json") as out:
        out.write(json.dumps(figures).encode())
    try:
        page = html_report(outcomes, quick=quick)
    except ImportError as error:
        raise Failure(str(error)) from None
    with replacing(folder / "report.html") as out:
        out.write(page.encode())
    if not is_quiet():
        click.echo(f"written: {os.path.join(folder, 'report.html')}", err=True)
