"""Running recipes: which there are, what they measure, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from joblib import Memory, Parallel, delayed
from rich.console import Console
from rich.progress import track

import sparsemargin
from papers.recipe import PAPERS, Measured, Recipe, Record, Work
from papers.report import Outcome
from sparsemargin._checks import did_you_mean
from sparsemargin.datasets.files import find_files

#: Modules with a tuple `RECIPES`; of each paper they are listed in this order.
_MODULES = (
    "figures_1", "alma_figures", "alma_kernels", "alma_targets", "voted", "ho_tables",
    "ho_kernels", "ho_figure2", "cramma",
)  # fmt: skip

#: Stands for all of them.
ALL = "all"


def recipes() -> dict[str, Recipe]:
    """Return all recipes by name, in the order of the papers."""
    modules = (import_module(f"papers.{name}") for name in _MODULES)
    every = (recipe for module in modules for recipe in module.RECIPES)
    return {each.name: each for each in sorted(every, key=lambda each: PAPERS.index(each.paper))}


def choose(names: Iterable[str]) -> list[Recipe]:
    """Return the recipes of these names, each once, in the order of the papers.

    Raises
    ------
    ValueError
        If there is no recipe of a name; the message lists those there are.
    """
    every, wanted = recipes(), set(names)
    for name in sorted(wanted - {ALL, *every}):
        raise ValueError(
            f"There is no recipe {name!r}.{did_you_mean(name, every)} "
            f"Choose from: {ALL}, {', '.join(every)}."
        )
    return [recipe for name, recipe in every.items() if ALL in wanted or name in wanted]


class Records:
    """What this version of the library has measured, in a folder.

    It is kept as it comes: interrupted, a run goes on where it was, and another finds what it
    shares. Where a work's own lines have changed since, it is done again.
    """

    def __init__(self, folder: Path):
        self._memory = Memory(folder / f"sparsemargin-{sparsemargin.__version__}", verbose=0)

    def do(self, pieces: Iterable[tuple[Work, int]], n_jobs: int) -> None:
        """Do the work, each with its repeat, that there is no record of, in so many processes."""
        missing = [piece for piece in dict.fromkeys(pieces) if not self._has(*piece)]
        if not missing:
            return
        run = Parallel(n_jobs, batch_size=1, return_as="generator_unordered")
        done = run(delayed(self._do)(*piece) for piece in missing)
        for _ in track(done, "Measured", len(missing), console=Console(stderr=True)):
            pass

    def find(self, work: Work, n_repeats: int) -> list[Record]:
        """Return the records of the first repeats, up to the first that is missing."""
        found: list[Record] = []
        while len(found) < n_repeats and self._has(work, len(found)):
            found.append(self._do(work, len(found)))
        return found

    def _has(self, work: Work, repeat: int) -> bool:
        cached = self._memory.cache(work.run)
        return cached.check_call_in_cache(**dict(work.arguments), seed=repeat)

    def _do(self, work: Work, repeat: int) -> Record:
        return self._memory.cache(work.run)(**dict(work.arguments), seed=repeat)


def run(chosen: list[Recipe], *, quick: bool, n_jobs: int, folder: Path) -> list[Outcome]:
    """Run recipes, in so many processes, and set what they measure beside what is printed.

    What is measured is kept in a folder. A recipe whose data are not at hand says so in `missing`
    and shows what was measured before.
    """
    records = Records(folder)
    missing = {recipe.name: _missing(recipe) for recipe in chosen}
    able = [recipe for recipe in chosen if not missing[recipe.name]]
    records.do([piece for recipe in able for piece in recipe.works(quick)], n_jobs)
    outcomes = []
    for recipe in chosen:
        works = dict.fromkeys(work for work, _ in recipe.works(quick))
        found = {work: records.find(work, recipe.repeats.of(quick)) for work in works}
        outcomes.append(Outcome.of(recipe, Measured(found), quick, missing[recipe.name]))
    return outcomes


def _missing(recipe: Recipe) -> str:
    """Which data are not at hand, and how to get them."""
    try:
        for name in recipe.needs:
            find_files(name)
    except FileNotFoundError as error:
        return str(error)
    return ""
