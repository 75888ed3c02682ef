"""Repeated Ctrl-C while the first one is handled does not lose the result of the training."""

import _thread
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from problems.stages import InterruptingOutput
from sparsemargin.estimators.classifiers import as_classifier
from sparsemargin.models import ALGORITHMS, find_algorithm
from sparsemargin.models.fitted.state import Fitted


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_repeatedly_interrupted_fit_keeps_its_state(algo, n_classes, monkeypatch):
    random = np.random.RandomState(0)
    X, y = random.randn(300, 10), random.randint(n_classes, size=300)
    learner, params = find_algorithm(algo, {"random_state": 0, "early_stopping": False})
    expected = as_classifier(learner(**params, max_iter=3))
    model = as_classifier(learner(**params, max_iter=10_000, verbose=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected.fit(X, y)
        count = Fitted.count_classes

        def pressed_again(self, task):
            _thread.interrupt_main()
            count(self, task)

        with monkeypatch.context() as patch:
            patch.setattr(Fitted, "count_classes", pressed_again)
            patch.setattr("sys.stdout", InterruptingOutput(_thread.interrupt_main, at_line=3))
            with pytest.raises(KeyboardInterrupt):
                model.fit(X, y)
    assert model.n_iter_ == 3
    assert_array_equal(model.decision_function(X), expected.decision_function(X))
