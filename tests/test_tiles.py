"""Weights held in tiles are, to the bit, those held densely."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix, issparse, random

from sparsemargin import ALMAClassifier, PNormPerceptron, ROMMAClassifier
from sparsemargin._engine.first_order import storage as _storage
from sparsemargin._engine.first_order.spaces import LinearSpace
from sparsemargin.io.model_files import load_model, save_model

# ROMMA says that it has not come to its aim.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N_ROWS, N_FEATURES = 300, 250

MACHINES = [
    (PNormPerceptron, {"p": 2.0, "hypothesis": "last"}),
    (PNormPerceptron, {"p": 6.0, "hypothesis": "average", "normalize_hypotheses": True}),
    (ALMAClassifier, {"p": 2.0, "hypothesis": "average"}),
    (ALMAClassifier, {"p": 10.0, "hypothesis": "average"}),
    (ALMAClassifier, {"p": 2.5, "hypothesis": "vote"}),
    (ROMMAClassifier, {"hypothesis": "last", "soft_margin": 0.5}),
]


@pytest.fixture
def in_tiles(monkeypatch):
    """Let weights of more labels than a tile has be held in tiles, however few they are."""

    def switch(on):
        monkeypatch.setattr(_storage, "DENSE_BYTES", 0 if on else 1 << 40)

    return switch


def make_problem(n_labels, dtype=np.float64, seed=0):
    rng = np.random.RandomState(seed)
    X = random(N_ROWS, N_FEATURES, 0.1, format="csr", random_state=rng, dtype=dtype)
    y = np.r_[np.arange(n_labels), rng.randint(0, n_labels, N_ROWS - n_labels)]
    return X, y


def everything(model, X):
    told = [model.n_corrections_, model.decision_function(X), model.theta_, model.theta_norm_]
    if model.hypothesis != "vote":
        told += [model.coef_, model.intercept_]
    return [item.toarray() if issparse(item) else item for item in told]


def assert_same(model, other, X):
    for ours, theirs in zip(everything(model, X), everything(other, X), strict=True):
        assert_array_equal(ours, theirs)


def fitted(machine, X, y, **params):
    cls, settings = machine
    model = cls(**settings, max_iter=3, random_state=0, fit_intercept=True, **params)
    return model.fit(X, y)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("n_labels", [17, 40, 103])
@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_tiles_change_no_bit(machine, n_labels, n_jobs, in_tiles):
    X, y = make_problem(n_labels, np.float32 if n_labels == 40 else np.float64)
    in_tiles(False)
    dense = fitted(machine, X, y)
    in_tiles(True)
    tiled = fitted(machine, X, y, n_jobs=n_jobs)
    assert tiled._space.is_tiled
    assert not dense._space.is_tiled
    assert_same(tiled, dense, X)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_tiled_models_travel(machine, in_tiles, tmp_path):
    X, y = make_problem(40)
    in_tiles(True)
    model = fitted(machine, X, y)
    save_model(model, tmp_path / "model")
    for other in (pickle.loads(pickle.dumps(model)), load_model(tmp_path / "model")):
        assert other._space.is_tiled
        assert_same(model, other, X)


@pytest.mark.parametrize("p", [2.0, 6.0])
def test_a_restored_model_learns_on(p, in_tiles):
    X, y = make_problem(40)
    in_tiles(True)
    machine = PNormPerceptron, {"p": p, "hypothesis": "average"}
    model = fitted(machine, X, y)
    other = pickle.loads(pickle.dumps(model))
    for each in (model, other):
        each.partial_fit(X[::-1], y[::-1])
    assert_same(model, other, X)


@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_streams_outgrow_dense_weights(hypothesis, in_tiles, monkeypatch):
    X, y = make_problem(40)
    in_tiles(False)
    small, large = (
        PNormPerceptron(p=6.0, hypothesis=hypothesis, fit_intercept=True) for _ in range(2)
    )
    for model in (small, large):
        model.partial_fit(X[:100], y[:100], classes=np.arange(40))
    # As many features as a dense model may have, and one more.
    monkeypatch.setattr(_storage, "DENSE_BYTES", small._space.nbytes)
    for model, more in ((small, 1), (large, 7)):
        model._space.resize(N_FEATURES + more)
        model.n_features_in_ = N_FEATURES + more
        assert model._space.is_tiled
        wider = csr_matrix((X.data, X.indices, X.indptr), shape=(N_ROWS, N_FEATURES + more))
        model.partial_fit(wider[100:], y[100:])
    large._space.resize(N_FEATURES + 1)
    large.n_features_in_ = N_FEATURES + 1
    wider = csr_matrix((X.data, X.indices, X.indptr), shape=(N_ROWS, N_FEATURES + 1))
    assert_same(small, large, wider)
    in_tiles(False)
    dense = PNormPerceptron(p=6.0, hypothesis=hypothesis, fit_intercept=True)
    dense.partial_fit(wider, y, classes=np.arange(40))
    assert_same(small, dense, wider)


def test_only_corrections_make_tiles(in_tiles):
    X, y = make_problem(40)
    in_tiles(True)
    model = PNormPerceptron(random_state=0, max_corrections=1).fit(X, y)
    held = model._space.__getstate__()["used"].sum()
    # The first row has corrected every label, and no other row any: its features, and tile 0.
    assert held == 3 * (1 + np.count_nonzero(model.theta_.toarray()[0]))
    before = model._space.nbytes
    model.predict(X)
    assert model._space.nbytes == before


def test_sparse_weights_stay_sparse(in_tiles):
    X, y = make_problem(40)
    in_tiles(True)
    model = PNormPerceptron(random_state=0).fit(X, y)
    assert issparse(model.coef_)
    assert issparse(model.densify().coef_)
    np.testing.assert_allclose(
        model.decision_function(X), X @ model.coef_.T.toarray() + model.intercept_, rtol=1e-9,
        atol=1e-12,
    )  # fmt: skip


# ------------------------------------------------------------------------------- states and copies


def spoiled(state, **changes):
    space = LinearSpace.__new__(LinearSpace)
    space.__setstate__({**state, **changes})


def test_states_that_lead_out_of_the_tiles_are_refused(in_tiles):
    X, y = make_problem(40)
    in_tiles(True)
    state = PNormPerceptron(p=6.0, random_state=0).fit(X, y)._space.__getstate__()
    first = state["synced"].copy()
    first[3] = 65535
    with pytest.raises(ValueError, match="the first tiles of 'synced' are not 0"):
        spoiled(state, synced=first)
    for tile in (-1, state["used"][0]):
        tiles = state["tiles"].copy()
        tiles[0] = tile
        with pytest.raises(ValueError, match="'tiles' holds what is none of the tiles"):
            spoiled(state, tiles=tiles)
    for used in (0, N_FEATURES + 3):
        with pytest.raises(ValueError, match="'used' holds"):
            spoiled(state, used=np.r_[used, state["used"][1:]])
    in_tiles(False)
    lone = PNormPerceptron(p=6.0, random_state=0).fit(X, y == 0)._space.__getstate__()
    table = np.zeros(N_FEATURES, np.int32)
    with pytest.raises(ValueError, match="'tiles' are of too few labels"):
        spoiled(lone, tiles=table, used=np.ones(1, np.int64))


def test_a_copy_learns_nothing_from_the_original(in_tiles):
    X, y = make_problem(40)
    in_tiles(True)
    model = PNormPerceptron().partial_fit(X[:50], y[:50], classes=np.arange(40))
    buffers = []
    told = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    other = pickle.loads(told, buffers=buffers)
    before = other.decision_function(X)
    model.partial_fit(X[50:], y[50:])
    assert_array_equal(other.decision_function(X), before)


@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_outputs_in_tiles_for_one_row_and_for_all(hypothesis, in_tiles):
    X, y = make_problem(40, np.float32)
    in_tiles(True)
    model = ALMAClassifier(p=6.0, hypothesis=hypothesis, random_state=0, max_iter=2).fit(X, y)
    together = model.decision_function(X)
    assert_array_equal(np.vstack([model.decision_function(row) for row in X[:20]]), together[:20])
