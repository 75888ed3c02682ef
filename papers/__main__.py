"""Run the papers' tables and figures again, beside what they print: python -m papers."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size

from papers import _catalogue
from papers._html import html_report
from papers._outcome import Outcome, as_json
from papers._run import run
from papers._runner import Progress
from papers._text import text_report
from sparsemargin.io.files import replacing

_MORE = """
Without a NAME the recipes are listed. What is measured is kept in DIR as it comes, so that the
same command goes on where it was interrupted; DIR/report.html shows all that was asked for, with
pictures, and DIR/report.json has its figures. Ends with 1 where a figure differs by more than its
recipe allows, or its data are not at hand.
"""
# Where output is no terminal.
_WIDTH = 120


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = ArgumentParser("python -m papers", description=__doc__, epilog=_MORE)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a recipe, or all")
    parser.add_argument("--list", action="store_true", help="list the recipes and do nothing")
    parser.add_argument(
        "--quick", action="store_true", help="few repeats, first epochs: minutes, not hours"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes, or -1 for one on every core"
    )
    parser.add_argument(
        "-o", "--out", type=Path, default=Path("reproduction"), metavar="DIR",
        help="where the report goes, and what is measured on the way (default: %(default)s)",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    if options.list or not options.names:
        for name, recipe in _catalogue.recipes().items():
            print(f"{name:<16}  {recipe.paper.short}, {recipe.item}: {recipe.title}")
        return 0
    if options.jobs == 0:
        parser.error("--jobs 0: there must be a process to work on.")
    try:
        _catalogue.choose(options.names)
    except ValueError as error:
        parser.error(str(error))
    try:
        outcomes = run(
            options.names, quick=options.quick, n_jobs=options.jobs, folder=options.out,
            progress=_tell,
        )  # fmt: skip
        for outcome in outcomes:
            print(text_report(outcome, get_terminal_size((_WIDTH, 0)).columns) + "\n")
        _write(outcomes, options.out, options.quick)
    except (ImportError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0 if all(each.is_as_allowed and not each.missing for each in outcomes) else 1


def _tell(done: Progress) -> None:
    if done.n_done % max(1, done.n_pieces // 20) == 0 or done.n_done == done.n_pieces:
        words = f"{done.n_done:,} of {done.n_pieces:,}: {done.work.title}, {done.seconds:.1f} s"
        print(words, file=sys.stderr)


def _write(outcomes: list[Outcome], folder: Path, quick: bool) -> None:
    figures = {"quick": quick, "recipes": list(map(as_json, outcomes))}
    with replacing(folder / "report.json") as out:
        out.write(json.dumps(figures).encode())
    page = html_report(outcomes, quick=quick)
    with replacing(folder / "report.html") as out:
        out.write(page.encode())
    print(f"written: {os.path.join(folder, 'report.html')}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
