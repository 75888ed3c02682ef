"""Vectors trained in blocks are bitwise equal to those of one dense space, and need memory only for
nonzero numbers."""

import pickle
import signal
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix, issparse, random
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from depth import pairwise as pairs_of
from problems.first_order import scattered
from sparsemargin import (
    ALMAClassifier,
    MaxMarginClassifier,
    PNormPerceptron,
    ROMMAClassifier,
    fit_svmlight,
)
from sparsemargin._engine.first_order import vector_blocks
from sparsemargin._engine.first_order.vector_blocks import VectorBlocks
from sparsemargin.saving.model_files import save_model
from sparsemargin.tasks.load_model import load_model

# ROMMA warns that it has not converged.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N_ROWS, N_FEATURES, DENSE = 300, 250, 1 << 40

MACHINES = [
    PNormPerceptron(hypothesis="last"),
    PNormPerceptron(p=6.0, hypothesis="average", normalize_hypotheses=True),
    ALMAClassifier(hypothesis="average"),
    ALMAClassifier(p=10.0, hypothesis="average"),
    ALMAClassifier(p=2.5, hypothesis="last", max_corrections=9),
    MaxMarginClassifier(hypothesis="last", soft_margin=0.5, tol=0.5),
    ROMMAClassifier(hypothesis="last", soft_margin=0.5),
]


@pytest.fixture
def in_blocks(monkeypatch):
    """Set the size above which more than sixteen vectors are trained in blocks."""
    return partial(monkeypatch.setattr, vector_blocks, "DENSE_BYTES")


def make_problem(n_vectors, dtype=np.float64, seed=0):
    rng = np.random.RandomState(seed)
    X = random(N_ROWS, N_FEATURES, 0.1, format="csr", random_state=rng, dtype=dtype)
    y = np.r_[np.arange(n_vectors), rng.randint(0, n_vectors, N_ROWS - n_vectors)]
    return X, y


TOLD = ["n_corrections_", "theta_", "theta_norm_", "coef_", "intercept_", "n_iter_", "margin_",
        "margin_upper_bound_"]  # fmt: skip


def assert_same(model, other, X):
    assert_array_equal(model.decision_function(X), other.decision_function(X))
    assert_array_equal(model.space.trials, other.space.trials)
    for name in TOLD:
        ours, theirs = (getattr(of, name, 0) for of in (model, other))
        assert_array_equal(*(item.toarray() if issparse(item) else item for item in (ours, theirs)))


def fitted(machine, X, y, n_jobs=None):
    how = {"max_iter": 3, "random_state": 0, "fit_intercept": True, "n_jobs": n_jobs}
    return clone(machine).set_params(**how).fit(X, y)


# Room for 16 vectors, and for up to 64.
@pytest.mark.parametrize(
    ("machine", "size", "n_jobs"),
    pairs_of(MACHINES, [(17, 0), (40, 0), (103, 0), (103, 150_000)], [1, 2]),
    ids=str,
)
def test_blocks_change_no_bit(machine, size, n_jobs, in_blocks):
    n_vectors, room = size
    X, y = make_problem(n_vectors, np.float32 if n_vectors == 40 else np.float64)
    X = scattered(X, 0.5, 0) if n_vectors == 17 else X
    in_blocks(DENSE)
    dense = fitted(machine, X, y)
    in_blocks(room)
    blocks = fitted(machine, X, y, n_jobs=n_jobs)
    assert type(blocks.space) is VectorBlocks
    assert type(dense.space) is not VectorBlocks
    assert_same(blocks, dense, X)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_label_block_models_are_saved_and_trained_further(machine, in_blocks, tmp_path):
    X, y = make_problem(40)
    in_blocks(0)
    model = fitted(machine, X, y)
    save_model(model, tmp_path / "model")
    others = pickle.loads(pickle.dumps(model)), load_model(tmp_path / "model")
    for other in others:
        assert type(other.space) is VectorBlocks
        assert_same(model, other, X)
    model.partial_fit(X[::-1], y[::-1])
    assert_same(model, others[0].partial_fit(X[::-1], y[::-1]), X)


@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_streams_switch_from_dense_weights_to_blocks(hypothesis, in_blocks):
    X, y = make_problem(40)

    def begun():
        model = PNormPerceptron(p=6.0, hypothesis=hypothesis, fit_intercept=True)
        return model.partial_fit(X[:100], y[:100], classes=np.arange(40))

    def widened(model, more):
        model.resize(N_FEATURES + more)
        model.n_features_in_ = N_FEATURES + more
        return csr_matrix((X.data, X.indices, X.indptr), shape=(N_ROWS, N_FEATURES + more))

    in_blocks(DENSE)
    model, dense = begun(), begun()
    dense.partial_fit(widened(dense, 1)[100:], y[100:])
    # The largest number of features of a dense model, and one more.
    in_blocks(model.space.nbytes)
    wider = widened(model, 1)
    assert type(model.space) is VectorBlocks
    assert_same(model.partial_fit(wider[100:], y[100:]), dense, wider)


def test_logs_of_blocks_and_invalid_rows_are_rejected(in_blocks):
    X, y = make_problem(40)
    in_blocks(0)
    with pytest.raises(ValueError, match=r"hypothesis='average', or fewer features .*hash_bits"):
        PNormPerceptron(hypothesis="vote").fit(X, y)
    X.data[X.indptr[7]] = np.nan
    with pytest.raises(ValueError, match="NaN at row 7"):
        PNormPerceptron().fit(X, y)


def test_interrupted_labels_have_made_the_same_trials(in_blocks, monkeypatch):
    X, y = make_problem(40)
    in_blocks(0)
    expected = PNormPerceptron().partial_fit(X, y, classes=np.unique(y)).partial_fit(X, y)
    model = PNormPerceptron().partial_fit(X, y, classes=np.unique(y))
    take_from, calls = VectorBlocks.take_from, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        take_from(*args)

    monkeypatch.setattr(VectorBlocks, "take_from", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y)
    assert_same(model, expected, X)


@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_sparse_weights_give_the_outputs_of_dense_weights(hypothesis, in_blocks):
    X, y = make_problem(40, np.float32)
    in_blocks(0)
    model = ALMAClassifier(p=6.0, hypothesis=hypothesis, random_state=0, max_iter=2).fit(X, y)
    outputs = model.decision_function(X)
    assert_array_equal(np.vstack([model.decision_function(row) for row in X[:20]]), outputs[:20])
    assert issparse(model.coef_)
    np.testing.assert_allclose(outputs, X @ model.coef_.T.toarray() + model.intercept_, atol=1e-5)
    assert issparse(model.densify().coef_)


def test_states_with_invalid_positions_are_rejected(in_blocks):
    X, y = make_problem(40)
    in_blocks(0)
    state = PNormPerceptron(p=6.0, random_state=0).fit(X, y).space.__getstate__()
    *others, last = state["held"]
    at, of_no_blocks = last["at"], "it is not a space of vectors in blocks"

    def held(**changes):
        return {**state, "held": [*others, {**last, **changes}]}

    # One before the first, one beyond the last, decreasing, and a vector missing in the last group.
    outside = at - 1 - at[0], at + 16 * (N_FEATURES + 1), at[::-1].copy(), at | 8
    refused = [(held(at=bad), "'at' does not rise, or leads elsewhere") for bad in outside]
    refused += [(held(**{n: last[n][1:]}), f"'{n}' is not an array") for n in ("t", "g", "acc")]
    refused += [
        (held(at=at.astype(np.int64)), "'at' is not an array of int32"),
        (held(t=last["t"].astype(np.float32)), "'t' is not an array of float64"),
        (held(h=last["t"]), "'held' is not of a model like this"),
        ({**state, "held": others}, "'held' is not of them"),
        ({**state, "n_features": 0}, "'n_features' is not a whole number"),
        ({**state, "t": np.ones(state["n_coordinates"] * state["n_vectors"])}, of_no_blocks),
    ]
    in_blocks(DENSE)
    lone = PNormPerceptron(p=6.0, random_state=0).fit(X, y == 0).space.__getstate__()
    refused.append(({**lone, "held": [], "n_features": N_FEATURES}, of_no_blocks))
    for bad, told in refused:
        with pytest.raises(ValueError, match=told):
            VectorBlocks.__new__(VectorBlocks).__setstate__(bad)


def test_copy_is_independent_of_the_original(in_blocks):
    X, y = make_problem(40)
    in_blocks(0)
    model = PNormPerceptron().partial_fit(X[:50], y[:50], classes=np.arange(40))
    buffers = []
    told = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    other = pickle.loads(told, buffers=buffers)
    before = other.decision_function(X)
    model.partial_fit(X[50:], y[50:])
    assert_array_equal(other.decision_function(X), before)


@pytest.fixture
def text(tmp_path):
    """Rows with few features, which are far apart."""
    rng = np.random.RandomState(0)
    X = random(200, 30, 0.3, format="csr", random_state=rng)
    X.resize(200, 100_000)
    X.indices *= 3333
    y = np.r_[np.arange(40), rng.randint(0, 40, 160)]
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"))
    return tmp_path / "rows.svm"


@pytest.mark.parametrize("n_features", [None, 100_000])
def test_memory_of_streams_grows_with_nonzero_weights(text, n_features, in_blocks):
    settings = {"algo": "pnorm", "hypothesis": "last", "n_features": n_features}
    dense = fit_svmlight(text, **settings)
    in_blocks(1 << 20)
    limit = 16 * 8 * 100_000
    blocks = fit_svmlight(text, memory_limit=limit, **settings)
    assert type(blocks.space) is VectorBlocks
    assert blocks.space.nbytes < limit < dense.space.nbytes
    assert_array_equal(blocks.coef_.toarray(), dense.coef_)


def test_streams_in_blocks_respect_the_memory_limit(text, tmp_path, in_blocks):
    in_blocks(1 << 16)
    for given, told in (
        ({}, r"The limit allows 34,722 features"),
        ({"n_features": 100_000}, r"100,000 features take 28,800,000 bytes .*more than"),
    ):
        with pytest.raises(ValueError, match=told):
            fit_svmlight(text, "pnorm", memory_limit=10**7, **given)
    # Every row corrects every vector, so the stored numbers exceed one dense block.
    dump_svmlight_file(*make_problem(40), str(tmp_path / "dense.svm"))
    in_blocks(0)
    limit = N_FEATURES * 16 * 18
    with pytest.raises(ValueError, match=rf"weights that are not 0.* memory_limit={limit:,}"):
        fit_svmlight(tmp_path / "dense.svm", "pnorm", n_features=N_FEATURES, memory_limit=limit)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model",
    [
        PNormPerceptron(hypothesis="last"),
        PNormPerceptron(hypothesis="average", fit_intercept=True),
        PNormPerceptron(p=6, hypothesis="last", multi_class="joint"),
        ALMAClassifier(p="log", hypothesis="average"),
        ROMMAClassifier(hypothesis="last", tol=0.1, fit_intercept=True),
    ],
    ids=repr,
)
def test_memory_of_weights_is_predicted(model, dtype, in_blocks):
    X, y = make_problem(40, dtype)
    n_coordinates = N_FEATURES + model.fit_intercept
    for on in (False, True):
        in_blocks(0 if on else DENSE)
        space = clone(model).partial_fit(X, y, classes=np.arange(40)).space
        told = n_coordinates * model.bytes_per_feature(np.dtype(dtype), 40, N_FEATURES)
        blocks = on and getattr(model, "multi_class", "ovr") == "ovr"
        assert (type(space) is VectorBlocks) == blocks
        assert told == (space.empty(n_coordinates, 16) if blocks else space).nbytes
