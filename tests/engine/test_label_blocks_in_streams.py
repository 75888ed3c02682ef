"""What labels that are learned in blocks take of the memory that a stream may use."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import random
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from problems.models import make_problem
from sparsemargin import ALMAClassifier, PNormPerceptron, ROMMAClassifier, fit_svmlight
from sparsemargin._engine.first_order import label_blocks
from sparsemargin._engine.first_order.label_blocks import LabelBlocks

N_FEATURES, N_LABELS = 250, 40


@pytest.fixture
def text(tmp_path):
    """Rows of few features, which lie far apart."""
    rng = np.random.RandomState(0)
    X = random(200, 30, 0.3, format="csr", random_state=rng)
    X.resize(200, 100_000)
    X.indices *= 3333
    y = np.r_[np.arange(N_LABELS), rng.randint(0, N_LABELS, 200 - N_LABELS)]
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"))
    return tmp_path / "rows.svm"


@pytest.mark.parametrize("n_features", [None, 100_000])
def test_streams_take_the_memory_of_what_is_not_zero(text, n_features, monkeypatch):
    settings = {"algo": "pnorm", "hypothesis": "last", "n_features": n_features}
    dense = fit_svmlight(text, **settings)
    monkeypatch.setattr(label_blocks, "DENSE_BYTES", 1 << 20)
    limit = 16 * 8 * 100_000
    blocks = fit_svmlight(text, memory_limit=limit, **settings)
    assert type(blocks._space) is LabelBlocks
    assert blocks._space.nbytes < limit < dense._space.nbytes
    assert_array_equal(blocks.coef_.toarray(), dense.coef_)


def test_streams_in_blocks_keep_to_the_memory_there_is(text, monkeypatch):
    monkeypatch.setattr(label_blocks, "DENSE_BYTES", 1 << 16)
    with pytest.raises(ValueError, match=r"memory_limit has room for.* 34,722 features"):
        fit_svmlight(text, "pnorm", memory_limit=10**7)
    with pytest.raises(ValueError, match=r"100,000 features take 28,800,000 bytes .*more than"):
        fit_svmlight(text, "pnorm", n_features=100_000, memory_limit=10**7)


def test_what_corrections_make_keeps_to_it_too(tmp_path, monkeypatch):
    """Every row corrects every label: what is held comes to more than one dense block."""
    X, y = make_problem(400, N_FEATURES, N_LABELS, np.float64)
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"))
    monkeypatch.setattr(label_blocks, "DENSE_BYTES", 0)
    limit = N_FEATURES * 16 * 18
    with pytest.raises(ValueError, match=rf"weights that are not 0.* memory_limit={limit:,}"):
        fit_svmlight(tmp_path / "rows.svm", "pnorm", n_features=N_FEATURES, memory_limit=limit)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model",
    [
        PNormPerceptron(hypothesis="last"),
        PNormPerceptron(hypothesis="average", fit_intercept=True),
        PNormPerceptron(p=6, hypothesis="last", multi_class="joint"),
        ALMAClassifier(p="log", hypothesis="average"),
        ROMMAClassifier(hypothesis="last", keep_history=True, fit_intercept=True),
    ],
    ids=repr,
)
def test_the_memory_of_weights_is_known_beforehand(model, dtype, monkeypatch):
    X, y = make_problem(400, N_FEATURES, N_LABELS, dtype)
    n_coordinates = N_FEATURES + model.fit_intercept
    for on in (False, True):
        monkeypatch.setattr(label_blocks, "DENSE_BYTES", 0 if on else 1 << 40)
        space = clone(model).partial_fit(X, y, classes=np.arange(N_LABELS))._space
        told = n_coordinates * model._bytes_per_feature(np.dtype(dtype), N_LABELS, N_FEATURES)
        in_blocks = on and getattr(model, "multi_class", "ovr") == "ovr"
        assert (type(space) is LabelBlocks) == in_blocks
        assert told == (space.empty(n_coordinates, 16) if in_blocks else space).nbytes
