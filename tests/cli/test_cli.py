"""The command line as such: help, wrong usage, errors, exit codes."""

import re

import pytest

from problems.command_line import run, two_classes
from sparsemargin.cli.options import Size
from sparsemargin.cli.parameters import ALL_PARAMETERS, option_name, parameters_of
from sparsemargin.models import ALGORITHMS

COMMANDS = ["train", "predict", "evaluate", "inspect", "convert", "info"]


@pytest.fixture
def files(tmp_path):
    return two_classes(tmp_path)


@pytest.fixture
def model(tmp_path, files):
    path = tmp_path / "a.model"
    run("train", files[0], "-o", path, "-q")
    return path


# ------------------------------------------------------------------------------------------ help


def test_help_lists_the_commands():
    text = run("--help").stdout
    assert re.findall(r"^  (\w+)  ", text, re.MULTILINE)[-len(COMMANDS) :] == COMMANDS
    assert "..." not in text.split("Commands:")[1].split("Examples:")[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_whose_examples_use_its_options(command):
    text = run(command, "--help").stdout
    examples = re.findall(rf"sparsemargin {command} ([^|\n]*)", text.split("Examples:")[1])
    assert examples
    options = text.split("Examples:")[0]
    for example in examples:
        for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", example):
            assert re.search(rf"(?<!\S){option}\b", options), option


def test_version():
    assert run("--version").stdout.startswith("sparsemargin, version ")


def test_every_parameter_of_every_algorithm_is_an_option_or_said_otherwise():
    text = re.sub(r"\s+", " ", run("train", "--help").stdout)
    for algorithm in ALGORITHMS:
        for parameter in parameters_of(algorithm):
            assert parameter in ALL_PARAMETERS
            assert re.search(rf" {option_name(parameter)}[ ,]", text), parameter


def test_the_help_of_parameters_names_options_that_there_are():
    text = run("train", "--help").stdout.split("Examples:")[0]
    offered = re.findall(r"^ {2}(-.*?)(?:  |$)", text, re.MULTILINE)
    offered = set(re.findall(r"--[a-z][\w-]*", " ".join(offered).lower()))
    assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text.lower())) <= offered


def test_defaults_in_the_help_are_the_constructors():
    text = re.sub(r"\s+", " ", run("train", "--help").stdout)
    assert re.search(r"--alpha X [^\[]*\[alma\] \[default: 0\.9\]", text)
    assert re.search(r"--max-iter, --epochs N\|none [^\[]*\[default: 1\]", text)
    # MarginPerceptron and ALMAClassifier differ here.
    assert not re.search(r"--hypothesis [^\[]*\[default", text)


# ----------------------------------------------------------------------------------- wrong usage


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["trian"], "No such command 'trian'"),
        (["train"], "Missing argument 'FILE...'"),
        (["train", "x.svm"], "Missing option '-o'"),
        (["train", "x.svm", "-o", "m", "--nonsense"], "No such option"),
        (["train", "x.svm", "-o", "m", "--algo", "svm"], "'svm' is not one of 'perceptron'"),
        (["train", "x.svm", "-o", "m", "--memory-limit", "much"], "is no size such as 512M"),
        (["train", "x.svm", "-o", "m", "--hash-bits", "40"], "1<=x<=31"),
        (["train", "x.svm", "-o", "m", "--dictionary", "words"], "--readable FILE: pass that too"),
        (["convert", "a.svm", "b.xyz"], "Pass --to svmlight, --to npz or --to cache"),
        (["convert", "a.svm", "-", "--to", "npz"], "Name a file"),
        (["train", __file__, "-o", "-"], "name a file"),
    ],
)
def test_wrong_usage_is_told(args, words):
    result = run(*args, code=2)
    assert words in result.stderr
    assert "Usage: " in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--c", "0.5"], "--c is no option of --algo alma, which has --max-iter, --p,"),
        (["--algo", "perceptron", "--p", "3"], "--p is no option of --algo perceptron"),
        (["--alpha", "3"], "--alpha: 3 is not X, a float in the range (0, 1]"),
        (["--alpha", "much"], "--alpha: much is not X"),
        (["--p", "1"], "--p: 1 is not X|log"),
        (["--normalize", "true"], "true is not yes|no|max|running"),
        (["--epochs", "-1"], "--max-iter: -1 is not N|none, a whole number from 1."),
        (["--epochs", "0"], "--max-iter: 0 is not N|none, a whole number from 1."),
        (["--class-weight", "spam"], "spam is not LABEL=WEIGHT"),
        (["--cache", "c", "--cache-beside"], "two places for one cache"),
    ],
)
def test_options_of_algorithms_are_checked(files, tmp_path, options, words):
    result = run("train", files[0], "-o", tmp_path / "m", *options, code=2)
    assert words in result.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--hypothesis", "vote"], "hypothesis='vote' keeps a log of all corrections"),
        (["--hypothesis", "random"], "Pass hypothesis='average', or load the file"),
        (["--epochs", "1.5"], "max_iter=1.5 ends within rows"),
        (["--algo", "ho", "--max-updates", "none"], "Pass max_updates=1000"),
        (["--algo", "so", "--max-updates", "none"], "Pass max_updates=1000"),
        (["--algo", "maxmargin"], "keeps a number for every row"),
        (["--p", "log"], "pass n_features, or hash_bits"),
    ],
)
def test_what_cannot_stream_is_refused_with_the_reason(files, tmp_path, options, words):
    result = run("train", files[0], "-o", tmp_path / "m", *options, code=1)
    assert words in result.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("7", 7), ("1K", 1024), ("1.5M", 3 << 19), ("2G", 2 << 30), ("2gb", 2 << 30)],
)
def test_sizes(text, n_bytes):
    assert Size().convert(text, None, None) == n_bytes


# ---------------------------------------------------------------------------------------- errors


def bad_file(folder, what):
    """A path at which there is no svmlight text to learn from."""
    contents = {
        "empty": b"",
        "labels only": b"1\n-1\n1\n",
        "csv": b"5.1,3.5,1.4,setosa\n4.9,3.0,1.4,setosa\n",
        "semicolons": b"a;b;c\n1;2;3\n",
        "tabs": b"5.1\t3.5\t1.4\n",
        "binary": b"\x7fELF\x02\x01\x01\x00\x00\x00",
        "one class": b"1 1:2\n1 2:3\n",
        "measurements": b"1.5 1:2\n2.5 2:3\n",
        "nan": b"1 1:2\n-1 3:nan\n",
        "utf-16": "1 1:2\n".encode("utf-16"),
    }
    if what == "directory":
        return folder
    if what == "missing":
        return folder / "train.svn"
    if what == "pattern":
        return folder / "none*"
    path = folder / "bad.svm"
    path.write_bytes(contents[what])
    return path


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("missing", "no such file. Did you mean train.svm?"),
        ("pattern", "no file matches this pattern"),
        ("directory", "is a directory. Name the files in it"),
        ("empty", "has no rows. svmlight lines are"),
        ("labels only", "has labels but no features"),
        ("csv", "bad.svm, line 1, column 1: '5.1,3.5,1.4,setosa' is more than one label. This looks"
         " like comma-separated values"),
        ("semicolons", "has labels but no features"),
        ("tabs", "line 1, column 5: '3.5' is not index:value. This looks like a table"),
        ("binary", "Is it a binary or compressed file?"),
        ("one class", "at least 2 are needed"),
        ("measurements", "are not classes but measurements"),
        ("nan", "line 2, column 4: '3:nan' is not finite"),
        ("utf-16", "is UTF-16 text. Make it UTF-8: iconv"),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_from_is_told_in_a_line(files, tmp_path, what, words):
    model = tmp_path / "m"
    result = run("train", bad_file(tmp_path, what), "-o", model, "-q", code=1)
    assert words in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert not model.exists()


@pytest.mark.parametrize("command", ["predict", "evaluate", "inspect"])
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("missing", "No such file or directory"),
        ("directory", "Is a directory"),
        ("empty", "is not a model file"),
        ("csv", "not a model file. save_model and sparsemargin train write them"),
    ],
)
def test_what_is_no_model_is_told(files, tmp_path, command, what, words):
    args = [] if command == "inspect" else [files[1]]
    result = run(command, bad_file(tmp_path, what), *args, code=1)
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_model_is_no_text(model, tmp_path):
    for command in (["predict", model], ["evaluate", model], ["train", "-o", tmp_path / "m"]):
        assert f"{model} is a model, not svmlight text" in run(*command, model, code=1).stderr
    result = run("convert", model, tmp_path / "x.svm", code=1)
    assert f"{model} is a model. What can be converted" in result.stderr


def test_files_of_another_kind_are_told_with_the_way_out(files, model, tmp_path):
    for form, words in [
        ("smcache", "is a row cache, not svmlight text. Name the text it was made of: train with "
         "--cache {path} takes the rows from here."),
        ("npz", "is an npz file, not svmlight text. Make it text first: sparsemargin convert {path}"
         " FILE.svm"),
    ]:  # fmt: skip
        path = tmp_path / f"x.{form}"
        run("convert", files[0], path, "-q")
        for command in (["predict", model], ["evaluate", model], ["train", "-o", tmp_path / "m"]):
            assert words.format(path=path) in run(*command, path, code=1).stderr


@pytest.mark.parametrize("command", ["predict", "info"])
def test_comma_separated_values_are_no_rows_of_several_labels(model, tmp_path, command):
    path = bad_file(tmp_path, "csv")
    args = [model, path] if command == "predict" else [path]
    assert "looks like comma-separated values" in run(command, *args, code=1).stderr


def test_a_traceback_is_shown_when_asked_for(tmp_path, monkeypatch):
    error = run("info", tmp_path / "none", "--traceback", code=1).exception
    assert isinstance(error, FileNotFoundError)
    monkeypatch.setenv("SPARSEMARGIN_TRACEBACK", "1")
    error = run("info", tmp_path / "none", code=1).exception
    assert isinstance(error, FileNotFoundError)


def test_an_error_inside_is_no_traceback_either(monkeypatch, files):
    monkeypatch.setattr("sparsemargin.cli.info.kind_of", lambda source: 1 / 0)
    result = run("info", files[0], code=1)
    assert result.stderr.startswith("Error: An error inside sparsemargin, ZeroDivisionError")
