"""``sparsemargin train`` gives the models of `fit_svmlight`, and reports its progress."""

import errno
import io
import json
import os
import re
import tempfile
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from problems.command_line import contents, run
from problems.models import assert_same
from sparsemargin import PNormPerceptron, fit_svmlight, load_model, load_svmlight, save_model
from sparsemargin.cli.display import size_in_words


def train(options, code=0):
    return run("train", *options.split(), code=code)


def trained(options, output="a.model"):
    """Train with these options and return the model."""
    train(f"{options} -o {output} -q")
    return load_model(output)


def error_of(options, code=1):
    """Return the error of a command that fails before training."""
    error = train(options, code).stderr
    assert "epoch" not in error
    return error


@pytest.mark.parametrize(("options", "algo", "params"), [
    ("", None, {}),
    ("--algo pnorm --p 6 --hypothesis last --epochs 2 --no-shuffle", "pnorm",
     {"p": 6, "hypothesis": "last", "max_iter": 2, "shuffle": False}),
    ("--algo pnorm --p log --n-features 3000", "pnorm", {"p": "log", "n_features": 3000}),
    ("--algo alma --C 1.5 --normalize running --epochs 3 --seed 5", "alma",
     {"C": 1.5, "normalize": "running", "max_iter": 3, "random_state": 5}),
    ("--algo margin --margin 0.5", "margin", {"margin": 0.5}),
    ("--algo cramma --radius 1.5 --beta 0.5", "cramma", {"radius": 1.5, "beta": 0.5}),
    ("--algo ho --max-updates 20 --c 0.3 --sparse-updates", "ho",
     {"max_updates": 20, "c": 0.3, "sparse_updates": True}),
    ("--algo so --a 2 --max-updates 20", "so", {"a": 2, "max_updates": 20}),
    ("--hash-bits 8 --float32 --threads 1", None,
     {"hash_bits": 8, "dtype": np.float32, "n_jobs": 1}),
    ("--zero-based yes --algo alma --alpha 0.5 --no-fit-intercept", "alma",
     {"zero_based": True, "alpha": 0.5, "fit_intercept": False}),
    ("--positive 1 --class-weight 1=2 --class-weight -1=0.5", None,
     {"positive": "1", "class_weight": {1: 2.0, -1: 0.5}}),
    ("--classes -1,1,2", None, {"classes": [-1, 1, 2]}),
    ("--class-weight balanced", None, {"class_weight": "balanced"}),
])  # fmt: skip
def test_train_gives_the_model_of_fit_svmlight(options, algo, params):
    expected = fit_svmlight("train.svm", algo, **{"random_state": 0, **params})
    assert_same(trained(f"train.svm {options}"), expected)


def test_the_format_may_be_svmlight_whatever_the_name():
    os.rename("train.svm", "train.csv")
    expected = fit_svmlight("train.csv", random_state=0)
    assert_same(trained("train.csv --format svmlight"), expected)


def test_cache_option_keeps_the_cache():
    cache = Path("train.svm.smcache")
    assert "row cache" not in train("train.svm -o a.model --epochs 2").stderr
    assert not cache.exists()
    for options in "--epochs 2", "":
        told = train(f"train.svm -o a.model {options} --cache {cache}").stderr
        kept = f"train.svm.smcache, {size_in_words(cache.stat().st_size)}; kept for further runs"
        assert kept in told
        cache.unlink()
    assert trained("train.svm --epochs until --algo perceptron").max_iter == 1000
    # Without --cache, the model may have the default name of a row cache.
    trained("train.svm", "train.svm.smcache")
    # An existing cache is used if it fits the file, and written again if not.
    trained("train.svm --cache rows.smcache")
    made = os.stat("rows.smcache")
    trained("train.svm --epochs 2 --cache rows.smcache")
    assert os.stat("rows.smcache").st_ino == made.st_ino
    trained("train.svm --float32 --cache rows.smcache")
    assert os.stat("rows.smcache").st_ino != made.st_ino


def test_existing_cache_may_be_in_a_read_only_folder(monkeypatch):
    first = trained("train.svm --cache rows")
    os.mkdir("models")

    def refused(dir):
        if Path(dir).name != "models":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return io.BytesIO()

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    assert_same(trained("train.svm --cache rows", "models/b.model"), first)
    os.unlink("rows")
    error = error_of("train.svm -o models/b.model --cache rows")
    assert "rows: Permission denied" in error


def test_init_option_continues_from_a_model():
    first, kept = load_model("a.model"), Path("a.model").read_bytes()
    model = trained("train.svm test.svm --init a.model", "b.model")
    assert_same(model, fit_svmlight(["train.svm", "test.svm"], init_model=first))
    assert Path("a.model").read_bytes() == kept
    # The output may replace the initial model.
    again = trained("train.svm --init a.model --epochs 2")
    assert_same(again, fit_svmlight("train.svm", init_model=first, max_iter=2))


def test_init_option_keeps_the_settings():
    settings = "--p 5", "--algo alma", "--class-weight 1=2", "--zero-based no", "--float32"
    for options in settings:
        error = error_of(f"train.svm -o b.model --init a.model {options}", code=2)
        assert f"{options.split()[0]} can't be changed: --init" in error


def test_positive_option_needs_an_initial_model_of_its_classes():
    Path("t.tsv").write_text("spam\tcheap pills\nham\tlunch at noon\n" * 20)
    trained("t.tsv", "t.model")
    error = error_of("t.tsv -o p.model --init a.model", code=2)
    assert "a.model was not trained on texts. Leave --init-model out" in error
    error = error_of("t.tsv -o p.model --init t.model --positive spam")
    assert "--positive spam needs a model of the classes -1, 1, and this one has ham" in error
    trained("t.tsv --positive spam", "p.model")
    trained("t.tsv --init p.model --positive spam", "p.model")


@pytest.mark.parametrize(("options", "words"), [
    ("--float32", "--float32 needs svmlight text, and t.tsv is a file of texts. Leave it out"),
    ("--n-features 9", "--n-features needs svmlight text"),
    ("--zero-based no", "--zero-based needs svmlight text"),
    ("--layer X", "--layer needs files of cells"),
    ("--hash-bits 31", "--hash-bits 31 is for svmlight text. For texts, pass at most 30"),
    ("--classes=", "--classes has an empty label"),
    ("--classes ham,,spam", "--classes has an empty label"),
    ("--class-weight spam=2 --class-weight spam=3", "label spam has several weights"),
    ("--class-weight 1=2 --class-weight +1=3", "label 1 has several weights"),
])  # fmt: skip
def test_wrong_options_for_texts_are_refused(options, words):
    Path("t.tsv").write_text("spam\tcheap pills\nham\tlunch at noon\n" * 20)
    assert words in error_of(f"t.tsv -o t.model {options}", code=2)


@pytest.mark.parametrize(
    "options", ["--text body", "--label queue", "--missing drop", "--encoding cp1252", "--batch d"]
)
def test_options_that_svmlight_text_does_not_have_are_refused(options):
    named = options.split()[0]
    error = error_of(f"train.svm -o b.model {options}", code=2)
    assert f"{named} needs files of " in error
    assert "and train.svm is read as svmlight text. Leave it out" in error
    if named != "--batch":
        for command in "predict", "evaluate":
            error = run(command, "a.model", "train.svm", *options.split(), code=2).stderr
            assert f"{named} needs files of " in error
            assert "--format" not in error  # it can't help here
    error = run("predict", "a.model", "train.svm", "--format", "tsv", code=2).stderr
    assert "--format tsv needs a model of texts" in error


def test_json_of_texts_has_no_mistakes_if_they_are_not_counted():
    Path("t.tsv").write_text("spam\tcheap pills\nham\tlunch at noon\n" * 20)
    figures = json.loads(train("t.tsv -o t.model --json -q").stdout)
    assert figures["progressive_error"] is figures["mistakes"] is None


def test_init_option_takes_new_classes_of_texts():
    Path("old.tsv").write_text("spam\tcheap pills\nham\tlunch at noon\n" * 20)
    week = ["queue,body", *["spam,free pills", "bank,a new account"] * 20]
    Path("week.csv").write_text("\n".join(week))
    trained("old.tsv", "old.model")
    columns = "--label queue --text body"
    model = trained(f"week.csv --init old.model {columns}", "n.model")
    assert model.classes_.tolist() == ["bank", "ham", "spam"]
    assert model.predict(["a new account"]).tolist() == ["bank"]
    named = trained(f"week.csv --init old.model {columns} --classes bank,ham,spam,z", "n.model")
    assert named.classes_.tolist() == ["bank", "ham", "spam", "z"]
    error = error_of(f"week.csv -o n.model --init old.model {columns} --classes ham,spam")
    assert "label bank is none of the classes, ham, spam. Pass --classes" in error


def test_errors_explain_the_limits_of_a_model():
    error = train("train3.svm -o b.model --init a.model", 1).stderr
    assert "is none of the classes" in error
    assert "This model can't learn new classes. Leave such rows out" in error
    Path("zero.svm").write_text("1 0:1\n-1 1:1\n")
    assert (
        "add 1 to the indices of this file" in train("zero.svm -o b.model --init a.model", 1).stderr
    )
    # A model fitted to a matrix does not know whether indices start at 0 or 1.
    save_model(PNormPerceptron().fit(*load_svmlight("train.svm")), "a.model")
    trained("train.svm --init a.model --zero-based no", "b.model")


def test_readable_weights_use_a_dictionary():
    names = [f"word{i}" for i in range(3000)]
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_text, args=("\n".join(names),), daemon=True)
    writer.start()
    model = trained("train.svm --n-features 3000 --readable w.txt --dictionary pipe")
    writer.join(60)
    lines = [line.split("\t") for line in Path("w.txt").read_text().splitlines() if line[0] != "#"]
    weights = {name: weight for name, weight in zip(names, model.coef_[0], strict=True) if weight}
    told = {name: float(weight) for name, weight in lines}
    assert told == {"(intercept)": model.intercept_[0], **weights}


@pytest.mark.parametrize(("options", "code", "words"), [
    ("-o none/a.model", 1, "there is no folder"),
    ("-o .", 1, "is a directory. Name a file in it"),
    (f"-o {os.devnull}", 1, "is not a regular file"),
    ("-o /dev/stdout", 1, "is not a regular file"),
    ("--output=", 1, "is empty. Name one"),
    ("-o none/", 1, "there is no folder"),
    (f"-o {'m' * 250}", 1, "File name too long"),
    ("-o m --cache none/c", 1, "none/c: there is no folder"),
    ("-o m --readable r --dictionary no", 1, "no: No such file or directory"),
    ("-o train.svm", 2, "train.svm are one file. Name two"),
    ("-o m --readable ./x/../m", 2, "-o m and --readable ./x/../m are one file"),
    ("-o m --readable old --init old", 2, "--readable old and --init-model old are one file"),
    ("-o d --readable r --dictionary d", 2, "-o d and --dictionary d are one file"),
    ("-o m --cache train.svm", 2, "--cache train.svm and FILE train.svm are one file"),
])  # fmt: skip
def test_unusable_paths_are_reported_before_training(options, code, words):
    os.mkdir("x")
    Path("a.model").rename("old")
    Path("d").write_text("".join(f"word{i}\n" for i in range(3000)))
    before = contents()
    error = error_of(f"train.svm {options}", code)
    assert words in error
    assert "MB/s" not in error
    assert contents() == before


def test_full_disk_keeps_the_old_model(monkeypatch):
    # The model is saved even if its weights can't be written as text.
    Path("words.txt").write_text("one\ntwo\n")
    error = train("train.svm -o a.model --readable w.txt --dictionary words.txt -q", 1).stderr
    assert error.endswith(" The model has been saved: a.model\n")
    load_model("a.model")
    before = contents()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    error = train("train.svm -o a.model -q --algo alma --alpha 0.5", 1).stderr
    assert "a.model: No space left on device. Free some space, or name another folder" in error
    assert "The model could not be saved elsewhere either: [Errno 28]" in error
    assert contents() == before


def test_progress_lines_and_json_report_the_figures():
    header, *lines = train("train.svm -o a.model --epochs 2").stderr.splitlines()
    assert header.split()[:3] == ["rows", "epoch", "features"]
    rows = [int(line.split()[0].replace(",", "")) for line in lines if line[0] == " "]
    # Progress is printed whenever the number of rows has doubled.
    assert len(rows) > 4
    assert min(b / a for a, b in pairwise(rows) if b > a) >= 2
    assert "progressive error" in "".join(lines)
    assert train("train.svm -o a.model --quiet --epochs 3").output == ""
    Path("noisy.svm").write_text("1 1:1\n2 1:1\n" * 20)
    told = train("noisy.svm -o a.model --algo margin --epochs until").stderr
    assert re.search("epochs +[0-9]{1,2}, because the number of corrections no longer decr", told)
    assert re.search("corrections +[0-9,]+, [0-9,]+ in the last epoch", told)
    told = train("noisy.svm -o a.model --algo perceptron --epochs until").stderr
    assert re.search("epochs +1,000, the maximum. Pass fewer --epochs, or --early-st", told)
    assert "the maximum" not in train("noisy.svm -o a.model --algo perceptron --epochs 2").stderr
    Path("apart.svm").write_text("1 1:1\n2 2:1\n" * 20)
    told = train("apart.svm -o a.model --algo perceptron --epochs until").stderr
    assert re.search("epochs +[0-9]{1,2}, the last one without a correction", told)
    # With several epochs, the error is that of the first epoch, in which the rows are new.
    once, often = (
        json.loads(train(f"train.svm -o a.model -q --json --epochs {n}").stdout) for n in (1, 9)
    )
    assert (often["epochs"], often["corrections"] > once["corrections"]) == (9, True)
    for name in "progressive_error", "mistakes":
        assert often[name] == once[name] > 0
    assert " in the first epoch\n" in train("train.svm -o a.model --epochs 9").stderr
    result = train("train.svm -o a.model -q --json")
    assert result.stderr == ""
    figures, model = json.loads(result.stdout), load_model("a.model")
    # Each mistake is followed by a correction.
    assert 0 < figures["mistakes"] <= figures["corrections"]
    expected = {
        "model": "a.model", "model_bytes": os.path.getsize("a.model"), "classes": ["-1", "1"],
        "rows": 400, "bytes": os.path.getsize("train.svm"), "features": model.n_features_in_,
        "corrections": model.n_corrections_, "interrupted": False,
        "progressive_error": figures["mistakes"] / 400,
    }  # fmt: skip
    assert figures.items() >= expected.items()
    # Rows that are counted for the prior of texts are left out of the error.
    Path("short.tsv").write_text(
        "spam\tcheap pills\nham\tlunch at noon\n" * 5000 + "spam\tlunch\n" * 4
    )
    error = json.loads(train("short.tsv -o c.model -q --json").stdout)["progressive_error"]
    assert 0.25 <= error <= 1
    more = json.loads(train("test.svm -o b.model -q --json --init a.model").stdout)
    assert more["corrections_of_last_epoch"] == more["corrections"] - figures["corrections"] > 0
