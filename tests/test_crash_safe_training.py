"""Training, its row cache and its model: cut short anywhere, what is left is old or new, whole."""

import random
import warnings

import numpy as np
import pytest
from faults import Faults, Scenario, strike_everywhere

from sparsemargin import fit_svmlight, load_model, save_model
from sparsemargin.datasets import make_zipf_text

SETTINGS = {"algo": "pnorm", "p": 4, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def faults():
    with Faults() as running:
        yield running


def write_text(folder):
    X, y = make_zipf_text(400, 600, mean_nnz=10, random_state=0)
    rows = (
        f"{y[i]} " + " ".join(f"{column + 1}:{value:.6f}" for column, value in entries)
        for i, entries in enumerate(
            zip(X.indices[a:b], X.data[a:b], strict=True)
            for a, b in zip(X.indptr, X.indptr[1:], strict=False)
        )
    )
    (folder / "text.svm").write_text("\n".join(rows))


def write_text_and_old_model(folder):
    write_text(folder)
    save_model(fit_svmlight(folder / "text.svm", "perceptron"), folder / "text.model")


def train(folder):
    save_model(fit_svmlight(folder / "text.svm", **SETTINGS), folder / "text.model")


def state_of_training(folder):
    """A cache that is there is read, without a warning of damage; the model is one of the two."""
    model = load_model(folder / "text.model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = fit_svmlight(folder / "text.svm", **SETTINGS)
    old = fit_svmlight(folder / "text.svm", "perceptron")
    if np.array_equal(model.coef_, old.coef_):
        return "old"
    np.testing.assert_array_equal(model.coef_, again.coef_)
    return "new"


def state_of_model(folder):
    model = load_model(folder / "text.model")
    return "old" if model.p_ == 2 else "new"


TRAINED = {}


def save_trained(folder):
    if not TRAINED:
        X, y = make_zipf_text(100, 300, mean_nnz=10, n_classes=3, random_state=0)
        from sparsemargin import ALMAClassifier

        TRAINED["model"] = ALMAClassifier(p=4, hypothesis="vote", random_state=0).fit(X, y)
    save_model(TRAINED["model"], folder / "text.model")


@pytest.mark.parametrize("kind", ["kill amid", "power", "full"])
def test_saving_a_model(faults, kind, tmp_path):
    scenario = Scenario(write_text_and_old_model, save_trained, state_of_model, "text.model")
    strike_everywhere(faults, scenario, kind, tmp_path)


@pytest.mark.parametrize("kind", ["kill", "power amid"])
def test_training_with_a_cache(faults, kind, tmp_path):
    """At the cache's operations and at the model's; each run is followed by one undisturbed."""
    for at in range(1, 200):
        folder = tmp_path / str(at)
        folder.mkdir()
        write_text_and_old_model(folder)
        outcome = faults.run(train, folder, kind, at)
        state = state_of_training(folder)
        if not outcome.killed:
            assert state == "new"
            if at > len(outcome.operations):
                assert at > 8
                return
        train(folder)
        assert state_of_training(folder) == "new"
    raise AssertionError("there is no end to its operations")


def test_a_full_disk_leaves_the_model_there_was(faults, tmp_path):
    write_text_and_old_model(tmp_path)
    before = (tmp_path / "text.model").read_bytes()
    outcome = faults.run(train, tmp_path, "full", 1)
    assert outcome.error["type"] == "OSError"
    assert "text.svm.smcache" in outcome.error["message"]
    assert (tmp_path / "text.model").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.model", "text.svm"]


def test_killed_at_random_moments(faults, tmp_path):
    write_text_and_old_model(tmp_path)
    moments = random.Random(0)
    killed = 0
    for _ in range(25):
        outcome = faults.run(train, tmp_path, kill_after=moments.uniform(0.0, 0.02))
        killed += outcome.killed
        assert state_of_training(tmp_path) in ("old", "new")
    assert killed > 0
