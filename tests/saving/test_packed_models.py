"""Models with few weights in many columns are loaded without the others, and bitwise equal."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    PNormPerceptron,
    TextClassifier,
    fit_svmlight,
    fit_text,
    load_model,
    save_model,
)
from sparsemargin._engine.first_order import packed
from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.packed import PackedSpace
from sparsemargin.text import HashingVectorizer

N_COLUMNS = 5000

MODELS = {
    "AROW": AROWClassifier(max_iter=2, random_state=0),
    "AROW, average": AROWClassifier(hypothesis="average", random_state=0),
    "AROW, prior": AROWClassifier(prior="naive_bayes", max_iter=2, random_state=0),
    "AROW, no intercept": AROWClassifier(fit_intercept=False, random_state=0),
    "ALMA": ALMAClassifier(random_state=0, max_iter=3),
    "soft margin": ALMAClassifier(soft_margin=1.0, random_state=0),
    "p = 2, last": PNormPerceptron(p=2, hypothesis="last", random_state=0),
    "p = 5": PNormPerceptron(p=5, random_state=0, max_iter=2),
    "p = 5, last": PNormPerceptron(p=5, hypothesis="last", random_state=0),
}


@pytest.fixture(autouse=True)
def small_models_are_packed(monkeypatch):
    monkeypatch.setattr(packed, "_LEAST_BYTES", 1)
    monkeypatch.setattr(packed, "_AT_ONCE", 100)


def rows_of(n_rows, n_classes, dtype, seed=0, n_columns=N_COLUMNS):
    """Return rows with entries in few columns, in unsorted order."""
    random = np.random.RandomState(seed)
    used = random.choice(n_columns, 200, replace=False)
    columns = np.concatenate([random.choice(used, 12, replace=False) for _ in range(n_rows)])
    X = sp.csr_matrix(
        (random.standard_normal(12 * n_rows).astype(dtype), columns, 12 * np.arange(n_rows + 1)),
        shape=(n_rows, n_columns),
    )
    return X, random.randint(n_classes, size=n_rows)


def other_rows(dtype, seed=1):
    """Return rows with entries in any column, also in those without weights."""
    return sp.random(40, N_COLUMNS, 0.02, "csr", dtype, random_state=seed)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_classes", [2, 3, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_loaded_model_predicts_and_learns_as_before(tmp_path, name, n_classes, dtype):
    X, y = rows_of(150, n_classes, dtype)
    model = copy.deepcopy(MODELS[name]).fit(X, y)
    save_model(model, tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model")
    assert type(loaded.space) is PackedSpace
    # All coordinates are saved again, in the same bytes.
    save_model(loaded, tmp_path / "b.model")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()
    tests = [X[:20], other_rows(dtype), sp.csr_matrix((2, N_COLUMNS), dtype=dtype)]
    for same in loaded, copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded)):
        assert type(same.space) is PackedSpace
        for rows in tests:
            assert_array_equal(same.decision_function(rows), model.decision_function(rows))
            one = rows[1:2]
            assert_array_equal(same.decision_function(one), model.decision_function(one))
        for attribute in "coef_", "intercept_", "theta_", "theta_norm_", "n_corrections_", "t_":
            assert_array_equal(getattr(same, attribute), getattr(model, attribute))
        assert_array_equal(same.predict_proba(tests[1]), model.predict_proba(tests[1]))
        assert_array_equal(same.fitted.norms(1), model.fitted.norms(1))
    more = other_rows(dtype, 2), np.arange(40) % n_classes
    model.partial_fit(*more)
    loaded.partial_fit(*more)
    assert type(loaded.space) is LinearSpace
    assert_array_equal(loaded.coef_, model.coef_)
    save_model(model, tmp_path / "a.model")
    save_model(loaded, tmp_path / "b.model")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()


def test_loaded_models_learn_files_and_start_warm(tmp_path):
    X, y = rows_of(150, 3, np.float64)
    model = AROWClassifier(random_state=0, warm_start=True).fit(X, y)
    save_model(model, tmp_path / "a.model")
    (tmp_path / "more.svm").write_text("0 1:1 4999:2\n1 7:1\n2 2:1 3:3\n")
    by_file = [
        fit_svmlight(tmp_path / "more.svm", init_model=each)
        for each in (model, load_model(tmp_path / "a.model"))
    ]
    assert_array_equal(by_file[0].coef_, by_file[1].coef_)
    loaded = load_model(tmp_path / "a.model")
    assert_array_equal(loaded.fit(X, y).coef_, model.fit(X, y).coef_)


@pytest.mark.parametrize("n_before", [2, 3])
def test_models_with_a_prior_are_loaded_after_new_classes(tmp_path, n_before):
    """Initial variances of a prior exceed 1, also those of a model with vectors added later."""
    X, y = rows_of(150, 4, np.float64)
    texts = [" ".join(f"w{column}" for column in row.indices) for row in X]
    old = np.flatnonzero(y < n_before)
    model = TextClassifier(
        features=HashingVectorizer(n_features=1 << 12), algo="arow", random_state=0,
        params={"prior": "naive_bayes"},
    ).fit([texts[i] for i in old], y[old])  # fmt: skip
    model.partial_fit(texts, y)
    assert model.classifier_.space.variances.max() > 1
    save_model(model, tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model")
    assert type(loaded.classifier_.space) is PackedSpace
    save_model(loaded, tmp_path / "b.model")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()
    for each in model, loaded:
        each.partial_fit(texts[:20], y[:20] + 1)
    assert_array_equal(loaded.decision_function(texts), model.decision_function(texts))


def test_models_that_need_all_columns_are_not_packed(tmp_path):
    X, y = rows_of(150, 3, np.float64)
    models = [
        ALMAClassifier(multi_class="joint", random_state=0),
        ALMAClassifier(hypothesis="vote", random_state=0),
    ]  # fmt: skip
    for model in models:
        model.fit(X, y)
        save_model(model, tmp_path / "a.model")
        loaded = load_model(tmp_path / "a.model")
        assert type(loaded.space) is type(model.space)
        assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    dense = AROWClassifier().fit(X[:, np.unique(X.indices)], y)
    save_model(dense, tmp_path / "a.model")
    assert type(load_model(tmp_path / "a.model").space) is LinearSpace


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("t", {"indices": np.array([-1], np.int32), "values": np.ones(1)}),
        ("t", {"indices": np.array([3 * (N_COLUMNS + 1)], np.int32), "values": np.ones(1)}),
        ("t", {"indices": np.array([1], np.int64), "values": np.ones(1)}),
        ("t", {"indices": np.array([1, 2], np.int32), "values": np.ones(1)}),
        ("t", {"indices": np.array([1], np.int32)}),
        ("acc", {"indices": np.array([1], np.int32), "values": np.ones(1, np.float32)}),
        ("synced", {"indices": np.array([1], np.int32), "values": np.full(1, 9, np.uint16)}),
        ("variances", {"indices": np.array([1], np.int32), "values": np.full(1, -0.5)}),
        ("variances", {"indices": np.array([1], np.int32), "values": np.full(1, np.inf)}),
        ("variances", {"indices": np.array([1], np.int32), "values": np.full(1, np.nan)}),
        ("variances", {"indices": np.array([-5], np.int32), "values": np.full(1, 0.5)}),
        ("n_coordinates", 7),
        ("n_vectors", 2),
    ],
)
def test_a_damaged_state_is_refused(name, change):
    X, y = rows_of(150, 3, np.float64)
    state = AROWClassifier(hypothesis="average").fit(X, y).space.__getstate__()
    PackedSpace.__new__(PackedSpace).__setstate__(state)
    with pytest.raises(ValueError, match="damaged"):
        PackedSpace.__new__(PackedSpace).__setstate__({**state, name: change})


MEASURED = """
import resource, sys
import sparsemargin
from sparsemargin import fit_text, load_model  # with scikit-learn

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before = peak()
model = load_model(sys.argv[1])
model.predict(["some words of a text", "others"])
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units")
def test_memory_of_a_loaded_model_of_a_text_file(tmp_path, monkeypatch):
    monkeypatch.undo()
    random = np.random.RandomState(0)
    words = np.array([f"word{i}" for i in range(20_000)])
    with open(tmp_path / "texts.tsv", "w") as file:
        for i in range(3000):
            drawn = words[(20_000 * random.rand(60) ** 3).astype(int)]
            file.write(f"class {i % 8}\t{' '.join(drawn)} topic{i % 8}{random.randint(20)}\n")
    model = fit_text(tmp_path / "texts.tsv", random_state=0)
    n_bytes = model.classifier_.space.nbytes
    save_model(model, tmp_path / "texts.model")
    ran = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path / "texts.model")],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    # All columns take 134 MB.
    assert n_bytes > 128 << 20
    assert float(ran.stdout) < 60
