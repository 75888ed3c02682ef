"""After a kill, a power failure, a full disk or Ctrl-C, each file is the complete old or new
one."""

import os
import re
import signal
import stat
import sys
import zipfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import product
from unittest import mock

import numpy as np
import pytest

from depth import ALL, some
from problems.cached_rows import random_block, write_cache
from problems.command_line import run
from problems.command_line import write as write_text
from problems.faulty_disk import KINDS, Scenario, places_among, strike_everywhere
from problems.models import make_problem
from sparsemargin import ALMAClassifier, fit_svmlight, load_model, save_model
from sparsemargin.cli import train
from sparsemargin.files import archive
from sparsemargin.files import atomic as files
from sparsemargin.files.atomic import replacing
from sparsemargin.files.sources import Source
from sparsemargin.saving import model_files
from sparsemargin.saving.readable import write_readable
from sparsemargin.streaming import report, stream
from sparsemargin.streaming import run as io_run

OLD, NEW = b"old" * 5000, b"new" * 9000
X, Y = make_problem()


@cache
def cached_blocks(seed):
    """Blocks of rows, some larger than the buffers of file objects, and one without rows."""
    rng = np.random.RandomState(seed)
    return [random_block(rng, m, 30) for m in (20, 400, 0, 3)]


@cache
def model_of(hypothesis):
    return ALMAClassifier(hypothesis=hypothesis, random_state=0).fit(X, Y)


def write_old_file(folder):
    (folder / "file").write_bytes(OLD)


def prepare_link(folder):
    write_old_file(folder)
    (folder / "link").symlink_to("file")


def write_file(folder, name="file"):
    """Write small and large parts, and a gap that is filled in later."""
    with replacing(folder / name) as file:
        file.write(bytes(3) + NEW[3:10])
        for start in range(10, len(NEW), 11_000):
            file.write(NEW[start : start + 11_000])
        file.seek(0)
        file.write(NEW[:3])


def cache_of(seed):
    return lambda folder: write_cache(folder / "cache", cached_blocks(seed))


def model_by(hypothesis):
    return lambda folder: save_model(model_of(hypothesis), folder / "model")


def weights_of(word):
    names = [f"{word} {i}" for i in range(25)]
    return lambda folder: write_readable(folder / "weights", model_of("average"), names)


def prepare_training(folder):
    write_text(folder / "text.svm", X, Y)
    save_model(fit_svmlight(folder / "text.svm", "perceptron"), folder / "text.model")


def learn_and_save(folder):
    """Train with a cache, which is first written and then read. The identity of the source is
    reduced to its size, because copies of a file have other times."""
    with mock.patch.object(Source, "identity", property(lambda source: {"size": source.size})):
        model = fit_svmlight(folder / "text.svm", "pnorm", max_iter=2, random_state=0, cache=True)
    save_model(model, folder / "text.model")


SCENARIOS = {
    "link": Scenario(prepare_link, lambda folder: write_file(folder, "link"), ["link"]),
    "cache": Scenario(cache_of(1), cache_of(2), ["cache"]),
    "first cache": Scenario(lambda folder: None, cache_of(1), ["cache"]),
    "model": Scenario(model_by("average"), model_by("vote"), ["model"]),
    "weights": Scenario(weights_of("old"), weights_of("new"), ["weights"]),
    "training": Scenario(prepare_training, learn_and_save, ["text.svm.smcache", "text.model"]),
}
SLOW = [("training", kind) for kind in ("kill amid", "power", "full amid")]


@pytest.mark.parametrize(
    ("name", "kind"), [case for case in product(SCENARIOS, KINDS) if ALL or case not in SLOW]
)
@pytest.mark.filterwarnings("error")
def test_fault_at_any_point_leaves_the_old_or_the_new_file(name, kind, tmp_path):
    operations, struck = strike_everywhere(SCENARIOS[name], kind, tmp_path)
    files = "create( write)+ fsync replace open fsync ?" * len(SCENARIOS[name].names)
    assert re.fullmatch(files, " ".join(operations))
    if name == "link":
        assert (tmp_path / "done" / "link").is_symlink()
        assert (tmp_path / "done" / "file").read_bytes() == NEW
    amid = kind.endswith("amid")
    strikable = {i for i, name in enumerate(operations, 1) if name == "write" or not amid}
    if kind == "full":
        # Faults after the rename are excluded, because some file systems do not support fsync of
        # folders.
        strikable -= {len(operations) - 1, len(operations)}
    assert struck >= strikable & set(places_among(len(operations)))


def test_replaced_file_keeps_permissions_and_owner(tmp_path, monkeypatch):
    owners = []
    monkeypatch.setattr(os, "fchown", lambda descriptor, *owner: owners.append(owner))
    write_file(tmp_path)
    usual = (tmp_path / "file").stat()
    for mode in 0o600, 0o444, 0o666:
        (tmp_path / "file").chmod(mode)
        write_file(tmp_path)
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
    assert {max(owner) for owner in owners} == {usual.st_uid, usual.st_gid}
    write_file(tmp_path, "another")
    assert (tmp_path / "another").stat().st_mode == usual.st_mode


def test_concurrent_writers_keep_each_others_files(tmp_path):
    def write(i):
        for _ in range(some(20, 60)):
            cache_of(i % 2)(tmp_path)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert os.listdir(tmp_path) == ["cache"]


def write_in_place(folder):
    (folder / "file").write_bytes(NEW)


def replace_unsynchronised(folder):
    with open(folder / "fresh", "wb") as file:
        file.write(NEW)
    os.replace(folder / "fresh", folder / "file")


def leave_fresh_file(folder):
    try:
        with open(folder / "fresh", "wb") as file:
            file.write(NEW)
            os.fsync(file.fileno())
        os.replace(folder / "fresh", folder / "file")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder / "file")) from None


@pytest.mark.parametrize(
    ("write", "kind"),
    [
        (write_in_place, "kill"),
        (write_in_place, "kill amid"),
        (write_in_place, "full"),
        (replace_unsynchronised, "power"),
        (leave_fresh_file, "full amid"),
    ],
)
def test_crash_test_detects_a_planted_fault(write, kind, tmp_path):
    with pytest.raises(AssertionError):
        strike_everywhere(Scenario(write_old_file, write, ["file"]), kind, tmp_path)


WRITERS = {module.__file__ for module in (archive, files, zipfile)}


class CtrlC:
    """A tracer that raises Ctrl-C before the `at`-th line that is run in `files`, after `since` was
    called."""

    def __init__(self, at, files, since=None):
        self.at, self.files, self.since, self.lines = at, files, since, []

    def __call__(self, frame, event, _):
        callers = frame.f_code.co_name, frame.f_back.f_code.co_name
        self.since = None if self.since in callers else self.since
        # Errors within __del__ are printed and not raised.
        if frame.f_code.co_filename not in self.files or "__del__" in callers:
            return None
        if event == "line" and self.since is None:
            self.lines.append((frame.f_code, frame.f_lineno))
            if len(self.lines) == self.at:
                signal.raise_signal(signal.SIGINT)
        return self


def interrupted(write, folder, at, files=WRITERS, since=None):
    """Return the lines that were run, and whether Ctrl-C left `write`."""
    tracer, trace_before = CtrlC(at, files, since), sys.gettrace()
    sys.settrace(tracer)
    try:
        write(folder)
    except KeyboardInterrupt:
        return tracer.lines, True
    finally:
        sys.settrace(trace_before)
    return tracer.lines, False


def first_and_last(lines):
    """Return the numbers, from 1, of the first and last run of each line, or of all runs."""
    runs_of = defaultdict(list)
    for at, line in enumerate(lines, 1):
        runs_of[line].append(at)
    assert len(runs_of) > 100
    return sorted({at for ats in runs_of.values() for at in some([ats[0], ats[-1]], ats)})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_any_point_leaves_the_old_or_the_new_file(tmp_path):
    """Ctrl-C is raised before the first and the last run of each line."""
    path, left = tmp_path / "cache", set()

    def write(folder):
        write_cache(folder / "cache", cached_blocks(1)[:1])

    path.write_bytes(OLD)
    lines, _ = interrupted(write, tmp_path, 0)
    new = path.read_bytes()
    for at in first_and_last(lines):
        path.write_bytes(OLD)
        assert interrupted(write, tmp_path, at)[1], at
        assert os.listdir(tmp_path) == ["cache"], at
        left.add(path.read_bytes())
    assert left == {OLD, new}


def test_ctrl_c_after_the_first_rows_keeps_the_model(tmp_path):
    """Ctrl-C is raised before each line of the training loop, the code after it, and the writing of
    the file."""
    text, model = write_text(tmp_path / "text.svm", X, Y), tmp_path / "model"

    def learn(folder, code=130):
        run("train", text, "-o", model, "--algo", "alma", "--epochs", "2", code=code)

    learning = {module.__file__ for module in (files, model_files, report, io_run, stream, train)}
    lines, _ = interrupted(partial(learn, code=0), tmp_path, 0, learning, "shown_error")
    for at in first_and_last(lines)[:: some(4, 1)]:
        model.unlink()
        interrupted(learn, tmp_path, at, learning, "shown_error")
        assert load_model(model).n_iter_ >= 1, at
