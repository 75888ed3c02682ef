"""An interrupted fit leaves the model as it was, even if Ctrl-C is pressed repeatedly."""

import _thread
import warnings
from contextlib import contextmanager
from copy import deepcopy

import numpy as np
import pytest

from problems.models import assert_same
from problems.stages import InterruptingOutput
from sparsemargin.estimators.classifiers import as_classifier
from sparsemargin.models import ALGORITHMS, find_algorithm


@contextmanager
def pressed_again(opened):
    """Press Ctrl-C at the end of the block, too."""
    with opened as loop:
        try:
            yield loop
        finally:
            _thread.interrupt_main()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_repeatedly_interrupted_fit_changes_nothing(algo, n_classes, monkeypatch):
    random = np.random.RandomState(0)
    X, y = random.randn(300, 10), random.randint(n_classes, size=300)
    learner, params = find_algorithm(algo, {"random_state": 0, "early_stopping": False})
    model = as_classifier(learner(**params, max_iter=3))
    long = {"max_iter": 10_000, "verbose": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for warm_start in False, False, True:
            before = deepcopy(model.set_params(warm_start=warm_start, **long))
            loop = type(model).loop
            with monkeypatch.context() as patch:
                patch.setattr(type(model), "loop", lambda *one: pressed_again(loop(*one)))  # noqa: B023
                patch.setattr("sys.stdout", InterruptingOutput(_thread.interrupt_main, at_line=3))
                with pytest.raises(KeyboardInterrupt):
                    model.fit(X, y)
            assert_same(model, before)
            model.set_params(max_iter=3, verbose=0).fit(X, y)
    assert model.n_iter_ == 3
