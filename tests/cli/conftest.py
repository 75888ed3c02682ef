"""Fixtures for the tests of commands."""

import shutil

import pytest

from problems.command_line import run, three_classes, two_classes
from sparsemargin.files import sources


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    two_classes(folder)
    three_classes(folder)
    for n in "", "3":
        file, model = folder / f"train{n}.svm", folder / f"a{n}.model"
        run("train", file, "-o", model, "-q", "--algo", "pnorm", "--p", 3)
    return folder


@pytest.fixture(autouse=True)
def folder(originals, tmp_path, monkeypatch):
    """A working directory with files and models of two classes and of three classes.

    The former are train.svm, test.svm and a.model, the latter train3.svm, test3.svm and a3.model.
    Blocks are small, so that a file of a few KB has many.
    """
    shutil.copytree(originals, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4096)
    return tmp_path
