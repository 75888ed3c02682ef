"""No command replaces an input file, or one of its outputs by another output."""

import os
from importlib import import_module
from itertools import combinations, product
from pathlib import Path

import click
import pytest

from problems.command_line import contents, process, run
from sparsemargin import fit_svmlight, load_model
from sparsemargin.cli.app import _COMMANDS
from sparsemargin.cli.options import File
from sparsemargin.cli.parameters import ALL_PARAMETERS
from sparsemargin.files.distinct import Named, SameFileError, check_distinct

COMMANDS = {name: import_module(f"sparsemargin.cli.{name}").command for name in _COMMANDS}

# Options with free text that is not the name of a file.
NO_FILES = {
    "classes",
    "positive",
    "text",
    "keep",
    "encoding",
    "layer",
    "var",
    "dask",
    *ALL_PARAMETERS,
}
# The command and options that may name the same model file, which is trained in place.
IN_PLACE = ("train", "output", "init_model")


def files_of(command, role):
    return [p for p in COMMANDS[command].params if getattr(p.type, "role", None) == role]


@pytest.mark.parametrize("command", COMMANDS)
def test_file_options_declare_reading_or_writing(command):
    for param in COMMANDS[command].params:
        if isinstance(param.type, click.Path):
            assert isinstance(param.type, File), param.name
        elif param.type is click.STRING and not isinstance(param, click.Argument):
            assert param.name in NO_FILES, f"{param.name}: a file needs type=File(role)"


def arguments(command, given):
    """Return a command line with these values and the other required arguments."""
    needed = {"files": "train.svm", "model": "a.model"}
    if command == "train":
        needed = {"files": "train.svm", "output": "b.model", "readable": "b.txt"}
    if command == "predict":
        needed["n_explained"] = "2"
    args = []
    for param in COMMANDS[command].params:
        value = {**needed, **given}.get(param.name)
        if value is not None:
            args += [value] if isinstance(param, click.Argument) else [f"{param.opts[-1]}={value}"]
    return args


INPUTS = [
    (command, output.name, read.name)
    for command in COMMANDS
    for role in ("input", "table")
    for output, read in product(files_of(command, "output"), files_of(command, role))
    if (command, output.name, read.name) != IN_PLACE
]
OUTPUTS = [
    (command, *(each.name for each in pair))
    for command in COMMANDS
    for pair in combinations(files_of(command, "output"), 2)
]


@pytest.mark.parametrize(("command", "output", "read"), INPUTS)
@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_output_cannot_replace_an_input(command, output, read, link):
    name = {"files": "train.svm", "model": "a.model", "init_model": "a.model"}.get(read, "x")
    Path("x").write_text("f1\nf2\n")
    other = name
    if link is not None:
        link(name, other := "linked")
    before = contents()
    told = run(command, *arguments(command, {read: name, output: other}), code=2).stderr
    assert "are one file. Name two." in told
    assert contents() == before


@pytest.mark.parametrize(("command", "one", "other"), OUTPUTS)
def test_output_cannot_replace_another_output(command, one, other):
    before = contents()
    told = run(command, *arguments(command, {one: "new", other: "./new"}), code=2).stderr
    assert "are one file. Name two." in told
    assert contents() == before


@pytest.mark.parametrize("command", ["train", "predict", "evaluate", "inspect", "info"])
def test_standard_output_cannot_be_an_input_file(command):
    read = "a.model" if command == "inspect" else "train.svm"
    before = contents()
    with open(read, "ab") as file:
        started = process(command, *arguments(command, {}), stdout=file)
        error = started.stderr.read().decode()
        assert started.wait(60) == 2
    assert (
        f"standard output and {'MODEL' if command == 'inspect' else 'FILE'} {read} are" in error
        or f"-o and FILE {read} are one file" in error
    )
    assert contents() == before


@pytest.mark.parametrize("options", [
    ["m.checkpoint", "-o", "m"], ["train.svm", "-o", "m", "--cache", "m.checkpoint"],
    ["train.svm", "-o", "m", "--readable", "r", "--dictionary", "m.checkpoint"],
    ["train.svm", "-o", "m", "--init-model", "m.checkpoint"],
    ["train.svm", "-o", "m", "--readable", "m.checkpoint"],
])  # fmt: skip
def test_checkpoint_is_checked_as_an_output(options):
    source = "a.model" if "--init-model" in options else "train.svm"
    Path("m.checkpoint").write_bytes(Path(source).read_bytes())
    before = contents()
    told = run("train", *options, code=2).stderr
    assert "the checkpoint m.checkpoint" in told
    assert contents() == before


@pytest.mark.parametrize("source", ["train.svm", "a.model"])
def test_file_with_the_name_of_the_checkpoint_is_kept(source):
    Path("m.checkpoint").write_bytes(Path(source).read_bytes())
    before = contents()
    told = run("train", "train.svm", "-o", "m", "-q", code=1).stderr
    assert "m.checkpoint is not a checkpoint, and would be replaced by one. Move it" in told
    assert contents() == before
    os.rename("m.checkpoint", "elsewhere")
    run("train", "train.svm", "-o", "m", "-q")
    load_model("m")


def test_companion_input_files_are_not_replaced():
    pytest.importorskip("h5py")
    os.mkdir("run")
    Path("run/matrix.mtx").write_text(
        "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 3\n2 2 4\n"
    )
    Path("run/features.tsv").write_text("g1\tg1\tGene Expression\ng2\tg2\tGene Expression\n")
    Path("run/barcodes.tsv").write_text("c1\nc2\n")
    for name in "barcodes.tsv", "features.tsv", "matrix.mtx":
        told = run("annotate", "a.model", "run", "-o", f"run/{name}", code=2).stderr
        assert "are one file" in told


def test_library_calls_do_not_replace_their_inputs():
    for how in {"cache": "./train.svm"}, {"checkpoint": "train.svm"}:
        before = contents()
        with open("train.svm", "rb") as file:
            for source in "train.svm", file:
                with pytest.raises(ValueError, match=r"train\.svm are one file\. Name two\."):
                    fit_svmlight(source, **how)
        assert contents() == before


def test_files_are_compared_by_identity():
    def same(output, read):
        try:
            check_distinct([Named("a", output)], [Named("b", read)])
        except SameFileError:
            return True
        return False

    os.mkdir("folder")
    os.symlink(os.getcwd(), "link")
    assert same("link/train.svm", "train.svm")
    assert same("link/new", "folder/../new")
    assert same(Path("train.svm"), b"train.svm")
    assert not same("folder", "folder")
    assert not same("/dev/null", "/dev/null")
    assert not same(None, "train.svm")
    assert not same("new", "train.svm")
    pytest.importorskip("fsspec")
    assert same(f"file://{os.getcwd()}/train.svm", "train.svm")
    assert same("memory://x/a", "memory:///x/a")
    assert not same("memory://x/a", "memory://x/b")


def test_file_names_are_compared_without_case_if_needed(monkeypatch):
    def tell():
        check_distinct([Named("-o", "New"), Named("--readable", "new")], [])

    tell()
    exists = os.path.exists
    monkeypatch.setattr(
        os.path, "exists", lambda path: exists(path) or exists(os.fspath(path).lower())
    )
    monkeypatch.setattr("tempfile._get_candidate_names", lambda: iter(["bcd"]))
    with pytest.raises(SameFileError, match="-o New and --readable new are one file"):
        tell()


def test_standard_input_is_checked_as_an_input():
    before = contents()
    with open("train.svm", "rb") as file:
        started = process("predict", "a.model", "-", "-o", "train.svm", stdin=file)
        error = started.stderr.read().decode()
        assert started.wait(60) == 2
    assert "-o train.svm and standard input are one file" in error
    assert contents() == before


def test_label_option_is_a_file_only_if_given():
    Path("texts.tsv").write_text("ham\tsee you\nspam\tfree money\n" * 5)
    for _ in range(2):  # the second model replaces the first
        run("train", "texts.tsv", "-o", "label", "-q")
    load_model("label")
