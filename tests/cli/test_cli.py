"""The command line as such: help, wrong usage, errors, exit codes."""

import re

import pytest

from problems.command_line import run
from sparsemargin.cli.options import Size
from sparsemargin.cli.parameters import ALL_PARAMETERS, option_name, parameters_of
from sparsemargin.models import ALGORITHMS

COMMANDS = ["train", "predict", "evaluate", "inspect", "convert", "info"]


@pytest.fixture
def model():
    run("train", "train.svm", "-o", "a.model", "-q")
    return "a.model"


# ------------------------------------------------------------------------------------------ help


def test_help_lists_the_commands():
    text = run("--help").stdout
    assert re.findall(r"^  (\w+)  ", text, re.MULTILINE)[-len(COMMANDS) :] == COMMANDS
    assert "..." not in text.split("Commands:")[1].split("Examples:")[0]
    assert run("--version").stdout.startswith("sparsemargin, version ")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_whose_examples_use_its_options(command):
    text = run(command, "--help").stdout
    examples = re.findall(rf"sparsemargin {command} ([^|\n]*)", text.split("Examples:")[1])
    assert examples
    options = text.split("Examples:")[0]
    for example in examples:
        for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", example):
            assert re.search(rf"(?<!\S){option}\b", options), option


def test_every_parameter_of_every_algorithm_is_an_option_or_said_otherwise():
    text = re.sub(r"\s+", " ", run("train", "--help").stdout)
    for algorithm in ALGORITHMS:
        for parameter in parameters_of(algorithm):
            assert parameter in ALL_PARAMETERS
            assert re.search(rf" {option_name(parameter)}[ ,]", text), parameter
    # Defaults are those of the constructors.
    assert re.search(r"--alpha X [^\[]*\[alma\] \[default: 0\.9\]", text)
    assert re.search(r"--max-iter, --epochs N\|none [^\[]*\[default: 1\]", text)
    # MarginPerceptron and ALMAClassifier differ here.
    assert not re.search(r"--hypothesis [^\[]*\[default", text)


def test_the_help_of_parameters_names_options_that_there_are():
    text = run("train", "--help").stdout.split("Examples:")[0]
    offered = re.findall(r"^ {2}(-.*?)(?:  |$)", text, re.MULTILINE)
    offered = set(re.findall(r"--[a-z][\w-]*", " ".join(offered).lower()))
    assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text.lower())) <= offered


# ----------------------------------------------------------------------------------- wrong usage


TRAIN = "train train.svm -o m"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("trian", "No such command 'trian'. Did you mean 'train'?"),
        ("train", "Missing argument 'FILE...'"),
        ("train x.svm", "Missing option '-o'"),
        ("train x.svm -o m --nonsense", "No such option"),
        ("train x.svm -o m --algo svm", "'svm' is not one of 'perceptron'"),
        ("train x.svm -o m --memory-limit much", "is no size such as 512M"),
        ("train x.svm -o m --hash-bits 40", "1<=x<=31"),
        ("train x.svm -o m --dictionary words", "--readable FILE: pass that too"),
        ("convert a.svm b.xyz", "Pass --to svmlight, --to npz or --to cache"),
        ("convert a.svm - --to npz", "Name a file"),
        ("train train.svm -o -", "name a file"),
        (f"{TRAIN} --c 0.5", "--c is no option of --algo alma, which has --max-iter, --p,"),
        (f"{TRAIN} --algo perceptron --p 3", "--p is no option of --algo perceptron"),
        (f"{TRAIN} --alpha 3", "--alpha: 3 is not X, a float in the range (0, 1]"),
        (f"{TRAIN} --alpha much", "--alpha: much is not X"),
        (f"{TRAIN} --p 1", "--p: 1 is not X|log"),
        (f"{TRAIN} --normalize true", "true is not yes|no|max|running"),
        (f"{TRAIN} --epochs 0", "--max-iter: 0 is not N|none, a whole number from 1."),
        (f"{TRAIN} --class-weight spam", "spam is not LABEL=WEIGHT"),
        (f"{TRAIN} --cache c --cache-beside", "two places for one cache"),
    ],
)
def test_wrong_usage_is_told(folder, command, words):
    before = set(folder.iterdir())
    result = run(*command.split(), code=2)
    assert words in result.stderr
    assert "Usage: " in result.stderr
    assert set(folder.iterdir()) == before


def test_sizes():
    sizes = {"7": 7, "1K": 1024, "1.5M": 3 << 19, "2G": 2 << 30, "2gb": 2 << 30}
    assert {text: Size().convert(text, None, None) for text in sizes} == sizes


# ---------------------------------------------------------------------------------------- errors


BAD = {
    "empty.svm": b"",
    "table.csv": b"5.1,3.5,1.4,setosa\n4.9,3.0,1.4,setosa\n",
    "binary": b"\x7fELF\x02\x01\x01\x00\x00\x00",
    "measurements.svm": b"1.5 1:2\n2.5 2:3\n",
    "nan.svm": b"1 1:2\n-1 3:nan\n",
}


@pytest.fixture
def bad_files(folder):
    """Files from which nothing can be learned."""
    (folder / "folder").mkdir()
    for name, content in BAD.items():
        (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train train.svn -o m", "no such file. Did you mean train.svm?"),
        ("train empty.svm -o m", "has no rows. svmlight lines are"),
        ("train table.csv -o m", "table.csv, line 1, column 1: '5.1,3.5,1.4,setosa' is more than "
         "one label. This looks like comma-separated values"),
        ("train binary -o m", "Is it a binary or compressed file?"),
        ("train measurements.svm -o m", "are not classes but measurements"),
        ("train nan.svm -o m", "line 2, column 4: '3:nan' is not finite"),
        (f"{TRAIN} --hypothesis vote", "hypothesis='vote' keeps a log of all corrections"),
        (f"{TRAIN} --epochs 1.5", "max_iter=1.5 ends within rows"),
        (f"{TRAIN} --algo ho --max-updates none", "Pass max_updates=1000"),
        (f"{TRAIN} --p log", "pass n_features, or hash_bits"),
        ("predict no.model test.svm", "No such file or directory"),
        ("evaluate no.model test.svm", "No such file or directory"),
        ("inspect folder", "Is a directory"),
        ("inspect empty.svm", "is not a model file"),
        ("predict table.csv test.svm", "not a model file. save_model and sparsemargin train write"),
        ("info table.csv", "looks like comma-separated values"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told_in_a_line(bad_files, folder, command, words):
    result = run(*command.split(), code=1)
    told = result.stderr.splitlines()[-1]
    assert words in told
    assert told.startswith("Error: ")
    assert not (folder / "m").exists()


MISUSES = ["predict a.model {}", "evaluate a.model {}", "train {} -o m"]


@pytest.mark.parametrize(
    ("path", "commands", "words"),
    [
        ("a.model", MISUSES, "a.model is a model, not svmlight text"),
        ("a.model", ["convert {} x.svm"], "a.model is a model. What can be converted"),
        ("x.smcache", MISUSES, "is a row cache, not svmlight text. Name the text it was made of: "
         "train with --cache x.smcache takes the rows from here."),
        ("x.npz", MISUSES, "is an npz file, not svmlight text. Make it text first: sparsemargin "
         "convert x.npz FILE.svm"),
        ("table.csv", ["predict a.model {}"], "looks like comma-separated values"),
    ],
)  # fmt: skip
def test_files_of_another_kind_are_told_with_the_way_out(bad_files, model, path, commands, words):
    for form in "smcache", "npz":
        run("convert", "train.svm", f"x.{form}", "-q")
    for command in commands:
        assert words in run(*command.format(path).split(), code=1).stderr


def test_a_traceback_is_shown_when_asked_for(monkeypatch):
    error = run("info", "none", "--traceback", code=1).exception
    assert isinstance(error, FileNotFoundError)
    monkeypatch.setenv("SPARSEMARGIN_TRACEBACK", "1")
    error = run("info", "none", code=1).exception
    assert isinstance(error, FileNotFoundError)


def test_an_error_inside_is_no_traceback_either(monkeypatch):
    monkeypatch.setattr("sparsemargin.cli.info.kind_of", lambda source: 1 / 0)
    result = run("info", "train.svm", code=1)
    assert result.stderr.startswith("Error: An error inside sparsemargin, ZeroDivisionError")
