"""What was measured, in a folder: a file for each piece of work and repeat."""

from __future__ import annotations

import json
from pathlib import Path

import sparsemargin
from papers._recipe import Record, Work
from sparsemargin.io.files import replacing


class Records:
    """The records of this version of the library in a folder.

    Parameters
    ----------
    folder : Path
        Made if need be: where it can't be, that is told before anything is measured.
    """

    def __init__(self, folder: Path):
        self._folder = folder / f"sparsemargin-{sparsemargin.__version__}"
        self._folder.mkdir(parents=True, exist_ok=True)

    def _path(self, work: Work, repeat: int) -> Path:
        return self._folder / f"{work.key}_{repeat}.json"

    def has(self, work: Work, repeat: int) -> bool:
        """Whether the work was done for this repeat."""
        return self._read(work, repeat) is not None

    def find(self, work: Work, n_repeats: int) -> list[Record]:
        """Return the records of the first repeats, up to the first that is missing."""
        found: list[Record] = []
        for repeat in range(n_repeats):
            record = self._read(work, repeat)
            if record is None:
                break
            found.append(record)
        return found

    def _read(self, work: Work, repeat: int) -> Record | None:
        """A record; None where there is none, or a file that something else has cut short."""
        try:
            return json.loads(self._path(work, repeat).read_text())["record"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def keep(self, work: Work, repeat: int, record: Record, seconds: float) -> None:
        """Write a record; the file appears whole or not at all."""
        path = self._path(work, repeat)
        text = {"work": work.title, "repeat": repeat, "seconds": seconds, "record": record}
        with replacing(path) as out:
            out.write(json.dumps(text).encode())
