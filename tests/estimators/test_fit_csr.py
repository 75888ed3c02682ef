"""Tests of `fit_csr`: the algorithm and settings that each name selects."""

import re
import warnings
from math import sqrt

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from depth import some
from problems.csr import scrambled
from problems.models import make_problem
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    AutoClassifier,
    HigherOrderPerceptron,
    PNormPerceptron,
    SecondOrderPerceptron,
    fit_csr,
    fit_svmlight,
)
from sparsemargin.datasets import make_zipf_text
from sparsemargin.distributed import fit_distributed
from sparsemargin.estimators import classifiers, validation
from sparsemargin.files.sources import BLOCK_BYTES
from sparsemargin.models import ALGORITHMS, Learner, candidates


@pytest.fixture
def problem():
    X, y = make_problem(80, 20)
    return X, np.where(y > 0, "up", "down")


@pytest.mark.parametrize(("algo", "params", "estimator"), [
    ("perceptron", {}, PNormPerceptron(p=2, normalize=False)),
    ("pnorm", {"p": "log", "normalize": False}, PNormPerceptron(p="log", normalize=False)),
    ("alma", {"C": sqrt(0.5), "p": 6}, ALMAClassifier(p=6, C=sqrt(0.5))),
    ("ho", {"p": 7, "c": 0.2}, HigherOrderPerceptron(p=7, c=0.2)),
    ("so", {"a": 0.1}, SecondOrderPerceptron(a=0.1)),
    (None, {"max_iter": 3, "fit_intercept": False},
     SecondOrderPerceptron(a=4.0, standardize=True, max_iter=3, fit_intercept=False)),
    (None, {"r": 0.1, "max_iter": 3}, AROWClassifier(r=0.1, max_iter=3)),
])  # fmt: skip
def test_algo_and_parameters_select_the_estimator(problem, algo, params, estimator):
    X, y = problem
    weights = np.arange(len(y)) % 2.0
    model = fit_csr(X, y, algo, sample_weight=weights, random_state=0, **params)
    expected = estimator.set_params(random_state=0).fit(X, y, sample_weight=weights)
    assert type(model) is type(expected)
    assert model.get_params() == expected.get_params()
    assert_array_equal(model.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize("as_given", [
    sp.csr_matrix, sp.csc_array, lambda X: scrambled(sp.csr_matrix(X)), np.asarray, np.float32,
    np.ndarray.tolist, lambda X: X.astype(object), lambda X: X.astype(int),
])  # fmt: skip
def test_default_intercept_scales_with_the_rows(as_given):
    X = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -5.0], [5.0, 0.0]])
    model = fit_csr(as_given(X), [1, 0, 0, 1])
    assert model.intercept_scaling == "auto"
    assert model.intercept_scaling_ == pytest.approx(5 * sqrt(3 / 4) / 3)
    assert model.get_params()["max_iter"] == 750


@pytest.mark.parametrize(("y", "epochs"), [
    (["a", "b"] * 1000, 1), (np.tile([1, 1, 0, 1], 500), 1),
    (np.arange(2000) < 499, 2), (np.arange(2000) >= 500, 1), (np.arange(2000) >= 1501, 2),
    (np.arange(2000) >= 100, 2), (np.arange(2000) >= 99, 3),
    (["a", "b", "b", "c"] * 500, 2), (np.tile([0.0, 1.0, 2.0, 0.0], 500), 2),
    ([["a"], [], ["a", "b"], ["b"]] * 500, 2), (sp.csr_matrix(np.tile([[1], [0]], (1000, 2))), 2),
])  # fmt: skip
def test_default_epochs_depend_on_the_label_frequencies(y, epochs, monkeypatch):
    monkeypatch.setattr(candidates, "_ENOUGH_TRIALS", 0)
    X = sp.random(2000, 1000, density=0.01, format="csr", random_state=0)
    model = fit_csr(X, y)
    assert (type(model), model.max_iter) == (AROWClassifier, epochs)


@pytest.mark.parametrize(("as_given", "shift", "n_features", "chosen"), [
    (np.asarray, 0, 1000, "AROWClassifier"), (np.asarray, 0, 999, "SecondOrderPerceptron"),
    (np.asarray, 2, 1000, "AROWClassifier"),
    *((form, 30, 1000, "SecondOrderPerceptron") for form in some([np.float32, sp.bsr_array], [
        np.asarray, np.float32, sp.csr_array, np.ndarray.tolist, sp.coo_matrix, sp.bsr_array,
    ])),
])  # fmt: skip
def test_default_is_second_order_for_rows_with_a_common_part(as_given, shift, n_features, chosen):
    random = np.random.RandomState(0)
    X = random.randn(400, n_features) + shift
    y = np.sign((X - shift)[:, :5].sum(axis=1))
    X[:, :5] += 2 * y[:, None]
    X[:3] = 0
    model = fit_csr(as_given(X[:200]), y[:200], random_state=0)
    assert type(model).__name__ == chosen
    if shift == 30:
        one_by_one = fit_csr(X[:200], y[:200], "arow", max_iter=5, random_state=0)
        assert model.score(X[200:], y[200:]) > 0.9 > one_by_one.score(X[200:], y[200:])


@pytest.mark.parametrize("rows_are", [list, tuple, frozenset, np.array])
@pytest.mark.parametrize("in_array", [False, True])
def test_default_learns_multilabel_dense_rows(problem, rows_are, in_array):
    X, _ = problem
    y = [rows_are(["a"]), rows_are(["a", "b"])] * 40
    if in_array:
        y, of = np.empty(80, object), y
        for i, row in enumerate(of):
            y[i] = row
    model = fit_csr(X, y)
    assert (type(model).__name__, model.classes_.tolist()) == ("AROWClassifier", ["a", "b"])


def test_default_does_not_depend_on_format_or_order_of_rows():
    X, y = make_zipf_text(300, 900, random_state=0)
    for given in some([X, X.toarray()], [X, X.toarray(), X.toarray().tolist()]):
        assert type(fit_csr(given, y)) is AROWClassifier
    random = np.random.RandomState(0)
    X, y = random.randn(300, 1200) + 30, np.arange(300) % 2
    X[:200] -= 30
    for given in some([X], [X, X[::-1]]):
        assert type(fit_csr(given, y)) is AROWClassifier
    X[:200] = 0
    for given in some([X[::-1]], [X, X[::-1]]):
        assert type(fit_csr(given, y)) is SecondOrderPerceptron


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("X", "words"), [
    (np.zeros((4, 1000, 3)), "Found array with dim 3"),
    (np.full((4, 1200), None), "Input X contains NaN"),
    (np.full((4, 1200), "a"), "could not convert string"),
    (np.full((4, 1200), 1j), "Complex data not supported"),
])  # fmt: skip
def test_non_numeric_X_is_reported_with_and_without_algo(X, words):
    for algo in None, "arow":
        with pytest.raises(ValueError, match=words):
            fit_csr(X, [0, 1, 0, 1], algo)


def test_default_accepts_a_column_vector_of_labels(problem):
    X, _ = problem
    with pytest.warns(DataConversionWarning):
        model = fit_csr(X, np.arange(80)[:, np.newaxis] % 2, random_state=0)
    assert repr(model) == repr(fit_csr(X, np.arange(80) % 2, random_state=0))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_intercept_scale_sums_repeats_in_rows_without_correction(algo):
    # The second row is already classified correctly, so it causes no correction.
    rows = [3.0, 1.0, 1.0, -2.0], [0, 0, 0, 1], [0, 1, 3, 4]
    model = fit_csr(sp.csr_matrix(rows, shape=(3, 2)), [1, 1, 0], algo, max_iter=1)
    assert model.intercept_scaling_ == pytest.approx(sqrt((3**2 + 2**2 + 2**2) / 3) / 3)


@pytest.mark.parametrize("size", [1.0, 1e-200, 1e200])
def test_intercept_scale_uses_the_norm_of_the_rows(size):
    X = np.array([[3.0, 4.0, 1.0], [1.0, -2.0, 2.0], [0.0, 0.0, 0.0]])
    expected = size * np.sqrt(np.mean(np.linalg.norm(X, ord=6, axis=1) ** 2)) / 3
    X, y = sp.csr_matrix(size * X), [1, 0, 1]
    model = fit_csr(X, y, "pnorm", p=6)
    assert model.intercept_scaling_ == pytest.approx(expected, rel=1e-12)
    streamed = type(model)(p=6).partial_fit(X, y, [0, 1])
    mixed = fit_distributed([(X, y)], algo="pnorm", p=6)
    assert streamed.intercept_scaling_ == mixed.intercept_scaling_ == model.intercept_scaling_


@pytest.mark.parametrize("kernel", ["rbf", "precomputed", lambda X, Z: (X @ Z.T).toarray()])
def test_kernels_have_no_intercept(problem, kernel):
    X, y = problem
    X = 1000 * (X @ X.T if kernel == "precomputed" else X)
    assert not fit_csr(X, y, "alma", kernel=kernel).intercept_.any()
    assert fit_csr(X, y, "alma", kernel=kernel, intercept_scaling=1.0).intercept_.any()


@pytest.mark.parametrize("X", [[["words"]], None, 3, [[1.0], [1.0, 2.0]], [[np.nan]]])
def test_default_raises_the_errors_of_fit(X):
    with pytest.raises((ValueError, TypeError)) as by_default:
        fit_csr(X, [1])
    with pytest.raises(type(by_default.value)) as by_fit:
        AROWClassifier().fit(X, [1])
    assert str(by_default.value) == str(by_fit.value)


@pytest.mark.parametrize("size", [2.0**1000, 2.0**-1000])
def test_default_scales_with_rows_of_any_magnitude(problem, size):
    X, y = problem
    one, far = fit_csr(X, y, random_state=0), fit_csr(X * size, y, random_state=0)
    assert far.intercept_scaling_ == one.intercept_scaling_ * size
    assert_allclose(far.coef_, one.coef_, rtol=1e-11)
    assert_allclose(far.intercept_ / size, one.intercept_, rtol=1e-11)
    assert_array_equal(far.predict(X * size), one.predict(X))


def test_positional_arguments_are_rejected(problem):
    with pytest.raises(TypeError, match="positional"):
        fit_csr(*problem, "alma", np.ones(80))


@pytest.mark.parametrize("algo", [*ALGORITHMS, None])
def test_defaults_are_better_than_the_majority_class(algo):
    X, y = make_zipf_text(20_000, random_state=5)
    chosen = (y < 0) | (np.random.RandomState(0).rand(len(y)) < 0.05)
    X, y = X[chosen], y[chosen]
    rare = (y[1::2] > 0).mean()
    assert 0.04 < rare < 0.06
    model = fit_csr(X[::2], y[::2], algo, random_state=0)
    assert 1 - model.score(X[1::2], y[1::2]) < rare


@pytest.mark.parametrize(("y", "message"), [
    (None, "y"), (3, "y"), ([0, 1], "samples"), (["a", ["b"]] * 100, "labels"),
])  # fmt: skip
def test_default_rejects_invalid_labels_like_other_algorithms(y, message):
    X = sp.random(200, 1000, density=0.01, format="csr", random_state=0)
    told = []
    for algo in None, "perceptron":
        with pytest.raises(ValueError, match=message) as error:
            fit_csr(X, y, algo)
        told.append(str(error.value).replace("AROWClassifier", "PNormPerceptron"))
    assert told[0] == told[1]


def noisy_problem(n_classes=2):
    """Return training and test sets with 10 % random labels, so that no vector has a margin."""
    random = np.random.RandomState(0)
    X = random.standard_normal((2000, 20))
    y = (X @ random.standard_normal((20, n_classes))).argmax(axis=1)
    y[::10] = random.randint(n_classes, size=200)
    return X[:1000], y[:1000], X[1000:], y[1000:]


@pytest.mark.parametrize("algo", ["margin", "cramma", "romma", "maxmargin"])
def test_margin_algorithms_stop_on_noisy_data_with_a_low_error(algo):
    X, y, X_test, y_test = noisy_problem()
    model = fit_csr(X, y, algo, random_state=0)
    assert model.n_iter_ < (300 if algo == "cramma" else 200)
    least = fit_csr(X, y, "perceptron", random_state=0).score(X_test, y_test)
    assert model.score(X_test, y_test) > least - (0.1 if algo == "romma" else 0.05)
    # With max_iter=None, training continues until there is a margin, and keeps the last vector.
    how = {"soft_margin": 10.0, "tol": 0.5 if algo == "maxmargin" else None}
    assert fit_csr(X, y, algo, max_iter=None, random_state=0, **how).margin_ > 0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_early_stopping_counts_epochs_without_fewer_corrections(algo, n_classes):
    X, y, *_ = noisy_problem(n_classes)
    X, y = X[:300], y[:300]
    how = {"eta0": 0.01} if algo == "cramma" else {}
    model = fit_csr(
        X, y, algo, max_iter=100, early_stopping=True, n_iter_no_change=2, shuffle=False, **how
    )
    passes, made = clone(model).set_params(early_stopping=False), [0]
    for _ in range(int(model.n_iter_)):
        passes.set_params(max_iter=len(made)).fit(X, y)
        made.append(np.sum(passes.n_corrections_))
    corrections = np.diff(made)

    # CRAMMA needs about this many corrections of each vector to reverse its direction.
    turning = 5 / 0.01 * len(model.coef_) if algo == "cramma" else 0

    def is_over(of_passes):
        since = of_passes[of_passes.argmin() + 1 :]
        return len(since) >= 2 and since.sum() >= turning

    assert [is_over(corrections[:n]) for n in range(1, len(made))].index(True) == len(made) - 2
    assert_allclose(model.coef_, passes.coef_, rtol=1e-9, atol=1e-12)


def test_early_stopping_of_files(tmp_path):
    X, y, *_ = noisy_problem()
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    how = {"max_iter": 100, "early_stopping": True, "shuffle": False, "intercept_scaling": 0.1}
    model = fit_svmlight(tmp_path / "rows.svm", "perceptron", **how)
    assert 5 < model.n_iter_ < 100
    assert model.n_iter_ == fit_csr(X, y, "perceptron", **how).n_iter_


@pytest.mark.filterwarnings("error")
def test_constant_prediction_on_training_rows_warns(tmp_path):
    random = np.random.RandomState(0)
    y = np.arange(60) % 3 > 0
    X = 1000 * random.lognormal(sigma=0.5, size=(60, 500))
    X[y, :5] *= 1.5
    collapse = {"algo": "alma", "p": 7, "alpha": 0.5, "random_state": 0}
    words = (
        "predicts class (True|1) for each of a sample of 60 training rows, of which 20 have "
        r".* larger weights of the other classes \(class_weight\), more epochs, a smaller p, "
        "another alpha\\."
    )
    with pytest.warns(ConvergenceWarning, match=words):
        fit_csr(X, y, **collapse)
    fit_csr((X - X.mean(axis=0)) / X.std(axis=0), y, **collapse)
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    with pytest.warns(ConvergenceWarning, match=words):
        fit_svmlight(tmp_path / "rows.svm", max_iter=5, **collapse)


def test_rare_late_class_of_a_file_is_part_of_the_selection(tmp_path):
    X = sp.random(20_000, 2000, density=0.02, format="csr", random_state=0)
    y = np.arange(20_000) >= 19_980
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    assert (tmp_path / "rows.svm").stat().st_size > 2 * BLOCK_BYTES
    with pytest.warns(ConvergenceWarning, match="120 training rows, of which 20 have another"):
        fit_svmlight(tmp_path / "rows.svm", "arow", r=1e7, classes=[0, 1], shuffle=False)


@pytest.mark.parametrize("rare", [0.002, 0.02, 0.05, 0.1])
def test_never_predicting_a_rare_class_warns(rare):
    X = sp.random(5000, 2000, density=0.01, format="csr", random_state=0)
    y = np.random.RandomState(1).rand(5000) < rare
    with pytest.warns(ConvergenceWarning, match="another r"):
        fit_csr(X, y, "arow", r=1e7, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_csr(X, y, "arow", r=1e-3, max_iter=3)  # fits all rows
        # There is no warning for a class whose rows have weight 0.
        fit_csr(X, y, "arow", r=1e7, sample_weight=1 - y)
        fit_csr(X, y, "arow", r=1e7, class_weight={True: 0, False: 1})


@pytest.mark.parametrize(("algo", "params", "left"), [
    ("arow", {}, "larger weights of the other classes (class_weight), more epochs, another r."),
    ("perceptron", {}, "larger weights of the other classes (class_weight), more epochs."),
    ("alma", {"class_weight": "balanced"}, "more epochs, another alpha."),
])  # fmt: skip
def test_constant_prediction_warning_suggests_valid_options(algo, params, left):
    X, y = sp.csr_matrix((200, 5)), np.arange(200) % 10 == 0
    with pytest.warns(ConvergenceWarning, match=re.escape(f"Otherwise try {left}")):
        fit_csr(X, y, algo, **params)


def test_cramma_warns_of_limits_but_not_of_early_stopping():
    X, y, *_ = noisy_problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit_csr(X, y, "cramma", random_state=0).n_iter_ < 1000
    with pytest.warns(ConvergenceWarning, match="Stopped after 3 epochs"):
        fit_csr(X, y, "cramma", max_iter=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="Stopped after .* and 100 corrections"):
        fit_csr(X, y, "cramma", max_corrections=100, random_state=0)


def first_call(X, y):
    return AutoClassifier().partial_fit(X, y, [0, 1])


@pytest.mark.parametrize("n_rows", [300, 2000])
@pytest.mark.parametrize("learn", [fit_csr, first_call])
def test_rows_are_converted_and_labels_encoded_once(n_rows, learn, monkeypatch):
    random = np.random.RandomState(0)
    X, y = random.standard_normal((n_rows, 50)), random.randint(0, 2, n_rows)
    calls = []
    for owner, name in (
        (classifiers.Classifier, "_check_X"),
        (validation, "_csr_of"),
        (classifiers, "encoded_targets"),
    ):
        original = getattr(owner, name)

        def counted(*args, name=name, original=original, **kwargs):
            calls.append(name)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)
    learn(X, y)
    assert calls == ["_check_X", "_csr_of", "encoded_targets"]


def test_few_rows_that_are_learned_again_are_held_out_once(monkeypatch):
    n_parts, original = [], Learner._fit_part
    monkeypatch.setattr(
        Learner, "_fit_part", lambda *args: n_parts.append(args) or original(*args)
    )  # fmt: skip
    random = np.random.RandomState(0)
    model = fit_csr(random.standard_normal((300, 20)), random.randint(0, 2, 300), r=1.0)
    assert (model.max_iter, len(n_parts)) == (10, 3)
