"""Splits, comparisons, curves and choices of settings, against loops written out by hand."""

import _thread
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import wilcoxon
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_score
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import shuffle

from problems.stages import InterruptingOutput
from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin.evaluation import (
    compare_on_splits,
    learning_curve_over_epochs,
    random_splits,
    select_setting,
    wilcoxon_signed_rank,
)

IN_ORDER = {"hypothesis": "last", "shuffle": False}
RIVALS = {
    "pnorm": PNormPerceptron(p=4, **IN_ORDER),
    "alma": ALMAClassifier(alpha=0.5, max_iter=2, random_state=0),
    "svm": LinearSVC(random_state=0),
}


def make_problem(n_classes=2, m=90, n=12, seed=0):
    """Return dense rows and labels of which some are noise."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((m, n))
    y = (X @ rng.standard_normal((n, n_classes)) + rng.standard_normal((m, n_classes))).argmax(1)
    return X, np.array(["cow", "ant", "bee"])[y]


def make_splits(n_splits, test_size=30):
    return random_splits(90, train_size=60, test_size=test_size, n_splits=n_splits, random_state=0)


def assert_same_results(found, expected):
    assert list(found) == list(expected)
    for name, results in found.items():
        assert_array_equal(results.test_errors, expected[name].test_errors)
        assert_array_equal(results.mistakes, expected[name].mistakes)


def test_splits_have_the_sizes_asked_for_and_permuted_training_rows():
    draw = partial(random_splits, 96, train_size=60, test_size=30, n_splits=200)
    splits, again, other = (draw(random_state=seed) for seed in (0, 0, 1))
    assert len(splits) == 200
    for train, test in splits:
        assert (len(set(train)), len(set(test)), len({*train, *test})) == (60, 30, 90)
        assert not np.array_equal(train, np.sort(train))
    assert {*np.concatenate([train for train, _ in splits])} == set(range(96))
    # Each place in the order is any row's: the mean row number of the first place is the middle.
    assert abs(np.mean([train[0] for train, _ in splits]) - 47.5) < 4 * 96 / np.sqrt(12 * 200)
    assert_array_equal(np.hstack(again[2]), np.hstack(splits[2]))
    assert not np.array_equal(np.hstack(other[2]), np.hstack(splits[2]))


@pytest.mark.parametrize(("n_classes", "container"), [(2, sp.csr_matrix), (3, np.asarray)])
def test_comparison_is_the_loop_over_splits(n_classes, container, capsys):
    X, y = make_problem(n_classes)
    X, splits = container(X), make_splits(6, test_size=25)
    results = compare_on_splits(RIVALS, X, y, splits, verbose=1)
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
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == list(RIVALS)
    assert f"test error {results['alma'].test_errors.mean():.2%}, mistakes" in lines[1]
    # Whatever the number of processes.
    assert_same_results(compare_on_splits(RIVALS, X, y, splits, n_jobs=2), results)
    assert not capsys.readouterr().out


def test_all_algorithms_get_the_same_splits_even_of_a_source_that_changes():
    X, y = make_problem()
    twins = {"one": RIVALS["pnorm"], "other": RIVALS["pnorm"]}
    for source in ShuffleSplit(5, random_state=np.random.RandomState(0)), iter(make_splits(5)):
        results = compare_on_splits(twins, X, y, source)
        assert_array_equal(results["one"].test_errors, results["other"].test_errors)
        assert len(set(results["one"].test_errors)) > 1


@pytest.mark.parametrize("protocol", [compare_on_splits, select_setting])
def test_ctrl_c_within_a_fit_ends_the_comparison(protocol, monkeypatch):
    """The fit alone would end with what it had learned, and count like any other."""
    X, y = make_problem()
    rivals = {"loud": PNormPerceptron(verbose=1, max_iter=3)}
    monkeypatch.setattr("sys.stdout", InterruptingOutput(_thread.interrupt_main, 1))
    with pytest.raises(KeyboardInterrupt):
        protocol(rivals, X, y, make_splits(2))


@pytest.mark.parametrize(("call", "message"), [
    (lambda X, y: compare_on_splits({}, X, y, make_splits(2)), "estimators is empty"),
    (lambda X, y: compare_on_splits(RIVALS, X, y, []), "splits is empty"),
    (lambda X, y: compare_on_splits(RIVALS, X, np.sort(y), [(np.arange(3), np.arange(3, 6))]),
     "one class only"),
    (lambda X, y: learning_curve_over_epochs(SVC(), X, y, X, y), "SVC has no partial_fit"),
    (lambda X, y: wilcoxon_signed_rank([0.1, 0.2], [0.1]), "errors and other_errors have 2 and 1"),
    (lambda X, y: wilcoxon_signed_rank([0.1, np.nan], [0.1, 0.2]), "errors must be finite"),
    (lambda X, y: wilcoxon_signed_rank([0.1], [[0.1]]), "other_errors must be a one-dimensional"),
    (lambda X, y: random_splits(58, train_size=50, test_size=20), "train_size|test_size"),
    (lambda X, y: random_splits(58, train_size=0, test_size=20), "train_size"),
    *((lambda X, y, n=n: learning_curve_over_epochs(RIVALS["pnorm"], X, y, X, y, epochs=n),
       "epochs must") for n in ([], [0, 1], [2, 1], [1, 1], [1.5], 3, [[1, 2]])),
])  # fmt: skip
def test_what_can_not_be_compared_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(*make_problem())


@pytest.mark.parametrize(("n_classes", "container"), [(2, sp.csr_matrix), (3, np.asarray)])
def test_the_curve_is_that_of_fits_of_so_many_epochs(n_classes, container):
    X, y = make_problem(n_classes)
    train, test = container(X[:60]), container(X[60:])
    model = PNormPerceptron(p=4, **IN_ORDER)
    curve = learning_curve_over_epochs(model, train, y[:60], test, y[60:], epochs=[1, 2, 7])
    assert_array_equal(curve.epochs, [1, 2, 7])
    for k, n_epochs in enumerate([1, 2, 7]):
        fitted = clone(model).set_params(max_iter=n_epochs).fit(train, y[:60])
        assert curve.mistakes[k] == np.sum(fitted.n_corrections_)
        assert curve.test_errors[k] == (fitted.predict(test) != y[60:]).mean()
    assert not hasattr(model, "classes_")
    assert len(set(curve.test_errors)) > 1


def test_every_epoch_may_have_an_order_of_its_own():
    X, y = make_problem()
    model = PNormPerceptron(p=4, **IN_ORDER)
    orders = {"shuffle_rows": True, "random_state": 7}
    curve = learning_curve_over_epochs(model, X, y, X, y, epochs=[1, 2, 3], **orders)
    random, by_hand, mistakes = np.random.RandomState(7), clone(model), []
    for _ in range(3):
        rows, labels = shuffle(X, y, random_state=random)
        by_hand.partial_fit(rows, labels, classes=np.unique(y))
        mistakes.append(by_hand.n_corrections_)
    assert_array_equal(curve.mistakes, mistakes)
    in_order = learning_curve_over_epochs(model, X, y, X, y)
    assert_array_equal(in_order.epochs, [1, 2, 3, 5, 10, 15, 20])  # those of the paper
    assert not np.array_equal(curve.mistakes, in_order.mistakes[:3])


def test_choice_is_by_cross_validation_on_each_training_part():
    X, y = make_problem(3)
    splits = make_splits(5)
    grid = {f"p = {p}": PNormPerceptron(p=p, **IN_ORDER) for p in (2, 3, 4)}
    folds = KFold(4)
    found = select_setting(grid, X, y, splits, cv=folds)
    expected = [
        [1 - cross_val_score(model, X[train], y[train], cv=folds).mean() for model in grid.values()]
        for train, _ in splits
    ]
    assert_allclose(found.cv_errors, expected, atol=1e-11)
    chosen = found.cv_errors.argmin(axis=1)
    assert found.chosen == [list(grid)[j] for j in chosen]
    assert_same_results(found.results, compare_on_splits(grid, X, y, splits))
    for k, name in enumerate(found.chosen):
        assert found.cross_validated.test_errors[k] == found.results[name].test_errors[k]
        assert found.cross_validated.mistakes[k] == found.results[name].mistakes[k]
    means = {name: results.test_errors.mean() for name, results in found.results.items()}
    assert means[found.best_on_test] == min(means.values())
    assert found.best is found.results[found.best_on_test]
    assert len(set(found.chosen)) > 1


def test_equal_errors_in_another_order_are_equally_good():
    """In floating point a mean depends on the order of what is added up."""
    shares = np.array([0.1, 0.3, 0.7, 0.8, 0.9, 0.2])
    assert np.mean(1 - shares) < np.mean(shares)
    X, y = np.zeros((60, 1)), np.repeat(["ant", "cow"], 30)
    # Of ten rows to test on so many are cows, or so few.
    n_cows = np.round(10 * shares).astype(int)
    splits = [(np.arange(20, 40), np.r_[: 10 - n, 50 : 50 + n]) for n in n_cows]
    rivals = {name: DummyClassifier(strategy="constant", constant=name) for name in ("ant", "cow")}
    found = select_setting(rivals, X, y, splits, cv=2)
    assert found.best_on_test == "ant"
    # Of those as good, the first.
    assert found.chosen == ["ant"] * 6


def test_wilcoxon_is_scipys():
    rng = np.random.RandomState(0)
    first, second = rng.uniform(size=200), rng.uniform(size=200) + 0.08
    found = wilcoxon_signed_rank(first, second)
    difference = np.mean(first - second)
    assert found.p_value == pytest.approx(wilcoxon(first - second).pvalue, rel=1e-9)
    assert found.mean_difference == pytest.approx(difference, rel=1e-9)
    assert found.n_different == 200
    assert wilcoxon_signed_rank(second, first) == (-found.mean_difference, found.p_value, 200)
    # Pairs without a difference have no say.
    equal = np.full(50, 0.25)
    padded = wilcoxon_signed_rank(np.append(first, equal), np.append(second, equal))
    assert padded == (pytest.approx(difference * 200 / 250), found.p_value, 200)
    assert wilcoxon_signed_rank(equal, equal) == (0.0, 1.0, 0)
    # Fractions of 11 rows tie in spite of rounding: equal differences differ in their last bits.
    wrong = np.random.RandomState(0).randint(0, 6, size=(2, 300))
    first, second = wrong / 11
    exact = (wrong[0] - wrong[1]).astype(float)
    assert len(np.unique(first - second)) > len(np.unique(exact))
    found = wilcoxon_signed_rank(first, second)
    assert found.p_value == wilcoxon(exact[exact != 0]).pvalue
    assert found.p_value != wilcoxon(first - second).pvalue
    assert found.n_different == np.count_nonzero(exact)
