"""Settings raced in one pass: the best is what it is alone, and errors are those one step ahead."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from problems.models import make_problem
from problems.shards import cut, write
from references.arow import run_arow
from sparsemargin import AROWClassifier, fit_csr, fit_svmlight, load_model, save_model
from sparsemargin._engine.first_order import label_blocks
from sparsemargin._engine.fitting import threads
from sparsemargin.distributed import fit_distributed
from sparsemargin.io.stream import learn_svmlight
from sparsemargin.models.arow import RACED

HOW = {"intercept_scaling": 0.5, "random_state": 0}


def noisy(m=300, n_classes=2):
    X, y = make_problem(m, n_classes=n_classes)
    rng = np.random.default_rng(0)
    wrong = rng.random(m) < 0.2
    y[wrong] = rng.integers(n_classes, size=wrong.sum())
    return X, y


def signs_of(y):
    classes = np.unique(y)
    return [np.where(y == c, 1, -1) for c in (classes if len(classes) > 2 else classes[1:])]


@pytest.mark.parametrize("hypothesis", ["last", "average"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("max_iter", [1, 3])
def test_the_best_is_what_it_is_alone(n_classes, hypothesis, max_iter):
    X, y = noisy(n_classes=n_classes)
    how = HOW | {"hypothesis": hypothesis, "max_iter": max_iter, "shuffle": False}
    model = AROWClassifier(r="auto", **how).fit(X, y)
    told = model.candidates_
    best, errors = np.atleast_1d(told["best"]), np.atleast_2d(told["progressive_error"])
    # Of many labels, not all are learned best by one setting, or it would be no race for each.
    assert n_classes == 2 or len(set(best)) > 1
    for label, sign in enumerate(signs_of(y)):
        r, max_loss = RACED[best[label]]
        alone = AROWClassifier(r=r, max_loss=max_loss, **how).fit(X, y)
        assert_array_equal(model.coef_[label], alone.coef_[label])
        assert_array_equal(model.intercept_[label], alone.intercept_[label])
        expected = [
            run_arow(X.toarray(), sign, r, max_loss=most, rho=0.5).weighted_error
            for r, most in RACED
        ]
        assert_allclose(errors[label], expected, rtol=1e-12)
        assert errors[label].argmin() == best[label]
    again = AROWClassifier(r="auto", **how).fit(X, y).partial_fit(X, y)
    assert_array_equal(again._rule[-1].__getstate__()["r"], RACED[best[-1]][0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_weigh_what_their_rows_do(n_classes):
    X, y = noisy(n_classes=n_classes)
    keep = (y == 0) | (np.arange(300) % 4 == 0)
    X, y = X[keep], y[keep]
    weights = np.random.default_rng(0).integers(0, 4, len(y)) * np.where(y == 0, 1.0, 8.0)
    how = HOW | {"max_iter": 2, "shuffle": False}
    told = AROWClassifier(r="auto", **how).fit(X, y, weights).candidates_
    best, errors = np.atleast_1d(told["best"]), np.atleast_2d(told["progressive_error"])
    weights = weights / weights[weights > 0].mean()
    for label, sign in enumerate(signs_of(y)):
        runs = [
            run_arow(X.toarray(), sign, r, max_loss=most, rho=0.5, weights=weights)
            for r, most in RACED
        ]
        assert_allclose(errors[label], [run.weighted_error for run in runs], rtol=1e-12)
        assert errors[label].argmin() == best[label]


@pytest.mark.parametrize("hypothesis", ["last", "average"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stream_goes_on_racing_in_batches_of_any_size_and_from_files(hypothesis, dtype, tmp_path):
    X, y = noisy(n_classes=3)
    X = X.astype(dtype)
    whole, parts = (AROWClassifier(r="auto", hypothesis=hypothesis, **HOW) for _ in range(2))
    whole.partial_fit(X, y, classes=[0, 1, 2])
    changes, before = 0, None
    for start in range(0, 300, 3):
        parts.partial_fit(X[start : start + 3], y[start : start + 3], classes=[0, 1, 2])
        best = parts.candidates_["best"]
        changes += before is not None and not np.array_equal(best, before)
        before = best
        if start == 150:
            save_model(parts, tmp_path / "a.model")
            parts = load_model(tmp_path / "a.model")
    assert changes > 1
    assert_array_equal(parts.coef_, whole.coef_)
    assert_array_equal(parts.decision_function(X), whole.decision_function(X))
    for name, told in whole.candidates_.items():
        assert_array_equal(parts.candidates_[name], told)
    settled = AROWClassifier(r="auto", hypothesis=hypothesis, shuffle=False, **HOW).fit(X, y)
    assert_array_equal(settled.coef_, whole.coef_)
    path = write(tmp_path / "a.svm", X, y)
    for max_iter in 1, 2:
        fit = {"hypothesis": hypothesis, "max_iter": max_iter, "shuffle": False, **HOW}
        streamed = fit_svmlight(path, "auto", dtype=dtype, **fit)
        assert_array_equal(streamed.coef_, fit_csr(X, y, "auto", **fit).coef_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_of_a_block_the_errors_of_those_that_lead_before_it_are_told(n_classes, tmp_path):
    path, told = write(tmp_path / "a.svm", *noisy(n_classes=n_classes)), []
    r, max_loss = RACED[0]
    for algo, params in ("auto", {}), ("arow", {"r": r, "max_loss": max_loss}):
        learn_svmlight([path], algo, report=told.append, **HOW, **params)
    assert told[0].mistakes == told[1].mistakes > 0


@pytest.mark.parametrize("n_classes", [2, 3, 4, 6])
def test_threads_share_no_labels_that_learn_at_once(n_classes, monkeypatch):
    monkeypatch.setattr(threads, "PRODUCTS_PER_THREAD", 1)
    X, y = noisy(n_classes=n_classes)
    one, several = (AROWClassifier(r="auto", max_iter=2, n_jobs=n, **HOW).fit(X, y) for n in (1, 3))
    assert_array_equal(several.coef_, one.coef_)
    assert_array_equal(several.n_corrections_, one.n_corrections_)
    for name, told in one.candidates_.items():
        assert_array_equal(several.candidates_[name], told)


def test_all_settings_begin_at_weights_that_are_given():
    X, y = noisy(n_classes=3)
    given = {"coef_init": np.ones((3, X.shape[1])), "intercept_init": [1, 0, -1]}
    model = AROWClassifier(r="auto", **HOW).fit(X, y, **given)
    for label, best in enumerate(model.candidates_["best"]):
        r, max_loss = RACED[best]
        alone = AROWClassifier(r=r, max_loss=max_loss, **HOW).fit(X, y, **given)
        assert_array_equal(model.coef_[label], alone.coef_[label])


def test_an_index_beyond_the_matrix_is_told_of():
    X, y = noisy()
    X.indices[-1] = 2**30
    with pytest.raises(ValueError, match="row 299"):
        AROWClassifier(r="auto", **HOW).fit(X, y)


def test_labels_that_come_to_be_learned_in_blocks_keep_their_settings(monkeypatch):
    X, y = noisy(600, n_classes=40)
    parts = []
    for most in label_blocks.DENSE_BYTES, 0:
        model = AROWClassifier(r="auto", **HOW).fit(X, y)
        assert len(set(model.candidates_["best"])) > 1
        monkeypatch.setattr(label_blocks, "DENSE_BYTES", most)
        model._resize(X.shape[1] + 1)
        model.n_features_in_ += 1
        wider = sp.csr_matrix((X.data, X.indices, X.indptr), (600, X.shape[1] + 1))
        parts.append(model.partial_fit(wider, y))
        assert model._space.in_blocks == (most == 0)
        monkeypatch.undo()
    assert_array_equal(parts[1].coef_.toarray(), parts[0].coef_)


def test_a_race_takes_no_more_memory_than_it_may(tmp_path, monkeypatch):
    # So many features come later that a model made for them would race no settings.
    monkeypatch.setattr(label_blocks, "DENSE_BYTES", 1 << 17)
    rows = [f"{i % 20} {i % 7 + 1}:1\n" for i in range(200_000)] + ["1 5000:1\n"]
    (tmp_path / "a.svm").write_text("".join(rows))
    with pytest.raises(ValueError, match=r"line 200001, .* memory_limit"):
        fit_svmlight(tmp_path / "a.svm", "auto", memory_limit=1 << 22)


def test_rows_with_many_labels_and_features_that_come_later():
    X, _ = noisy()
    Y = sp.csr_matrix(np.random.default_rng(0).random((300, 5)) < 0.3).astype(int)
    model = AROWClassifier(r="auto", shuffle=False, **HOW).fit(X, Y)
    for label in range(5):
        alone = AROWClassifier(r="auto", shuffle=False, **HOW).fit(X, Y.toarray()[:, label])
        assert_array_equal(model.coef_[label], alone.coef_[0])
        told = model.candidates_["progressive_error"][label]
        assert_array_equal(told, alone.candidates_["progressive_error"])


def test_labels_too_many_to_be_raced_take_the_first_setting(monkeypatch):
    X, y = make_problem(100, n_classes=20)
    monkeypatch.setattr(label_blocks, "DENSE_BYTES", 0)
    r, max_loss = RACED[0]
    model = AROWClassifier(r="auto", **HOW).fit(X, y)
    assert model._space.in_blocks
    alone = AROWClassifier(r=r, max_loss=max_loss, **HOW).fit(X, y)
    assert_array_equal(model.coef_.toarray(), alone.coef_.toarray())
    with pytest.raises(AttributeError, match="candidates_ needs r='auto'"):
        alone.candidates_  # noqa: B018


def test_what_does_not_go_with_a_race_is_refused():
    X, y = noisy()
    with pytest.raises(ValueError, match=r"r='auto' races values of max_loss.*max_loss=0\.3"):
        AROWClassifier(r="auto", max_loss=0.3).fit(X, y)
    with pytest.raises(ValueError, match=r"r='auto' is raced where.*algo='arow'"):
        fit_distributed(cut(X, y, 2), algo="auto")


def test_what_rows_lack_is_rescaled_with_the_rest():
    X, y = noisy()
    X = sp.block_diag([1e-15 * X[:100], X[100:200], 1e15 * X[200:]], format="csr")
    X = X.astype(np.float32)
    X.resize(300, 10_000)
    model = AROWClassifier(r="auto", normalize=False, fit_intercept=False)
    for start in range(0, 300, 2):
        some = slice(start, start + 2)
        space = model.partial_fit(X[some], y[some], classes=[0, 1])._space
        assert_array_equal(space.t[:, 0], space.field.t[:, space.best[0]])
    assert space.field.per_label("passes").min() > 0
