"""The state of a fitted model is complete, also in copies and in files."""

import copy
import pickle

import pytest

from problems.models import assert_same, fit, make_problem
from sparsemargin import ALMAClassifier, CRAMMAClassifier, SecondOrderPerceptron
from sparsemargin._engine.fitting.protocol import Loop, NumberedRows, Space, SpanLoop
from sparsemargin._engine.matrix.spaces import FeatureSpaces
from sparsemargin.models import LEARNERS
from sparsemargin.models.fitted.restored import restored_state

X, Y = make_problem()
MODELS = [ALMAClassifier(), CRAMMAClassifier(max_iter=2), SecondOrderPerceptron()]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_state_that_lacks_anything_is_refused_by_name(model):
    state = fit(model, X, Y).fitted.saved()
    learner = LEARNERS[model.classifier]
    assert_same(restored_state(state, learner), model.fitted)
    for name in state:
        rest = {other: value for other, value in state.items() if other != name}
        with pytest.raises(ValueError, match=f"it has no '{name}'"):
            restored_state(rest, learner)


def test_copies_go_on_by_themselves():
    model = ALMAClassifier(random_state=0).fit(X[:40], Y[:40])
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    before = model.coef_.copy()
    for each in copies:
        each.partial_fit(X[40:], Y[40:])
        assert (each.coef_ != before).any()
    assert_same(*copies)
    assert (model.coef_ == before).all()


@pytest.mark.parametrize("kind", [Space, NumberedRows, Loop, SpanLoop])
def test_what_owes_anything_can_not_be_made(kind):
    with pytest.raises(TypeError, match="abstract"):
        object.__new__(kind)


def test_a_space_that_lacks_a_method_can_not_be_made():
    class Halved(FeatureSpaces):
        norms = Space.norms

    with pytest.raises(TypeError, match="norms"):
        Halved([])
