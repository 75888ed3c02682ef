"""Training with ``standardize=True`` equals StandardScaler followed by the same algorithm."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, make_classification
from sklearn.preprocessing import StandardScaler

from sparsemargin import (
    AROWClassifier,
    MaxMarginClassifier,
    PNormPerceptron,
    SecondOrderPerceptron,
    fit_csr,
    fit_svmlight,
    load_model,
    save_model,
)
from sparsemargin.distributed import fit_distributed
from sparsemargin.evaluation import explain_row, margins
from sparsemargin.models import LEARNERS
from sparsemargin.models.parameters import declarations

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MODELS = {
    "arow": AROWClassifier(random_state=0),
    "arow without intercept": AROWClassifier(fit_intercept=False, random_state=0),
    "average": AROWClassifier(hypothesis="average", max_iter=3, random_state=0),
    "so": SecondOrderPerceptron(random_state=0),
    "pnorm": PNormPerceptron(p=5, random_state=0),
    "joint": PNormPerceptron(p=3, multi_class="joint", random_state=0),
    "maxmargin": MaxMarginClassifier(max_iter=20, random_state=0),
    "soft margin": MaxMarginClassifier(max_iter=20, soft_margin=1.0, random_state=0),
}


def problem(n_rows=120, n_classes=3, seed=0):
    """Rows with features of unequal scale, zeros, and two features that do not vary."""
    random = np.random.RandomState(seed)
    X, y = make_classification(
        n_rows, 8, n_informative=5, n_classes=n_classes, random_state=seed, flip_y=0.1
    )
    X = (X + random.uniform(-3, 3, 8)) * 10.0 ** random.uniform(-3, 3, 8)
    X[random.uniform(size=X.shape) < 0.2] = 0
    return np.hstack([X, np.full((n_rows, 1), 0.1), np.zeros((n_rows, 1))]), y


def assert_close(found, expected):
    assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("name", MODELS)
@given(n_classes=st.sampled_from([2, 3]), seed=st.integers(0, 1000), weighted=st.booleans())
@settings(max_examples=10, deadline=None)
def test_model_equals_standard_scaler_and_the_algorithm(name, n_classes, seed, weighted):
    X, y = problem(n_classes=n_classes, seed=seed)
    model = clone(MODELS[name]).set_params(standardize=True)
    weights = None
    if weighted and model.weighs_steps():
        weights = np.random.RandomState(seed).uniform(0.5, 2, len(y))
    scaler = StandardScaler().fit(X, sample_weight=weights)
    how = {} if weights is None else {"sample_weight": weights}
    peer = clone(MODELS[name]).fit(scaler.transform(X), y, **how)
    model.fit(X, y, **how)
    Z = X + 0.1 * np.random.RandomState(seed).randn(*X.shape) * X.std(axis=0)
    outputs = peer.decision_function(scaler.transform(Z))
    assert_close(model.decision_function(Z), outputs)
    assert_close(model.decision_function(sp.csr_matrix(Z)), outputs)
    coef = peer.coef_ / scaler.scale_
    assert_close(model.coef_ * scaler.scale_, peer.coef_)
    assert_close(model.intercept_, peer.intercept_ - coef @ scaler.mean_)
    assert_close((Z @ model.coef_.T + model.intercept_).reshape(outputs.shape), outputs)
    assert_allclose(margins(model, Z, y), margins(peer, scaler.transform(Z), y), atol=1e-10)
    if hasattr(peer, "predict_proba"):
        assert_close(model.predict_proba(Z), peer.predict_proba(scaler.transform(Z)))


@pytest.mark.parametrize("name", ["arow", "so", "pnorm", "maxmargin"])
@pytest.mark.parametrize("how", ["partial_fit", "warm_start"])
def test_training_resumes_with_the_means_of_the_first_fit(name, how, tmp_path):
    X, y = problem()
    X = X[:, :8]  # StandardScaler keeps features that do not vary
    scaler = StandardScaler().fit(X)
    model = clone(MODELS[name]).set_params(standardize=True, warm_start=True).fit(X, y)
    peer = clone(MODELS[name]).set_params(warm_start=True).fit(scaler.transform(X), y)
    save_model(model, tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model")
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    Z, labels = X[::2] * 1.5, y[::2]
    for each in model, loaded:
        each.decision_function(X)  # fills the cache of the weights
        each.fit(Z, labels) if how == "warm_start" else each.partial_fit(Z, labels)
    peer_rows = scaler.transform(Z)
    peer.fit(peer_rows, labels) if how == "warm_start" else peer.partial_fit(peer_rows, labels)
    assert_close(model.decision_function(X), peer.decision_function(scaler.transform(X)))
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_explanation_adds_up_on_the_scale_of_the_rows():
    X, y = problem()
    model = AROWClassifier(standardize=True, random_state=0).fit(X, y)
    (explained, *_) = explain_row(model, X[3])
    code = list(model.classes_).index(explained.label)
    assert explained.intercept == model.intercept_[code]
    total = explained.intercept + explained.contributions.sum()
    assert_allclose(total, model.decision_function(X[3:4])[0, code], rtol=1e-10)
    assert_allclose(total, explained.output, rtol=1e-10)


@pytest.mark.parametrize("kind", [AROWClassifier, SecondOrderPerceptron, PNormPerceptron])
def test_form_dtype_and_threads_of_rows_do_not_matter(kind):
    X, y = problem()
    X = np.round(X, 4)
    model = kind(standardize=True, random_state=0).fit(X, y)
    with_zeros = sp.csr_matrix(np.where(X == 0, 1.0, X))
    with_zeros.data[X.ravel() == 0] = 0
    with_room = sp.csr_matrix(X)  # entries behind those of the last row
    with_room.data = np.append(with_room.data, [5.0, 6.0])
    with_room.indices = np.append(with_room.indices, np.array([0, 1], with_room.indices.dtype))
    for rows in sp.csr_matrix(X), sp.csc_matrix(X), with_zeros, with_room:
        other = kind(standardize=True, random_state=0, n_jobs=2).fit(rows, y)
        assert_array_equal(other.coef_, model.coef_)
        assert_close(other.decision_function(rows), model.decision_function(X))
    single = kind(standardize=True, random_state=0).fit(X.astype(np.float32), y)
    assert single.score(X, y) > model.score(X, y) - 0.05


def test_multilabel_models_can_be_standardized():
    X, y = problem()
    Y = np.column_stack([y == 0, y != 1]).astype(int)
    scaler = StandardScaler().fit(X)
    model = AROWClassifier(standardize=True, random_state=0).fit(X, Y)
    peer = AROWClassifier(random_state=0).fit(scaler.transform(X), Y)
    assert_array_equal(model.predict(X), peer.predict(scaler.transform(X)))
    assert_close(model.decision_function(X), peer.decision_function(scaler.transform(X)))


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**600])
def test_very_large_and_small_features_are_standardized(scale):
    X, y = problem()
    model = AROWClassifier(standardize=True, random_state=0).fit(X, y)
    scaled = X * [scale, *[1] * (X.shape[1] - 1)]
    other = AROWClassifier(standardize=True, random_state=0).fit(scaled, y)
    assert_array_equal(other.coef_[:, 0] * scale, model.coef_[:, 0])
    assert_array_equal(other.predict(scaled), model.predict(X))


def test_equal_rows_are_predicted_by_the_intercept():
    X, y = np.full((20, 3), 0.7), np.arange(20) % 3 == 0
    model = AROWClassifier(standardize=True, random_state=0).fit(X, y)
    assert not model.coef_.any()
    assert_array_equal(model.predict(X), np.zeros(20, bool))


@pytest.mark.parametrize(("model", "message"), [
    (PNormPerceptron(standardize=True, hypothesis="vote"), "hypothesis='vote' has none"),
    (PNormPerceptron(standardize=True, hypothesis="random"), "Pass hypothesis='average' or 'last'"),
    (PNormPerceptron(standardize=True, kernel="rbf"), "Pass kernel='linear'"),
    (SecondOrderPerceptron(standardize=True, kernel="poly"), "Pass kernel='linear'"),
    (SecondOrderPerceptron(standardize=True, solver="dual"), "Pass solver='auto'"),
    (AROWClassifier(standardize="yes"), "'standardize' parameter of AROWClassifier must be a bool"),
])  # fmt: skip
def test_parameters_without_a_weight_vector_are_refused(model, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


@pytest.mark.parametrize("algo", ["arow", "so", "pnorm"])
def test_streams_are_refused(algo, tmp_path):
    X, y = problem()
    path = tmp_path / "a.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    model = fit_csr(X, y, algo, standardize=True, random_state=0)
    for learn in (
        lambda: fit_svmlight(path, algo, standardize=True),
        lambda: fit_svmlight(path, init_model=model),
        lambda: fit_distributed([(sp.csr_matrix(X), y)], algo=algo, standardize=True),
        lambda: clone(model).partial_fit(X, y, classes=[0, 1, 2]),
    ):
        with pytest.raises(ValueError, match="standardize=True needs the means and deviations"):
            learn()


def test_training_cannot_resume_with_another_setting():
    X, y = problem()
    model = AROWClassifier(warm_start=True, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="standardize"):
        model.set_params(standardize=True).fit(X, y)


def test_invalid_rows_are_named():
    X, y = problem()
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match="NaN at row 7, column 2"):
        AROWClassifier(standardize=True).fit(sp.csr_matrix(X), y)


def test_which_learners_can_standardize():
    having = {name for name, kind in LEARNERS.items() if "standardize" in declarations(kind)}
    assert having == {type(each).__name__ for each in MODELS.values()}
