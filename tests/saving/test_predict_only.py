"""Models that are loaded for prediction only predict the same values, in little memory."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from depth import long, pairwise
from problems.models import JOINT, MODELS, fit, make_problem, widened
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    MaxMarginClassifier,
    Rejector,
    SecondOrderPerceptron,
    fit_svmlight,
    load_model,
    save_model,
    text,
)
from sparsemargin._engine.first_order import packed
from sparsemargin._engine.first_order.packed import WeightSpace

KINDS = {
    **MODELS, **JOINT, "AROW": AROWClassifier, "max margin": MaxMarginClassifier,
    "second order": SecondOrderPerceptron,
    "prior": lambda **how: AROWClassifier(prior="naive_bayes", **how),
    "standardized": lambda **how: AROWClassifier(standardize=True, **how),
}  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "hypothesis", "dtype"),
    pairwise(list(KINDS), ["last", "average"], [np.float32, np.float64]),
)
def test_predictions_are_equal(name, hypothesis, dtype, path, monkeypatch):
    always_packed = dtype == np.float32
    if always_packed:
        monkeypatch.setattr(packed, "_LEAST_BYTES", 0)
    for n_classes in (2, 3):
        X, y = make_problem(n_classes=n_classes)
        X = (X if name in ("standardized", "second order") else widened(X)).astype(dtype)
        model = fit(KINDS[name](hypothesis=hypothesis, random_state=0), X, y)
        save_model(model, path)
        loaded = load_model(path, predict_only=True)
        for same in (loaded, pickle.loads(pickle.dumps(loaded))):
            for rows in (X, X[:1]):
                expected = model.decision_function(rows)
                assert same.decision_function(rows).tobytes() == expected.tobytes()
            assert_array_equal(same.predict(X), model.predict(X))
            if hasattr(model, "predict_proba"):
                assert_array_equal(same.predict_proba(X), model.predict_proba(X))
            if hasattr(model, "coef_"):
                assert_array_equal(same.coef_, model.coef_)
                assert_array_equal(same.intercept_, model.intercept_)
        assert_array_equal(clone(loaded).fit(X, y).predict(X), clone(model).fit(X, y).predict(X))


def test_training_and_saving_are_refused(path):
    X, y = make_problem()
    save_model(AROWClassifier(random_state=0, warm_start=True).fit(X, y), path)
    before, text_file = path.read_bytes(), path.with_suffix(".svm")
    text_file.write_text("0 1:1\n1 2:1\n")
    loaded = load_model(path, predict_only=True)
    assert type(loaded.space) is WeightSpace
    outputs = loaded.decision_function(X)
    for call, what in (
        (lambda: loaded.partial_fit(X, y), "trained"),
        (lambda: loaded.fit(X, y), "trained"),
        (lambda: fit_svmlight(text_file, init_model=loaded), "trained"),
        (lambda: save_model(loaded, path), "saved"),
    ):
        told = rf"loaded with predict_only=True and can't be {what}\. Load it again without"
        with pytest.raises(ValueError, match=told):
            call()
    with pytest.raises(AttributeError, match="theta_ is not kept with predict_only"):
        loaded.theta_  # noqa: B018
    assert_array_equal(loaded.decision_function(X), outputs)
    assert path.read_bytes() == before
    # A fit from scratch makes another model.
    loaded.set_params(warm_start=False).fit(X, y).partial_fit(X, y)
    save_model(loaded, path)


def test_many_labels_and_rejectors_predict_only(path):
    X, y = make_problem(n_classes=3)
    many = ALMAClassifier(random_state=0).fit(X, [[label] for label in y.tolist()])
    texts = ["free money now", "see you now", "money, money", "you see the plan"] * 20
    pipeline = make_pipeline(text.HashingVectorizer(n_features=1 << 20), AROWClassifier())
    rejector = Rejector(pipeline, max_error=0.5).fit(texts, [0, 1] * 40)
    for model, rows in ((many, X), (rejector, texts)):
        save_model(model, path)
        loaded = load_model(path, predict_only=True)
        assert list(loaded.predict(rows)) == list(model.predict(rows))
        with pytest.raises(ValueError, match="can't be saved"):
            save_model(loaded, path)


MEASURED = """
import sys
from scipy.sparse import csr_matrix
from sparsemargin import AROWClassifier, load_model  # with scikit-learn

def now():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

before = now()
model = load_model(sys.argv[1], predict_only=True)
model.predict(csr_matrix(([1.0, 2.0], ([0, 1], [7, 9])), shape=(2, 1 << 20)))
print(now() - before)
"""


@long
@pytest.mark.skipif(sys.platform != "linux", reason="other systems report memory differently")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizers take memory, too")
def test_memory_of_a_model_of_eight_classes(tmp_path):
    random, shape, n_each = np.random.RandomState(0), (4000, 1 << 20), 150
    columns = np.sort(random.randint(1 << 20, size=(4000, n_each))).ravel()
    starts = np.arange(0, 4000 * n_each + 1, n_each)
    X = sp.csr_matrix((random.random_sample(len(columns)), columns, starts), shape)
    model = AROWClassifier(random_state=0).fit(X, np.arange(4000) % 8)
    save_model(model, tmp_path / "a.model")
    ran = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path / "a.model")],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    held = len(np.unique(columns)) * 8 * 8
    assert model.space.nbytes > 4 * held
    assert float(ran.stdout) < held / 2**20 + 20
