"""Run the papers' tables and figures again, beside what they print."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size

try:
    from papers import run
    from papers.report import as_json, html_report, text_legend, text_report
except ModuleNotFoundError as missing:
    sys.exit(f"The recipes need {missing.name}: pip install -e '.[papers]' in this folder.")

_MORE = """
Without a NAME the recipes are listed. What is measured is kept in DIR as it comes, so that the
same command goes on where it was interrupted; DIR/report.html shows all that was asked for, with
pictures, and DIR/report.json has its figures. Ends with 1 where a figure differs by more than its
recipe allows, or its data are not at hand.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = ArgumentParser("python -m papers", description=__doc__, epilog=_MORE)
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="a recipe, or all")
    add("--list", action="store_true", help="list the recipes and do nothing")
    add("--quick", action="store_true", help="few repeats, first epochs: minutes, not hours")
    add("--jobs", type=int, default=1, metavar="N", help="processes; -1: one on every core")
    where = "where the report goes, and what is measured on the way (default: %(default)s)"
    add("-o", "--out", type=Path, default=Path("reproduction"), metavar="DIR", help=where)
    options = parser.parse_args(arguments)
    if options.list or not options.names:
        for name, recipe in run.recipes().items():
            print(f"{name:<16}  {recipe.paper.short}, {recipe.item}: {recipe.title}")
        return 0
    if options.jobs == 0:
        parser.error("--jobs 0: there must be a process to work on.")
    try:
        chosen = run.choose(options.names)
    except ValueError as error:
        parser.error(str(error))
    outcomes = run.run(chosen, quick=options.quick, n_jobs=options.jobs, folder=options.out)
    figures = {"quick": options.quick, "recipes": list(map(as_json, outcomes))}
    (options.out / "report.json").write_text(json.dumps(figures))
    page = options.out / "report.html"
    page.write_text(html_report(outcomes, quick=options.quick))
    width = get_terminal_size((120, 0)).columns
    print(text_legend(width))
    for outcome in outcomes:
        print(text_report(outcome, width))
    print(f"written: {page}", file=sys.stderr)
    return 0 if all(outcome.is_as_allowed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
