"""AROW with a Naive Bayes prior agrees with a dense reference, in blocks, files and streams."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from problems.first_order import examples, index_types, problems, scattered
from problems.models import make_problem
from problems.shards import write
from references.arow import naive_bayes_variances, run_arow
from references.weights import step_factors
from sparsemargin import (
    AROWClassifier,
    AutoClassifier,
    fit_csr,
    fit_svmlight,
    load_model,
    save_model,
)
from sparsemargin._engine.first_order import prior as priors
from sparsemargin._engine.first_order import vector_blocks
from sparsemargin.datasets import make_zipf_text
from sparsemargin.files import sources
from sparsemargin.models.inputs import training_set
from sparsemargin.streaming import run
from sparsemargin.streaming.report import progressive_error
from sparsemargin.streaming.stream import learn_svmlight

problem_of_classes = st.integers(2, 4).flatmap(
    lambda k: problems(n_classes=st.just(k), index_dtype=index_types)
)

NAIVE_BAYES = {"prior": "naive_bayes", "random_state": 0}


def variances_of(model):
    """The variances of all coordinates, shape (n_vectors, n_coordinates)."""
    held = model.space.of_vectors(model.space.variances).T
    return np.where(held == 0, model.space.vectors["initial"][:, np.newaxis], held)


def assert_same(model, other):
    """Assert that two models are bitwise equal."""
    for name in ("coef_", "intercept_", "n_corrections_"):
        one, same = (getattr(each, name) for each in (model, other))
        one, same = (each.toarray() if sp.issparse(each) else each for each in (one, same))
        assert_array_equal(one, same)
    if not (model.space.in_blocks or other.space.in_blocks):
        assert_array_equal(variances_of(model), variances_of(other))


def assert_agrees(model, runs, hypothesis, n_features):
    mean = np.array([getattr(run, hypothesis) for run in runs]).astype(float)
    close = {"rtol": 0, "atol": 1e-10 * np.abs(mean).max()}
    assert_array_equal(np.atleast_1d(model.n_corrections_), [run.n_corrections for run in runs])
    assert_allclose(model.coef_, mean[:, :n_features], **close)
    if mean.shape[1] > n_features:
        assert_allclose(model.intercept_, mean[:, n_features] * model.intercept_scaling, **close)
    expected = np.array([1 / run.precision for run in runs]).astype(float)
    assert_allclose(variances_of(model), expected, rtol=1e-10)


@examples(200)
@given(
    problem_of_classes, st.sampled_from([0.1, 1.0]), st.sampled_from([None, 0.5]),
    st.sampled_from([0.5, None]), st.booleans(), st.integers(1, 3), st.booleans(),
    st.sampled_from(["last", "average"]), st.sampled_from([1, 7, 1 << 16]),
)  # fmt: skip
def test_the_prior_agrees_with_the_reference(
    problem, r, rho, max_loss, normalize, n_epochs, weighted, hypothesis, at_once
):
    rng, y = np.random.RandomState(len(problem.y)), problem.y
    weights = np.r_[1.0, rng.choice([0.0, 0.5, 2.0], len(y) - 1)] if weighted else np.ones(len(y))
    X, classes, used = problem.X.toarray(), np.unique(y), weights > 0
    signs = [np.where(y == c, 1, -1) for c in (classes if len(classes) > 2 else classes[1:])]
    runs = [
        run_arow(
            X, sign, r, n_epochs=n_epochs, rho=rho, normalize=normalize,
            weights=step_factors(weights, np.sqrt), max_loss=max_loss or np.inf,
            variances=naive_bayes_variances(X[used], sign[used], rho is not None),
        )
        for sign in signs
    ]  # fmt: skip
    assume(min(run.smallest_gap for run in runs) > 1e-9)
    model = AROWClassifier(
        r=r, max_loss=max_loss, normalize=normalize, max_iter=n_epochs, hypothesis=hypothesis,
        shuffle=False, fit_intercept=rho is not None, intercept_scaling=rho or "auto",
        prior="naive_bayes",
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(priors, "_NUMBERS_AT_ONCE", at_once)
        model.fit(scattered(problem.X, 0.1, n_epochs), y, sample_weight=weights)
    assert_agrees(model, runs, {"last": "mean"}.get(hypothesis, hypothesis), X.shape[1])


@pytest.mark.parametrize("kind", ["dense", "indicator", "lists"])
def test_prior_of_several_labels_and_of_dense_rows(kind):
    X, y = make_problem(120, n_classes=4)
    X, Y = X.toarray(), np.eye(4, dtype=int)[y]
    Y[::3, 1], Y[::5] = 1, 0
    y = {"dense": y, "indicator": sp.csr_matrix(Y), "lists": Y}[kind]
    signs = 2 * (np.eye(4, dtype=int)[y] if kind == "dense" else Y).T - 1
    model = AROWClassifier(shuffle=False, intercept_scaling=0.5, **NAIVE_BAYES)
    model.fit(X if kind == "dense" else sp.csr_matrix(X), y)
    runs = [
        run_arow(
            X, sign, 0.5, max_loss=1.0, rho=0.5, variances=naive_bayes_variances(X, sign, True)
        )
        for sign in signs
    ]
    assert_agrees(model, runs, "mean", X.shape[1])


def test_prior_equals_a_scale_of_the_features():
    """Training with prior variances s ** 2 equals training on features multiplied by s."""
    X, y = make_problem(200, n_classes=2)
    how = {"normalize": False, "fit_intercept": False, "shuffle": False}
    model = AROWClassifier(prior="naive_bayes", **how).fit(X, y)
    prior, scale = model.space.prior, np.zeros(X.shape[1])
    scale[prior.columns] = np.sqrt(prior.variances(slice(None))[:, 0])
    scaled = AROWClassifier(**how).fit(X @ sp.diags_array(scale), y)
    assert_allclose(model.coef_, scaled.coef_ * scale, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("hypothesis", ["last", "average"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_copies_and_files_keep_the_prior(hypothesis, dtype, tmp_path, monkeypatch):
    X, y = make_problem(200, n_classes=20)
    X = X.astype(dtype)
    how = {"hypothesis": hypothesis, "intercept_scaling": 0.5, **NAIVE_BAYES}
    first, rest = slice(0, 150), slice(150, None)
    # Features that occur only in later rows have the mean variance.
    X = sp.csr_matrix(X.multiply(np.append(np.zeros((1, 5)), np.ones((1, X.shape[1] - 5)))))
    X = sp.vstack([X[first], make_problem(50, n_classes=20)[0].astype(dtype)], format="csr")
    whole = AROWClassifier(**how).fit(X[first], y[first])
    dense = AROWClassifier(**how).fit(X[first], y[first]).partial_fit(X[rest], y[rest])
    save_model(whole, tmp_path / "a.model")
    for again in load_model(tmp_path / "a.model"), pickle.loads(pickle.dumps(whole)):
        assert_same(again, whole)
        assert_same(again.partial_fit(X[rest], y[rest]), dense)
    monkeypatch.setattr(vector_blocks, "DENSE_BYTES", 0)
    blocks = AROWClassifier(**how).fit(X[first], y[first])
    assert blocks.space.in_blocks
    assert_same(blocks, whole)
    save_model(blocks, tmp_path / "b.model")
    assert_same(load_model(tmp_path / "b.model").partial_fit(X[rest], y[rest]), dense)
    # A dense space that grows can be converted to blocks, which keep the prior.
    assert_same(vector_blocks_of(whole).partial_fit(X[rest], y[rest]), dense)


def vector_blocks_of(model):
    model.fitted.space = vector_blocks.VectorBlocks.of(model.space)
    return model


def test_rows_and_classes_of_weight_0_are_not_counted():
    X, y = make_problem(300, n_classes=3)
    weights = np.random.RandomState(0).choice([0.0, 1.0], len(y))
    how = {"shuffle": False, "prior": "naive_bayes"}
    model = AROWClassifier(**how).fit(X, y, sample_weight=weights)
    assert_same(model, AROWClassifier(**how).fit(X[weights > 0], y[weights > 0]))
    model = AROWClassifier(class_weight={0: 0.0}, **how).fit(X, y)
    assert variances_of(model).shape[0] == 3
    part = AROWClassifier(**how).fit(X[y > 0], y[y > 0])
    assert_array_equal(model.coef_[2], part.coef_[0])


def test_rows_of_the_first_partial_fit_are_counted():
    X, y = make_problem(200, n_classes=3)
    parts = AROWClassifier(**NAIVE_BAYES, shuffle=False)
    parts.partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    assert_same(parts, AROWClassifier(**NAIVE_BAYES, shuffle=False).fit(X[:100], y[:100]))
    warm = AROWClassifier(**NAIVE_BAYES, shuffle=False, warm_start=True, max_iter=2).fit(X, y)
    twice = AROWClassifier(**NAIVE_BAYES, shuffle=False, warm_start=True, max_iter=1)
    assert_same(twice.fit(X, y).fit(X, y), warm)
    with pytest.raises(ValueError, match="another prior"):
        twice.set_params(prior=None).fit(X, y)


def test_damaged_counts_are_refused():
    X, y = make_problem(100, n_classes=3)
    model = AROWClassifier(**NAIVE_BAYES).fit(X, y)
    space = model.space
    for name, value in {
        "columns": np.array([1], np.uint8), "totals": np.full(3, 2, np.uint8), "n_rows": -1,
        "places": np.full(len(space.prior.places), 255, np.uint8), "starts": None,
        "counts": np.full(len(space.prior.counts), 2**40, np.uint64),
        "with_class": np.full(3, 101, np.uint8),
    }.items():  # fmt: skip
        state = space.__getstate__()
        state["prior"] = {**state["prior"], name: value}
        with pytest.raises(ValueError, match="damaged"):
            type(space).__new__(type(space)).__setstate__(state)


@pytest.fixture
def few_counted(monkeypatch):
    """Streams count 40 rows instead of 10,000."""
    monkeypatch.setattr("sparsemargin.models.fitted.state.LEAST_AFTER_COUNTING", 1)
    for module in training_set, run:
        monkeypatch.setattr(module, "ROWS_COUNTED", 40)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("bytes_at_once", [300, 1 << 20])
def test_streams_count_the_first_rows(n_classes, bytes_at_once, few_counted, tmp_path, monkeypatch):
    X, y = make_problem(200, n_classes=n_classes)
    X = sp.hstack([X, sp.eye_array(200)], format="csr")  # every row has a new feature
    how = {"intercept_scaling": 0.5, **NAIVE_BAYES}
    parts = AROWClassifier(**how).partial_fit(X[:40], y[:40], classes=range(n_classes))
    assert not hasattr(parts, "predict_proba")
    parts.partial_fit(X[40:], y[40:])
    path = write(tmp_path / "a.svm", X, y)
    monkeypatch.setattr(sources, "BLOCK_BYTES", bytes_at_once)
    streamed = fit_svmlight(path, "arow", max_iter=1, **how)
    assert_same(streamed, parts)
    assert_array_equal(streamed.predict_proba(X), parts.predict_proba(X))
    assert streamed.fitted.progress.n_trials == 160
    twice = fit_svmlight(path, "arow", max_iter=2, **how)
    assert twice.space.prior.n_rows == 40
    longer = fit_svmlight(path, init_model=streamed)
    assert longer.space.prior.n_rows == 40


def test_sorted_files_count_shuffled_rows(few_counted, tmp_path):
    X, y = make_problem(3000, n_classes=2)
    order = np.argsort(y, kind="stable")
    path = write(tmp_path / "a.svm", X[order], y[order])
    with pytest.warns(UserWarning, match="sorted"):
        model = fit_svmlight(path, "arow", max_iter=1, **NAIVE_BAYES)
    assert model.space.prior.n_rows == 40
    assert 0 < model.space.prior.with_class[0] < 40


@pytest.mark.parametrize("continues", [False, True])
def test_resumed_streams_are_equal(continues, few_counted, tmp_path, monkeypatch):
    X, y = make_problem(200, n_classes=3)
    path = write(tmp_path / "a.svm", X, y)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 300)
    how = {"algo": "arow", "intercept_scaling": 0.5, **NAIVE_BAYES}
    if continues:
        how = {"init_model": AROWClassifier(intercept_scaling=0.5, **NAIVE_BAYES).fit(X, y)}
    whole, checkpoint = fit_svmlight(path, max_iter=1, **how), tmp_path / "a.checkpoint"
    learn = run.Run._learn
    for n_rows in 20, 40, 100:

        def ending(self, block, order, n_rows=n_rows):
            if self.rows >= n_rows:
                raise KeyboardInterrupt
            learn(self, block, order)

        resumes = {"checkpoint": checkpoint, "resume": n_rows > 20}
        monkeypatch.setattr(run.Run, "_learn", ending)
        with pytest.warns(run.Interruption):
            fit_svmlight(path, max_iter=1, **resumes, **how)
    monkeypatch.setattr(run.Run, "_learn", learn)
    resumed = fit_svmlight(path, max_iter=1, checkpoint=checkpoint, resume=True, **how)
    assert_same(resumed, whole)


def test_stream_probabilities_need_rows_that_are_not_counted():
    X, y = make_problem(600)
    model = AROWClassifier(prior="naive_bayes", random_state=0)
    for start, stop in (0, 300), (300, 499), (499, 501):
        model.partial_fit(X[start:stop], y[start:stop], classes=np.unique(y))
        assert hasattr(model, "predict_proba") == (stop > 499)
        if stop <= 499:
            with pytest.raises(AttributeError, match="algo='arow' and prior=None"):
                model.check_probabilities()


def test_default_partial_fit_has_probabilities_and_no_prior(monkeypatch):
    monkeypatch.setattr("sparsemargin.models.selection.prior_pays", lambda *_: True)
    X, y = make_zipf_text(3000, 2000, random_state=0)
    assert fit_csr(X, y, random_state=0).prior == "naive_bayes"
    model = AutoClassifier(random_state=0).partial_fit(X, y, classes=np.unique(y))
    assert model.best_estimator_.prior is None
    assert model.predict_proba(X[:3]).shape == (3, 2)
    assert fit_csr(X, y, prior=None, random_state=0).prior is None


def test_error_of_a_stream_excludes_the_counted_rows(few_counted, tmp_path):
    X, y = make_problem(600)
    random = np.random.default_rng(0).integers(0, 2, 600)
    moments = []
    learn_svmlight(
        write(tmp_path / "a.svm", X, random), "arow", prior="naive_bayes", report=moments.append
    )
    assert moments[0].epoch == 1
    assert 0 < moments[0].uncounted <= 600
    first = [each for each in moments if each.epoch == 1][-1]
    assert first.uncounted < first.rows == 600
    assert progressive_error(first) > 0.35  # an error of 0.35 would mean that labels have leaked
    assert hasattr(AROWClassifier(prior="naive_bayes").fit(X, y), "predict_proba")
