"""Laws for every algorithm and any history of a model: a state machine draws random events, and a
twin, which is only trained, must stay bitwise equal."""

import pickle
import warnings
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sklearn.base import clone

from depth import some
from problems.lives import (
    LIMITS,
    assert_alike,
    changes,
    classifier,
    lowered,
    rows,
    told,
)
from sparsemargin import load_model, save_model
from sparsemargin._engine.first_order import vector_blocks
from sparsemargin.models import ALGORITHMS

WIDE = {"n_features": st.integers(2, 30), "n_classes": st.integers(2, 7)}
shapes = st.fixed_dictionaries({
    "n_rows": st.integers(8, 40), **WIDE, "seed": st.integers(0, 10**6),
    "dtype": st.sampled_from(["f4", "f8"]), "many": st.booleans(),
})  # fmt: skip


class Life(RuleBasedStateMachine):
    """A model of one algorithm, and its twin."""

    changes = st.nothing()
    algo = ""

    def __init__(self):
        super().__init__()
        self.folder, self.limits = TemporaryDirectory(), ()
        self.model, self.twin, self.shape = classifier(self.algo), None, None

    def teardown(self):
        self.folder.cleanup()

    def learn(self, twin, call):
        """Train the model and the twin in the same way; return whether both succeeded. If they
        raise errors, these must be equal, and the models must not change."""
        said = []
        for each in (self.model, twin):
            with warnings.catch_warnings(), lowered(self.limits):
                warnings.simplefilter("ignore")
                try:
                    call(each)
                    said.append(None)
                except (ValueError, AttributeError) as error:
                    said.append(str(error))
        assert said[0] == said[1]
        return said[0] is None

    @rule(
        shape=shapes, limits=st.sets(st.sampled_from(sorted(LIMITS)), max_size=3), data=st.data(),
        weighted=st.booleans(),
    )  # fmt: skip
    def fit_anew(self, shape, limits, data, weighted):
        """Fit again with other parameters, labels and features."""
        before, params = self.model.get_params(), data.draw(self.changes)
        self.limits = limits
        self.model.set_params(**params)
        fresh = clone(self.model)
        X, y = rows(**shape)
        weighted &= self.model.weighs_steps()
        weigh = {"sample_weight": np.arange(len(y)) % 3} if weighted else {}
        if self.learn(fresh, lambda model: model.fit(X, y, **weigh)):
            self.twin, self.shape = fresh, shape
        else:
            self.model.set_params(**before)

    @precondition(lambda self: self.twin is not None)
    @rule(n_rows=st.integers(1, 12), seed=st.integers(0, 10**6))
    def go_on(self, n_rows, seed):
        X, y = rows(**{**self.shape, "n_rows": n_rows, "seed": seed})
        self.learn(self.twin, lambda model: model.partial_fit(X, y))

    @precondition(lambda self: self.twin is not None)
    @rule(how=st.sampled_from(["file", "pickle", "copy"]), n_jobs=st.sampled_from([None, 2, 3]))
    def travel(self, how, n_jobs):
        if how == "file":
            path = Path(self.folder.name, "a.model")
            save_model(self.model, path)
            with lowered(self.limits):
                self.model = load_model(path)
        else:
            go = deepcopy if how == "copy" else lambda model: pickle.loads(pickle.dumps(model))
            with lowered(self.limits):
                self.model = go(self.model)
        if "n_jobs" in self.model.get_params():
            self.model.set_params(n_jobs=n_jobs)

    @precondition(lambda self: self.twin is not None)
    @rule()
    def be_asked(self):
        """Results that are cached on demand must not outlive the data they were computed from."""
        X, _ = rows(**self.shape)
        with lowered(self.limits):
            told(self.model, X)
            self.model.predict(X)
            if self.model.hypothesis in ("last", "average") and hasattr(self.model, "coef_"):
                assert self.model.coef_.shape[1] == self.shape["n_features"]

    @invariant()
    def is_its_twin(self):
        if self.twin is not None:
            X, _ = rows(**{**self.shape, "n_rows": 9, "seed": 1})
            with lowered(self.limits):
                assert_alike(self.model, self.twin, X)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_model_depends_only_on_its_training(algo, monkeypatch):
    """The model depends only on its training, not on files, copies, predictions or errors."""
    machine = type(f"Life of {algo}", (Life,), {"algo": algo, "changes": changes(algo)})
    # Few vectors are stored together; models are loaded with the same number.
    monkeypatch.setattr(vector_blocks, "GROUP", 2)
    run_state_machine_as_test(machine, settings=settings(
        max_examples=some(5, 600), stateful_step_count=15, deadline=None, derandomize=True,
        database=None, suppress_health_check=list(HealthCheck),
    ))  # fmt: skip
