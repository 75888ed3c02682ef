"""Commands as processes: pipes, signals, terminals and imported modules."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from depth import some
from problems.command_line import process, run
from sparsemargin import load_model


def finish(started, text=None, code=0):
    """Wait for a process, check its exit code, and return its output."""
    out, error = started.communicate(text, timeout=60)
    assert started.returncode == code, error.decode()
    return (out or b"").decode(), error.decode()


@pytest.fixture(scope="module")
def folder(originals, tmp_path_factory):
    """A folder with the files and the model, and with a file of several MB."""
    folder = shutil.copytree(originals, tmp_path_factory.mktemp("files"), dirs_exist_ok=True)
    (folder / "long.svm").write_bytes((folder / "train.svm").read_bytes() * 80)
    return folder


SEVERAL_COMMANDS = """
import sys
from sparsemargin.cli.app import main
for line in sys.stdin:
    try:
        main(line.split())
    except SystemExit as end:
        assert end.code == 0, line
print(sorted({"sklearn", "scipy", "joblib"} & set(sys.modules)))
"""
COMMANDS = b"""\
train long.svm -o b.model -q --class-weight 1=2
train train.svm -o b.model -q --epochs 2 --readable b.txt
train train.svm -o c.model -q --init b.model
predict b.model test.svm -o labels.txt
evaluate b.model test.svm -q
inspect b.model
info train.svm
train train.svm -o d.model -q --algo ho --max-updates 10
evaluate d.model test.svm
train train.svm -o e.model -q --algo alma --kernel rbf --gamma 0.1 --max-support 500
predict e.model test.svm -o labels.txt
evaluate e.model test.svm -q
inspect e.model
"""


def test_commands_import_neither_scikit_learn_nor_scipy(folder):
    started = process(start=("-c", SEVERAL_COMMANDS), cwd=folder, stdin=subprocess.PIPE)
    out, _ = finish(started, COMMANDS)
    assert out.splitlines()[-1] == "[]"


def test_closed_pipe_ends_the_command_quietly(folder):
    started = process("predict", folder / "a.model", folder / "long.svm", "--scores")
    assert started.stdout.readline() == b"label\t1\n"
    started.stdout.close()
    error = started.stderr.read()
    assert started.wait(60) == 141
    assert error == b""


@pytest.mark.parametrize("command", ["--help", "train --help-all"])
def test_closed_pipe_ends_the_help_quietly(command):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as unread:
        assert finish(process(*command.split(), stdout=unread), code=141) == ("", "")


needs_full = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="a full disk needs /dev/full"
)


@needs_full
@pytest.mark.parametrize("command", ["predict a.model long.svm", "--help", "--version"])
def test_full_disk_is_reported(folder, command):
    command = command.split()
    with open("/dev/full", "wb") as full:
        _, error = finish(process(*command, cwd=folder, stdout=full), code=1)
    assert error.startswith("Error: No space left on device.")
    assert error.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of the size of a file is set")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_predictions_that_do_not_fit_are_reported(folder, tmp_path, unbuffered):
    import resource

    # Only the last write is incomplete.
    n_bytes = len(run("predict", folder / "a.model", folder / "long.svm").stdout) - 10
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes,) * 2)}
    command = "predict", "a.model", "long.svm"
    with open(tmp_path / "out", "wb") as out:
        limited |= {"stdout": out, "env": {"PYTHONUNBUFFERED": unbuffered}}
        _, error = finish(process(*command, cwd=folder, **limited), code=1)
    assert error.startswith("Error: File too large.")


@needs_full
def test_unwritable_progress_does_not_stop_training(folder, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    args = "train", folder / "long.svm", "--cache", tmp_path / "rows", "--epochs", 2
    with open("/dev/full", "wb") as full, open(writer, "wb") as unread:
        for stderr, code in (full, 1), (unread, 141):
            model = tmp_path / f"{code}.model"
            assert process(*args, "-o", model, stderr=stderr).wait(60) == code
            assert load_model(model).n_iter_ == 2


def test_closed_standard_output_matters_only_if_used(folder, tmp_path):
    closed = {"cwd": folder, "preexec_fn": lambda: os.closerange(1, 3)}
    finish(process("train", "train.svm", "-o", tmp_path / "b.model", **closed))
    load_model(tmp_path / "b.model")
    closed["preexec_fn"] = lambda: os.close(1)
    for command in "predict a.model test.svm", "inspect a.model", "info a.model":
        _, error = finish(process(*command.split(), **closed), code=1)
        told = "Bad file descriptor. The stream is closed. Open it, or name a file.\n"
        assert error == f"Error: {told}"


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "link", "pipe"])
def test_pipes_and_devices_are_written_not_replaced(name, originals, tmp_path, monkeypatch):
    shutil.copytree(originals, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    command = "predict a.model test.svm -o"
    expected = run(*command.split(), "-").stdout
    os.symlink("/dev/stdout", "link")
    os.mkfifo("pipe")
    with open("all.txt", "w+") as out:
        out.write("before\n")
        out.flush()
        reader = subprocess.Popen(["cat", "pipe"], stdout=out) if name == "pipe" else None
        finish(process(*command.split(), name, stdout=out))
        assert reader is None or reader.wait(60) == 0
        assert Path("pipe").is_fifo()
    assert Path("all.txt").read_text() == "before\n" + expected


def test_unencodable_labels_are_escaped(tmp_path):
    text, model = tmp_path / "words.svm", tmp_path / "words.model"
    text.write_text("\u65e5 1:1\nham 2:1\n", encoding="utf-8")
    run("train", text, "-o", model, "-q")
    for command in ("inspect", model), ("info", text, model), ("evaluate", model, text):
        out, _ = finish(process(*command, env={"PYTHONIOENCODING": "latin-1"}))
        assert "\\u65e5" in out


IMPORT_FAILS = """
import sys
errors = {"sparsemargin.cli.app": KeyboardInterrupt(), "click": ModuleNotFoundError(name="click")}
class Failing:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            raise errors[name]
sys.meta_path.insert(0, Failing())
from sparsemargin.cli import main
main()
"""


@pytest.mark.parametrize(
    ("module", "code", "told"),
    [("sparsemargin.cli.app", 130, ""), ("click", 1, "pip install 'sparsemargin[cli]'")],
)
def test_failing_imports_give_no_traceback(module, code, told):
    _, error = finish(process(module, start=("-c", IMPORT_FAILS)), code=code)
    assert told in error
    assert error.count("\n") == bool(told)


def fed(text, *options):
    """Start training on more than one block from a pipe that stays open."""
    started = process("train", "-", *options, stdin=subprocess.PIPE)
    started.stdin.write(text)
    started.stdin.flush()
    return started


def interrupted(started, by=signal.SIGINT):
    """Interrupt a process while its standard input is open, and return its standard error."""
    watch = threading.Timer(60, started.kill)
    watch.start()
    started.send_signal(by)
    error = started.stderr.read().decode()
    watch.cancel()
    assert started.wait(60) == 128 + by
    started.stdin.close()
    return error


KERNEL = "--kernel rbf --gamma 0.1 --max-support 50 --when-full skip"


@pytest.mark.parametrize("options", some([""], ["", KERNEL]))
def test_ctrl_c_saves_the_model(options, folder, tmp_path):
    output = tmp_path / "b.model"
    started = fed((folder / "long.svm").read_bytes(), "-o", output, *options.split())
    # Wait for a progress line of the first epoch.
    next(line for line in iter(started.stderr.readline, b"") if b" 1 " in line)
    error = interrupted(started)
    assert "Warning: Interrupted after " in error
    assert "model" in error.splitlines()[-1]
    run("predict", output, folder / "test.svm")


def noise(folder, path):
    """Write rows that each occur with both labels, so that each epoch makes corrections."""
    text = (folder / "long.svm").read_bytes()
    path.write_bytes(text + text.translate(bytes.maketrans(b"+-", b"-+")))
    return path


def test_interrupted_fit_is_not_reported_as_early_stopping(folder, tmp_path):
    options = ["--algo", "margin", "--epochs", "99999", "--n-iter-no-change", "99999", "--json"]
    files = (noise(folder, tmp_path / "noise.svm"), "-o", tmp_path / "b.model")
    started = process("train", *files, *options, stdin=subprocess.PIPE)
    next(line for line in iter(started.stderr.readline, b"") if b" 3 " in line)
    interrupted(started)
    told = json.loads(started.stdout.read())
    assert (told["interrupted"], told["stopped_early"]) == (True, False)


ENDS = {
    signal.SIGINT: "Interrupted.\n", signal.SIGTERM: "Terminated.\n", signal.SIGHUP: "Hangup.\n",
}  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_interrupt_before_the_first_row_writes_nothing(end, tmp_path):
    # This exceeds the capacity of a pipe, so some of it has been read once it is written.
    started = fed(b"# no row\n" * 100_000, "-o", tmp_path / "b.model")
    assert interrupted(started, end) == ENDS[end]
    assert not list(tmp_path.iterdir())


def ignoring_ctrl_c():
    """Ignore SIGINT, as shells do for background jobs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


EPOCHS = ["--algo", "margin", "--no-early-stopping", "--epochs", 40]
CHECKPOINT_AT_ONCE = """
from sparsemargin.cli.app import main
from sparsemargin.streaming import run
run._CHECKPOINT_EVERY = 0
main()
"""


@pytest.mark.parametrize("end", [*some([*ENDS][:1], ENDS), signal.SIGKILL])
def test_run_stopped_by_a_signal_resumes_bitwise_equally(end, folder, tmp_path):
    whole, cut = tmp_path / "whole.model", tmp_path / "cut.model"
    text = noise(folder, tmp_path / "noise.svm")
    run("train", text, "-o", whole, *EPOCHS)
    how = {"start": ("-c", CHECKPOINT_AT_ONCE)} if end == signal.SIGKILL else {}
    if end == signal.SIGTERM:
        how["preexec_fn"] = ignoring_ctrl_c
    command = "train", text, "-o", cut, *EPOCHS
    started = process(*command, stdin=subprocess.PIPE, **how)
    next(line for line in iter(started.stderr.readline, b"") if b" 3 " in line)
    if end == signal.SIGKILL:
        started.kill()
        assert started.wait(60) == -end
        assert not cut.exists()
    else:
        told = interrupted(started, end)
        assert f"Pass --resume to continue from {cut}.checkpoint" in told
        assert 3 <= load_model(cut).n_iter_ < 40
    for options, words in ([], "other --epochs"), (["--alpha", "0.5"], "not an option"):
        wrong = [*command[:-1], 7, "--resume", *options]
        assert words in run(*wrong, code=2 if options else 1).stderr
    told = json.loads(run(*command, "--resume", "--json").stdout)
    assert told["epochs"] == 40
    assert cut.read_bytes() == whole.read_bytes()
    # A process that is killed while it writes a checkpoint leaves a temporary file.
    begun = set(tmp_path.glob(".cut.model.checkpoint.*.tmp")) if end == signal.SIGKILL else set()
    left = {path.name for path in set(tmp_path.iterdir()) - begun}
    assert left == {"noise.svm", "whole.model", "cut.model"}
    assert (
        "cut.model.checkpoint: there is no checkpoint" in run(*command, "--resume", code=1).stderr
    )


def begun(command, folder, output):
    """Start a command that has read some lines from a pipe that stays open."""
    model = folder / "a.model"
    started = process(command, model, "-", "-o", output, stdin=subprocess.PIPE)
    started.stdin.write((folder / "train.svm").read_bytes() * 20)
    started.stdin.flush()
    while not list(output.parent.glob(".*.tmp")):
        assert started.poll() is None, started.stderr.read()
    return started


@pytest.mark.parametrize("end", ENDS)
def test_interrupted_predict_leaves_no_file(end, folder, tmp_path):
    output = tmp_path / "labels.txt"
    output.write_text("before\n")
    assert interrupted(begun("predict", folder, output), end).endswith(ENDS[end])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {output.name: "before\n"}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("command", ["evaluate", "info"])
def test_all_commands_handle_signals(command, end, folder):
    args = [folder / "a.model", "-"] if command == "evaluate" else ["-"]
    started = process(command, *args, stdin=subprocess.PIPE)
    started.stdin.write((folder / "train.svm").read_bytes() * 20)  # exceeds the capacity of a pipe
    started.stdin.flush()
    assert interrupted(started, end) == ENDS[end]


def test_hangup_ignored_by_nohup_stays_ignored(folder, tmp_path):
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    started = process("predict", folder / "a.model", "-", stdin=subprocess.PIPE, **ignoring)
    text = (folder / "train.svm").read_bytes()
    started.stdin.write(text * 20)
    started.stdin.flush()
    started.send_signal(signal.SIGHUP)
    out, _ = finish(started, text)
    assert out.count("\n") == 21 * text.count(b"\n")


def on_terminal(*args, code=0):
    """Return the output of a process on a terminal with 100 columns."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    started = process(*args, env={"TERM": "xterm", "COLUMNS": "100"}, **streams)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # on Linux, the end of a terminal raises OSError
        while part := os.read(ours, 1 << 16):
            shown += part
    os.close(ours)
    assert started.wait(60) == code, shown.decode()
    return shown.decode()


def test_terminal_shows_live_progress_and_tables(folder, tmp_path):
    shown = on_terminal("train", folder / "long.svm", "-o", tmp_path / "b.model")
    for words in "epoch 1, error", "MB/s", "\x1b[", "progressive error":
        assert words in shown
    # On a terminal there are no progress lines.
    assert "rows  epoch" not in shown
    shown = on_terminal("evaluate", folder / "a.model", folder / "test.svm")
    assert "───" in shown
    assert "precision" in shown
    shown = on_terminal("predict", folder / "a.model", folder / "test.svm")
    expected = run("predict", folder / "a.model", folder / "test.svm").stdout
    assert shown.replace("\r\n", "\n") == expected


def test_terminal_lines_fit_its_width(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"a label of a good many words, the one of number {i}" for i in range(8)]
    lines = [f"{name}\tword{i} word{j}\n" for i, name in enumerate(names) for j in range(9)]
    (tmp_path / "rows.tsv").write_text("".join(lines))
    for command in (
        "train rows.tsv -o a.model", *some([], ["info a.model"]), "evaluate a.model rows.tsv"
    ):  # fmt: skip
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", on_terminal(*command.split()))
        # The display returns to the start of the line with carriage returns.
        assert max(map(len, re.split("[\r\n]+", shown))) <= 100
        words = re.sub(r"[^\w]+", " ", shown)
        assert all(f"number {i} " in words for i in range(8))


def test_terminal_wraps_errors_between_words(tmp_path):
    shown = on_terminal("inspect", "a model " * 20, code=1).splitlines()
    assert len(shown) > 1
    assert max(map(len, shown)) <= 100
    assert set(" ".join(shown).split()) >= {"Error:", "a", "model", "such"}


FULL_BUT_FOR_SPARE = """
import os, sys, tempfile
from sparsemargin.cli.app import main
replace, tempfile.tempdir = os.replace, os.path.join(os.getcwd(), "spare")
def full_but_for_spare(fresh, target):
    if os.path.dirname(target) != tempfile.tempdir:
        raise OSError(28, "No space left on device")
    replace(fresh, target)
os.replace = full_but_for_spare
main()
"""


def test_full_disk_saves_the_model_elsewhere(folder, tmp_path):
    spare = tmp_path / "spare"
    spare.mkdir()
    args = "train", folder / "train.svm", "-o", "b.model", "--algo", "pnorm", "--p", 3, "-q"
    started = process(*args, start=("-c", FULL_BUT_FOR_SPARE), cwd=tmp_path)
    _, told = finish(started, code=1)
    assert "b.model: No space left on device. Free some space, or name another folder" in told
    (aside,) = spare.glob("*-b.model")
    assert f"The model was saved in {aside} instead." in told
    assert aside.read_bytes() == (folder / "a.model").read_bytes()
