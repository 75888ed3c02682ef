"""The figures that the papers print: that all are there, and agree with each other."""

import numpy as np
import pytest

from papers import alma_kernels, ho_kernels, ho_tables, voted
from papers.cramma import MANY_UPDATES
from papers.cramma import RECIPES as CRAMMA
from papers.kernels import (
    ALMA,
    AVERAGE,
    CORRECTIONS,
    LAST,
    PERCEPTRON,
    SUPPORT,
    figures_of,
)
from papers.run import choose
from sparsemargin import PNormPerceptron

LINES = alma_kernels.LINES | voted.LINES
# Lines and cells; of seven columns of Freund & Schapire's d = 1 has six.
SIZES = {
    "alma-table1": (8, 48), "alma-table2": (18, 180), "alma-table3": (18, 108),
    "alma-table4": (18, 180), "alma-table5": (8, 48), "nips-table1": (9, 54),
    "voted-table1": (54, 54 * 7 - 9), "voted-table2": (28, 280), "voted-table3": (42, 42 * 7 - 7),
    "alma-width": (4 * 6, 4 * 6 * 2), "voted-units": (6 * 4, 6 * 4 * 2),
}  # fmt: skip


def works_of(name, quick=False):
    (recipe,) = choose([name])
    return set(recipe.works(quick))


def printed(name, quantity, epochs):
    found = figures_of(LINES[name])
    return [each for each in found if (each.quantity, each.epochs) == (quantity, epochs)]


# -- tables with kernels ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIZES)
def test_every_table_has_all_its_cells_and_a_quick_run_makes_one_epoch_of_the_same_runs(name):
    runs = {}
    for quick in (True, False):
        ((found,),) = (recipe.parts(quick) for recipe in choose([name]))
        cells = [cell for line in found.lines for cell in line.cells if cell is not None]
        assert (len(found.lines), len(cells)) == SIZES[name]
        assert all(len(line.cells) == len(found.columns) for line in found.lines)
        assert quick or all(cell.work is not None for cell in cells)
        runs[quick] = {
            tuple(sorted(dict(work.arguments, epochs=1).items())) for work in found.works
        }
    assert runs[True] == runs[False]
    assert {dict(work.arguments)["epochs"] for work, _ in works_of(name, quick=True)} == {1}


def test_recipes_share_their_runs():
    assert works_of("nips-table1") < works_of("alma-table3")
    assert works_of("alma-table4") < works_of("alma-table3")
    assert works_of("voted-figure2") == works_of("voted-table1")


@pytest.mark.parametrize(
    ("by_class", "totals"), [("alma-table2", "alma-table1"), ("alma-table4", "alma-table3")]
)
def test_classes_sum_to_the_totals_of_the_other_table(by_class, totals):
    """But for rounding, each of ten means by half a correction."""
    expected = {
        (each.run, each.epochs): each.number
        for each in figures_of(LINES[totals]) if each.quantity == CORRECTIONS
    }  # fmt: skip
    sums = {(each.run, each.epochs): 0.0 for each in figures_of(LINES[by_class])}
    for each in figures_of(LINES[by_class]):
        sums[each.run, each.epochs] += each.number * (each.quantity == CORRECTIONS)
    for key, total in sums.items():
        assert total == pytest.approx(expected[key], abs=5), key


def test_figures_of_freund_and_schapire_agree():
    """Mistakes of Tables 1, 2 and 3, printed as means; none has fewer of them than of support."""
    together = {each.run.degree: each.number for each in printed("voted-table1", CORRECTIONS, 1)}
    apart = [each.number for each in printed("voted-table2", CORRECTIONS, 1)]
    assert sum(apart) == pytest.approx(together[4], abs=5)
    nine = [each.number for each in printed("voted-table3", CORRECTIONS, 1) if each.run.degree == 4]
    assert [apart[9]] == nine
    for name in "voted-table1", "voted-table2", "voted-table3":
        for epochs in (0.1, 1, 10):
            found = printed(name, SUPPORT, epochs), printed(name, CORRECTIONS, epochs)
            assert all(support.number <= each.number for support, each in zip(*found, strict=True))


def test_settings_are_the_papers():
    alma = alma_kernels.run_of("mnist", ALMA, 0.9, degree=6)
    assert printed("alma-table3", AVERAGE, 1)[5].run == alma
    model = alma.estimator()
    assert (model.B, model.degree, model.gamma, model.coef0) == (1 / 0.9, 6, 1 / 255, 1.0)
    assert model.normalize is True
    runs = {each.run.algorithm: each.run for each in figures_of(LINES["alma-table5"])}
    assert runs[PERCEPTRON].estimator().gamma == 1 / 32
    assert runs[ALMA].estimator().gamma == 1 / 18
    raw = printed("voted-table1", LAST, 1)[0].run.estimator()
    assert isinstance(raw, PNormPerceptron)
    assert (raw.normalize, raw.shuffle) == (False, False)
    sparse = ho_kernels.estimator("mnist", "poly", "sparse HO_2", (4, 0.4))
    assert (sparse.sparse_updates, sparse.degree, sparse.gamma) == (True, 4, 1 / 255)
    gauss = ho_kernels.estimator("usps", "gauss", "SO", (3.0, 0.1))
    assert (gauss.a, gauss.gamma) == (0.1, 1 / 72)


# -- the other tables ------------------------------------------------------------------------------


# The cells of Brotto, Gentile & Vitale in the order in which a scan of the page reads them.
SCAN_1 = """45.2 23.4 22.1 11.8 21.7 16.4 19.6 10.0 24.5 13.3 18.9 10.0 47.4 15.7 23.0 11.5
    24.5 12.0 20.0 11.5 32.4 13.5 23.1 11.9 29.6 15.0 19.3 9.6"""
SCAN_2 = """993 673 803 767 7.20 6.39 6.14 6.45 941 665 783 762 6.83 5.81 5.94 6.04
    880 677 819 760 6.95 5.48 6.05 6.84"""


@pytest.mark.parametrize(("number", "titles", "scan", "axes"), [
    (1, ["Breast", "Lymphoma"], np.array(SCAN_1.split()).reshape(7, 2, 2), (1, 0, 2)),
    (2, ["GCAT", "MCAT", "C15", "ECAT"], np.array(SCAN_2.split()).reshape(3, 2, 4), (1, 2, 0)),
])  # fmt: skip
def test_tables_of_the_higher_order_perceptron_agree_with_a_scan(number, titles, scan, axes):
    tables = ho_tables.RECIPES[number - 1].parts(quick=False)
    assert [table.title for table in tables] == titles
    cells = [
        [[cell.printed for cell in line.cells[:2]] for line in table.lines] for table in tables
    ]
    assert (np.array(cells).transpose(axes) == scan).all()


def test_tables_of_cramma_are_whole_and_a_quick_run_leaves_out_the_long_cells():
    full, quick = ([recipe.parts(quick)[0].lines for recipe in CRAMMA] for quick in (False, True))
    assert [len(lines) for lines in full] == [len(lines) for lines in quick] == [24, 8, 15, 15]
    n_run = 0
    for line, short in zip(sum(full, ()), sum(quick, ()), strict=True):
        is_long = line.cells[-1].number > MANY_UPDATES
        assert {cell.work for cell in short.cells} == {None if is_long else line.cells[0].work}
        n_run += not is_long
    assert n_run == 44
