"""Which differences from the printed figures recipes allow, which of the papers' statements they
confirm, and what they draw."""

import math

import numpy as np
import pytest

from papers import alma_figures, ho_figure2, ho_tables, voted
from papers.cramma import RECIPES as CRAMMA
from papers.kernels import (
    PER_EPOCH,
)
from papers.recipe import Measured, Verdict
from papers.run import choose
from sparsemargin.datasets import make_ho_target
from sparsemargin.plotting import theme

WITHIN, OUTSIDE = Verdict.WITHIN, Verdict.OUTSIDE


def pictures(name, quick=True):
    (recipe,) = choose([name])
    return recipe.parts(quick)


# -- tables ----------------------------------------------------------------------------------------


def cramma_lines(quick=False):
    return [
        (number, line)
        for number, recipe in enumerate(CRAMMA, start=1)
        for line in recipe.parts(quick)[0].lines
    ]


def record_of(line, extra_updates=0, deviation=None):
    """What a run measures that reproduces the line, but for what is given."""
    *figures, updates = (cell.number for cell in line.cells)
    if deviation is not None:
        figures[0] = deviation
    return {"figures": figures, "updates": updates + extra_updates}


@pytest.mark.parametrize(("number", "name", "changes", "verdicts"), [
    (1, "CRAMMA β/R = 5", {"extra_updates": 1}, [WITHIN, WITHIN]),
    (1, "CRAMMA β/R = 5", {"extra_updates": -2}, [WITHIN, OUTSIDE]),
    (1, "CRAMMA β/R = 10", {"extra_updates": -1}, [WITHIN, WITHIN]),
    (1, "CRAMMA β/R = 10", {"extra_updates": 21_220}, [WITHIN, WITHIN]),
    (1, "CRAMMA β/R = 10", {"extra_updates": 21_222}, [WITHIN, OUTSIDE]),
    (4, "Perceptron b/(η R²) = 1", {"deviation": 2.2249}, [WITHIN] * 4),
    (4, "Perceptron b/(η R²) = 1", {"deviation": 2.2251}, [OUTSIDE, WITHIN, WITHIN, WITHIN]),
])  # fmt: skip
def test_tolerance_of_the_tables_of_cramma(number, name, changes, verdicts):
    (line,) = (line for at, line in cramma_lines() if (at, line.name) == (number, name))
    record = record_of(line, **changes)
    assert [cell.compare([record]).verdict for cell in line.cells] == verdicts


def test_claims_of_cramma_are_examined_by_the_works_of_their_run():
    as_printed = Measured({line.cells[0].work: [record_of(line)] for _, line in cramma_lines()})
    slower = Measured({
        line.cells[0].work: [record_of(line, 10**10 * line.name.startswith("CRAMMA"))]
        for number, line in cramma_lines() if number != 2
    })  # fmt: skip
    for recipe in CRAMMA:
        for quick in (True, False):
            own = {work for work, _ in recipe.works(quick)}
            for claim in recipe.parts(quick)[0].claims:
                assert set(claim.works) <= own
                assert claim.examine(as_printed).holds
                assert recipe.name == "cramma-table2" or not claim.examine(slower).holds


def test_printed_figures_bear_out_the_claims_on_the_higher_order_perceptron():
    for recipe in ho_tables.RECIPES[:2]:
        for table in recipe.parts(quick=False):
            measured = Measured({
                line.cells[0].work: [
                    {
                        figure: {"c=0.2": [cell.number] * 2}
                        for figure, cell in zip(("updates", "errors"), line.cells[:2], strict=True)
                    }
                ]
                for line in table.lines
            })  # fmt: skip
            assert all(claim.examine(measured).holds for claim in table.claims)


@pytest.mark.parametrize(
    ("differences", "holds"),
    [((-1, -1, -1), True), ((-1, 0, 0), True), ((-1, 1, 0), False), ((0, 0, 0), False)],
)
def test_claim_on_cs(differences, holds):
    """That some c > 0 errs less; over every problem, figure and p."""
    claims = [claim for table in ho_tables.RECIPES[2].parts(quick=True) for claim in table.claims]
    assert len(claims) == (4 + 4 + 2) * 2
    assert len({piece for claim in claims for piece in claim.works}) == (4 + 4 + 2) * 3
    errors = np.random.default_rng(0).uniform(10, 20, 40)
    records = (
        [{"errors": [errors.tolist(), *[(errors + difference).tolist()] * 4]}]
        for difference in differences
    )
    finding = claims[0].examine(Measured(dict(zip(claims[0].works, records, strict=True))))
    assert finding.holds == holds
    assert finding.detail.count("p-value") == 3


# -- pictures --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def update():
    return Measured({alma_figures.WORK: [alma_figures.WORK(0)]})


def test_the_library_projects_as_the_paper_does(update):
    (record,) = update[alma_figures.WORK]
    stepped = np.add(record["w"], record["step"])
    assert np.linalg.norm(record["w"]) <= 1 + 1e-12
    assert np.linalg.norm(stepped) > alma_figures.LEAST_LENGTH
    assert np.linalg.norm(record["step"]) == pytest.approx(math.sqrt(2 / record["k"]))
    assert record["projected"] == pytest.approx(stepped / np.linalg.norm(stepped))
    turned = record | {"projected": record["projected"][::-1]}
    ((claim,),) = (picture.claims for picture in pictures("alma-figure2"))
    assert claim.examine(update).holds
    assert not claim.examine(Measured({alma_figures.WORK: [turned]})).holds


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_the_update_rule_is_drawn(update, ground):
    (picture,) = pictures("alma-figure2")
    with theme(ground):
        figure = picture.draw(update)
        figure.canvas.draw()
    (axes,) = figure.axes
    assert len(axes.get_legend().get_texts()) == 3
    assert axes.get_aspect() == 1


def _medians(of_alma, later, average=0.0):
    """Margins that lie evenly within 0.1 of a median for each work."""
    found = {}
    for sigma in alma_figures.SIGMAS:
        for each in alma_figures.works(sigma):
            is_average, is_later = "average" in str(each), "'epochs', 3" in str(each)
            median = of_alma + average * is_average if "0.9" in str(each) else 0.05
            places = alma_figures.THRESHOLDS - median - later * is_later
            found[each] = [{"share": np.clip((places + 0.1) / 0.2, 0, 1).tolist()}]
    return Measured(found)


@pytest.mark.parametrize(
    ("of_alma", "later", "average", "holds"),
    [
        (0.06, 0.01, 0.01, [True, True, True]),
        (0.06, 0.01, -0.005, [True, False, True]),
        (0.04, 0.01, 0.005, [False, True, True]),
        (0.06, -0.01, 0.01, [True, True, False]),
    ],
)
def test_statements_on_margins(of_alma, later, average, holds):
    for drawn in pictures("alma-figure3"):
        found = [claim.examine(_medians(of_alma, later, average)).holds for claim in drawn.claims]
        assert found == holds


def test_margins_are_drawn_by_hypothesis_and_epochs():
    stated, fitting = pictures("alma-figure3")
    assert not set(stated.works) & set(fitting.works)
    figure = stated.draw(_medians(0.06, 0.01))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["last, 1 epoch", "average, 1 epoch", "last, 3 epochs", "average, 3 epochs"]
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert names == list(alma_figures.ALGORITHMS)


def _curves(quick, random, last):
    """Records of all degrees, whose errors never change; those of average and vote are 2."""
    found = {}
    for degree in voted.DEGREES:
        run = voted.run_of(degree)
        n = PER_EPOCH * (1 if quick else run.epochs)
        errors = {"random": random, "last": last + (degree == 1), "average": 2.0, "vote": 2.0}
        found[run.work(quick)] = [
            {
                "errors": {name: [value + seed] * n for name, value in errors.items()},
                "corrections by class": [[1, 2]] * n,
                "support vectors": [3] * n,
            }
            for seed in range(2)
        ]
    return Measured(found)


@pytest.mark.parametrize("quick", [True, False])
def test_curves_are_means_over_the_permutations_drawn_by_degree(quick):
    measured = _curves(quick, 5.0, 3.0)
    curves = voted.curves(measured, 2, quick)
    assert curves.moments[-1] == (1 if quick else 30)
    assert np.allclose(curves.errors["random"], 0.055)
    assert curves.errors["vote"].shape == curves.moments.shape
    (picture,) = pictures("voted-figure2", quick)
    figure = picture.draw(measured)
    assert [axes.get_title() for axes in figure.axes] == [f"d = {d}" for d in range(1, 7)]
    assert [axes.get_legend() is not None for axes in figure.axes] == [False] * 5 + [True]
    assert all(len(axes.get_lines()) == 4 for axes in figure.axes)


def test_figure_2_of_the_higher_order_perceptron(monkeypatch):
    def few(noise, random_state):
        return make_ho_target(80, 50, noise=noise, random_state=random_state)

    monkeypatch.setattr(ho_figure2, "make_ho_target", few)
    for picture in pictures("ho-figure2"):
        (work,) = picture.works
        records = [work(repeat) for repeat in range(2)]
        assert list(records[0]) == list(ho_figure2.CURVES)
        for curve in records[0].values():
            assert len(curve["errors"]) == len(ho_figure2.FIGURE_2_EPOCHS)
            assert curve["updates"] == sorted(curve["updates"])
        measured = Measured({work: records})
        figure = picture.draw(measured)
        names = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
        assert names == list(ho_figure2.CURVES)
        first, last = (
            np.mean([record[name]["updates"][-1] for record in records])
            for name in ("HO_2(0.4)", "FO")
        )
        details = [claim.examine(measured).detail for claim in picture.claims]
        assert f"after 20: {first - last:+.2f}" in details[4]
