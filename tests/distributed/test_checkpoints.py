"""Interrupted fits over shards: their checkpoints, and resuming from them."""

import errno
import os
import signal
import tempfile

import numpy as np
import pytest
from scipy.sparse import hstack

import sparsemargin
from problems.shards import MIXED, assert_same, cut, make_data, parameters, write, write_each
from sparsemargin.distributed import dual_vectors, fit_distributed
from sparsemargin.distributed.slices import mix_slice
from sparsemargin.streaming.checkpoints import Checkpoint
from sparsemargin.streaming.report import Interruption


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.model"


@pytest.fixture
def how(path):
    """An algorithm, and the path of its checkpoint."""
    return {"algo": "alma", "random_state": 0, "checkpoint": path}


@pytest.mark.parametrize(("name", "n_shards"), [
    *((name, n_shards) for name in MIXED for n_shards in (1, 3)),
    ("pnorm 6", "files"), ("so", "files"),
])  # fmt: skip
def test_resumed_fit_is_bitwise_equal(name, n_shards, path, tmp_path):
    data, how = make_data(n_classes=3 if name == "joint" else 2), parameters(name)
    shards = cut(*data, 2 if n_shards == "files" else n_shards)
    shards = write_each(tmp_path, shards) if n_shards == "files" else shards
    whole = fit_distributed(shards, **how)
    fit_distributed(shards, checkpoint=path, **{**how, "max_iter": 1})
    assert_same(fit_distributed(shards, checkpoint=path, resume=True, **how), whole)
    assert_same(sparsemargin.load_model(path), whole)


def test_finished_fits_and_fits_with_a_generator_are_resumed(path):
    shards = cut(*make_data(), 2)
    how, rounds = {"algo": "alma", "checkpoint": path}, []
    whole = fit_distributed(shards, random_state=np.random.RandomState(3), **how)
    resumed = {"random_state": np.random.RandomState(4), "resume": True, **how}
    assert_same(fit_distributed(shards, on_round=rounds.append, **resumed), whole)
    assert rounds == []
    fit_distributed(shards, random_state=np.random.RandomState(3), max_iter=2, **how)
    assert_same(fit_distributed(shards, **resumed), whole)


def test_early_stopping_is_the_same_in_a_resumed_fit(path):
    shards, rounds = cut(*make_data(), 3), []
    how = {"algo": "pnorm", "max_iter": 100, "early_stopping": True, "random_state": 0}
    whole = fit_distributed(shards, **how)
    for epochs in 1, int(whole.n_iter_) - 1, 100:
        fit_distributed(shards, checkpoint=path, **{**how, "max_iter": epochs})
        resumed = fit_distributed(
            shards, checkpoint=path, resume=True, on_round=rounds.append, **how
        )
        assert_same(resumed, whole)
        path.unlink()
    assert len(rounds) == whole.n_iter_ - 1 + 1


def test_no_epochs_are_added_if_the_checkpoint_has_enough(how):
    shards = cut(*make_data(), 2)
    whole = fit_distributed(shards, max_iter=3, **how)
    assert_same(fit_distributed(shards, max_iter=2, resume=True, **how), whole)


@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_labels_of_any_number_type_are_equal(kind, how):
    """The numbers may have another dtype in another shard, and when the fit is resumed."""
    X, y = make_data(n_classes=3)
    expected = fit_distributed(cut(X, y, 2), **how)
    first, (rows, labels) = cut(X, y, 2)
    model = fit_distributed([first, (rows, labels.astype(kind))], **{**how, "max_iter": 1})
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    resumed = fit_distributed(cut(X, y.astype(kind), 2), resume=True, **how)
    np.testing.assert_array_equal(resumed.coef_, expected.coef_)


@pytest.mark.parametrize(("change", "words"), [
    (lambda X, y: (cut(X, y, 2), {"p": 4}), "other .*p"),
    (lambda X, y: (cut(X, y, 2), {"algo": "pnorm"}), "other algorithm"),
    (lambda X, y: (cut(X, y, 2), {"mixing": "ring"}), "other .*mixing"),
    (lambda X, y: (cut(X, y, 2), {"min_rows": 10**6}), "other shards or min_rows. Pass the same"),
    (lambda X, y: (cut(X, y, 3), {}), "other .*shards"),
    (lambda X, y: (cut(2 * X, y, 2), {}), "other .*shards"),
    (lambda X, y: (cut(X, (y + 1) % 3, 2), {}), "other .*shards"),
    (lambda X, y: (cut(X, y > 0, 2), {}), "other .*classes"),
    (lambda X, y: (cut(hstack([X, X], "csr"), y, 2), {}), "other .*features"),
])  # fmt: skip
@pytest.mark.parametrize("form", ["pairs", "files"])
def test_checkpoint_of_another_fit_is_rejected(form, change, words, how, tmp_path):
    X, y = make_data(n_classes=3)

    def given(shards):
        return write_each(tmp_path, shards) if form == "files" else shards

    fit_distributed(given(cut(X, y, 2)), max_iter=1, **how)
    shards, options = change(X, y)
    with pytest.raises(ValueError, match=words):
        fit_distributed(given(shards), resume=True, **{**how, **options})


@pytest.mark.parametrize(("before", "after", "words"), [
    ({"positive": "1"}, {"positive": "2"}, "other .*positive"),
    ({}, {"classes": [0, 1, 2, 3]}, "other .*classes"),
    ({}, {"n_features": 50}, "other .*features"),
    ({"zero_based": True}, {"zero_based": False}, "other .*features"),
])  # fmt: skip
def test_checkpoint_with_other_reading_parameters_is_rejected(before, after, words, how, tmp_path):
    path = write(tmp_path / "a.svm", *make_data(n_classes=3))
    fit_distributed([path], max_iter=1, **how, **before)
    with pytest.raises(ValueError, match=words):
        fit_distributed([path], resume=True, **how, **after)
    fit_distributed([path], resume=True, **how, **before)


@pytest.mark.parametrize(("form", "names"), [
    ("one", [0, 1, 2]), ("lists", [0, 1, 2]), ("files", [0, 1, 2]), ("one", [-3.0, 0.0, 1e6]),
    ("lists", ["a", "b", "c"]), ("files", [2**53, 2**53 + 1, 2**53 + 2]),
])  # fmt: skip
def test_checkpoint_with_other_labels_of_a_shard_is_rejected(form, names, how, tmp_path):
    """All shards together have the same classes, but one shard has others of these."""
    X, y = make_data(n_classes=3)
    rows = np.flatnonzero(y < 2)

    def named(places):
        labels = np.array(names)[places]
        return [(label,) for label in labels.tolist()] if form == "lists" else labels

    def shards(swapped):
        cuts = [(X, named(y)), (X[rows], named(2 * y[rows] if swapped else y[rows]))]
        return write_each(tmp_path, cuts) if form == "files" else cuts

    fit_distributed(shards(swapped=False), max_iter=1, **how)
    with pytest.raises(ValueError, match=r"other .*shards"):
        fit_distributed(shards(swapped=True), resume=True, **how)
    model = fit_distributed(shards(swapped=False), resume=True, **how)
    assert_same(model, fit_distributed(shards(swapped=False), **how))


def test_model_file_is_rejected_as_a_checkpoint(path):
    X, y = make_data()
    sparsemargin.save_model(sparsemargin.fit_csr(X, y, "alma"), path)
    with pytest.raises(ValueError, match="is a model, not a checkpoint"):
        fit_distributed(cut(X, y, 2), algo="alma", checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="Pass its path as checkpoint"):
        fit_distributed(cut(X, y, 2), algo="alma", resume=True)


def test_checkpoint_path_is_checked_before_the_first_epoch(tmp_path):
    path = write(tmp_path / "a.svm", *make_data())
    text, rounds = (tmp_path / "a.svm").read_bytes(), []
    for shards, checkpoint, kind, words in (
        ([make_data()], tmp_path / "none" / "a.model", OSError, "there is no folder"),
        ([make_data()], tmp_path, OSError, "is a directory"),
        ([path], tmp_path / "." / "a.svm", ValueError, "are one file"),
        ([str(tmp_path / "*.svm")], path, ValueError, "are one file"),
    ):
        with pytest.raises(kind, match=words):
            fit_distributed(shards, checkpoint=checkpoint, on_round=rounds.append)
    assert rounds == []
    assert (tmp_path / "a.svm").read_bytes() == text


def test_mixture_is_saved_elsewhere_if_the_disk_is_full(how, path, tmp_path, monkeypatch):
    shards = cut(*make_data(), 2)
    whole, replace = fit_distributed(shards, **how), os.replace
    path.unlink()

    def full(fresh, target):
        if target == path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(fresh, target)

    (tmp_path / "spare").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        patch.setattr(tempfile, "tempdir", str(tmp_path / "spare"))
        with pytest.raises(OSError, match="No space left on device") as caught:
            fit_distributed(shards, **how)
    (aside,) = (tmp_path / "spare").iterdir()
    assert caught.value.__notes__ == [f"The model was saved in {aside} instead."]
    aside.rename(path)
    assert_same(fit_distributed(shards, resume=True, **how), whole)


def test_interrupted_fit_keeps_the_mixture_of_the_last_round(how):
    shards, models = cut(*make_data(), 3), []

    def interrupt(done):
        models.append(done.model())
        if done.epoch == 2:
            raise KeyboardInterrupt

    with pytest.warns(Interruption, match="after epoch 2"):
        model = fit_distributed(shards, max_iter=9, on_round=interrupt, **how)
    how["checkpoint"] = None
    for epochs, of_round in enumerate(models, 1):
        assert_same(of_round, fit_distributed(shards, max_iter=epochs, **how))
    assert_same(model, models[1])


@pytest.mark.parametrize("epoch", [2, 3])
def test_ctrl_c_in_a_mixture_leaves_the_one_before(epoch, how, path, monkeypatch):
    shards, done = cut(*make_data(), 2), []

    def interrupt(*given):
        if len(done) == epoch - 1:
            done.append(None)
            raise KeyboardInterrupt
        return mix_slice(*given)

    monkeypatch.setattr(dual_vectors, "mix_slice", interrupt)
    words = rf"after epoch {epoch - 1}\. Pass resume=True to continue from .*checkpoint\.model"
    with pytest.warns(Interruption, match=words):
        model = fit_distributed(shards, max_iter=4, on_round=done.append, **how)
    assert_same(model, sparsemargin.load_model(path))
    monkeypatch.undo()
    how["checkpoint"] = None
    assert_same(model, fit_distributed(shards, max_iter=epoch - 1, **how))


@pytest.mark.parametrize(("at", "epoch"), [("gathering", 1), ("writing", 2)])
def test_ctrl_c_at_a_checkpoint_leaves_the_model_of_the_file(at, epoch, how, path, monkeypatch):
    owner, name = {
        "gathering": (dual_vectors.VectorMixer, "space_of"), "writing": (Checkpoint, "write"),
    }[at]  # fmt: skip
    function, calls = getattr(owner, name), []

    def interrupted(*given, **named):
        calls.append(None)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return function(*given, **named)

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.warns(Interruption, match=f"after epoch {epoch}"):
        model = fit_distributed(cut(*make_data(), 2), max_iter=4, **how)
    assert model.n_iter_ == epoch
    assert_same(model, sparsemargin.load_model(path))
