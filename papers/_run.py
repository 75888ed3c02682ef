"""Running recipes, and what they came to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from papers import FOLDER
from papers._catalogue import choose
from papers._outcome import Outcome, compare
from papers._recipe import Measured, Recipe
from papers._records import Records
from papers._runner import Progress, run_missing
from sparsemargin.datasets.files import find_files


def run(
    names: str | Iterable[str] = "all",
    *,
    quick: bool = False,
    n_jobs: int | None = None,
    folder: str | os.PathLike[str] = FOLDER,
    progress: Callable[[Progress], None] | None = None,
) -> list[Outcome]:
    """Run tables and figures of the papers and set them beside what is printed.

    What is measured is kept as it comes, a file for each piece of work: interrupted, the same call
    goes on where it was, and another with more tables finds what they share.

    Parameters
    ----------
    names : str or iterable of str, default="all"
        Names of recipes, as `recipes` has them; ``"all"`` stands for every one.
    quick : bool, default=False
        Whether with few repeats and the first epochs alone.
    n_jobs : int or None, default=None
        Processes, as in scikit-learn. Figures do not depend on it.
    folder : path, default="reproduction"
        Where what is measured is kept; made if need be.
    progress : callable, default=None
        Told a `Progress` after each piece of work.

    Returns
    -------
    list of Outcome
        In the order of the papers. A recipe whose data are not at hand says so in `missing` and
        shows what was measured before.

    Raises
    ------
    ValueError
        If there is no recipe of a name; the message lists those there are.
    KeyboardInterrupt
        On Ctrl-C, also within a fit; all that was finished is kept.
    """
    chosen, records = choose(names), Records(Path(folder))
    absent = {recipe.name: _missing(recipe) for recipe in chosen}
    pieces = [
        piece for recipe in chosen if not absent[recipe.name] for piece in recipe.works(quick)
    ]
    run_missing(pieces, records, n_jobs, progress or _say_nothing)
    return [
        _outcome(recipe, records, quick)._replace(missing=absent[recipe.name]) for recipe in chosen
    ]


def _missing(recipe: Recipe) -> str:
    try:
        for name in recipe.needs:
            find_files(name)
    except FileNotFoundError as error:
        return str(error)
    return ""


def _outcome(recipe: Recipe, records: Records, quick: bool) -> Outcome:
    n_repeats = recipe.repeats.of(quick)
    works = dict.fromkeys(work for work, _ in recipe.works(quick))
    return compare(recipe, Measured({work: records.find(work, n_repeats) for work in works}), quick)


def _say_nothing(_: Progress) -> None:
    pass
