"""Access of the tests to the public data files, and their registries."""

import os
import tomllib
from importlib import resources
from pathlib import Path

import pytest


def data_folder(*names):
    """The folder named by SPARSEMARGIN_DATA; skips the test if a named file is missing."""
    folder = os.environ.get("SPARSEMARGIN_DATA")
    if not folder:
        pytest.skip("SPARSEMARGIN_DATA names no folder with the data files")
    assert Path(folder).is_dir(), "SPARSEMARGIN_DATA does not name a folder"
    absent = [name for name in names if not Path(folder, name).exists()]
    if absent:
        pytest.skip(f"{', '.join(absent)} not in the folder SPARSEMARGIN_DATA")
    return Path(folder)


def registry():
    """The library's own registry, and that of the papers."""
    own, of_papers = (
        tomllib.loads(resources.files(package).joinpath("registry.toml").read_text("utf-8"))
        for package in ("sparsemargin.datasets", "papers.data")
    )
    return {
        "dataset": own["dataset"] | of_papers["dataset"],
        "file": own["file"] + of_papers["file"],
    }
