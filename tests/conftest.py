"""What several test modules set up and have to undo."""

import pytest
from synthetic_files import CONTENTS, forget_registry, use_registry


@pytest.fixture
def register(monkeypatch, tmp_path):
    """Make the library read a registry of small files until the test ends."""
    yield lambda contents=CONTENTS, server="http://localhost": use_registry(
        monkeypatch, tmp_path / "registry", contents, server
    )
    forget_registry()
