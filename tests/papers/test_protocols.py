"""Comparisons, choices of settings and the test of the difference, against explicit loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.stats import wilcoxon
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.svm import LinearSVC

from papers.protocols import (
    chosen_on_training_parts,
    compare_on_splits,
    wilcoxon_signed_rank,
)
from sparsemargin import ALMAClassifier, PNormPerceptron

IN_ORDER = {"hypothesis": "last", "shuffle": False}
RIVALS = {
    "pnorm": PNormPerceptron(p=4, **IN_ORDER),
    "alma": ALMAClassifier(alpha=0.5, max_iter=2, random_state=0),
    "svm": LinearSVC(random_state=0),
}


def make_problem(n_classes=2, m=90, n=12, seed=0):
    """Return dense rows, and labels of which some are noise."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((m, n))
    y = (X @ rng.standard_normal((n, n_classes)) + rng.standard_normal((m, n_classes))).argmax(1)
    return X, np.array(["cow", "ant", "bee"])[y]


def make_splits(n_splits, test_size=30):
    splitter = ShuffleSplit(n_splits, train_size=60, test_size=test_size, random_state=0)
    return list(splitter.split(np.empty(90)))


@pytest.mark.parametrize(("n_classes", "container"), [(2, sp.csr_matrix), (3, np.asarray)])
def test_comparison_equals_a_loop_over_splits(n_classes, container):
    X, y = make_problem(n_classes)
    X, splits = container(X), make_splits(6, test_size=25)
    results = compare_on_splits(RIVALS, X, y, splits)
    assert list(results) == list(RIVALS)
    for name, rival in RIVALS.items():
        fits = [(clone(rival).fit(X[train], y[train]), test) for train, test in splits]
        errors = [(model.predict(X[test]) != y[test]).mean() for model, test in fits]
        assert_array_equal(results[name].test_errors, errors)
        assert 0 < np.mean(errors) < 0.5
        if name != "svm":
            corrections = [np.sum(model.n_corrections_) for model, _ in fits]
            assert_array_equal(results[name].mistakes, corrections)
        assert results[name].fit_seconds.shape == (6,)
        assert not hasattr(rival, "classes_")
    assert np.isnan(results["svm"].mistakes).all()


def test_all_algorithms_get_the_same_splits_of_a_changing_source():
    X, y = make_problem()
    twins = {"one": RIVALS["pnorm"], "other": RIVALS["pnorm"]}
    for source in ShuffleSplit(5, random_state=np.random.RandomState(0)), iter(make_splits(5)):
        results = compare_on_splits(twins, X, y, source)
        assert_array_equal(results["one"].test_errors, results["other"].test_errors)
        assert len(set(results["one"].test_errors)) > 1


def test_settings_are_chosen_by_cross_validation_within_training():
    X, y = make_problem(3)
    splits = make_splits(5)
    grid = {f"p = {p}": PNormPerceptron(p=p, **IN_ORDER) for p in (2, 3, 4)}
    scores = [
        [round(cross_val_score(model, X[train], y[train]).mean(), 11) for model in grid.values()]
        for train, _ in splits
    ]
    chosen = chosen_on_training_parts(grid, X, y, splits)
    assert chosen == [list(grid)[j] for j in np.argmax(scores, axis=1)]
    assert len(set(chosen)) > 1


def test_ties_between_settings_choose_the_first():
    X, y = np.zeros((60, 1)), np.repeat(["ant", "cow"], 30)
    rivals = {name: DummyClassifier(strategy="constant", constant=name) for name in ("ant", "cow")}
    splits = [(np.arange(20, 40), np.arange(20))] * 2
    assert chosen_on_training_parts(rivals, X, y, splits) == ["ant"] * 2


def test_wilcoxon_agrees_with_scipy():
    rng = np.random.RandomState(0)
    first, second = rng.uniform(size=200), rng.uniform(size=200) + 0.08
    found = wilcoxon_signed_rank(first, second)
    difference = np.mean(first - second)
    assert found.p_value == pytest.approx(wilcoxon(first - second).pvalue, rel=1e-9)
    assert found.mean_difference == pytest.approx(difference, rel=1e-9)
    assert found.n_different == 200
    assert wilcoxon_signed_rank(second, first) == (-found.mean_difference, found.p_value, 200)
    # Pairs without a difference are ignored.
    equal = np.full(50, 0.25)
    padded = wilcoxon_signed_rank(np.append(first, equal), np.append(second, equal))
    assert padded == (pytest.approx(difference * 200 / 250), found.p_value, 200)
    assert wilcoxon_signed_rank(equal, equal) == (0.0, 1.0, 0)
    # Fractions of 11 rows must tie in spite of rounding: equal differences differ in their last
    # bits.
    wrong = np.random.RandomState(0).randint(0, 6, size=(2, 300))
    first, second = wrong / 11
    exact = (wrong[0] - wrong[1]).astype(float)
    assert len(np.unique(first - second)) > len(np.unique(exact))
    found = wilcoxon_signed_rank(first, second)
    assert found.p_value == wilcoxon(exact[exact != 0]).pvalue
    assert found.p_value != wilcoxon(first - second).pvalue
    assert found.n_different == np.count_nonzero(exact)
