"""Training, its row cache and its model: cut short anywhere, what is left is old or new, whole."""

import random
import sys
import warnings
import zipfile
from itertools import count

import numpy as np
import pytest

from problems.faults import Faults, Scenario, strike_everywhere
from sparsemargin import fit_svmlight, load_model, save_model
from sparsemargin.datasets import make_zipf_text
from sparsemargin.io import archive, files
from sparsemargin.io.npz import write_npz

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


# -- Ctrl-C ---------------------------------------------------------------------------------------

WRITERS = {module.__file__ for module in (archive, files, zipfile)}


class CtrlC:
    """Ctrl-C before the line of that number, counted from 1, of those that write files."""

    def __init__(self, at):
        self.at, self.n_lines = at, 0

    def __call__(self, frame, event, _):
        callers = frame.f_code.co_name, frame.f_back.f_code.co_name
        # Within __del__ an error is printed, and not raised.
        if frame.f_code.co_filename not in WRITERS or "__del__" in callers:
            return None
        self.n_lines += event == "line"
        if self.n_lines == self.at:
            raise KeyboardInterrupt
        return self


def save_small(folder):
    """Some arrays: Ctrl-C may come to each alike."""
    if not TRAINED:
        X, y = make_zipf_text(20, 10, mean_nnz=3, random_state=0)
        from sparsemargin import ALMAClassifier

        TRAINED["small"] = ALMAClassifier(random_state=0).fit(X, y)
    save_model(TRAINED["small"], folder / "file")


def save_npz(folder):
    X, y = make_zipf_text(20, 10, mean_nnz=3, random_state=0)
    write_npz(folder / "file", X, y, np.empty(0, np.int64))


@pytest.mark.parametrize(("save", "step"), [(save_small, 5), (save_npz, 1)])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_anywhere_is_ctrl_c_and_leaves_old_or_new(save, step, tmp_path):
    save(tmp_path)
    new = (tmp_path / "file").read_bytes()
    seen = set()
    for at in count(1, step):
        (tmp_path / "file").write_bytes(b"old")
        tracer, trace_before = CtrlC(at), sys.gettrace()
        try:
            sys.settrace(tracer)
            save(tmp_path)
        except KeyboardInterrupt:
            pass
        else:
            break
        finally:
            sys.settrace(trace_before)
        assert [path.name for path in tmp_path.iterdir()] == ["file"], at
        seen.add((tmp_path / "file").read_bytes())
    assert at > tracer.n_lines > 1000
    assert seen == {b"old", new}
