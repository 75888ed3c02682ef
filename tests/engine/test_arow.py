"""AROW against its dense reference, and its variances in copies, files, streams and blocks."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from problems.first_order import examples, index_types, problems, scattered
from problems.models import make_problem
from problems.shards import write
from references.arow import run_arow
from references.weights import class_factors, step_factors
from sparsemargin import AROWClassifier, fit_svmlight, load_model, save_model
from sparsemargin._engine.first_order import vector_blocks

problem_of_classes = st.integers(2, 4).flatmap(
    lambda k: problems(n_classes=st.just(k), index_dtype=index_types)
)


def signs_of(y):
    classes = np.unique(y)
    return [np.where(y == c, 1, -1) for c in (classes if len(classes) > 2 else classes[1:])]


def assert_same_as(model, runs, hypothesis, n_features, tolerance=1e-10):
    assert_array_equal(np.atleast_1d(model.n_corrections_), [run.n_corrections for run in runs])
    mean = np.array([getattr(run, hypothesis) for run in runs]).astype(float)
    gain = np.array([run.precision for run in runs]).astype(float) - 1
    of_space = model.space.of_vectors(model.space.gain).T
    assert_allclose(model.coef_, mean[:, :n_features], rtol=0, atol=tolerance * np.abs(mean).max())
    assert_allclose(of_space, gain, rtol=0, atol=tolerance * gain.max())
    if mean.shape[1] > n_features:
        expected = mean[:, n_features] * model.intercept_scaling
        assert_allclose(model.intercept_, expected, rtol=0, atol=tolerance * np.abs(mean).max())


def assert_same(model, other):
    """Assert that two models are bitwise equal."""
    for name in ("coef_", "intercept_", "n_corrections_"):
        one, same = (getattr(each, name) for each in (model, other))
        assert_array_equal(one.toarray() if hasattr(one, "toarray") else one, same)
    assert model.space.trials == other.space.trials
    if not model.space.in_blocks:
        assert_array_equal(model.space.gain, other.space.gain)


@examples(200)
@given(
    problem_of_classes, st.sampled_from([1e-8, 0.1, 1.0, 10.0]), st.sampled_from([None, 0.5, 3.0]),
    st.sampled_from([0.3, 1.0, None]), st.booleans(), st.integers(1, 4), st.booleans(),
    st.sampled_from(["last", "average"]),
)  # fmt: skip
def test_arow_agrees_with_the_reference(
    problem, r, rho, max_loss, normalize, n_epochs, weighted, hypothesis
):
    rng = np.random.RandomState(len(problem.y))
    weights = np.r_[1.0, rng.choice([0.0, 0.5, 1.0, 2.0], len(problem.y) - 1)] if weighted else None
    how = {"n_epochs": n_epochs, "rho": rho, "normalize": normalize}
    how["weights"] = None if weights is None else step_factors(weights, np.sqrt)
    how["max_loss"] = max_loss or np.inf
    runs = [run_arow(problem.X.toarray(), y, r, **how) for y in signs_of(problem.y)]
    assume(min(run.smallest_gap for run in runs) > 1e-9)
    model = AROWClassifier(
        r=r, max_loss=max_loss, normalize=normalize, max_iter=n_epochs, hypothesis=hypothesis,
        shuffle=False, fit_intercept=rho is not None, intercept_scaling=rho or "auto",
    )  # fmt: skip
    model.fit(scattered(problem.X, 0.1, n_epochs), problem.y, sample_weight=weights)
    assert_same_as(model, runs, {"last": "mean"}.get(hypothesis, hypothesis), problem.X.shape[1])


@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_class_weights_divide_r(hypothesis):
    X, y = make_problem(200, n_classes=3)
    how = {"shuffle": False, "intercept_scaling": 0.5, "hypothesis": hypothesis}
    whole = AROWClassifier(max_iter=2, class_weight={0: 2.0, 2: 0.5}, **how).fit(X, y)
    shares = class_factors({0: 2.0, 2: 0.5}, y, np.sqrt)
    runs = [
        run_arow(
            X.toarray(),
            sign,
            0.5,
            max_loss=1.0,
            rho=0.5,
            n_epochs=2,
            weights=np.where(sign > 0, share, 1),
        )
        for sign, share in zip(signs_of(y), shares, strict=True)
    ]
    assert_same_as(whole, runs, {"last": "mean"}.get(hypothesis, hypothesis), X.shape[1])
    parts = AROWClassifier(**how, class_weight={0: 2.0, 2: 0.5})
    for start in [*range(0, 200, 7)] * 2:
        parts.partial_fit(X[start : start + 7], y[start : start + 7], classes=[0, 1, 2])
    assert_same(parts, whole)


@pytest.mark.parametrize("hypothesis", ["last", "average"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_variances_are_kept_by_files_streams_and_blocks(hypothesis, dtype, tmp_path, monkeypatch):
    X, y = make_problem(200, n_classes=20)
    X = X.astype(dtype)
    how = {"hypothesis": hypothesis, "random_state": 0, "intercept_scaling": 0.5}
    model, dense = AROWClassifier(**how).fit(X, y), AROWClassifier(**how).fit(X, y)
    save_model(model, tmp_path / "a.model")
    again = load_model(tmp_path / "a.model").partial_fit(X, y)
    assert_same(again, dense.partial_fit(X, y))
    path = write(tmp_path / "a.svm", X, y)
    streamed = fit_svmlight(path, "arow", dtype=dtype, **how)
    assert_same(streamed, AROWClassifier(**how, shuffle=False).fit(X, y))
    monkeypatch.setattr(vector_blocks, "DENSE_BYTES", 0)
    blocks = AROWClassifier(**how).fit(X, y)
    assert blocks.space.in_blocks
    assert_same(blocks, model)
    assert_same(blocks.partial_fit(X, y), dense)


def test_variance_of_a_dominant_feature_is_precise():
    row = np.array([[1.0, 1e-6]])
    r = 1e-14
    how = {"fit_intercept": False, "normalize": False, "shuffle": False}
    model = AROWClassifier(r=r, **how).partial_fit(row, [1], classes=[0, 1])
    # The variance is multiplied by (r + others) / (r + output); `gain` is 1 / variance - 1.
    gain = model.space.of_vectors(model.space.gain)[0, 0]
    assert_allclose(gain, 1 / (r + 1e-12), rtol=1e-9)
