"""Models of every algorithm for the tests of model files, and the comparison of their content."""

import struct
import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    MarginPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    ROMMAClassifier,
    SecondOrderPerceptron,
)
from sparsemargin.kernels import RBF, Polynomial
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.saving.values import OWN_TYPES, state_of

HYPOTHESES = ["last", "average", "vote", "random"]
# The hypotheses of the Perceptrons with a matrix, which keep no log.
VECTORS = HYPOTHESES[:2]

MODELS = {
    "Perceptron": partial(PNormPerceptron, normalize=False),
    "p-norm, p = 2": PNormPerceptron,
    "p-norm, p = 6": partial(PNormPerceptron, p=6.0),
    "p-norm, p = log": partial(PNormPerceptron, p="log"),
    "ALMA": ALMAClassifier,
    "ALMA, largest norm so far": partial(ALMAClassifier, normalize="running"),
    "margin": partial(MarginPerceptron, margin=0.5),
    "CRAMMA": partial(CRAMMAClassifier, radius=3.0, eta0=0.01),
    "ROMMA": ROMMAClassifier,
    "largest margin": partial(MaxMarginClassifier, tol=None),
    "ALMA, poly": partial(
        ALMAClassifier, kernel=Polynomial(gamma=0.5, coef0=1.0), intercept_scaling=1.0
    ),
    "ROMMA, rbf": partial(ROMMAClassifier, kernel=RBF(0.5)),
    "Higher-order": partial(HigherOrderPerceptron, solver="implicit"),
    "Higher-order, p = 3": partial(HigherOrderPerceptron, p=3.0, solver="implicit"),
    "Higher-order, n x n": partial(HigherOrderPerceptron, solver="primal"),
    "Second-order": partial(SecondOrderPerceptron, solver="implicit"),
    "Second-order, n x n": partial(SecondOrderPerceptron, solver="primal"),
}

# Joint models for more than two classes, and only with hypotheses that have weights.
JOINT = {
    "joint": partial(ALMAClassifier, multi_class="joint"),
    "joint, p = 6": partial(PNormPerceptron, p=6.0, multi_class="joint"),
}


def hypothesis_of(make, hypothesis):
    """The hypothesis, or a replacement for a model with a matrix."""
    matrix = issubclass(getattr(make, "func", make), (HigherOrderPerceptron, SecondOrderPerceptron))
    return "average" if matrix and hypothesis not in VECTORS else hypothesis


def make_problem(m=80, n=25, n_classes=2, dtype="f8", seed=0):
    """Rows with about 5 entries each, and labels that only partly depend on them."""
    random = np.random.RandomState(seed)
    X = sp.random(m, n, density=0.2, format="csr", random_state=random)
    X.data -= 0.5
    scores = X @ random.standard_normal((n, n_classes))
    y = (scores + 0.5 * random.standard_normal((m, n_classes))).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X.astype(dtype), y


def widened(X):
    """The rows with so many more features that kernels keep them sparse."""
    return sp.hstack([X, sp.csr_matrix((X.shape[0], 3000), dtype=X.dtype)], format="csr")


def fit(model, X, y, **more):
    """Fit without warnings about a margin that is not reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **more)


def assert_same(one, other, where="model"):
    """Compare the whole content of two models or of parts of them: types, and values bitwise."""
    one = np.asarray(one) if isinstance(one, np.memmap) else one
    assert type(one) is type(other), where
    if isinstance(one, float):
        assert struct.pack("d", one) == struct.pack("d", other), where
    elif isinstance(one, np.ndarray) and one.dtype != object:
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        assert one.tobytes() == other.tobytes(), where
    elif isinstance(one, np.ndarray | list | tuple):
        assert len(one) == len(other), where
        for i, (part, same) in enumerate(zip(one, other, strict=True)):
            assert_same(part, same, f"{where}.{i}")
    elif isinstance(one, dict):
        assert sorted(map(repr, one)) == sorted(map(repr, other)), where
        for name in one:
            assert_same(one[name], other[name], f"{where}.{name}")
    elif type(one) in OWN_TYPES.values():
        assert_same(state_of(one), state_of(other), where)
    elif isinstance(one, Fitted):
        assert_same(one.saved(), other.saved(), where)
    elif hasattr(one, "get_params"):
        assert_same(vars(one), vars(other), where)
    else:
        assert one == other, where


def outputs(model, X):
    """The outputs of a model for rows, including its random slices."""
    return model.decision_function(X).tobytes()
