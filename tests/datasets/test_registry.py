"""The registry of data files, the local copies it describes, and the generated sample."""

import gzip
import hashlib
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from problems.published_files import data_folder
from problems.synthetic_files import numbers_sha256

FOLDER = Path(__file__).resolve().parents[2] / "datasets"
SAMPLE = FOLDER / "alma_target_sample.svm"
REGISTRY = tomllib.loads(
    resources.files("sparsemargin.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
)
FILES = REGISTRY["file"]

by_name = pytest.mark.parametrize("entry", FILES, ids=[entry["name"] for entry in FILES])


def test_names_and_hashes_are_distinct():
    for field in "name", "sha256":
        assert len({entry[field] for entry in FILES}) == len(FILES)


@by_name
def test_fields(entry):
    texts = {"name", "title", "publisher", "source", "form", "licence", "sha256"}
    optional = {"classes", "url", "obtain", "numbers_sha256"}
    assert set(entry) - optional == texts | {"shape", "bytes"}
    assert all(isinstance(entry[field], str) and entry[field] for field in texts)
    assert Path(entry["name"]).name == entry["name"]
    assert re.fullmatch("[0-9a-f]{64}", entry["sha256"])
    assert type(entry["bytes"]) is int
    assert entry["bytes"] > 0
    assert len(entry["shape"]) <= 2
    assert all(type(size) is int and size > 0 for size in entry["shape"])


@pytest.mark.parametrize("name", REGISTRY["dataset"])
def test_data_sets(name):
    """The download command can fetch every file under its registered name, or tells what to do."""
    table = REGISTRY["dataset"][name]
    of_columns = {"columns", "header", "classes", "target_names"}
    assert set(table) - of_columns == {"title", "citation", "files"}
    assert table["title"]
    assert table["citation"]
    entries = {entry["name"]: entry for entry in FILES}
    for file in table["files"]:
        if "url" in entries[file]:
            assert re.fullmatch(rf"https://.*/{re.escape(file)}(\.gz)?", entries[file]["url"])
        else:
            assert entries[file]["obtain"]


def test_each_file_that_can_be_had_belongs_to_one_data_set_and_is_had_in_one_way():
    listed = [file for table in REGISTRY["dataset"].values() for file in table["files"]]
    ways = [entry["name"] for entry in FILES for way in ("url", "obtain") if way in entry]
    assert sorted(listed) == sorted(ways)


@pytest.mark.parametrize("name", ["Lymphoma96x4026.arff.gz", "breast_er_west2001.csv.gz"])
def test_recipes_that_pack_a_published_file_make_the_registered_bytes(name, tmp_path):
    (entry,) = [entry for entry in FILES if entry["name"] == name]
    command = entry["obtain"].split("with GNU gzip: ")[1]
    content = gzip.decompress((data_folder(name) / name).read_bytes())
    unpacked = entry["source"].rsplit("/", 1)[1]
    (tmp_path / unpacked).write_bytes(content)
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == entry["sha256"]


@by_name
def test_local_copy(entry):
    content = content_of_copy(entry["name"])
    assert len(content) == entry["bytes"]
    assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    if "numbers_sha256" in entry:
        assert numbers_sha256(content) == entry["numbers_sha256"]


def content_of_copy(name):
    """The bytes of a registered file, of which there may be a packed copy instead."""
    if (data_folder() / name).exists():
        return (data_folder() / name).read_bytes()
    return gzip.decompress((data_folder(f"{name}.gz") / f"{name}.gz").read_bytes())


def test_mnist_is_the_published_one():
    """By the md5 that is commonly given for the training images."""
    content = content_of_copy("train-images-idx3-ubyte")
    assert hashlib.md5(content).hexdigest() == "6bbc9ace898e44ae57da46a324031adb"


def test_sample_is_what_the_documented_command_makes(tmp_path):
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    (command,) = [line for line in lines if line.startswith("python -c ")]
    arguments = shlex.split(command)[1:]
    subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True)
    assert (tmp_path / SAMPLE.name).read_bytes() == SAMPLE.read_bytes()


def test_sample_is_small_and_separable():
    assert SAMPLE.stat().st_size <= 60_000
    X, y = load_svmlight_file(str(SAMPLE), n_features=50)
    assert X.shape == (200, 50)
    assert np.array_equal(np.unique(y), [-1, 1])
    relevant = X[:, :3].toarray()
    signs = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1)
    margins = (y[:, None] * (relevant @ signs)).min(axis=0)
    assert margins.max() > 1 - 2e-4
