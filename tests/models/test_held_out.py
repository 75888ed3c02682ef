"""Outputs for rows that are held out of models like the one that is fitted, and their state."""

import numpy as np
import pytest

from sparsemargin import AROWClassifier, SecondOrderPerceptron
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin.datasets import make_zipf_text
from sparsemargin.models import base
from sparsemargin.models.probabilities import Window


@pytest.fixture(scope="module")
def text():
    return make_zipf_text(900, 1000, n_classes=3, random_state=0)


def progress_of(model):
    return model._fitted.progress


@pytest.mark.parametrize("change", [
    {"n_held_out": 601}, {"n_held_out": -1}, {"spoiled": 1}, {"fingerprints": None},
    {"hashes": np.zeros(3, np.uint64)}, {"hashes": np.arange(513, dtype=np.uint64)},
    {"counts": np.zeros(1, np.int64)}, {"largest": -1}, {"largest": 1 << 64},
    {"excess": np.nan}, {"compared": -1.0},
], ids=str)  # fmt: skip
def test_a_damaged_state_is_refused(change, text):
    model = AROWClassifier(max_iter=2, random_state=0).fit(text[0][:600], text[1][:600])
    state = progress_of(model).__getstate__()
    place = state["fingerprints"] if next(iter(change)) in state["fingerprints"] else state
    fresh = ProgressiveOutputs.__new__(ProgressiveOutputs)
    fresh.__setstate__(state)
    place.update(change)
    with pytest.raises(ValueError, match="damaged"):
        fresh.__setstate__(state)


def test_outputs_held_out_count_as_if_others_had_come_before():
    kept = ProgressiveOutputs(1, 16, 1)
    rows = np.arange(6.0)
    kept = kept.held_out(rows[:, np.newaxis], np.zeros((6, 1), np.uint8), np.ones(6))
    assert Window.of(kept).outputs[:, 0].tolist() == rows.tolist()
    kept.n_trials = 10
    assert len(kept.recent()) == 8
    kept.n_trials = 18
    assert len(kept.recent()) == 12


def test_fits_of_several_epochs_do_not_depend_on_what_is_held_out(text, monkeypatch):
    X, y = text[0][:900], text[1][:900]
    makes = [lambda: AROWClassifier(max_iter=3, random_state=np.random.RandomState(0)),
             lambda: SecondOrderPerceptron(random_state=0)]  # fmt: skip
    models = [make().fit(X, y) for make in makes]
    monkeypatch.setattr(base, "held_out_outputs", lambda *_: None)
    for model, make in zip(models, makes, strict=True):
        plain = make().fit(X, y)
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        assert not hasattr(plain, "predict_proba")
