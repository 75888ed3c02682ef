"""The default classifier: the selected algorithm, and equal results from all entry points."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from depth import pairwise, some
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    AutoClassifier,
    PNormPerceptron,
    SecondOrderPerceptron,
    fit_anndata,
    fit_csr,
    fit_svmlight,
    fit_text,
    load_model,
    save_model,
    write_readable,
)
from sparsemargin.datasets import make_zipf_text
from sparsemargin.distributed import fit_distributed
from sparsemargin.estimators import auto
from sparsemargin.models import ALGORITHMS, candidates, selection

DIGITS = load_digits(return_X_y=True)
TEXT = make_zipf_text(1500, 4000, random_state=0)
# Features of unequal scale: 178 rows, and 569.
WINE, CANCER = (load(return_X_y=True) for load in (load_wine, load_breast_cancer))


def few_of_many(n_rows=1500, n_features=4000, random_state=0, share=0.3):
    """Return rows with values 0, 1 and 2, of which only ten features are informative."""
    random = np.random.RandomState(random_state)
    X = random.binomial(2, share, (n_rows, n_features)).astype(float)
    score = X[:, :10].sum(axis=1)
    return sp.csr_matrix(X), score > np.median(score)


def wrong_labels():
    X, y = make_zipf_text(10_000, random_state=1)
    return X, np.where(np.random.RandomState(0).rand(len(y)) < 0.25, -y, y)


@pytest.mark.parametrize(("problem", "taken"), [
    (TEXT, AROWClassifier()), (DIGITS, SecondOrderPerceptron()),
    (few_of_many(), PNormPerceptron(p=2 * np.log(4000), max_iter=5)),
    (few_of_many(share=0.009), PNormPerceptron(p=2 * np.log(4000), max_iter=5)),
    (wrong_labels(), AROWClassifier(r=1.0, max_loss=0.5)),
    (CANCER, AROWClassifier(standardize=True)),
    (WINE, SecondOrderPerceptron(a=4.0, standardize=True)),
])  # fmt: skip
def test_fit_csr_selects_the_lowest_progressive_error(problem, taken):
    for random_state in 0, 1:
        model = fit_csr(*problem, random_state=random_state)
        expected = taken.set_params(random_state=random_state)
        assert model.get_params() | {"max_iter": None} == expected.get_params() | {"max_iter": None}


@pytest.mark.parametrize("of_default", [
    {"p": 2}, {"p": np.float32(2)}, {"kernel": "linear"}, {"soft_margin": 0.0},
    {"r": 0.5, "max_loss": 1}, {"hypothesis": "last"}, {"normalize": True}, {"shuffle": True},
    {"multi_class": "ovr"}, {"max_iter": "auto"}, {"class_weight": None},
    {"early_stopping": False},
])  # fmt: skip
@pytest.mark.parametrize("problem", [TEXT, DIGITS])
def test_explicit_default_parameters_have_no_effect(of_default, problem):
    X, y = problem
    spelt, plain = fit_csr(X, y, random_state=0, **of_default), fit_csr(X, y, random_state=0)
    assert repr(spelt) == repr(plain)
    assert_array_equal(spelt.coef_, plain.coef_)


def test_more_label_noise_needs_a_smaller_lead(monkeypatch):
    X, y = make_zipf_text(2500, 20_000, n_classes=4, random_state=0)
    random = np.random.RandomState(0)
    y = np.where(random.rand(len(y)) < 0.3, np.unique(y)[random.randint(4, size=len(y))], y)
    assert fit_csr(X, y, random_state=0).max_loss == 0.5
    monkeypatch.setattr(selection, "_MOST_WRONG", 0.5)
    assert fit_csr(X, y, random_state=0).max_loss == 1.0


@pytest.mark.parametrize(("params", "counts"), pairwise([
    {}, {"class_weight": "balanced"}, {"class_weight": {0: 3.0}}, {"max_iter": 2},
    {"fit_intercept": False},
], [(60, 40, 1), (3, 2, 1), (1, 1, 0), (30, 0, 4)])[::some(3, 1)])  # fmt: skip
def test_cross_validation_of_few_rows_with_rare_classes(params, counts):
    X, y = WINE
    chosen = np.concatenate([np.flatnonzero(y == k)[:n] for k, n in enumerate(counts)])
    if params.get("class_weight") != "balanced" and len(np.unique(y[chosen])) < 2:
        return
    first = fit_csr(X[chosen], y[chosen], random_state=0, **params)
    for random_state in 0, 1:
        model = fit_csr(X[chosen], y[chosen], random_state=random_state, **params)
        assert repr(model.set_params(random_state=0)) == repr(first)
    assert_array_equal(first.classes_, np.unique(y[chosen]))
    assert first.max_iter == params.get("max_iter", first.max_iter)


def test_few_rows_of_which_a_candidate_cannot_be_fitted():
    X, y = WINE
    huge = fit_csr(X * 2.0**900, y, random_state=0)
    assert huge.get_params()["standardize"]
    assert huge.score(X * 2.0**900, y) > 0.98


@pytest.mark.parametrize("problem", [WINE, CANCER])
def test_first_rows_of_a_stream_are_not_standardized(problem, tmp_path):
    X, y = problem
    model = AutoClassifier(random_state=0).partial_fit(X, y, np.unique(y))
    assert not model.best_estimator_.standardize
    dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=False)
    streamed = fit_svmlight(tmp_path / "a.svm", random_state=0)
    assert not streamed.standardize
    assert not fit_distributed([(sp.csr_matrix(X), y)], random_state=0).standardize
    fitted = AutoClassifier(random_state=0).fit(X, y)
    assert fitted.best_estimator_.standardize
    before = fitted.score(X, y)
    assert fitted.partial_fit(X[::2], y[::2]).score(X, y) > before - 0.02


@pytest.mark.parametrize("problem", [TEXT, DIGITS, (DIGITS[0][:80], DIGITS[1][:80]), CANCER])
@pytest.mark.parametrize("params", [{}, {"class_weight": "balanced"}, {"max_iter": 3}])
def test_auto_classifier_agrees_with_fit_csr(problem, params, tmp_path):
    X, y = problem
    params = {"random_state": 0, **params}
    model, called = AutoClassifier(**params).fit(X, y), fit_csr(X, y, **params)
    assert repr(model.best_estimator_) == repr(called)
    piped = make_pipeline(MaxAbsScaler(), clone(model)).fit(X, y)
    scaled = fit_csr(MaxAbsScaler().fit_transform(X), y, **params)
    outputs = scaled.decision_function(piped[0].transform(X))
    assert_array_equal(piped.decision_function(X), outputs)
    for each in model, GridSearchCV(clone(model), {"fit_intercept": [True]}, cv=2).fit(X, y):
        assert_array_equal(each.predict(X), called.predict(X))
        assert_array_equal(each.decision_function(X), called.decision_function(X))
    assert_array_equal(model.coef_, called.coef_)
    for saved in model, piped:
        save_model(saved, tmp_path / "a.model")
        loaded = load_model(tmp_path / "a.model")
        assert_array_equal(loaded.decision_function(X), saved.decision_function(X))


def test_selection_uses_sample_and_class_weights():
    X, y = DIGITS
    text, labels = make_zipf_text(1500, 2000, random_state=0)
    both = sp.vstack([sp.csr_matrix((len(y), 2000)), text]).tolil()
    both[: len(y), :64] = X
    both, y = both.tocsr(), np.r_[y % 2, labels > 0]
    of_digits = np.arange(len(y)) < len(DIGITS[1])
    for counts, kind in (of_digits, SecondOrderPerceptron), (~of_digits, AROWClassifier):
        # The weight is not 0, because rows of weight 0 are left out. The remaining digits would
        # then count as sparse among so many features.
        assert type(fit_csr(both, y, sample_weight=np.where(counts, 1.0, 1e-6))) is kind


@pytest.mark.parametrize("size", [1e-300, 1e160])
@pytest.mark.parametrize("problem", [WINE, CANCER])
def test_only_the_ratios_of_weights_have_an_effect_on_the_selection(problem, size):
    X, y = problem
    expected = repr(fit_csr(X, y, random_state=0))
    assert "standardize=True" in expected
    assert repr(fit_csr(X, y, sample_weight=np.full(len(y), size), random_state=0)) == expected
    model = AutoClassifier(random_state=0, class_weight=dict.fromkeys(range(3), size))
    assert model.fit(X, y).best_estimator_.get_params()["standardize"]


@pytest.mark.parametrize("problem", [TEXT, DIGITS])
def test_first_partial_fit_call_selects_the_classifier(problem):
    X, y = problem
    model = AutoClassifier(random_state=0).partial_fit(X[:800], y[:800], np.unique(y))
    kind = type(model.best_estimator_)
    assert kind is type(fit_csr(X[:800], y[:800]))
    model.partial_fit(X[800:], y[800:])
    expected = kind(random_state=0).partial_fit(X[:800], y[:800], np.unique(y))
    expected.partial_fit(X[800:], y[800:])
    assert_array_equal(model.coef_, expected.coef_)


def test_rows_still_misclassified_get_more_epochs():
    random = np.random.RandomState(0)
    X = sp.csr_matrix(random.randn(100, 3000) * (random.rand(100, 3000) < 0.1))
    y = random.rand(100) < 0.5
    assert fit_csr(X, y, random_state=0).max_iter == 10
    for _ in range(2):
        X, y = sp.vstack([X, X]), np.r_[y, random.rand(len(y)) < 0.5]
    assert AROWClassifier(max_iter=3, random_state=0).fit(X, y).score(X, y) < 0.9
    assert fit_csr(X, y, random_state=0).max_iter == 8
    assert fit_csr(X, y, max_iter=3, random_state=0).max_iter == 3


@pytest.mark.parametrize(("problem", "tried"), [
    (TEXT, 1), (wrong_labels(), 3), (few_of_many(share=0.002), 3), (DIGITS, 6),
])  # fmt: skip
def test_arow_alone_is_tried_first_on_sparse_rows(problem, tried, monkeypatch):
    entered, make = [], selection._Entrant
    monkeypatch.setattr(
        selection, "_Entrant", lambda each, **how: entered.append(each) or make(each, **how)
    )
    fit_csr(*problem, random_state=0)
    assert len(entered) == tried


def test_selection_uses_a_bounded_number_of_rows(monkeypatch):
    tried = []
    check = selection.check_rows
    counted = lambda rows, **names: tried.append(rows.n_rows) or check(rows, **names)  # noqa: E731
    monkeypatch.setattr(selection, "check_rows", counted)
    X, y = few_of_many(3000, 500)
    monkeypatch.setattr(selection, "MOST_ROWS", 700)
    fit_csr(X, y)
    # Dense rows are checked once more, to standardize them.
    assert sum(tried) <= 2 * 700


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_candidates_have_all_parameters_of_auto_classifier(algo):
    learner, _ = ALGORITHMS[algo]
    compared = candidates.others(10, sparse=False, dense=True)
    compared += candidates.for_few_rows(10, whole=True)
    if algo in {each.algorithm for each in compared}:
        assert set(learner.parameter_names()) >= selection.OPEN_PARAMETERS
    assert set(AutoClassifier().get_params()) == selection.OPEN_PARAMETERS


@pytest.mark.parametrize("params", [
    {"r": 2}, {"hypothesis": "average"}, {"early_stopping": True}, {"p": 2, "kernel": "linear"},
])  # fmt: skip
def test_arow_parameters_keep_arow_selected(params):
    assert type(fit_csr(*TEXT, **params)) is AROWClassifier


@pytest.mark.parametrize(("params", "message"), [
    ({"C": 1}, "'C' for algo=None, which is 'arow'. C is a parameter of algo='alma'."),
    ({"alpha": 0.5}, "alpha is a parameter of algo='alma', algo='ho', algo='so'."),
    ({"p": 7}, "p is a parameter of algo='pnorm', algo='alma', algo='ho'"),
    ({"kernel": "rbf"}, "kernel is a parameter of algo='perceptron'"),
    ({"hypothesis": "vote"}, "The 'hypothesis' parameter of AROWClassifier must be"),
])  # fmt: skip
@pytest.mark.parametrize("entry", ["fit_csr", "fit_text", "fit_svmlight", "fit_distributed"])
def test_no_parameter_selects_an_algorithm(tmp_path, entry, params, message):
    X, y = TEXT
    texts, labels = ["bee sea", "dee eff"] * 20, ["a", "b"] * 20
    dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=False)
    fits = {
        "fit_csr": lambda **how: fit_csr(X, y, **how),
        "fit_text": lambda **how: fit_text(texts, labels, **how),
        "fit_svmlight": lambda **how: fit_svmlight(tmp_path / "a.svm", **how),
        "fit_distributed": lambda **how: fit_distributed([(X, y)], **how),
    }
    with pytest.raises(ValueError, match=re.escape(message)):
        fits[entry](**params)
    assert type(fit_csr(X, y, "alma", **params)) is ALMAClassifier


def test_fit_anndata_accepts_parameters_of_its_default():
    anndata = pytest.importorskip("anndata")
    random = np.random.RandomState(0)
    adata = anndata.AnnData(random.poisson(1.0, (60, 20)).astype(np.float32))
    adata.obs["kind"] = np.array(["a", "b", "c"] * 20)
    model = fit_anndata(adata, "kind", alpha=0.5, max_iter=1).classifier_
    assert (type(model), model.alpha, model.multi_class) == (ALMAClassifier, 0.5, "joint")
    with pytest.raises(ValueError, match="r is a parameter of algo='arow'"):
        fit_anndata(adata, "kind", r=0.1)
    assert type(fit_anndata(adata, "kind", "arow", r=0.1, max_iter=1).classifier_) is AROWClassifier


def test_verbose_prints_the_selected_classifier(capsys):
    AutoClassifier(verbose=1, random_state=0).fit(*TEXT)
    assert "AutoClassifier has taken AROWClassifier(" in capsys.readouterr().out


def test_unknown_parameter_is_reported():
    with pytest.raises(ValueError, match="max_iter"):
        AutoClassifier(max_iter=-1).fit(*TEXT)
    assert auto.AutoClassifier is AutoClassifier
    assert cross_val_score(AutoClassifier(random_state=0), *TEXT, cv=3).mean() > 0.8


@pytest.mark.parametrize("max_iter", [-1, "some"])
def test_partial_fit_checks_max_iter(max_iter):
    X, y = TEXT
    for kind in AROWClassifier, AutoClassifier:
        with pytest.raises(ValueError, match=f"max_iter.*must be .*{max_iter!r}"):
            kind(max_iter=max_iter).partial_fit(X, y, np.unique(y))


@pytest.mark.parametrize("steps", [[], [MaxAbsScaler()]])
def test_unfitted_auto_classifier_cannot_be_saved(steps, tmp_path):
    model = make_pipeline(*steps, AutoClassifier())
    for unfitted in (model, model[-1]):
        with pytest.raises(ValueError, match="AutoClassifier is not fitted"):
            save_model(unfitted, tmp_path / "a.model")
        with pytest.raises(ValueError, match="AutoClassifier instance is not fitted yet"):
            write_readable(tmp_path / "a.txt", unfitted)


def test_column_vector_of_labels_warns_once():
    with pytest.warns(DataConversionWarning) as told:
        fit_csr(TEXT[0], TEXT[1][:, np.newaxis])
    assert len(told) == 1


@pytest.mark.parametrize("twice", [False, True])
def test_warnings_of_a_fit_are_issued_once(monkeypatch, twice):
    X, y = sp.csr_matrix(np.ones((600, 1))), np.random.RandomState(0).rand(600) < 0.4
    monkeypatch.setattr(auto, "UNLEARNED", 0.1 if twice else 1.0)
    with pytest.warns(ConvergenceWarning, match="predicts class") as told:
        assert fit_csr(X, y, random_state=0).max_iter == (5 if twice else 2)
    assert [(each.category, each.filename) for each in told] == [(ConvergenceWarning, __file__)]


def test_candidates_that_fail_on_the_rows_are_dropped():
    X, y = TEXT
    with pytest.raises(ValueError, match="too far in magnitude"):
        PNormPerceptron(p=2 * np.log(4000), max_iter=5).fit(X * 1e300, y)
    assert repr(fit_csr(X * 1e300, y, random_state=0)) == repr(fit_csr(X, y, random_state=0))


@pytest.mark.parametrize("n_rows", [400, 1500])
@pytest.mark.parametrize("row", [0, 56, 396])
def test_invalid_row_is_reported_by_its_original_number(n_rows, row):
    X = sp.csr_matrix(np.ones((n_rows, 5)))
    X[row, 3] = np.nan
    with pytest.raises(ValueError, match=f"NaN at row {row}, column 3"):
        fit_csr(X, np.arange(n_rows) % 2)


@pytest.mark.parametrize("params", [
    {"class_weight": "heavy"}, {"class_weight": {1: "x"}}, {"class_weight": {1: None}},
    {"fit_intercept": "no"},
])  # fmt: skip
def test_auto_classifier_rejects_the_same_parameters_as_arow(params):
    for call in AutoClassifier(**params).fit, AROWClassifier(**params).fit:
        with pytest.raises(ValueError, match=r"class_weight|fit_intercept|could not convert"):
            call(*TEXT)


@pytest.mark.parametrize("problem", [
    TEXT, DIGITS, (TEXT[0][:700], TEXT[1][:700]), WINE, tuple(map(np.concatenate, ([CANCER[0]] * 3,
    [CANCER[1]] * 3))),
])  # fmt: skip
def test_rows_of_weight_0_have_no_effect_on_the_selection(problem):
    X, y = problem
    counted = np.arange(len(y)) % 3 == 0
    model = fit_csr(X, y, sample_weight=counted.astype(float), random_state=0)
    assert repr(model) == repr(fit_csr(X[counted], y[counted], random_state=0))


def test_auto_classifier_scores_label_lists():
    y = [[label, "both"] if label > 0 else [label] for label in TEXT[1].tolist()]
    y = [list(map(str, labels)) for labels in y]
    model = AutoClassifier(random_state=0).fit(TEXT[0], y)
    assert model.score(TEXT[0], y) == model.best_estimator_.score(TEXT[0], y) > 0.9


def labelled_texts(n_rows=1500, n_labels=12):
    """Return rows of text and rare labels, each of which depends on a few features."""
    X, _ = make_zipf_text(n_rows, 1000, random_state=3)
    random = np.random.RandomState(0)
    directions = random.standard_normal((X.shape[1], n_labels)) * (random.rand(1000, 1) < 0.2)
    scores = X @ directions
    ranks = scores.argsort(axis=0).argsort(axis=0)
    return X, (ranks >= n_rows * np.linspace(0.7, 0.98, n_labels)).astype(int)


def test_several_labels_have_balanced_weights_and_a_larger_intercept_scale():
    X, Y = labelled_texts()
    model = fit_csr(X, Y, random_state=0)
    scale = model.intercept_scaling
    assert scale == pytest.approx(3 * AROWClassifier().fit(X, Y).intercept_scaling_, rel=5e-3)
    by_hand = AROWClassifier(
        class_weight="balanced", intercept_scaling=scale, max_iter=2, random_state=0
    )
    assert_array_equal(model.coef_, by_hand.fit(X, Y).coef_)
    assert_array_equal(AutoClassifier(random_state=0).fit(X, Y).coef_, model.coef_)
    assert fit_csr(100 * X, Y).intercept_scaling == pytest.approx(100 * scale, rel=1e-2)
    # Rows of weight 0 have no effect on the scale.
    weighted = fit_csr(
        sp.vstack([1e6 * X[:200], X]).tocsr(), np.vstack([Y[:200], Y]), random_state=0,
        sample_weight=np.repeat([0.0, 1.0], [200, len(Y)]),
    )  # fmt: skip
    assert weighted.intercept_scaling == scale


def test_parameters_for_several_labels_are_kept():
    X, Y = labelled_texts()
    for params in {"class_weight": {0: 2.0}}, {"r": 0.2}:
        by_hand = AROWClassifier(max_iter=2, random_state=0, **params)
        assert_array_equal(fit_csr(X, Y, random_state=0, **params).coef_, by_hand.fit(X, Y).coef_)
    assert fit_csr(X, Y, intercept_scaling=0.5).intercept_scaling == 0.5
    broken = X.copy()
    broken.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN at row 0"):
        fit_csr(broken, Y)


def test_rare_labels_are_found_more_often_by_default():
    X, Y = labelled_texts(3000)
    rare = Y.mean(axis=0) < 0.1
    found = {}
    for name, model in (("default", fit_csr), ("AROW", AROWClassifier(max_iter=2).fit)):
        predicted = model(X[:2000], Y[:2000]).predict(X[2000:])
        found[name] = f1_score(Y[2000:][:, rare], predicted[:, rare], average="macro")
    assert found["default"] > found["AROW"]
