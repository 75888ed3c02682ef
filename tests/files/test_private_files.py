"""Files that are made from a private file are private from their creation on."""

import os
import stat
from pathlib import Path

import pytest

import sparsemargin
from problems.command_line import two_classes
from sparsemargin.files import atomic
from sparsemargin.files.atomic import replacing
from sparsemargin.readers.row_cache import default_cache_path
from sparsemargin.saving import model_files
from sparsemargin.saving.model_files import save_model, set_aside
from sparsemargin.streaming import run
from sparsemargin.streaming.stream import learn_svmlight


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    two_classes(tmp_path)
    before = os.umask(0o022)
    yield tmp_path
    os.umask(before)


@pytest.mark.parametrize(("source", "expected"), [
    (0o600, 0o600), (0o640, 0o640), (0o644, 0o644), (0o666, 0o644), (0o604, 0o604),
])  # fmt: skip
def test_row_cache_is_as_private_as_its_text(source, expected):
    os.chmod("train.svm", source)
    for _ in range(2):  # an existing cache is replaced by a private one, too
        sparsemargin.fit_svmlight("train.svm", cache=True, max_iter=2)
        assert mode("train.svm.smcache") == expected
        os.chmod("train.svm.smcache", 0o644)
        Path("train.svm.smcache").write_bytes(Path("train.svm.smcache").read_bytes()[:-9])
        os.utime("train.svm")


def test_row_cache_of_several_texts_is_as_private_as_each():
    os.chmod("train.svm", 0o640)
    os.chmod("test.svm", 0o604)
    sparsemargin.fit_svmlight(["train.svm", "test.svm"], cache="rows", max_iter=2)
    assert mode("rows") == 0o600


def test_checkpoint_is_as_private_as_the_model_and_the_text(monkeypatch):
    monkeypatch.setattr(run, "_CHECKPOINT_EVERY", 0)
    Path("m").touch(0o640)
    learn_svmlight("train.svm", checkpoint="m.checkpoint", made_from=("m", "missing"))
    assert mode("m.checkpoint") == 0o640
    os.chmod("train.svm", 0o600)
    learn_svmlight("train.svm", checkpoint="m.checkpoint", made_from=("m",))
    assert mode("m.checkpoint") == 0o600


def test_checkpoint_of_shards_is_as_private_as_the_shards():
    os.chmod("train.svm", 0o600)
    from sparsemargin.distributed import fit_distributed

    fit_distributed(["train.svm"] * 2, algo="alma", max_iter=1, checkpoint="m")
    assert mode("m") == 0o600


def test_file_is_private_until_it_is_complete():
    Path("old").touch()
    os.chmod("old", 0o664)
    for name in "new", "old":
        with replacing(name) as file:
            [fresh] = Path().glob(f".{name}.*.tmp")
            assert mode(fresh) == mode(file.fileno()) == 0o600
            file.write(b"x")
        assert mode(name) == {"new": 0o644, "old": 0o664}[name]


def test_other_groups_get_no_access(monkeypatch):
    """If a file can't have the group of its source, nobody else gains access to the contents."""
    status = os.stat("train.svm")

    class Other:
        st_gid, st_mode = status.st_gid + 1, stat.S_IFREG | 0o640

    monkeypatch.setattr(atomic, "_statuses", lambda paths: [Other])
    monkeypatch.setattr(os, "fchown", lambda *_: (_ for _ in ()).throw(PermissionError))
    with replacing("new", ["train.svm"]):
        pass
    assert mode("new") == 0o600
    Other.st_mode = stat.S_IFREG | 0o644
    with replacing("new2", ["train.svm"]):
        pass
    assert mode("new2") == 0o644


def test_files_derived_from_remote_files_are_private(monkeypatch, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cached"))
    url = "memory://private/a.svm"
    fsspec.filesystem("memory").pipe(url, Path("train.svm").read_bytes())
    sparsemargin.fit_svmlight(url, cache=True, max_iter=2)
    assert mode(default_cache_path([url])) == 0o600
    assert mode(default_cache_path([url]).parent) == 0o700


def test_model_saved_elsewhere_is_private(monkeypatch, tmp_path):
    model, modes = sparsemargin.fit_svmlight("train.svm"), []
    monkeypatch.setattr(model_files.tempfile, "tempdir", str(tmp_path))

    def save(path):
        modes.append(mode(path))
        save_model(model, path)

    error = OSError("full")
    set_aside(save, "b.model", error)
    [aside] = tmp_path.glob("*-b.model")
    assert str(aside) in error.__notes__[0]
    assert [*modes, mode(aside)] == [0o600, 0o600]
    sparsemargin.load_model(aside).predict(sparsemargin.load_svmlight("train.svm")[0])
    aside.unlink()

    def fail(path):
        raise OSError("full, too")

    set_aside(fail, "b.model", error)
    assert "full, too" in error.__notes__[1]
    assert not list(tmp_path.glob("*-b.model"))
