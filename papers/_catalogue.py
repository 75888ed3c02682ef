"""Which recipes there are, in the order of the papers."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from papers._recipe import Recipe
from papers.sources import PAPERS
from sparsemargin._checks import did_you_mean

#: Modules with a tuple `RECIPES`; of each paper they are listed in this order.
_MODULES = (
    "figures_1",
    "alma_update",
    "alma_kernels",
    "alma_margins",
    "alma_targets",
    "alma_width",
    "conference_kernels",
    "voted_kernels",
    "voted_curves",
    "voted_units",
    "ho_tables",
    "ho_kernels",
    "ho_figure2",
    "ho_claim",
    "cramma_tables",
)

#: Stands for all of them.
ALL = "all"


def recipes() -> dict[str, Recipe]:
    """Return all recipes by name."""
    modules = (import_module(f"papers.{name}") for name in _MODULES)
    every = (recipe for module in modules for recipe in module.RECIPES)
    ordered = sorted(every, key=lambda recipe: PAPERS.index(recipe.paper))
    return {recipe.name: recipe for recipe in ordered}


def choose(names: str | Iterable[str]) -> list[Recipe]:
    """Return the recipes of these names, each once, in the order of the papers.

    Parameters
    ----------
    names : str or iterable of str
        ``"all"`` among them stands for every one.

    Raises
    ------
    ValueError
        If there is no recipe of a name; the message lists those there are.
    """
    every, wanted = recipes(), {names} if isinstance(names, str) else set(names)
    unknown = sorted(wanted - {ALL, *every})
    if unknown:
        raise ValueError(
            f"There is no recipe {unknown[0]!r}.{did_you_mean(unknown[0], every)} "
            f"Choose from: {ALL}, {', '.join(every)}."
        )
    return [recipe for name, recipe in every.items() if ALL in wanted or name in wanted]
