"""What was measured, in a folder: a file for each piece of work and repeat."""

from __future__ import annotations

import json
from pathlib import Path

import sparsemargin
from sparsemargin.io.files import replacing
from sparsemargin.reproduce._recipe import Record, Work


class Records:
    """The records of this version of the library in a folder.

    Parameters
    ----------
    folder : Path
        Made when the first record is kept.
    """

    def __init__(self, folder: Path):
        self._folder = folder / f"sparsemargin-{sparsemargin.__version__}"

    def _path(self, work: Work, repeat: int) -> Path:
        return self._folder / f"{work.key}_{repeat}.json"

    def has(self, work: Work, repeat: int) -> bool:
        """Whether the work was done for this repeat."""
        return self._path(work, repeat).exists()

    def find(self, work: Work, n_repeats: int) -> list[Record]:
        """Return the records of the first repeats, as far as there are any."""
        paths = (self._path(work, repeat) for repeat in range(n_repeats))
        return [json.loads(path.read_text())["record"] for path in paths if path.exists()]

    def keep(self, work: Work, repeat: int, record: Record, seconds: float) -> None:
        """Write a record; the file appears whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(work, repeat)
        text = {"work": work.title, "repeat": repeat, "seconds": seconds, "record": record}
        with replacing(path) as out:
            out.write(json.dumps(text).encode())
