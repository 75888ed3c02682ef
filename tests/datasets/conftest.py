"""Small files of all data sets, and a registry of them."""

import socket

import pytest

from problems.synthetic_files import ALL_FILES, hide_copies, write_files


@pytest.fixture
def nowhere(register, monkeypatch, tmp_path):
    """A registry of small files, none of which exists yet, and no network."""

    def refuse(*args, **kwargs):
        raise AssertionError("a loader reached for the network")

    register(ALL_FILES)
    hide_copies(monkeypatch, tmp_path)
    monkeypatch.setattr(socket, "socket", refuse)
    return tmp_path


@pytest.fixture
def home(nowhere):
    """The folder with all files."""
    return write_files(nowhere / "my data", ALL_FILES)
