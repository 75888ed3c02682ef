"""``sparsemargin train`` gives the models of `fit_svmlight`, and says what it does."""

import errno
import gzip
import io
import json
import os
import tempfile
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from problems.command_line import run
from sparsemargin import PNormPerceptron, fit_svmlight, load_model, load_svmlight, save_model
from sparsemargin.io.readable import read_dictionary


def train(options, code=0):
    return run("train", *options.split(), code=code)


def trained(options, output="a.model"):
    """The model that it makes."""
    train(f"{options} -o {output} -q")
    return load_model(output)


def error_of(options, code=1):
    """What it says is wrong, before it learns anything."""
    error = train(options, code).stderr
    assert "epoch" not in error
    return error


def contents():
    """All files, by name."""
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


def assert_same(model, other):
    """To the bit: their files are the same."""
    save_model(model, "one")
    save_model(other, "other")
    assert Path("one").read_bytes() == Path("other").read_bytes()


@pytest.mark.parametrize(
    ("options", "algo", "params"),
    [
        ("", None, {}),
        ("--alpha 0.5 --no-fit-intercept", None, {"alpha": 0.5, "fit_intercept": False}),
        ("--algo pnorm --p 6 --hypothesis last", "pnorm", {"p": 6, "hypothesis": "last"}),
        ("--algo pnorm --p log --n-features 3000", "pnorm", {"p": "log", "n_features": 3000}),
        ("--algo alma --B none --C 1.5 --normalize running --epochs 3 --seed 5", "alma",
         {"C": 1.5, "normalize": "running", "max_iter": 3, "random_state": 5}),
        ("--algo pnorm --epochs 2 --no-shuffle", "pnorm", {"max_iter": 2, "shuffle": False}),
        ("--algo margin --margin 0.5 --eta 2", "margin", {"margin": 0.5, "eta": 2}),
        ("--algo cramma --radius 1.5 --beta 0.5", "cramma", {"radius": 1.5, "beta": 0.5}),
        ("--algo ho --max-updates 20 --c 0.3 --sparse-updates", "ho",
         {"max_updates": 20, "c": 0.3, "sparse_updates": True}),
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
def test_the_model_is_that_of_fit_svmlight(options, algo, params):
    expected = fit_svmlight("train.svm", algo, **{"random_state": 0, **params})
    assert_same(trained(f"train.svm {options}"), expected)


def test_files_may_be_several_or_packed_or_a_pattern():
    lines = Path("train.svm").read_bytes().splitlines(keepends=True)
    Path("part-1.svm").write_bytes(b"".join(lines[:150]))
    Path("part-2.svm").write_bytes(gzip.compress(b"".join(lines[150:])))
    whole = trained("train.svm")
    assert_same(trained("part-*.svm"), whole)
    assert_same(trained("part-1.svm part-2.svm"), whole)


# ----------------------------------------------------------------------------------------- cache


def test_more_epochs_make_a_cache_beside_the_file():
    cache = Path("train.svm.smcache")
    trained("train.svm")
    assert not cache.exists()
    for options in "--epochs 2", "--cache-beside":
        trained(f"train.svm {options}")
        assert cache.exists()
        cache.unlink()
    # The second time, the rows come from there.
    one = trained("train.svm --cache rows")
    assert Path("rows").exists()
    assert_same(trained("train.svm --cache rows"), one)
    # A cache is no model where there is none to make.
    trained("train.svm", "train.svm.smcache")


def test_convert_makes_the_cache_that_training_uses():
    run("convert", "train.svm", "rows.smcache", "-q")
    made = os.stat("rows.smcache")
    trained("train.svm --epochs 2 --cache rows.smcache")
    assert os.stat("rows.smcache").st_ino == made.st_ino
    trained("train.svm --float32 --cache rows.smcache")
    assert os.stat("rows.smcache").st_ino != made.st_ino


def test_a_cache_that_is_there_may_be_in_a_folder_that_is_read_only(monkeypatch):
    first = trained("train.svm --epochs 2")
    os.mkdir("models")

    def refused(dir):
        if Path(dir).name != "models":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return io.BytesIO()

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    assert_same(trained("train.svm --epochs 2", "models/b.model"), first)
    os.unlink("train.svm.smcache")
    error = error_of("train.svm -o models/b.model --epochs 2")
    assert "train.svm.smcache: the rows can't be kept here: Permission denied. Pass --cac" in error
    trained("train.svm --epochs 2 --cache models/c", "models/b.model")


# -------------------------------------------------------------------------------------- going on


def test_going_on_from_a_model():
    first = trained("train.svm --algo pnorm --p 4")
    kept = Path("a.model").read_bytes()
    model = trained("train.svm --init a.model", "b.model")
    assert_same(model, fit_svmlight("train.svm", init_model=first))
    assert Path("a.model").read_bytes() == kept
    # The model may be replaced by the one that went on from it.
    again = trained("train.svm --init a.model --epochs 2")
    assert_same(again, fit_svmlight("train.svm", init_model=first, max_iter=2))


@pytest.mark.parametrize(
    "options",
    [
        "--alpha 0.5", "--algo alma", "--random-state 1", "--hash-bits 9", "--class-weight 1=2",
        "--zero-based yes", "--zero-based no",
    ],
)  # fmt: skip
def test_going_on_keeps_the_settings(options):
    trained("train.svm")
    error = error_of(f"train.svm -o b.model --init a.model {options}", code=2)
    assert f"{options.split()[0]} can't be changed: --init" in error


def test_a_model_says_what_can_be_done_with_it():
    trained("train.svm")
    error = train("train3.svm -o b.model --init a.model", 1).stderr
    assert "is none of the classes" in error
    assert "a model that has learned its classes can't learn others" in error
    Path("zero.svm").write_text("1 0:1\n-1 1:1\n")
    assert "add 1 to the indices here" in train("zero.svm -o b.model --init a.model", 1).stderr
    # One of a matrix has not learned what indices count from.
    save_model(PNormPerceptron().fit(*load_svmlight("train.svm")), "a.model")
    trained("train.svm --init a.model --zero-based no", "b.model")


# --------------------------------------------------------------------------------------- outputs


def weights_in(path):
    """The weights of a file that people read, by their names."""
    lines = [line.split("\t") for line in Path(path).read_text().splitlines() if line[0] != "#"]
    return {name: float(weight) for name, weight in lines}


def test_weights_as_text():
    names = [f"word{i}" for i in range(3000)]
    Path("words.txt").write_text("\n".join(names))
    model = trained("train.svm --n-features 3000 --readable w.txt --dictionary words.txt")
    weights = {name: weight for name, weight in zip(names, model.coef_[0], strict=True) if weight}
    assert weights_in("w.txt") == {"(intercept)": model.intercept_[0], **weights}
    assert read_dictionary("words.txt", 3000) == names
    # Without, they are named by the indices in the file, from 1.
    model = trained("train.svm --readable w.txt --no-fit-intercept")
    assert {int(name) - 1 for name in weights_in("w.txt")} == set(np.flatnonzero(model.coef_[0]))


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ("-o none/a.model", 1, "there is no folder"),
        ("-o .", 1, "is a directory. Name a file in it"),
        (f"-o {os.devnull}", 1, "is no regular file"),
        ("-o m --cache none/c", 1, "none/c: there is no folder"),
        ("-o m --readable r --dictionary no", 1, "no: No such file or directory"),
        ("-o m --readable r --dictionary latin", 1, "line 2 is not UTF-8"),
        ("-o m --readable r --dictionary pairs", 1, "line 2 reads 'two': expected a name, a tab"),
        ("-o train.svm", 2, "train.svm are one file. Name two"),
        ("-o m --readable m", 2, "-o m and --readable m are one file"),
        ("-o m --readable ./x/../m", 2, "-o m and --readable ./x/../m are one file"),
        ("-o m --readable old --init old", 2, "--readable old and --init-model old are one file"),
        ("-o m --cache old --init old", 2, "--cache old and --init-model old are one file"),
        ("-o m --readable d --dictionary d", 2, "--readable d and --dictionary d are one file"),
        ("-o d --readable r --dictionary d", 2, "-o d and --dictionary d are one file"),
        ("-o m --readable train.svm", 2, "--readable train.svm and FILE train.svm are one file"),
        ("-o m --cache train.svm", 2, "--cache train.svm and FILE train.svm are one file"),
        ("-o m --cache m", 2, "-o m and --cache m are one file"),
        ("-o m --readable r --cache r", 2, "--readable r and --cache r are one file"),
        ("-o train.svm.smcache --cache-beside", 2, "and --cache train.svm.smcache are one file"),
        ("-o train.svm.smcache --epochs 2", 2, "and --cache train.svm.smcache are one file"),
    ],
)
def test_files_that_cannot_be_made_or_read_are_told_before_training(options, code, words):
    os.mkdir("x")
    trained("train.svm", "old")
    Path("d").write_text("".join(f"word{i}\n" for i in range(3000)))
    Path("latin").write_bytes(b"one\nt\xe9\n")
    Path("pairs").write_text("one\t0\ntwo\n")
    before = contents()
    assert words in error_of(f"train.svm {options}", code)
    assert contents() == before


def test_a_dictionary_may_be_a_pipe():
    names = [f"word{i}" for i in range(trained("train.svm").n_features_in_)]
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_text, args=("\n".join(names),), daemon=True)
    writer.start()
    trained("train.svm --readable w.txt --dictionary pipe")
    writer.join(60)
    assert "word" in Path("w.txt").read_text()


def test_a_model_is_there_where_its_weights_cannot_be_written_as_text():
    Path("words.txt").write_text("one\ntwo\n")
    error = train("train.svm -o a.model --readable w.txt --dictionary words.txt -q", 1).stderr
    assert "has 2 names for" in error or "feature 2" in error
    assert error.endswith(" The model has been saved: a.model\n")
    load_model("a.model")


def test_a_full_disk_leaves_the_old_model(monkeypatch):
    trained("train.svm")
    before = contents()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    error = train("train.svm -o a.model -q --alpha 0.5", 1).stderr
    assert "a.model: No space left on device. Make room, or write elsewhere" in error
    assert "Nor could what has been learned be saved elsewhere: [Errno 28]" in error
    assert contents() == before


# -------------------------------------------------------------------------------------- progress


def test_lines_tell_how_far_it_is():
    result = train("train.svm -o a.model --epochs 2")
    header, *lines = result.stderr.splitlines()
    assert header.split()[:3] == ["rows", "epoch", "features"]
    rows = [int(line.split()[0].replace(",", "")) for line in lines if line[0] == " "]
    # Each time the rows have doubled.
    firsts = [b / a for a, b in pairwise(rows) if b > a]
    assert len(rows) > 4
    assert min(firsts) >= 2
    assert "one-step-ahead error" in result.stderr
    assert result.stdout == ""
    assert train("train.svm -o a.model --quiet --epochs 3").output == ""


def test_figures_as_json():
    result = train("train.svm -o a.model -q --json")
    assert result.stderr == ""
    figures = json.loads(result.stdout)
    model = load_model("a.model")
    # What is predicted wrongly is corrected.
    assert 0 < figures["mistakes"] <= figures["corrections"]
    assert (
        figures.items()
        >= {
            "model": "a.model",
            "model_bytes": os.path.getsize("a.model"),
            "classes": ["-1", "1"],
            "rows": 400,
            "bytes": os.path.getsize("train.svm"),
            "features": model.n_features_in_,
            "corrections": model.n_corrections_,
            "one_step_ahead_error": figures["mistakes"] / 400,
            "interrupted": False,
        }.items()
    )
