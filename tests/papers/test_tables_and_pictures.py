"""The tables, the statements of the papers that recipes confirm, and their plots."""

import math

import numpy as np
import pytest

from papers import alma_figures, ho_tables
from papers.cramma import RECIPES as CRAMMA
from papers.recipe import Measured
from papers.run import choose

# Numbers of lines and cells. Freund & Schapire's d = 1 has six of seven columns.
SIZES = {
    "alma-table1": (8, 48), "alma-table2": (18, 180), "alma-table3": (18, 108),
    "alma-table4": (18, 180), "alma-table5": (8, 48), "nips-table1": (9, 54),
    "voted-table1": (54, 54 * 7 - 9), "voted-table2": (28, 280), "voted-table3": (42, 42 * 7 - 7),
    "alma-width": (4 * 6, 4 * 6 * 2), "voted-units": (6 * 4, 6 * 4 * 2),
}  # fmt: skip


def parts_of(name, quick=True):
    (recipe,) = choose([name])
    return recipe.parts(quick)


@pytest.mark.parametrize("name", SIZES)
def test_tables_are_complete_and_quick_runs_make_one_epoch(name):
    runs = {}
    for quick in (True, False):
        (found,) = parts_of(name, quick)
        cells = [cell for line in found.lines for cell in line.cells if cell is not None]
        assert (len(found.lines), len(cells)) == SIZES[name]
        assert all(len(line.cells) == len(found.columns) for line in found.lines)
        assert quick or all(cell.work is not None for cell in cells)
        epochs = {dict(work.arguments)["epochs"] for work in found.works}
        assert not quick or epochs == {1}
        works = [dict(work.arguments, epochs=1) for work in found.works]
        runs[quick] = {tuple(sorted(work.items())) for work in works}
    assert runs[True] == runs[False]


def test_claims_about_cramma_are_checked_on_its_runs():
    as_printed, slower = {}, {}
    for recipe in CRAMMA:
        for line in recipe.parts(quick=False)[0].lines:
            work = line.cells[0].work
            *figures, updates = (cell.number for cell in line.cells)
            as_printed[work] = [{"figures": figures, "updates": updates}]
            if recipe.name != "cramma-table2":
                updates += 10**10 * line.name.startswith("CRAMMA")
                slower[work] = [{"figures": figures, "updates": updates}]
    assert len(as_printed) == 24 + 8 + 15 + 15
    for recipe in CRAMMA:
        for quick in (True, False):
            own = {work for work, _ in recipe.works(quick)}
            for claim in recipe.parts(quick)[0].claims:
                assert set(claim.works) <= own
                assert claim.examine(Measured(as_printed)).holds
                assert recipe.name == "cramma-table2" or not claim.examine(Measured(slower)).holds


def test_printed_figures_confirm_the_claims_about_ho():
    for recipe in ho_tables.RECIPES[:2]:
        for table in recipe.parts(quick=False):
            found = {}
            for line in table.lines:
                updates, errors = ({"c=0.2": [cell.number] * 2} for cell in line.cells[:2])
                found[line.cells[0].work] = [{"updates": updates, "errors": errors}]
            assert all(claim.examine(Measured(found)).holds for claim in table.claims)


def test_projections_agree_with_the_paper_and_are_drawn():
    record = alma_figures.WORK(0)
    stepped = np.add(record["w"], record["step"])
    assert np.linalg.norm(record["w"]) <= 1 + 1e-12
    assert np.linalg.norm(stepped) > alma_figures.LEAST_LENGTH
    assert np.linalg.norm(record["step"]) == pytest.approx(math.sqrt(2 / record["k"]))
    assert record["projected"] == pytest.approx(stepped / np.linalg.norm(stepped))
    turned = record | {"projected": record["projected"][::-1]}
    (picture,) = parts_of("alma-figure2")
    (claim,) = picture.claims
    assert claim.examine(Measured({alma_figures.WORK: [record]})).holds
    assert not claim.examine(Measured({alma_figures.WORK: [turned]})).holds
    (axes,) = picture.draw(Measured({alma_figures.WORK: [record]})).axes
    assert len(axes.get_legend().get_texts()) == 3
