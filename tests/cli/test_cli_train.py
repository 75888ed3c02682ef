"""``sparsemargin train`` gives the models of `fit_svmlight`, and says what it does."""

import errno
import gzip
import io
import json
import os
import tempfile
import threading
from itertools import pairwise

import numpy as np
import pytest

from problems.command_line import run, three_classes, two_classes
from sparsemargin import PNormPerceptron, fit_svmlight, load_model, load_svmlight, save_model
from sparsemargin.io import sources
from sparsemargin.io.readable import read_dictionary


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """A text of some KB is then many blocks."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4096)


@pytest.fixture
def text(tmp_path):
    return two_classes(tmp_path)[0]


@pytest.fixture
def words(tmp_path):
    return three_classes(tmp_path)[0]


def train(path, output, *options):
    """The model that the command makes."""
    run("train", path, "-o", output, "-q", *options)
    return load_model(output)


def assert_same(model, other, folder):
    """To the bit: their files are the same."""
    save_model(model, folder / "one")
    save_model(other, folder / "other")
    assert (folder / "one").read_bytes() == (folder / "other").read_bytes()


@pytest.mark.parametrize(
    ("options", "algo", "params"),
    [
        ("", None, {}),
        ("--alpha 0.5 --no-fit-intercept", None, {"alpha": 0.5, "fit_intercept": False}),
        ("--algo perceptron", "perceptron", {}),
        ("--algo pnorm --p 6 --hypothesis last", "pnorm", {"p": 6, "hypothesis": "last"}),
        ("--algo pnorm --p log --n-features 3000", "pnorm", {"p": "log", "n_features": 3000}),
        ("--algo alma --B none --C 1.5 --normalize running --epochs 3 --seed 5", "alma",
         {"C": 1.5, "normalize": "running", "max_iter": 3, "random_state": 5}),
        ("--algo pnorm --epochs 2 --no-shuffle", "pnorm", {"max_iter": 2, "shuffle": False}),
        ("--algo margin --margin 0.5 --eta 2", "margin", {"margin": 0.5, "eta": 2}),
        ("--algo cramma --radius 1.5 --beta 0.5", "cramma", {"radius": 1.5, "beta": 0.5}),
        ("--algo romma --aggressive", "romma", {"aggressive": True}),
        ("--algo ho --max-updates 20 --c 0.3 --sparse-updates", "ho",
         {"max_updates": 20, "c": 0.3, "sparse_updates": True}),
        ("--algo ho", "ho", {}),
        ("--algo so", "so", {}),
        ("--algo so --a 2 --max-updates 20", "so", {"a": 2, "max_updates": 20}),
        ("--hash-bits 8 --float32 --threads 1", None,
         {"hash_bits": 8, "dtype": np.float32, "n_jobs": 1}),
        ("--zero-based yes", None, {"zero_based": True}),
        ("--algo pnorm --class-weight 1=2 --class-weight -1=0.5", "pnorm",
         {"class_weight": {1.0: 2.0, -1.0: 0.5}}),
        ("--positive 1", None, {"positive": "1"}),
        ("--classes -1,1,2", None, {"classes": [-1, 1, 2]}),
    ],
)  # fmt: skip
def test_the_model_is_that_of_fit_svmlight(text, tmp_path, options, algo, params):
    model = train(text, tmp_path / "a.model", *options.split())
    expected = fit_svmlight(text, algo, **{"random_state": 0, **params})
    assert_same(model, expected, tmp_path)


def test_labels_may_be_words(words, tmp_path):
    model = train(words, tmp_path / "a.model", "--algo", "pnorm", "--class-weight", "spam=3")
    assert model.classes_.tolist() == ["eggs", "ham", "spam"]
    assert model.class_weight == {"spam": 3.0}


def test_one_of_several_labels_is_told_from_the_rest(tmp_path):
    path = tmp_path / "topics.svm"
    path.write_text("C15,M11 1:1\nM11 2:1\nC15 1:2 3:1\n 2:2 3:-1\n" * 20)
    model = train(path, tmp_path / "a.model", "--positive", "C15")
    assert model.predict([[1.0, 0, 0], [0, 1.0, 0]]).tolist() == [1, -1]
    result = run("train", path, "-o", tmp_path / "b.model", "--positive", "C16", code=1)
    assert "no row has the label positive='C16'. There are: C15, M11" in result.stderr
    result = run("train", path, "-o", tmp_path / "b.model", code=1)
    assert "is more than one label. Pass multilabel=True, to learn them all, or" in result.stderr
    assert "positive=LABEL, to tell that one" in result.stderr
    assert not (tmp_path / "b.model").exists()


def test_files_may_be_several_or_packed_or_a_pattern(text, tmp_path):
    lines = text.read_bytes().splitlines(keepends=True)
    (tmp_path / "part-1.svm").write_bytes(b"".join(lines[:150]))
    with gzip.open(tmp_path / "part-2.svm", "wb") as file:
        file.write(b"".join(lines[150:]))
    whole = train(text, tmp_path / "a.model")
    assert_same(train(tmp_path / "part-*.svm", tmp_path / "b.model"), whole, tmp_path)
    parts = tmp_path / "part-1.svm", tmp_path / "part-2.svm"
    run("train", *parts, "-o", tmp_path / "b.model", "-q")
    assert_same(load_model(tmp_path / "b.model"), whole, tmp_path)


# ----------------------------------------------------------------------------------------- cache


def test_more_epochs_make_a_cache_beside_the_file(text, tmp_path):
    cache = tmp_path / "train.svm.smcache"
    train(text, tmp_path / "a.model")
    assert not cache.exists()
    train(text, tmp_path / "a.model", "--epochs", "2")
    assert cache.exists()


def test_a_cache_may_be_asked_for(text, tmp_path):
    one = train(text, tmp_path / "a.model", "--cache", tmp_path / "rows")
    assert (tmp_path / "rows").exists()
    # The second time, the rows come from there.
    assert_same(train(text, tmp_path / "a.model", "--cache", tmp_path / "rows"), one, tmp_path)
    train(text, tmp_path / "a.model", "--cache-beside")
    assert (tmp_path / "train.svm.smcache").exists()


def test_convert_makes_the_cache_that_training_uses(text, tmp_path):
    run("convert", text, tmp_path / "rows.smcache", "-q")
    made = (tmp_path / "rows.smcache").stat()
    train(text, tmp_path / "a.model", "--epochs", "2", "--cache", tmp_path / "rows.smcache")
    assert (tmp_path / "rows.smcache").stat().st_ino == made.st_ino
    train(text, tmp_path / "a.model", "--float32", "--cache", tmp_path / "rows.smcache")
    assert (tmp_path / "rows.smcache").stat().st_ino != made.st_ino


# -------------------------------------------------------------------------------------- going on


def test_going_on_from_a_model(text, tmp_path):
    first = train(text, tmp_path / "a.model", "--algo", "pnorm", "--p", "4")
    kept = (tmp_path / "a.model").read_bytes()
    model = train(text, tmp_path / "b.model", "--init", tmp_path / "a.model")
    assert_same(model, fit_svmlight(text, init_model=first), tmp_path)
    assert (tmp_path / "a.model").read_bytes() == kept
    # The model may be replaced by the one that went on from it.
    again = train(text, tmp_path / "a.model", "--init", tmp_path / "a.model", "--epochs", "2")
    assert_same(again, fit_svmlight(text, init_model=first, max_iter=2), tmp_path)


@pytest.mark.parametrize(
    "options",
    ["--alpha 0.5", "--algo alma", "--random-state 1", "--hash-bits 9", "--class-weight 1=2"],
)
def test_going_on_keeps_the_settings(text, tmp_path, options):
    train(text, tmp_path / "a.model")
    args = "train", text, "-o", tmp_path / "b.model", "--init", tmp_path / "a.model"
    result = run(*args, *options.split(), code=2)
    assert f"{options.split()[0]} can't be changed: --init" in result.stderr


def test_going_on_with_other_classes_is_refused(text, words, tmp_path):
    train(text, tmp_path / "a.model")
    args = "train", words, "-o", tmp_path / "b.model", "--init", tmp_path / "a.model", "-q"
    assert "is none of the classes" in run(*args, code=1).stderr


# --------------------------------------------------------------------------------------- outputs


def test_weights_as_text(text, tmp_path):
    names = [f"word{i}" for i in range(3000)]
    (tmp_path / "words.txt").write_text("\n".join(names))
    readable = tmp_path / "weights.txt"
    model = train(text, tmp_path / "a.model", "--n-features", 3000, "--readable", readable,
                  "--dictionary", tmp_path / "words.txt")  # fmt: skip
    lines = [line.split("\t") for line in readable.read_text().splitlines() if line[0] != "#"]
    written = {name: float(weight) for name, weight in lines}
    assert written.pop("(intercept)") == model.intercept_[0]
    coef = dict(zip(names, model.coef_[0], strict=True))
    assert written == {name: weight for name, weight in coef.items() if weight}
    assert read_dictionary(tmp_path / "words.txt", 3000) == names


def test_weights_as_text_are_named_by_the_indices_in_the_file(text, tmp_path):
    readable = tmp_path / "weights.txt"
    model = train(text, tmp_path / "a.model", "--readable", readable, "--no-fit-intercept")
    lines = [line.split("\t") for line in readable.read_text().splitlines() if line[0] != "#"]
    # They count from 1.
    assert {int(name) - 1 for name, _ in lines} == set(np.flatnonzero(model.coef_[0]))


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("none/a.model", "there is no folder"),
        (".", "is a directory. Name a file in it"),
        ("train.svm", "train.svm are one file. Name two"),
        (os.devnull, "is no regular file"),
    ],
)
def test_where_no_model_can_be_written_is_told_before_training(text, tmp_path, output, words):
    before = text.read_bytes()
    result = run("train", text, "-o", tmp_path / output, code=2 if output == "train.svm" else 1)
    assert words in result.stderr
    assert "epoch" not in result.stderr
    assert text.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-o m --readable m", "-o m and --readable m are one file"),
        ("-o m --readable ./x/../m", "-o m and --readable ./x/../m are one file"),
        ("-o m --readable old --init old", "--readable old and --init-model old are one file"),
        ("-o m --cache old --init old", "--cache old and --init-model old are one file"),
        ("-o m --readable d --dictionary d", "--readable d and --dictionary d are one file"),
        ("-o d --readable r --dictionary d", "-o d and --dictionary d are one file"),
        ("-o m --readable train.svm", "--readable train.svm and FILE train.svm are one file"),
        ("-o m --cache train.svm", "--cache train.svm and FILE train.svm are one file"),
        ("-o m --cache m", "-o m and --cache m are one file"),
        ("-o m --readable r --cache r", "--readable r and --cache r are one file"),
        ("-o train.svm.smcache --cache-beside", "and --cache train.svm.smcache are one file"),
        ("-o train.svm.smcache --epochs 2", "and --cache train.svm.smcache are one file"),
    ],
)
def test_files_are_not_replaced_by_each_other(text, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    train(text, "old")
    (tmp_path / "d").write_text("".join(f"word{i}\n" for i in range(3000)))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    result = run("train", "train.svm", *options.split(), code=2)
    assert words in result.stderr
    assert "epoch" not in result.stderr
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert after == before


def test_a_cache_is_no_model_where_there_is_none_to_make(text, tmp_path):
    train(text, tmp_path / "train.svm.smcache")


def test_a_cache_that_cannot_be_made_is_told_before_training(text, tmp_path, monkeypatch):
    args = "train", text, "-o", tmp_path / "a.model"
    result = run(*args, "--cache", tmp_path / "none" / "c", code=1)
    assert f"there is no folder {tmp_path / 'none'}" in result.stderr
    assert "epoch" not in result.stderr
    (tmp_path / "train.svm.smcache").mkdir()
    result = run(*args, "--epochs", "2", code=1)
    assert "train.svm.smcache: the rows can't be kept here" in result.stderr
    assert "Pass --cache PATH" in result.stderr
    assert "epoch" not in result.stderr
    run(*args, "--epochs", "2", "--cache", tmp_path / "c", "-q")


def test_a_cache_that_is_there_may_be_in_a_folder_that_is_read_only(text, tmp_path, monkeypatch):
    first = train(text, tmp_path / "a.model", "--epochs", "2")
    folder = tmp_path / "models"
    folder.mkdir()

    def refused(dir):
        if dir != folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return io.BytesIO()

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    assert_same(train(text, folder / "b.model", "--epochs", "2"), first, tmp_path)
    (tmp_path / "train.svm.smcache").unlink()
    result = run("train", text, "-o", folder / "b.model", "--epochs", "2", code=1)
    assert "can't be kept here: Permission denied. Pass --cache PATH" in result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        (b"one\nt\xe9\n", "line 2 is not UTF-8"),
        (b"one\t0\ntwo\n", "line 2 reads 'two': expected a name, a tab and the number"),
    ],
)
def test_a_bad_dictionary_is_told_before_training(text, tmp_path, content, words):
    path = tmp_path / "words.txt"
    if content is not None:
        path.write_bytes(content)
    options = "--readable", tmp_path / "weights.txt", "--dictionary", path
    result = run("train", text, "-o", tmp_path / "a.model", *options, code=1)
    assert words in result.stderr
    assert "epoch" not in result.stderr
    assert not (tmp_path / "a.model").exists()


def test_a_dictionary_may_be_a_pipe(text, tmp_path):
    names = [f"word{i}" for i in range(train(text, tmp_path / "a.model").n_features_in_)]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("\n".join(names),), daemon=True)
    writer.start()
    train(text, tmp_path / "a.model", "--readable", tmp_path / "w.txt", "--dictionary", pipe)
    writer.join(60)
    assert "word" in (tmp_path / "w.txt").read_text()


def test_a_model_is_there_where_its_weights_cannot_be_written_as_text(text, tmp_path):
    (tmp_path / "words.txt").write_text("one\ntwo\n")
    options = "--readable", tmp_path / "w.txt", "--dictionary", tmp_path / "words.txt"
    result = run("train", text, "-o", tmp_path / "a.model", *options, "-q", code=1)
    assert "has 2 names for" in result.stderr or "feature 2" in result.stderr
    assert result.stderr.endswith(f" The model has been saved: {tmp_path / 'a.model'}\n")
    load_model(tmp_path / "a.model")


def test_a_model_keeps_what_its_indices_count_from(text, tmp_path):
    train(text, tmp_path / "a.model")
    args = "train", text, "-o", tmp_path / "b.model", "--init", tmp_path / "a.model"
    for value in ("yes", "no"):
        result = run(*args, "--zero-based", value, code=2)
        assert "--zero-based can't be changed: --init" in result.stderr
    # One of a matrix has none to keep.
    X, y = load_svmlight(text)
    save_model(PNormPerceptron().fit(X, y), tmp_path / "a.model")
    run(*args, "--zero-based", "no", "-q")


def test_a_model_says_only_what_can_be_done_with_it(text, words, tmp_path):
    train(text, tmp_path / "a.model")
    args = "-o", tmp_path / "b.model", "--init", tmp_path / "a.model"
    error = run("train", words, *args, "-q", code=1).stderr
    assert "a model that has learned its classes can't learn others" in error
    (tmp_path / "zero.svm").write_text("1 0:1\n-1 1:1\n")
    error = run("train", tmp_path / "zero.svm", *args, "-q", code=1).stderr
    assert "add 1 to the indices here" in error


def test_a_full_disk_leaves_the_old_model(text, tmp_path, monkeypatch):
    path = tmp_path / "a.model"
    train(text, path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    result = run("train", text, "-o", path, "-q", "--alpha", "0.5", code=1)
    assert f"{path}: No space left on device. Make room, or write elsewhere" in result.stderr
    assert "Nor could what has been learned be saved elsewhere: [Errno 28]" in result.stderr
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir() if "tmp" in entry.name] == []


def test_a_full_disk_does_not_cost_what_was_learned(text, tmp_path, monkeypatch):
    spare, replace = tmp_path / "spare", os.replace
    spare.mkdir()
    train(text, tmp_path / "expected.model")

    def full_but_for_spare(fresh, target):
        if os.path.dirname(target) != str(spare):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(fresh, target)

    monkeypatch.setattr(os, "replace", full_but_for_spare)
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    result = run("train", text, "-o", tmp_path / "a.model", "-q", code=1)
    (aside,) = spare.iterdir()
    assert f"{tmp_path / 'a.model'}: No space left on device" in result.stderr
    assert result.stderr.endswith(f" What has been learned is in {aside}.\n")
    assert aside.read_bytes() == (tmp_path / "expected.model").read_bytes()


# -------------------------------------------------------------------------------------- progress


def test_lines_tell_how_far_it_is(text, tmp_path):
    result = run("train", text, "-o", tmp_path / "a.model", "--epochs", "2")
    header, *lines = result.stderr.splitlines()
    assert header.split()[:3] == ["rows", "epoch", "features"]
    rows = [int(line.split()[0].replace(",", "")) for line in lines if line[0] == " "]
    # Each time the rows have doubled.
    firsts = [b / a for a, b in pairwise(rows) if b > a]
    assert len(rows) > 4
    assert min(firsts) >= 2
    assert "one-step-ahead error" in result.stderr
    assert result.stdout == ""


def test_figures_as_json(text, tmp_path):
    path = tmp_path / "a.model"
    result = run("train", text, "-o", path, "-q", "--json")
    assert result.stderr == ""
    figures = json.loads(result.stdout)
    model = load_model(path)
    assert figures["model"] == str(path)
    assert figures["model_bytes"] == path.stat().st_size
    assert figures["classes"] == ["-1", "1"]
    assert figures["rows"] == 400
    assert figures["bytes"] == text.stat().st_size
    assert figures["features"] == model.n_features_in_
    assert figures["corrections"] == model.n_corrections_
    # What is predicted wrongly is corrected.
    assert 0 < figures["mistakes"] <= figures["corrections"]
    assert figures["one_step_ahead_error"] == figures["mistakes"] / 400
    assert figures["interrupted"] is False


def test_the_error_is_that_of_predictions_made_before_each_row_is_learned_from(text, tmp_path):
    options = ["--algo", "pnorm", "--hypothesis", "last"]
    figures = json.loads(
        run("train", text, "-o", tmp_path / "a.model", "-q", "--json", *options).stdout
    )
    X, y = load_svmlight(text)
    scaling = 0.1 * np.sqrt(X[:100].multiply(X[:100]).sum() / 100)
    model = PNormPerceptron(hypothesis="last", intercept_scaling=scaling)
    model.partial_fit(X[:1], y[:1], classes=[-1, 1])
    # Weights of 0 are for the second class.
    wrong = int(y[0] != 1)
    for i in range(1, 400):
        wrong += model.predict(X[i : i + 1])[0] != y[i]
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert figures["mistakes"] == wrong


def test_quiet_is_quiet(text, tmp_path):
    result = run("train", text, "-o", tmp_path / "a.model", "--quiet", "--epochs", "3")
    assert result.output == ""
