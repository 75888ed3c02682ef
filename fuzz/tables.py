"""Reads random tables of labels and texts, sound and spoilt ones: see fuzz/README.md.

A sound table is read as Python's csv and json and pyarrow read it, by train, evaluate, predict and
info alike. Of a spoilt one all of these read the same texts, or refuse it by an error that names
the file.
"""

from __future__ import annotations

from pathlib import Path

from harness import Given, main

from problems.tables import check_table, make_table, spoil


class Tables:
    """Everything that reads files of texts, on tables of all forms."""

    MOST_CHANGES = 3

    def __init__(self, folder: Path):
        self.folder = folder

    def check(self, given: Given) -> None:
        """Make a table, spoil it up to three times, and read it."""
        table = make_table(given.random)
        given.log.append(f"{table}")
        content = table.content
        for random in given.changes(self.MOST_CHANGES):
            if random.randint(2):
                content = spoil(random, content)
        sound = content == table.content
        given.log.append(f"spoilt: {content!r}")
        path = self.folder / f"a{table.end}"
        outcome = check_table(path, table._replace(content=content), sound=sound)
        given.outcomes[f"{table.end}, {'sound' if sound else 'spoilt'}: {outcome}"] += 1


if __name__ == "__main__":
    main(Tables)
