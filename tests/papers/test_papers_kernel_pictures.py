"""Recipes of figures with kernels, and that of ALMA's update rule: what they draw and examine."""

import math

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from papers import alma_figures, kernels, voted
from papers.alma_kernels import run_of
from papers.kernels import PER_EPOCH, Data
from papers.recipe import Measured
from papers.run import choose
from problems.published_files import data_folder
from sparsemargin.evaluation import margin_distribution, margins
from sparsemargin.plotting import theme


def pictures(name, quick):
    (recipe,) = choose([name])
    return recipe.parts(quick)


def picture(name, quick):
    (found,) = pictures(name, quick)
    return found


# -- the update rule -------------------------------------------------------------------------------


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
    (claim,) = picture("alma-figure2", quick=True).claims
    assert claim.examine(update).holds


def test_weights_off_the_ray_are_no_projection(update):
    (record,) = update[alma_figures.WORK]
    turned = record | {"projected": record["projected"][::-1]}
    (claim,) = picture("alma-figure2", quick=True).claims
    assert not claim.examine(Measured({alma_figures.WORK: [turned]})).holds


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_the_update_rule_is_drawn(update, ground):
    with theme(ground):
        figure = picture("alma-figure2", quick=True).draw(update)
        figure.canvas.draw()
    (axes,) = figure.axes
    assert len(axes.get_legend().get_texts()) == 3
    assert axes.get_aspect() == 1


# -- margins ---------------------------------------------------------------------------------------


@pytest.fixture
def rows(monkeypatch):
    """Rows that recipes load in place of the papers' digits."""
    X, y = make_blobs(90, centers=3, n_features=4, cluster_std=4.0, random_state=0)
    found = Data(X[:60], y[:60], X[60:], y[60:])
    for module in (alma_figures, kernels):
        monkeypatch.setattr(module, "load", lambda name: found)
    return found


def test_margins_are_those_of_a_fit(rows):
    record = alma_figures.run_margins("ALMA_2(0.9)", 3.5, 3, "average", seed=1)
    order = np.random.default_rng(1).permutation(60)
    model = run_of("usps", "ALMA_2", 0.9).estimator(hypothesis="average", max_iter=3)
    found = margins(model.fit(rows.X[order], rows.y[order]), rows.X, rows.y)
    assert record["share"] == list(margin_distribution(found, alma_figures.THRESHOLDS).share)


def _with_median(median):
    """Margins that lie evenly within 0.1 of it."""
    share = np.clip((alma_figures.THRESHOLDS - median + 0.1) / 0.2, 0, 1)
    return [{"share": share.tolist()}]


def _medians(of_alma, later, average=0.0):
    of_algorithm = {
        each: of_alma + average * ("average" in str(each)) if "0.9" in str(each) else 0.05
        for sigma in alma_figures.SIGMAS
        for each in alma_figures.works(sigma)
    }
    return Measured({
        each: _with_median(median + later * ("'epochs', 3" in str(each)))
        for each, median in of_algorithm.items()
    })  # fmt: skip


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
    for drawn in pictures("alma-figure3", quick=True):
        found = [claim.examine(_medians(of_alma, later, average)).holds for claim in drawn.claims]
        assert found == holds


def test_margins_are_drawn_by_hypothesis_and_epochs():
    stated, fitting = pictures("alma-figure3", quick=True)
    assert not set(stated.works) & set(fitting.works)
    figure = stated.draw(_medians(0.06, 0.01))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["last, 1 epoch", "average, 1 epoch", "last, 3 epochs", "average, 3 epochs"]
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert names == list(alma_figures.ALGORITHMS)


def test_margins_on_usps():
    data_folder("zip.train.gz", "zip.test.gz")
    share = alma_figures.run_margins("Perceptron", 3.5, 1, "last", seed=0)["share"]
    assert 0 < np.interp(0, alma_figures.THRESHOLDS, share) < 0.03


# -- learning curves -------------------------------------------------------------------------------


def _curves(quick, random, last):
    """Records of all degrees, whose errors never change; those of average and vote are 2."""
    found = {}
    for degree in voted.DEGREES:
        epochs = 1 if quick else voted.run_of(degree).epochs
        n = PER_EPOCH * epochs
        errors = {"random": random, "last": last + (degree == 1), "average": 2.0, "vote": 2.0}
        found[voted.run_of(degree).work(quick)] = [
            {
                "errors": {name: [value + seed] * n for name, value in errors.items()},
                "corrections by class": [[1, 2]] * n,
                "support vectors": [3] * n,
            }
            for seed in range(2)
        ]
    return Measured(found)


@pytest.mark.parametrize("quick", [True, False])
def test_curves_are_means_over_the_permutations(quick):
    curves = voted.curves(_curves(quick, 5.0, 3.0), 2, quick)
    assert curves.moments[-1] == (1 if quick else 30)
    assert np.allclose(curves.errors["random"], 0.055)
    assert curves.errors["vote"].shape == curves.moments.shape


@pytest.mark.parametrize("quick", [True, False])
def test_curves_are_drawn_by_degree(quick):
    figure = picture("voted-figure2", quick).draw(_curves(quick, 5.0, 3.0))
    assert [axes.get_title() for axes in figure.axes] == [f"d = {d}" for d in range(1, 7)]
    assert [axes.get_legend() is not None for axes in figure.axes] == [False] * 5 + [True]
    assert all(len(axes.get_lines()) == 4 for axes in figure.axes)


@pytest.mark.parametrize(
    ("random", "last", "holds"),
    [(5.0, 2.1, [True, True]), (1.9, 2.1, [False, True]), (5.0, 2.5, [True, False])],
)
def test_statements_on_curves(random, last, holds):
    claims = picture("voted-figure2", quick=False).claims
    assert [claim.examine(_curves(False, random, last)).holds for claim in claims] == holds
    assert len(picture("voted-figure2", quick=True).claims) == 1
