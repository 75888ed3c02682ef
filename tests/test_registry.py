"""The registry of data files, the local copies it describes, and the generated sample."""

import hashlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

FOLDER = Path(__file__).resolve().parents[1] / "datasets"
FILES = tomllib.loads((FOLDER / "registry.toml").read_text(encoding="utf-8"))["file"]
SAMPLE = FOLDER / "alma_target_sample.svm"

by_name = pytest.mark.parametrize("entry", FILES, ids=[entry["name"] for entry in FILES])


def test_names_and_hashes_are_distinct():
    for field in "name", "sha256":
        assert len({entry[field] for entry in FILES}) == len(FILES)


@by_name
def test_fields(entry):
    texts = {"name", "title", "publisher", "source", "form", "licence", "sha256"}
    assert set(entry) - {"classes"} == texts | {"shape", "bytes"}
    assert all(isinstance(entry[field], str) and entry[field] for field in texts)
    assert Path(entry["name"]).name == entry["name"]
    assert re.fullmatch("[0-9a-f]{64}", entry["sha256"])
    assert type(entry["bytes"]) is int
    assert entry["bytes"] > 0
    assert len(entry["shape"]) <= 2
    assert all(type(size) is int and size > 0 for size in entry["shape"])


@by_name
def test_local_copy(entry):
    folder = os.environ.get("SPARSEMARGIN_DATA")
    if not folder:
        pytest.skip("SPARSEMARGIN_DATA names no folder with the data files")
    assert Path(folder).is_dir(), "SPARSEMARGIN_DATA does not name a folder"
    path = Path(folder, entry["name"])
    if not path.exists():
        pytest.skip(f"{entry['name']} is not in the folder SPARSEMARGIN_DATA")
    content = path.read_bytes()
    assert len(content) == entry["bytes"]
    assert hashlib.sha256(content).hexdigest() == entry["sha256"]


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
