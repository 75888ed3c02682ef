"""The cost of a model depends on the features in use, not on the number of possible features.

The tests count bytes of arrays, files and pickles. Weight vectors and other arrays with one value
per feature are dense. Fits and copies may allocate them, but nothing else that grows with the
number of features.
"""

import pickle
import tracemalloc
from copy import deepcopy
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from depth import some
from sparsemargin import ALMAClassifier, AROWClassifier, fit_csr, save_model
from sparsemargin._engine.first_order import gram_loop, vector_blocks
from sparsemargin._engine.first_order.vector_blocks import VectorBlocks
from sparsemargin._engine.kernel.outputs import SupportSpace
from sparsemargin._engine.rows.columns import without_unused_columns
from sparsemargin._engine.rows.csr import Csr
from sparsemargin.datasets import make_zipf_text
from sparsemargin.evaluation import margins
from sparsemargin.evaluation.explanations import explain_row
from sparsemargin.kernels import RBF
from sparsemargin.models import ALGORITHMS
from sparsemargin.models.algorithms.arow import AROW
from sparsemargin.models.inputs.rows import open_rows
from sparsemargin.models.parameters import declarations
from sparsemargin.models.selection import DefaultAlgorithm

N_ROWS, N_USED, NARROW, WIDE = 120, 50, 4 * 10**4, 10**6

# Allowed difference in bytes, because column numbers have more digits: 0.1 bytes per feature.
ROOM = WIDE // 10


def make_problem(n_features, n_classes):
    """Return rows whose features have indices that are far apart."""
    rng = np.random.RandomState(0)
    X = sp.random(N_ROWS, N_USED, 0.3, format="csr", random_state=rng)
    columns = X.indices * (n_features // N_USED)
    X = sp.csr_matrix((X.data, columns, X.indptr), (N_ROWS, n_features))
    return X, np.r_[np.arange(n_classes), rng.randint(n_classes, size=N_ROWS - n_classes)]


def ways_of(algo):
    """Yield names, parameters and numbers of classes for all spaces of the algorithm."""
    known = declarations(ALGORITHMS[algo][0])
    yield "two classes", {}, 2
    yield "many classes", {}, 5
    if "kernel" in known:
        yield "kernel", {"kernel": RBF(1.0)}, 3
    if "multi_class" in known:
        yield "joint", {"multi_class": "joint"}, 5
    if VectorBlocks in ALGORITHMS[algo][0].spaces:
        yield "in blocks", {}, 40


WAYS = [pytest.param(algo, *way, id=f"{algo}, {name}")
        for algo in ALGORITHMS for name, *way in ways_of(algo)]  # fmt: skip


def learned(algo, params, n_classes, n_features):
    X, y = make_problem(n_features, n_classes)
    return fit_csr(X, y, algo, random_state=0, max_iter=2, **params), X, y


def peak_of(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def dense_bytes(space):
    """Return the number of bytes of the dense arrays of a space."""
    if isinstance(space, SupportSpace | VectorBlocks):
        return 0
    if hasattr(space, "spaces"):
        return sum(4 * (each.n_features + 1) for each in space.spaces)
    return space.nbytes


@pytest.fixture(autouse=True)
def in_blocks(request, monkeypatch):
    if "in blocks" in request.node.name:
        monkeypatch.setattr(vector_blocks, "DENSE_BYTES", 0)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("algo", "params", "n_classes"), some(WAYS[::2], WAYS))
def test_unused_features_take_no_time(algo, params, n_classes, tmp_path):
    def calls(model, X, y, path):
        row = X[0]
        yield "predict", lambda: model.predict(row)
        yield "decision_function", lambda: model.decision_function(row)
        yield "margins", lambda: margins(model, row, y[:1])
        yield "intercept_", lambda: model.intercept_
        yield "save_model", lambda: save_model(model, path)
        yield "pickle", lambda: pickle.dumps(model)
        if "kernel" not in params:
            yield "explain_row", lambda: explain_row(model, row)

    narrow, wide = (learned(algo, params, n_classes, n) for n in (NARROW, WIDE))
    assert_array_equal(*(model.decision_function(X) for model, X, _ in (narrow, wide)))
    paths = [tmp_path / name for name in ("narrow.model", "wide.model")]
    for _, call in calls(*narrow, paths[0]):
        call()  # the first call imports modules
    before, after = (
        {
            **{name: peak_of(call) for name, call in calls(*each, path)},
            "file": path.stat().st_size, "bytes": len(pickle.dumps(each[0])),
        }
        for each, path in zip((narrow, wide), paths, strict=True)
    )  # fmt: skip
    grown = {name: (before[name], after[name]) for name in before}
    assert not {name: sizes for name, sizes in grown.items() if sizes[1] >= sizes[0] + ROOM}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("algo", "params", "n_classes"), some(WAYS[::2], WAYS))
def test_fit_and_deepcopy_need_memory_for_weights_only(algo, params, n_classes):
    def peaks(n_features):
        model = learned(algo, params, n_classes, n_features)[0]
        dense = dense_bytes(model.space)
        fitting = peak_of(lambda: learned(algo, params, n_classes, n_features))
        return fitting - dense, peak_of(lambda: deepcopy(model)) - dense

    for name, narrow, wide in zip(("fit", "deepcopy"), peaks(NARROW), peaks(WIDE), strict=True):
        assert wide < narrow + ROOM, name


def test_gram_matrix_uses_only_occurring_features(monkeypatch):
    made = Mock(wraps=gram_loop.fill_gram)
    monkeypatch.setattr(gram_loop, "fill_gram", made)
    how = {"hypothesis": "last", "early_stopping": False, "max_iter": 1000, "random_state": 0}
    fit_csr(*make_problem(WIDE, 2), "perceptron", **how)
    assert made.called
    assert all(call.args[1].n_features <= N_USED + 1 for call in made.call_args_list)


def test_label_blocks_add_no_memory_per_row(monkeypatch):
    monkeypatch.setattr(vector_blocks, "DENSE_BYTES", 0)
    peaks = []
    for n_used in 100, 20_000:
        X = sp.random(1000, n_used, 20 / n_used, format="csr", random_state=0)
        X.resize(1000, 20_000)
        model = fit_csr(X, np.arange(1000) % 20, "perceptron", random_state=0)
        assert type(model.space) is VectorBlocks
        model.predict(X[0])
        peaks.append(peak_of(lambda model=model, X=X: model.predict(X[0])))
    assert peaks[1] < peaks[0] + 20_000


def test_joint_model_needs_little_memory_beside_its_weights():
    X, y = make_problem(1000, 60)
    X, y = sp.vstack([X] * 10), np.arange(1200)
    model = ALMAClassifier(multi_class="joint", random_state=0, max_iter=3).fit(X, y)
    model.predict(X[0])
    assert peak_of(lambda: model.predict(X[0])) < 1000 * len(y)


@pytest.mark.parametrize("algo", ["ho", "so"])
def test_mistakes_are_free_once_the_matrix_is_full(algo):
    rng = np.random.RandomState(0)
    X = sp.random(500, 10, 0.5, format="csr", random_state=rng)
    model = fit_csr(X, rng.randint(2, size=500), algo, max_updates=5, random_state=0)
    sizes = []
    for _ in range(10):
        model.partial_fit(X, rng.randint(2, size=500))
        sizes.append(len(pickle.dumps(model)))
    assert model.n_corrections_ > 1000
    assert len(model.mistakes_) == 5
    assert sizes[-1] < sizes[0] + 1000


class CountingText(str):
    """A text that counts how often it is compared."""

    n_compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        CountingText.n_compared += 1
        return str.__eq__(self, other)


def test_class_weights_are_looked_up_by_hash(monkeypatch):
    labels = np.array([f"label {i}" for i in range(500)])
    X = sp.random(500, 20, 0.5, format="csr", random_state=0)
    weight = {CountingText(label): 2.0 for label in labels.tolist()}
    monkeypatch.setattr(CountingText, "n_compared", 0)
    ALMAClassifier(class_weight=weight, max_iter=1).fit(X, labels)
    assert CountingText.n_compared < 10 * len(labels)


def test_models_for_a_sample_have_no_unused_columns(monkeypatch):
    """Held-out models and candidates of checked rows have weights only for the columns in use."""
    X, y = make_zipf_text(1200, 2000, n_classes=3, random_state=0)
    wide = sp.csr_matrix((X.data, X.indices * 50, X.indptr), (1200, 100_000))
    made, new_space = [], AROW.new_space

    def recorded(learner, first):
        made.append(first.rows.n_features)
        return new_space(learner, first)

    monkeypatch.setattr(AROW, "new_space", recorded)
    models = [AROWClassifier(max_iter=2, random_state=0).fit(each, y) for each in (X, wide)]
    of_wide = made[made.index(100_000) + 1 :]
    assert of_wide
    assert max(of_wide) <= 2001
    narrow, own = (models[i].predict_proba(each) for i, each in enumerate((X, wide)))
    assert_array_equal(narrow, own)

    rows, chosen = open_rows(wide), []
    for checked in False, True:
        made.clear()
        default = DefaultAlgorithm({})
        chosen.append(default.candidate(rows, y, np.arange(3), prior=False, checked=checked))
        assert set(made) == ({rows.n_features} if not checked else {len(np.unique(X.indices)) + 1})
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize(("n_features", "n_kept"), [(12, 12), (13, 4), (1000, 4)])
def test_unused_columns_are_left_out_if_there_are_few_entries(n_features, n_kept):
    indices = np.tile([1, 4, 5], 33)[:97]
    rows = Csr(np.arange(97.0), indices, np.array([0, 50, 97]), n_features)
    few = without_unused_columns(rows)
    assert few.n_features == n_kept
    expected = indices if n_kept == n_features else np.searchsorted([1, 4, 5], indices)
    assert_array_equal(few.indices, expected)
    assert_array_equal(few.data, rows.data)
