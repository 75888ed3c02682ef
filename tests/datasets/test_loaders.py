"""Common behaviour of all loaders: bunches, the search for files, and invalid files and
arguments."""

import bz2
import gzip
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import issparse

from papers.data import load_letter, load_mnist, load_sonar, load_usps, load_wbc
from problems.synthetic_files import (
    ALL_FILES,
    BY_HAND,
    DATA_SETS,
    MADE,
    PACKABLE,
    hide_copies,
    write_files,
)
from sparsemargin import datasets
from sparsemargin.datasets.__main__ import main
from sparsemargin.datasets.files import cache_folder

LOADERS = {
    "sonar": load_sonar, "wbc": load_wbc, "mnist": load_mnist, "usps": load_usps,
    "letter": load_letter, "breast_er": datasets.load_breast_er, "colon": datasets.load_colon,
    "leukemia": datasets.load_leukemia, "lymphoma": datasets.load_lymphoma,
    "rcv1": partial(datasets.load_rcv1, source="sample"),
}  # fmt: skip
WBC_FILE = "breast-cancer-wisconsin.data"
WBC = ALL_FILES[WBC_FILE]


def dense(X):
    return X.toarray() if issparse(X) else X


@pytest.mark.parametrize(("name", "second", "n_names", "at", "word"), [
    ("sonar", "mine", 0, None, None), ("wbc", "malignant", 9, 5, "Bare Nuclei"),
    ("mnist", "1", 0, None, None), ("usps", "1", 0, None, None), ("letter", "B", 16, None, None),
    ("breast_er", "ER+", 0, None, None), ("colon", "tumour", 2, 1, "X2"),
    ("leukemia", "AML", 2, 0, "A_at"), ("lymphoma", "cancerous", 3, 2, "GENE3X"),
    ("rcv1", "C15", 0, None, None),
])  # fmt: skip
def test_bunch_agrees_with_X_and_y(home, name, second, n_names, at, word):
    bunch = LOADERS[name](data_home=home)
    X, y = LOADERS[name](return_X_y=True, data_home=home)
    assert_array_equal(dense(bunch.data), dense(X))
    assert_array_equal(bunch.target, y)
    assert issparse(X) == (name in ("mnist", "rcv1"))
    assert issparse(X) or (X.dtype == np.float64 and X.flags.c_contiguous)
    assert y.dtype == ("<U1" if name == "letter" else np.int64)
    assert bunch.frame is None
    assert bunch.target_names[1] == second
    assert bunch.get("image_shape") == {"mnist": (28, 28), "usps": (16, 16)}.get(name)
    for part in f"The {name} data", "A publisher", "A licence", f"The {name} paper":
        assert bunch.DESCR.count(part) == 1
    names = bunch.get("feature_names", [])
    assert len(names) == len(set(names)) == n_names
    assert at is None or names[at] == word


def test_folders_are_searched_in_order(nowhere, monkeypatch):
    monkeypatch.setenv("SPARSEMARGIN_DATA", str(nowhere / "named"))
    first, second, third = (nowhere / name for name in ("home", "named", "cache"))
    third.mkdir()
    for folder in third / "sparsemargin", second, first:
        write_files(folder)
        load_wbc(data_home=first if folder == first else None)
        # From now on, a copy is found only because an earlier folder has one.
        (folder / WBC_FILE).write_text("spoiled")
        with pytest.raises(ValueError, match=f"{folder}.* is not the registered file"):
            load_wbc(data_home=first if folder == first else None)


def test_subset_needs_only_its_own_files(nowhere, monkeypatch):
    """The files of a set may be in different folders."""
    write_files(nowhere / "named", ["sonar.rocks"])
    monkeypatch.setenv("HOME", str(nowhere))
    monkeypatch.setenv("SPARSEMARGIN_DATA", "~/named")
    images, labels, *of_test = [name for name in PACKABLE if name.endswith("ubyte")]
    tests = write_files(nowhere / "home", [*of_test, "zip.test", "sonar.mines"])
    assert load_sonar("all", data_home="~/home").data.shape == (5, 60)
    assert load_mnist("test", data_home=tests).data.shape == (2, 784)
    assert load_usps("test", data_home=tests).data.shape == (2, 256)
    with pytest.raises(FileNotFoundError, match=f"^{images}.gz, {labels}.gz not found"):
        load_mnist("all", data_home=tests)


@pytest.mark.parametrize("name", LOADERS)
def test_missing_files_are_reported_with_a_remedy(nowhere, name, monkeypatch):
    with pytest.raises(FileNotFoundError, match="SPARSEMARGIN_DATA: not set\n"):
        LOADERS[name]()
    monkeypatch.setenv("SPARSEMARGIN_DATA", str(nowhere / "named"))
    with pytest.raises(FileNotFoundError) as caught:
        LOADERS[name](data_home=nowhere)
    message = str(caught.value)
    assert DATA_SETS[name][0] in message.split(" not found. Looked in\n")[0]
    assert f"data_home: {nowhere}\n" in message
    assert f"SPARSEMARGIN_DATA: {nowhere / 'named'} (no such folder)\n" in message
    assert f"cache: {nowhere / 'cache' / 'sparsemargin'} (no such folder)\n" in message
    if DATA_SETS[name][0] in BY_HAND:
        assert "get them by hand, no address serves these very bytes:" in message
        assert "was taken from A source; A recipe" in message
    else:
        assert message.endswith(f"python -m sparsemargin.datasets download {name}")


def test_cache_is_in_the_user_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    for base in str(tmp_path / "caches"), "", "relative", None:
        if base is None:
            monkeypatch.delenv("XDG_CACHE_HOME")
        else:
            monkeypatch.setenv("XDG_CACHE_HOME", base)
        folder = tmp_path / ("caches" if base == str(tmp_path / "caches") else ".cache")
        assert cache_folder() == folder / "sparsemargin"


def test_users_without_a_home_folder_name_a_folder(home, monkeypatch, capsys):
    # Users of containers may have a number without a name, and no HOME.
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("os.path.expanduser", str)
    assert cache_folder() is None
    assert len(datasets.load_colon(data_home=home).target)
    with pytest.raises(FileNotFoundError, match="cache: not set\n"):
        datasets.load_colon()
    with pytest.raises(SystemExit):
        main(["download", "colon"])
    assert "required: --to" in capsys.readouterr().err


def test_folders_of_unknown_users_are_no_folders(home, monkeypatch):
    with pytest.raises(ValueError, match="existing folder, got '~nobody-here/data'"):
        datasets.load_colon(data_home="~nobody-here/data")
    monkeypatch.setenv("SPARSEMARGIN_DATA", "~nobody-here/data")
    assert len(datasets.load_colon(data_home=home).target)
    with pytest.raises(FileNotFoundError, match=r"~nobody-here/data \(no such folder\)"):
        datasets.load_colon()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", LOADERS)
def test_copy_with_a_wrong_checksum_is_rejected_with_a_remedy(home, name, packed):
    file = DATA_SETS[name][0]
    text = ALL_FILES[file][::-1]
    packed = packed and file in PACKABLE | MADE
    path = home / (f"{file}.gz" if packed else file)
    (home / file).unlink()
    path.write_bytes(gzip.compress(text) if packed else text)
    remedy = f"python -m sparsemargin.datasets download {name} --to '{home}'"
    if file in BY_HAND:
        remedy = f"{file} was taken from A source; A recipe"
    words = f"^{re.escape(str(path))} is not the registered(.|\n)*{re.escape(remedy)}$"
    with pytest.raises(ValueError, match=words):
        LOADERS[name](data_home=home)


GZ = gzip.compress(PACKABLE["zip.train"], mtime=0)


@pytest.mark.parametrize(("file", "content", "complaint"), [
    (WBC_FILE, WBC[:-1], "it has 112 bytes instead of 113"),
    (WBC_FILE, WBC.replace(b",8,", b",9,"), "its sha256 is [0-9a-f]{64} instead of"),
    ("zip.train", PACKABLE["zip.train"].replace(b"0.5000", b"0.5001"), "its sha256 is"),
    *(("zip.train.gz", packed, r"it cannot be unpacked \(") for packed in (
        GZ[:-9], GZ[:40], GZ[:2], GZ[:60] + GZ[60:80][::-1] + GZ[80:], GZ[:-8] + bytes(4) + GZ[-4:],
    )),
])  # fmt: skip
def test_errors_describe_the_fault_of_a_copy(home, file, content, complaint):
    (home / "zip.train").unlink()
    (home / file).write_bytes(content)
    with pytest.raises(ValueError, match=f"is not the registered file: .*{complaint}"):
        (load_wbc if file == WBC_FILE else load_usps)(data_home=home)


@pytest.mark.parametrize(("name", "file", "old", "new", "complaint"), [
    ("rcv1", "rcv1_subsets_topics.svm.bz2", " 1:0.6", " 9:0.5",
     "but contains a feature with index|n_features"),
    ("rcv1", "rcv1_subsets_topics.svm.bz2", " 1:0.6", " 1:x", "has a value that is not a number"),
])  # fmt: skip
def test_malformed_files_are_rejected(
    register, monkeypatch, tmp_path, name, file, old, new, complaint
):
    """A registry that describes the malformed file lets the parser read it."""
    packing = {".gz": gzip, ".bz2": bz2}.get(Path(file).suffix)
    known = BY_HAND | MADE
    text = (packing.decompress(known[file]) if packing else known[file]).decode()
    assert old in text
    spoiled = text.replace(old, new, 1).encode()
    contents = known | {file: packing.compress(spoiled) if packing else spoiled}
    register(contents)
    hide_copies(monkeypatch, tmp_path)
    home = write_files(tmp_path / "home", contents, contents)
    with pytest.raises(ValueError, match=complaint) as caught:
        LOADERS[name](data_home=home)
    assert str(caught.value).startswith(str(home / file))


@pytest.mark.parametrize(("name", "argument", "value"), [
    *((name, "return_X_y", 1) for name in LOADERS),
    *((name, "data_home", "no/such/folder") for name in LOADERS),
    *((name, "subset", "training") for name in LOADERS if name not in
      ("breast_er", "colon", "lymphoma", "rcv1")),
    ("wbc", "data_home", 7), ("wbc", "data_home", __file__), ("wbc", "return_X_y", "yes"),
    ("sonar", "subset", None), ("sonar", "subset", np.array(["all", "complete"])),
    ("mnist", "dtype", np.uint8), ("mnist", "dtype", "grey"),
    ("lymphoma", "labels", "malignant_67"),
    ("lymphoma", "missing", 0), ("lymphoma", "missing", "median"),
    *(("rcv1", "topic", topic) for topic in ("C99", ["C15", "C99"], 4, [])),
    ("rcv1", "source", "sklearn"), ("rcv1", "order", True),
    ("rcv1", "dtype", np.int64), ("rcv1", "random_state", None),
])  # fmt: skip
def test_invalid_arguments_are_named(home, name, argument, value):
    with pytest.raises(ValueError, match=f"^{argument} must be"):
        LOADERS[name](**{"data_home": home, argument: value})
