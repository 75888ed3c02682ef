"""The state of a fitted model is complete, also in copies and in files."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from problems.models import assert_same, fit, make_problem
from sparsemargin import ALMAClassifier, AROWClassifier, CRAMMAClassifier, SecondOrderPerceptron
from sparsemargin._engine.fitting.protocol import Loop, NumberedRows, Space, SpanLoop
from sparsemargin._engine.matrix.spaces import FeatureSpaces
from sparsemargin.kernels import RBF
from sparsemargin.models import LEARNERS
from sparsemargin.models.fitted.restored import restored_state

X, Y = make_problem()
MODELS = [ALMAClassifier(), CRAMMAClassifier(max_iter=2), SecondOrderPerceptron()]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_incomplete_state_is_rejected_by_attribute(model):
    state = fit(model, X, Y).fitted.saved()
    learner = LEARNERS[model.classifier]
    assert_same(restored_state(state, learner), model.fitted)
    for name in state:
        rest = {other: value for other, value in state.items() if other != name}
        with pytest.raises(ValueError, match=f"it has no '{name}'"):
            restored_state(rest, learner)


def test_copies_are_trained_independently():
    model = ALMAClassifier(random_state=0).fit(X[:40], Y[:40])
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    before = model.coef_.copy()
    for each in copies:
        each.partial_fit(X[40:], Y[40:])
        assert (each.coef_ != before).any()
    assert_same(*copies)
    assert (model.coef_ == before).all()


@pytest.mark.parametrize("kind", [Space, NumberedRows, Loop, SpanLoop])
def test_abstract_learners_cannot_be_instantiated(kind):
    with pytest.raises(TypeError, match="abstract"):
        object.__new__(kind)


def test_incomplete_spaces_cannot_be_instantiated():
    class Halved(FeatureSpaces):
        norms = Space.norms

    with pytest.raises(TypeError, match="norms"):
        Halved([])


@pytest.mark.parametrize(
    ("make", "asked"),
    [(AROWClassifier, "predict_proba"), (partial(ALMAClassifier, kernel=RBF(500.0)), "predict")],
)
def test_predictions_raise_nothing_if_numpy_raises_all_errors(make, asked):
    random = np.random.RandomState(0)
    X, y = sp.random(300, 20, 0.3, format="csr", random_state=random), np.arange(300) % 2
    expected = getattr(make(max_iter=2, random_state=0).fit(X, y), asked)(1e6 * X)
    with np.errstate(all="raise"):
        found = getattr(make(max_iter=2, random_state=0).fit(X, y), asked)(1e6 * X)
    assert_array_equal(found, expected)
