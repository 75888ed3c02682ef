"""What several test modules set up and have to undo, and how hypothesis runs."""

import os
import signal

import hypothesis
import pytest

from problems.synthetic_files import CONTENTS, use_registry
from sparsemargin.datasets import files

# For runs that ask only whether a fault is noticed: nobody looks at its smallest example.
hypothesis.settings.register_profile(
    "noticing", phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate], derandomize=True
)

# No file of a test has to outlast the machine; that files are synchronised, faulty_disk.py tells.
os.fsync = lambda descriptor: None

# Shells start jobs in the background with SIGINT ignored, which the commands respect. Some tests
# interrupt commands, so that the signal must have its effect.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def register(monkeypatch, tmp_path):
    """Make the library read a registry of small files until the test ends."""
    yield lambda contents=CONTENTS, server="http://localhost": use_registry(
        monkeypatch, tmp_path / "registry", contents, server
    )
    files.data_sets.cache_clear()
