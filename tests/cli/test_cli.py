"""General behaviour of the command line: help, wrong usage, errors, exit codes."""

import re
from pathlib import Path

import numpy as np
import pytest
from click import Context

from problems.command_line import contents, run
from sparsemargin.cli.app import main
from sparsemargin.cli.options import Size
from sparsemargin.cli.parameters import ALL_PARAMETERS, option_name, parameters_of
from sparsemargin.models import ALGORITHMS

COMMANDS = ["train", "predict", "annotate", "evaluate", "inspect", "info"]


def test_help_examples_use_existing_options():
    text = run("--help").stdout
    assert re.findall(r"^  (\w+)  ", text, re.MULTILINE) == COMMANDS
    assert len(text.splitlines()) <= 40
    assert "..." not in text.split("Commands:")[1].split("Examples:")[0]
    assert run("--version").stdout.startswith("sparsemargin, version ")
    for command in COMMANDS:
        option = "--help" if command in ("info", "inspect") else "--help-all"
        options, examples = run(command, option).stdout.split("Examples:")
        assert max(map(len, (options + examples).splitlines())) <= 100
        examples = re.findall(rf"sparsemargin {command} ([^|\n]*)", examples)
        assert examples
        for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", " ".join(examples)):
            assert re.search(rf"(?<!\S){option}\b", options), (command, option)


def test_every_parameter_is_an_option():
    help_text = run("train", "--help-all").stdout.split("Examples:")[0]
    text = re.sub(r"\s+", " ", help_text)
    for algorithm in ALGORITHMS:
        for parameter in parameters_of(algorithm):
            assert parameter in ALL_PARAMETERS
            assert re.search(rf" {option_name(parameter)}[ ,]", text), parameter
    # The defaults agree with those of the constructors.
    assert re.search(r"--c X [^\[]*\[ho\] \[default: 0\.4\]", text)
    assert re.search(r"--max-iter, --epochs N\|none\|until .*?1000 at most\] *\[default: 1\]", text)
    assert "--hypothesis average|last|random|vote|auto" in text
    # MarginPerceptron and ALMAClassifier have different defaults, so --help shows none.
    assert not re.search(r"--hypothesis [^\[]*\[default", text)
    offered = re.findall(r"^ {2}(-.*?)(?:  |$)", help_text, re.MULTILINE)
    offered = set(re.findall(r"--[a-z][\w-]*", " ".join(offered).lower()))
    assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text.lower())) <= offered


@pytest.mark.parametrize("command", COMMANDS)
def test_short_help_fits_a_screen(command):
    lines = run(command, "--help").stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    if command in ("info", "inspect"):
        return
    everything = run(command, "--help-all").stdout
    brief = [re.match(r" {2}(?:-\w, )?(--[\w-]+)", line) for line in lines]
    for option in filter(None, brief):
        assert re.search(rf"^  .*{option[1]}\b", everything, re.MULTILINE), option[1]
    n_options = len(re.findall(r"^ {2}-", everything, re.MULTILINE)) - 2
    assert f"Show all {n_options} options and exit." in " ".join("\n".join(lines).split())
    if command == "train":
        assert {"--algo", "--epochs", "--class-weight"} < {each[1] for each in brief if each}


def test_no_command_prints_the_first_steps():
    told = run().stdout
    steps = re.findall(r"^  sparsemargin (\w+) (\S+)", told, re.MULTILINE)
    assert [command for command, _ in steps] == ["train", "evaluate", "predict"]
    assert steps[0][1].endswith(".tsv")
    assert max(map(len, told.splitlines())) <= 80


@pytest.mark.parametrize(("command", "words"), [
    ("trian", "No such command 'trian'. Did you mean 'train'?"),
    ("train x.svm -o m --memory-limit much", "is not a size such as 512M"),
    ("train x.svm -o m --dictionary words", "Pass --readable FILE, too"),
    ("train train.svm -o -", "Name a file"),
    ("train train.svm -o m --c 0.5", "--c needs --algo, one of: ho."),
    ("train train.svm -o m --c 0.5 --algo alma", "--c is not an option of --algo alma, which has"),
    ("train train.svm -o m --algo alma --alpha 3", "--alpha: 3 is not a float in the range"),
    ("train train.svm -o m --algo alma --normalize true", "true is not yes|no|max|running"),
    ("train train.svm -o m --epochs 0", "0 is not N|none|until, a whole number from 1."),
    ("train train.svm -o m --class-weight spam", "spam is not LABEL=WEIGHT"),
    ("train train.svm -o m --class-weight balanced --class-weight 1=2",
     "balanced is not LABEL=WEIGHT, such as spam=0.5. For weights by the number of rows of each "
     "label, pass balanced alone."),
    ("train - -o m --class-weight balanced", "--class-weight balanced counts the rows of each "
     "class first, and <standard input> can be read only once. Pass --cache PATH, which"),
    ("train train.svm -o m --hash-bits 8 --n-features 9",
     "--n-features 9 and --hash-bits 8 exclude each other"),
    ("train train.svm -o m --algo alma --hypothesis vote", "--hypothesis vote keeps a log"),
    ("train train.svm -o m --algo alma --normalize max", "Pass --normalize running, or call"),
    ("train train.svm -o m --epochs 1.5", "--epochs 1.5 ends within rows not yet counted"),
    ("train train.svm -o m --algo pnorm --p log", "--p log needs the number of features: pass "
     "--n-features, or --hash-bits."),
    ("train train.svm -o m --algo alma --kernel rbf", "--max-support none keeps every row"),
    ("train train.svm -o m --algo alma --kernel rbf", "--gamma scale needs the variance of all"),
    ("train train.svm -o m --algo alma --kernel rbf --gamma auto", "--max-support none keeps"),
    ("train train.svm -o m --algo alma --kernel rbf --gamma auto", "gamma auto needs the number"),
    ("train train.svm -o m --multilabel --positive 1", "--positive 1 makes two classes"),
    ("predict a.model test.svm -o link", "-o link and FILE test.svm are one file"),
    ("predict a.model test.svm -o a.model", "-o a.model and MODEL a.model are one file"),
])  # fmt: skip
def test_usage_errors_are_reported(folder, command, words):
    Path("link").symlink_to("test.svm")
    before = contents()
    result = run(*command.split(), code=2)
    assert words in result.stderr
    assert "Usage: " in result.stderr
    assert contents() == before


@pytest.mark.parametrize(("text", "told"), [
    ("Pass max_iter=None, or n_features.", "Pass --epochs none, or --n-features."),
    ("multilabel=True; multilabel=False; zero_based=True;",
     "--multilabel; no --multilabel; --zero-based yes;"),
    ("fit_intercept=False and classes=[1, 2].", "--no-fit-intercept and --classes 1, 2."),
    ("alpha=0.5. Alpha is no alpha.", "--alpha 0.5. Alpha is no alpha."),
    ("'alpha=3' dir/alpha=3 alpha=3/x n_features.svm", "'alpha=3' dir/alpha=3 alpha=3/x "
     "n_features.svm"),
])  # fmt: skip
def test_messages_name_options_for_parameters(text, told):
    command = main.get_command(Context(main), "train")
    assert command.in_options(text) == told


def test_sizes_with_units_are_parsed():
    sizes = {"7": 7, "1K": 1024, "1.5M": 3 << 19, "2G": 2 << 30, "2gb": 2 << 30}
    assert {text: Size().convert(text, None, None) for text in sizes} == sizes


@pytest.mark.parametrize(("command", "words"), [
    ("train train.svn -o m", "no such file. Did you mean train.svm?"),
    ("predict zzz test.svm", "zzz: no such model. It was looked for in /"),
    ("inspect b.model", "b.model: no such model. Did you mean a.model?"),
    ("train train.svm -o m --n-features 1", "The largest index allowed is 1. Raise --n-features, "
     "or leave it out."),
    ("inspect folder", "Is a directory"),
    ("inspect empty.svm", "is not a model file"),
    ("predict table.csv test.svm", "not a model file. save_model and sparsemargin train write"),
    ("predict a.model table.csv", "looks like comma-separated values"),
    ("predict a.model a.model", "a.model is a model, and not text. Pass files of rows or texts."),
    ("evaluate a.model x.npz", "x.npz is an npz file, and not text. Load it in Python by "
     "scipy.sparse.load_npz or numpy.load, and train by sparsemargin.fit_csr(X, y)."),
    ("info x.npz", "x.npz is an npz file, and not text. Load it in Python by"),
    ("train x.smcache -o m", "is a row cache, and not text. Pass the text that it was "
     "made from, with --cache x.smcache to read the rows here."),
])  # fmt: skip
def test_unusable_files_are_reported_in_one_line(folder, command, words):
    (folder / "folder").mkdir()
    (folder / "empty.svm").write_text("")
    (folder / "table.csv").write_text("5.1,3.5,1.4,setosa\n4.9,3.0,1.4,setosa\n")
    run("train", "train.svm", "-o", "a.model", "--cache", "x.smcache", "-q")
    np.savez(folder / "x.npz", data=np.zeros(3))
    result = run(*command.split(), code=1)
    told = result.stderr.splitlines()[-1]
    assert words in told
    assert told.startswith("Error: ")
    assert not (folder / "m").exists()


def test_traceback_option_shows_tracebacks(monkeypatch):
    assert isinstance(run("info", "no", "--traceback", code=1).exception, FileNotFoundError)
    monkeypatch.setattr("sparsemargin.cli.info.kind_of", lambda *given, **how: 1 / 0)
    told = run("info", "train.svm", code=1).stderr
    assert told.startswith("Error: Internal error of sparsemargin, ZeroDivisionError")
    monkeypatch.setenv("SPARSEMARGIN_TRACEBACK", "1")
    assert isinstance(run("info", "train.svm", code=1).exception, ZeroDivisionError)
