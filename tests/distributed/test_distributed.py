"""Learning over shards: against the printed algorithm, against one machine, and its faults."""

import errno
import os
import pickle
import tempfile
import time
import warnings
from threading import Thread

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import sparsemargin
from problems.first_order import examples
from references.first_order import ALMA, MarginPerceptron, Perceptron
from references.higher_order import HigherOrder, SecondOrder
from references.mixing import mix_mistakes, mix_vectors
from sparsemargin.distributed import fit_distributed
from sparsemargin.distributed._mixing import VectorMixer
from sparsemargin.distributed._shards import shards_of
from sparsemargin.io.reading import Reading
from sparsemargin.io.stream import Interruption

# Nearer to a threshold, rounding may rightly decide otherwise.
CLOSEST = 1e-11

# Algorithms that mix, with what a fit of three epochs of them takes.
MIXED = {
    "perceptron": {},
    "pnorm 2": {"algo": "pnorm", "p": 2},
    "pnorm 6": {"algo": "pnorm", "p": 6},
    "alma 2": {"algo": "alma", "p": 2},
    "alma 6": {"algo": "alma", "p": 6, "normalize": "running"},
    "margin": {"margin": 0.5, "hypothesis": "average"},
    "last": {"algo": "pnorm", "p": 4, "hypothesis": "last"},
    "normalized": {"algo": "pnorm", "p": 3, "normalize_hypotheses": True},
    "joint": {"algo": "alma", "p": 3, "multi_class": "joint"},
    "ho": {"p": 3, "max_updates": 60},
    "so": {"max_updates": 60},
}


def parameters(name):
    chosen = MIXED[name]
    return {"algo": chosen.get("algo", name), "max_iter": 3, "random_state": 5, **chosen}


def make_data(n_rows=240, n_features=40, n_classes=2, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.3)
    outputs = X @ rng.standard_normal((n_features, n_classes)) + rng.standard_normal(n_classes)
    return csr_matrix(X.astype(dtype)), outputs.argmax(axis=1)


def cut(X, y, n_shards):
    return [(X[s::n_shards], y[s::n_shards]) for s in range(n_shards)]


def dense(weights):
    return weights.toarray() if hasattr(weights, "toarray") else weights


def assert_same(model, other):
    """To the bit."""
    np.testing.assert_array_equal(dense(model.coef_), dense(other.coef_))
    np.testing.assert_array_equal(model.intercept_, other.intercept_)
    np.testing.assert_array_equal(model.n_corrections_, other.n_corrections_)
    assert model._space.trials == other._space.trials
    assert (model.n_iter_, model.n_features_in_) == (other.n_iter_, other.n_features_in_)


# ---------------------------------------------------------------------- against the printed one


@st.composite
def small_problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_shards, n = draw(st.integers(2, 4)), draw(st.integers(2, 7))
    shards = []
    for _ in range(n_shards):
        m = draw(st.integers(1, 9))
        X = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.6)
        shards.append((X, rng.choice([-1, 1], m)))
    if len({label for _, y in shards for label in y}) < 2:
        shards[0][1][:] = -shards[1][1][0]
    assume(all(np.any(X) for X, _ in shards))
    return shards


def learned(shards, **how):
    pairs = [(csr_matrix(X), y) for X, y in shards]
    return fit_distributed(pairs, shuffle=False, max_iter=3, fit_intercept=False, **how)


@pytest.mark.parametrize("mixing", ["uniform", "errors"])
@pytest.mark.parametrize("p", [2.0, 3.5, 6.0])
@pytest.mark.parametrize("algo", ["pnorm", "alma", "margin"])
@given(shards=small_problems())
@examples(15)
def test_dual_vectors_are_mixed_as_printed(shards, algo, p, mixing):
    rule, own = {
        "pnorm": (Perceptron(), {}),
        "alma": (ALMA(alpha=0.8), {"alpha": 0.8}),
        "margin": (MarginPerceptron(0.3, normalize=True), {"margin": 0.3, "normalize": True}),
    }[algo]  # fmt: skip
    if algo == "margin":
        own["hypothesis"] = "average"
    expected = mix_vectors(shards, rule, p, 3, mixing)
    assume(expected.smallest_gap > CLOSEST)
    model = learned(shards, algo=algo, p=p, mixing=mixing, **own)
    np.testing.assert_allclose(model.theta_[0], expected.theta.astype(float), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        model.coef_[0], expected.average.astype(float), rtol=1e-9, atol=1e-11
    )
    assert (model.n_corrections_, model._space.trials) == (expected.k, expected.trials)


@pytest.mark.parametrize("p", [2, 4])
@given(shards=small_problems())
@examples(15)
def test_the_matrix_perceptrons_are_made_of_all_mistakes(shards, p):
    for algo, rule, own in (
        ("so", SecondOrder(a=0.7), {"a": 0.7}), ("ho", HigherOrder(p=p), {"p": p})
    ):  # fmt: skip
        expected = mix_mistakes(shards, rule, 3)
        assume(expected.smallest_gap > 1e-9)
        for hypothesis, weights in ("last", expected.theta), ("average", expected.average):
            model = learned(shards, algo=algo, hypothesis=hypothesis, **own)
            np.testing.assert_allclose(model.coef_[0], weights.astype(float), rtol=1e-7, atol=1e-9)
            assert (model.n_corrections_, model._space.trials) == (expected.k, expected.trials)


# -------------------------------------------------------------------------- against one machine


@pytest.mark.parametrize("name", MIXED)
def test_one_shard_is_a_fit_to_the_bit(name):
    X, y = make_data(n_classes=3 if name == "joint" else 2)
    serial = sparsemargin.fit_csr(X, y, **parameters(name))
    assert_same(fit_distributed([(X, y)], **parameters(name)), serial)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_one_shard_of_other_types_is_a_fit_to_the_bit(n_classes, dtype):
    X, y = make_data(n_classes=n_classes, dtype=dtype)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    how = {"algo": "alma", "max_iter": 2, "random_state": 0, "fit_intercept": True}
    assert_same(fit_distributed([(X, y)], **how), sparsemargin.fit_csr(X, y, **how))


def svm_lines(X, y):
    for row, label in zip(X, y, strict=True):
        entries = (f"{j + 1}:{v!r}" for j, v in zip(row.indices, row.data.tolist(), strict=True))
        yield f"{label} {' '.join(entries)}\n"


def write(path, X, y):
    path.write_text("".join(svm_lines(X, y)))
    return str(path)


@pytest.mark.parametrize("max_iter", [1, 3])
@pytest.mark.parametrize("name", ["pnorm 6", "alma 2", "so", "ho"])
def test_one_file_is_fit_svmlight_to_the_bit(name, max_iter, tmp_path):
    path = write(tmp_path / "all.svm", *make_data(n_classes=3))
    how = {**parameters(name), "max_iter": max_iter}
    serial = sparsemargin.fit_svmlight(path, **how)
    assert_same(fit_distributed([path], **how), serial)
    # The row cache, which that fit has made, may be given itself.
    assert_same(fit_distributed([path + ".smcache"], **how), serial)


def test_the_default_is_that_of_a_fit(tmp_path):
    X, y = make_data()
    path = write(tmp_path / "all.svm", X, y)
    how = {"max_iter": 5, "random_state": 0}
    assert_same(fit_distributed([(X, y)], random_state=0), sparsemargin.fit_csr(X, y, **how))
    assert_same(fit_distributed(path, random_state=0), sparsemargin.fit_svmlight(path, **how))


def test_files_are_pairs_read_elsewhere(tmp_path):
    X, y = make_data(n_classes=3)
    paths = [write(tmp_path / f"{s}.svm", *shard) for s, shard in enumerate(cut(X, y, 3))]
    how = {"algo": "alma", "p": 4, "max_iter": 3, "shuffle": False}
    pairs = fit_distributed(cut(X, y, 3), **how)
    files = fit_distributed(paths, cache_dir=tmp_path / "caches", **how)
    np.testing.assert_array_equal(files.coef_, pairs.coef_)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0.svm", "1.svm", "2.svm", "caches"
    ]  # fmt: skip


def test_files_of_one_name_have_row_caches_of_their_own(tmp_path):
    X, y = make_data()
    paths = []
    for s, shard in enumerate(cut(X, y, 3)):
        (tmp_path / str(s)).mkdir()
        paths.append(write(tmp_path / str(s) / "part.svm", *shard))
    fit_distributed(paths, algo="alma", cache_dir=tmp_path / "caches")
    assert len(list((tmp_path / "caches").glob("part.svm.*.smcache"))) == 3


def test_what_can_be_read_only_once_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in tmp_path / "pipe", "-":
        with pytest.raises(ValueError, match="can be read only once"):
            fit_distributed([path], algo="alma")


def test_a_row_cache_has_as_many_labels_a_row_as_it_was_made_with(tmp_path):
    (tmp_path / "a.svm").write_text("1,2 1:1 2:1\n" + " 1:3\n" * 50 + "3 2:1\n")
    how = {"algo": "alma", "shuffle": False, "max_iter": 2}
    expected = fit_distributed([tmp_path / "a.svm"], multilabel=True, **how)
    cache = tmp_path / "a.svm.smcache"
    assert_same(fit_distributed([cache], classes=[1, 2, 3], **how), expected)
    X, y = make_data(n_classes=3)
    path = write(tmp_path / "b.svm", X, y)
    expected = fit_distributed([path], **how)
    again = fit_distributed([path + ".smcache"], multilabel=True, classes=[0, 1, 2], **how)
    assert_same(again, expected)


def test_shards_may_lack_classes_and_number_labels_differently(tmp_path):
    X, y = make_data(n_classes=3)
    order = np.argsort(y, kind="stable")
    shards = [(X[part], y[part]) for part in np.array_split(order, 4)]
    paths = [write(tmp_path / f"{s}.svm", *shard) for s, shard in enumerate(shards)]
    how = {"algo": "pnorm", "max_iter": 3, "shuffle": False}
    model = fit_distributed(paths, **how)
    np.testing.assert_array_equal(model.coef_, fit_distributed(shards, **how).coef_)
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["pnorm 6", "alma 2", "so"])
def test_epochs_without_corrections_count_in_averages(name):
    X, y = make_data(60)
    how = {**parameters(name), "max_iter": 200}
    if name == "alma 2":
        how["alpha"] = 1.0
    rounds = []
    model = fit_distributed(cut(X, y, 3), on_round=rounds.append, **how)
    assert sum(rounds[-1].corrections) == 0
    assert len(rounds) < 200
    assert model._space.trials == 200 * 60
    again = fit_distributed(cut(X, y, 3), **{**how, "max_iter": None})
    np.testing.assert_array_equal(again._space.weights() != 0, model._space.weights() != 0)


def test_many_labels_are_mixed_label_by_label(tmp_path):
    X, _ = make_data()
    Y = (np.random.default_rng(1).random((X.shape[0], 5)) < 0.3).astype(int)
    how = {"algo": "pnorm", "p": 3, "max_iter": 2, "shuffle": False}
    together = fit_distributed(cut(X, Y, 3), mixing="errors", **how)
    for label in range(5):
        alone = fit_distributed(cut(X, Y[:, label], 3), mixing="errors", **how)
        np.testing.assert_allclose(together.coef_[label], alone.coef_[0], rtol=1e-12)
    texts = [
        "".join(
            f"{','.join(map(str, np.flatnonzero(labels)))} {line.split(' ', 1)[1]}"
            for line, labels in zip(svm_lines(part, np.zeros(part.shape[0])), own, strict=True)
        )
        for part, own in cut(X, Y, 3)
    ]
    paths = []
    for s, text in enumerate(texts):
        (tmp_path / f"{s}.svm").write_text(text)
        paths.append(tmp_path / f"{s}.svm")
    files = fit_distributed(paths, multilabel=True, mixing="errors", **how)
    np.testing.assert_allclose(files.coef_, together.coef_, rtol=1e-12)
    one = fit_distributed(paths, positive="2", mixing="errors", **how)
    np.testing.assert_allclose(one.coef_[0], together.coef_[2], rtol=1e-12)


@pytest.mark.parametrize("other", [np.uint8, np.float64])
def test_labels_are_the_same_numbers_in_any_type(other):
    X, y = make_data(n_classes=3)
    how = {"algo": "pnorm", "random_state": 0}
    expected = fit_distributed(cut(X, y, 2), **how)
    first, (rows, labels) = cut(X, y, 2)
    model = fit_distributed([first, (rows, labels.astype(other))], **how)
    np.testing.assert_array_equal(model.coef_, expected.coef_)


# ------------------------------------------------------------------------------ what is sent


@pytest.mark.parametrize("p", [2, 5])
def test_what_differs_is_sent_where_that_is_shorter(p):
    rng = np.random.default_rng(0)
    rows = [rng.choice(20_000, 8, replace=False) for _ in range(60)]
    indptr = np.arange(61) * 8
    X = csr_matrix((rng.random(480), np.concatenate(rows), indptr), shape=(60, 20_000))
    y = rng.choice([0, 1], 60)
    rounds = []
    fit_distributed(cut(X, y, 3), algo="pnorm", p=p, random_state=0, on_round=rounds.append)
    whole = 20_000 * 8
    assert all(each.bytes_sent < whole / 10 for each in rounds)
    assert all(each.bytes_received < whole / 10 for each in rounds)


@pytest.mark.parametrize("p", [2.5, 6, 60])
@pytest.mark.parametrize("exponent", [-400, 400])
def test_rows_of_any_length_are_mixed_alike(exponent, p):
    X, y = make_data(90, 400)
    how = {"algo": "pnorm", "p": p, "normalize": False, "random_state": 0, "max_iter": 3}
    expected = fit_distributed(cut(X, y, 3), **how)
    scaled = fit_distributed(cut(X * 2.0**exponent, y, 3), **how)
    np.testing.assert_allclose(scaled.coef_ * 2.0**-exponent, expected.coef_, rtol=1e-11)


@pytest.mark.parametrize("size", [1e35, 1e37])
def test_mixtures_that_no_float32_holds_are_told(size):
    X, y = make_data(600)
    shards = cut((X * size).astype(np.float32), y, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"exceeds float32\. Rescale rows"):
            fit_distributed(shards, algo="perceptron", random_state=0)


def test_steps_that_no_vector_holds_are_told_with_their_row(tmp_path):
    X, y = make_data(90, 400)
    how = {"algo": "pnorm", "p": 60, "normalize": False, "shuffle": False}
    shards = [(X, y), (X * 1e-300, y)]
    with pytest.raises(ValueError, match=r"Shard 1 of 2.*Row \d+ of X.* smaller p"):
        fit_distributed(shards, **how)
    paths = [write(tmp_path / f"{s}.svm", *shard) for s, shard in enumerate(shards)]
    with pytest.raises(ValueError, match=r"Shard 1 of 2.*Row \d+ of X.* smaller p"):
        fit_distributed(paths, **how)
    with pytest.raises(ValueError, match=r"Row \d+ of X.* smaller p"):
        sparsemargin.fit_svmlight(paths[1], **how)


# ------------------------------------------------------------------------ to break off, to resume


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("n_shards", [1, 3])
def test_a_resumed_fit_is_the_same_to_the_bit(name, n_shards, tmp_path):
    X, y = make_data(n_classes=3 if name == "joint" else 2)
    shards, how = cut(X, y, n_shards), parameters(name)
    whole = fit_distributed(shards, **how)
    path = tmp_path / "checkpoint.model"
    fit_distributed(shards, checkpoint=path, **{**how, "max_iter": 1})
    assert_same(fit_distributed(shards, checkpoint=path, resume=True, **how), whole)
    assert_same(sparsemargin.load_model(path), whole)


@pytest.mark.parametrize("name", ["pnorm 6", "so"])
def test_a_resumed_fit_of_files_is_the_same_to_the_bit(name, tmp_path):
    X, y = make_data()
    paths = [write(tmp_path / f"{s}.svm", *shard) for s, shard in enumerate(cut(X, y, 2))]
    path = tmp_path / "checkpoint.model"
    fit_distributed(paths, checkpoint=path, **{**parameters(name), "max_iter": 2})
    resumed = fit_distributed(paths, checkpoint=path, resume=True, **parameters(name))
    assert_same(resumed, fit_distributed(paths, **parameters(name)))


def test_a_finished_fit_is_resumed_by_doing_nothing(tmp_path):
    shards, path = cut(*make_data(), 2), tmp_path / "checkpoint.model"
    how = {"algo": "alma", "random_state": 0, "checkpoint": path}
    model = fit_distributed(shards, **how)
    rounds = []
    assert_same(fit_distributed(shards, resume=True, on_round=rounds.append, **how), model)
    assert rounds == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"p": 4}, "was learned with p=2.0, not 4"),
        ({"algo": "pnorm"}, "is of ALMAClassifier"),
        ({"mixing": "errors"}, "other mixing"),
        ({"shards": 3}, "other shards"),
    ],
)
def test_another_fit_does_not_go_on(changed, words, tmp_path):
    data, path = make_data(), tmp_path / "checkpoint.model"
    how = {"algo": "alma", "checkpoint": path}
    fit_distributed(cut(*data, 2), **how, max_iter=1)
    n_shards = changed.pop("shards", 2)
    with pytest.raises(ValueError, match=words):
        fit_distributed(cut(*data, n_shards), resume=True, **{**how, **changed})


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"positive": "1"}, {"positive": "2"}, "other positive"),
        ({}, {"classes": [0, 1, 2, 3]}, "other classes"),
        ({}, {"n_features": 50}, "other features"),
        ({"zero_based": True}, {"zero_based": False}, "other features"),
    ],
)
def test_a_fit_of_files_read_in_another_way_does_not_go_on(before, after, words, tmp_path):
    path = write(tmp_path / "a.svm", *make_data(n_classes=3))
    how = {"algo": "alma", "checkpoint": tmp_path / "checkpoint.model"}
    fit_distributed([path], max_iter=1, **how, **before)
    with pytest.raises(ValueError, match=words):
        fit_distributed([path], resume=True, **how, **after)
    fit_distributed([path], resume=True, **how, **before)


def test_other_labels_or_columns_do_not_go_on(tmp_path):
    (X, y), path = make_data(n_classes=3), tmp_path / "checkpoint.model"
    how = {"algo": "alma", "checkpoint": path}
    fit_distributed([(X, y)], max_iter=1, **how)
    wider = csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], 50))
    for shard, words in (
        ((X, y + 1), "classes"), ((X, y > 0), "classes"), ((wider, y), "features")
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"other {words}"):
            fit_distributed([shard], resume=True, **how)


def test_a_fit_with_a_generator_goes_on(tmp_path):
    shards, path = cut(*make_data(), 2), tmp_path / "checkpoint.model"
    how = {"algo": "alma", "checkpoint": path}
    whole = fit_distributed(shards, random_state=np.random.RandomState(3), **how)
    fit_distributed(shards, random_state=np.random.RandomState(3), max_iter=2, **how)
    again = np.random.RandomState(4)
    assert_same(fit_distributed(shards, random_state=again, resume=True, **how), whole)


def test_a_place_for_the_checkpoint_is_found_before_the_first_epoch(tmp_path):
    X, y = make_data()
    path = write(tmp_path / "a.svm", X, y)
    text = (tmp_path / "a.svm").read_bytes()
    rounds = []
    for checkpoint, words in (
        (tmp_path / "none" / "a.model", "there is no folder"), (tmp_path, "is a directory")
    ):  # fmt: skip
        with pytest.raises(OSError, match=words):
            fit_distributed([(X, y)], checkpoint=checkpoint, on_round=rounds.append)
    for named in path, str(tmp_path / "*.svm"):
        with pytest.raises(ValueError, match="replace a file that is learned from"):
            fit_distributed([named], checkpoint=tmp_path / "." / "a.svm", on_round=rounds.append)
    assert rounds == []
    assert (tmp_path / "a.svm").read_bytes() == text


def test_a_mixture_that_has_no_room_is_set_aside(tmp_path, monkeypatch):
    shards, path = cut(*make_data(), 2), tmp_path / "checkpoint.model"
    how = {"algo": "alma", "random_state": 0, "checkpoint": path}
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
    assert caught.value.__notes__ == [f"What has been learned is in {aside}."]
    aside.rename(path)
    assert_same(fit_distributed(shards, resume=True, **how), whole)


def test_a_plain_model_is_no_checkpoint(tmp_path):
    X, y = make_data()
    path = tmp_path / "a.model"
    sparsemargin.save_model(sparsemargin.fit_csr(X, y, "alma"), path)
    with pytest.raises(ValueError, match="no fit over shards"):
        fit_distributed(cut(X, y, 2), algo="alma", checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="pass its path as checkpoint"):
        fit_distributed(cut(X, y, 2), algo="alma", resume=True)


def test_an_interrupted_fit_keeps_the_last_mixture():
    X, y = make_data()

    def interrupt(done):
        if done.epoch == 2:
            raise KeyboardInterrupt

    with pytest.warns(Interruption, match="after epoch 2"):
        model = fit_distributed(
            cut(X, y, 2), algo="alma", random_state=0, max_iter=9, on_round=interrupt
        )
    assert_same(model, fit_distributed(cut(X, y, 2), algo="alma", random_state=0, max_iter=2))


def test_ctrl_c_upon_a_starting_thread_waits_for_the_mixture(monkeypatch, tmp_path):
    shards, path = cut(*make_data(), 2), tmp_path / "checkpoint.model"
    how = {"algo": "alma", "random_state": 0, "max_iter": 4}
    starts = []

    class Interrupted(Thread):
        def start(self):
            super().start()
            starts.append(self)
            if len(starts) == 3:
                raise KeyboardInterrupt

    def mix_slowly(mixer, updates):
        time.sleep(0.1)
        mix(mixer, updates)

    mix = VectorMixer.mix
    monkeypatch.setattr(VectorMixer, "mix", mix_slowly)
    monkeypatch.setattr("threading.Thread", Interrupted)
    model = fit_distributed(shards, checkpoint=path, **how)
    assert not any(thread.is_alive() for thread in starts)
    assert_same(model, sparsemargin.load_model(path))


def test_the_model_of_a_round_is_the_mixture_by_then():
    X, y = make_data()
    how, models = {"algo": "pnorm", "p": 3, "random_state": 0}, []
    fit_distributed(cut(X, y, 3), on_round=lambda each: models.append(each.model()), **how)
    for epochs, model in enumerate(models, 1):
        assert_same(model, fit_distributed(cut(X, y, 3), max_iter=epochs, **how))


def test_a_mixture_goes_on_learning():
    X, y = make_data()
    model = fit_distributed(cut(X, y, 3), algo="alma", random_state=0)
    before = model._space.trials
    model.partial_fit(X, y)
    assert model._space.trials == before + X.shape[0]


# --------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"algo": "romma"}, "ROMMAClassifier can't be mixed"),
        ({"algo": "cramma", "radius": 1.0}, "CRAMMAClassifier can't be mixed"),
        ({"algo": "maxmargin"}, "MaxMarginClassifier can't be mixed"),
        ({"kernel": "rbf"}, "kernel='rbf' needs all rows in one place"),
        ({"soft_margin": 1.0}, "soft_margin=1.0 needs all rows"),
        ({"tol": 0.1, "hypothesis": "last"}, "tol=0.1 needs all rows"),
        ({"max_corrections": 10}, "max_corrections=10 needs all rows"),
        ({"hypothesis": "vote"}, "replayed from a log"),
        ({"algo": "so", "solver": "dual"}, "solver='dual' needs all rows"),
        ({"warm_start": True}, "pass resume=True"),
        ({"max_iter": 1.5}, "whole number of epochs"),
        ({"class_weight": "balanced"}, "class_weight='balanced' needs all rows"),
        ({"normalize": "max"}, "normalize='max' needs all rows"),
        ({"mixing": "mean"}, "'uniform' or 'errors'"),
        ({"memory_limit": 100}, "more than memory_limit=100"),
        ({"client": 3}, "client must be"),
        ({"algorithm": "alma"}, "Unknown parameter"),
    ],
)
def test_what_cannot_be_had_is_refused(how, words):
    with pytest.raises(ValueError, match=words):
        fit_distributed(cut(*make_data(), 2), **{"algo": "alma", **how})


@pytest.mark.parametrize(
    "how",
    [{"positive": 1}, {"classes": np.arange(2)}, {"n_features": 7}, {"dtype": np.float32}],
)
def test_what_is_told_of_files_is_refused_for_matrices(how):
    with pytest.raises(ValueError, match="is of files, and these shards are matrices"):
        fit_distributed(cut(*make_data(), 2), algo="alma", **how)


def broken(X, y):
    X = X.copy()
    X.data[0] = np.nan
    return X, y


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X, y: [], "There are no shards"),
        (lambda X, y: 3, "There are no shards"),
        (lambda X, y: [(X, y), 3], "can't be of type int"),
        (lambda X, y: [(X, y), (X, y[:-1])], "Shard 1 of 2.* 240 rows, and y 239 labels"),
        (lambda X, y: [(X, y), broken(X, y)], "Shard 1 of 2.*NaN at row"),
        (lambda X, y: [(X, y), (X[:0], y[:0])], "Shard 1 of 2.*no rows"),
        (lambda X, y: [(X, y), (["a text"], y[:1])], "Shard 1 of 2.*holds text"),
        (lambda X, y: [(X, y), (X[:, :30], y)], "40 features, shard 1 has 30"),
        (lambda X, y: [(X, y), (X, y.astype(str))], "numbers and text"),
        (lambda X, y: [(X, y), (X, np.eye(2)[y])], "numbers and numbers, in a dense indicator"),
        (lambda X, y: [(X, np.zeros(240)), (X, np.zeros(240))], "one class only"),
    ],
)
def test_bad_shards_are_named(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fit_distributed(make(*make_data()), algo="alma")


def test_bad_files_are_named(tmp_path):
    good = write(tmp_path / "good.svm", *make_data())
    (tmp_path / "bad.svm").write_text("1 1:2\n-1 nonsense\n")
    with pytest.raises(ValueError, match=r"Shard 1 of 2.*bad\.svm.*line 2"):
        fit_distributed([good, tmp_path / "bad.svm"], algo="alma")
    with pytest.raises(OSError, match=r"Shard 1 of 2.*none\.svm"):
        fit_distributed([good, tmp_path / "none.svm"], algo="alma")
    with pytest.raises(ValueError, match="No row has the label positive='7'"):
        fit_distributed([good], algo="alma", positive="7")


def test_a_file_of_comments_is_named(tmp_path):
    good = write(tmp_path / "good.svm", *make_data())
    (tmp_path / "none.svm").write_text("# nothing\n")
    for algo in None, "pnorm":
        with pytest.raises(ValueError, match=r"Shard 1 of 2.*no rows"):
            fit_distributed([good, tmp_path / "none.svm"], algo=algo)


def test_workers_are_sent_whole_paths(tmp_path, monkeypatch):
    path = write(tmp_path / "a.svm", *make_data())
    monkeypatch.chdir(tmp_path)
    (given,) = shards_of(["a.svm"], None, Reading(), "caches", 1 << 20)
    assert (given.paths, given.cache_dir) == ([path], str(tmp_path / "caches"))


def test_a_label_that_was_not_named_is_told_with_its_row(tmp_path):
    path = write(tmp_path / "a.svm", *make_data(n_classes=3))
    with pytest.raises(ValueError, match=r"a\.svm, row \d+: the label 2 is none of the classes"):
        fit_distributed([path], algo="alma", classes=[0, 1])


def test_a_file_that_changes_between_epochs_is_told(tmp_path):
    X, y = make_data()
    paths = [write(tmp_path / f"{s}.svm", *shard) for s, shard in enumerate(cut(X, y, 2))]

    def change(done):
        if done.epoch == 1:
            write(tmp_path / "1.svm", X[:10], y[:10])

    with pytest.raises(ValueError, match=r"1\.svm: these 10 rows are not those that learning"):
        fit_distributed(paths, algo="alma", on_round=change)


@pytest.mark.parametrize("changed", ["values", "labels"])
def test_other_data_of_the_same_size_do_not_go_on(changed, tmp_path):
    (X, y), path = make_data(), tmp_path / "checkpoint.model"
    how = {"algo": "alma", "checkpoint": path}
    fit_distributed(cut(X, y, 2), max_iter=1, **how)
    X, y = (2 * X, y) if changed == "values" else (X, 1 - y)
    with pytest.raises(ValueError, match="other shards"):
        fit_distributed(cut(X, y, 2), resume=True, **how)
    paths = [write(tmp_path / f"{s}.svm", *shard) for s, shard in enumerate(cut(X, y, 2))]
    fit_distributed(paths, max_iter=1, **how)
    X, y = (2 * X, y) if changed == "values" else (X, 1 - y)
    paths = [write(tmp_path / f"{s}.svm", *shard) for s, shard in enumerate(cut(X, y, 2))]
    with pytest.raises(ValueError, match="other shards"):
        fit_distributed(paths, resume=True, **how)


def named(y, names, form):
    """Labels 0, 1 and 2 by other names, in one of the forms that labels are given in."""
    labels = np.array(names)[y]
    return [(label,) for label in labels.tolist()] if form == "lists" else labels


@pytest.mark.parametrize("form", ["one", "lists", "files"])
@pytest.mark.parametrize(
    "names", [[0, 1, 2], [-3.0, 0.0, 1e6], ["a", "b", "c"], [2**53, 2**53 + 1, 2**53 + 2]]
)
def test_other_names_of_a_shards_labels_do_not_go_on(names, form, tmp_path):
    """All shards have the classes that they had, but one of them has others of these."""
    X, y = make_data(n_classes=3)
    rows = np.flatnonzero(y < 2)
    how = {"algo": "alma", "random_state": 0, "checkpoint": tmp_path / "checkpoint.model"}

    def shards(swapped):
        of_rows = named(2 * y[rows] if swapped else y[rows], names, form)
        cuts = [(X, named(y, names, form)), (X[rows], of_rows)]
        if form != "files":
            return cuts
        return [write(tmp_path / f"{s}.svm", *shard) for s, shard in enumerate(cuts)]

    fit_distributed(shards(swapped=False), max_iter=1, **how)
    with pytest.raises(ValueError, match="other shards"):
        fit_distributed(shards(swapped=True), resume=True, **how)
    model = fit_distributed(shards(swapped=False), resume=True, **how)
    assert_same(model, fit_distributed(shards(swapped=False), **how))


@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_the_same_labels_of_another_type_go_on(kind, tmp_path):
    X, y = make_data(n_classes=3)
    how = {"algo": "pnorm", "random_state": 0, "checkpoint": tmp_path / "checkpoint.model"}
    fit_distributed(cut(X, y, 2), max_iter=1, **how)
    resumed = fit_distributed(cut(X, y.astype(kind), 2), resume=True, **how)
    expected = fit_distributed(cut(X, y, 2), **how)
    np.testing.assert_array_equal(resumed.coef_, expected.coef_)


@pytest.mark.parametrize("algo", ["pnorm", "so", "ho"])
def test_what_is_received_may_lie_at_any_address(algo):
    """Under the sanitizers, above all."""
    model = sparsemargin.fit_csr(*make_data(), algo, random_state=0)
    buffers = []
    told = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    moved = [memoryview(bytearray(1) + bytearray(each.raw()))[1:] for each in buffers]
    assert_same(pickle.loads(told, buffers=moved), model)


def test_nothing_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_distributed(cut(*make_data(), 3), algo="alma", p=8, max_iter=4)
