"""The charter as a page of Markdown: aims, short tables, pictures, and all that was printed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import charter_aims
import charter_tables
from charter_parts import PARTS
from measure import markdown_table

HEAD = """\
# Performance charter

Everything was measured side by side in one run, so quote the ratios; the times belong to the
machine. A part's own contestants took turns, and the part says what it measured, and how, in what
it printed, below.
"""
VERDICTS = {True: "reached", False: "**missed**", None: "not measured"}
#: What the tables are about.
CAPTIONS = {
    "text": "One shuffled epoch of text as it comes, one thread: speed, test error % (theirs)",
    "order": "What the order within rows costs",
    "epoch": "One shuffled epoch of sorted rows in memory, float64, one thread, checks included",
    "one-row": "One row a call",
    "floor": "The Perceptron beside the C loop",
    "labels": "103 labels, RCV1 shape, float32, five epochs",
    "topics": "The topics of the RCV1 sample",
    "growth": "How time grows",
    "growth-mistakes": "How the time of a mistake grows",
    "growth-kernels": "How kernels grow with rows",
    "threads": "Two threads against one",
    "files": "From svmlight text",
    "kernels": "Kernels on MNIST",
}


def report(parts: dict[str, Any], pictures: dict[str, Path]) -> str:
    """Return the page.

    Parameters
    ----------
    parts : dict
        As charter.json has them.
    pictures : dict
        Files by title, in the page's folder.
    """
    sections = [HEAD, *_what_was_run(parts), *_aims(parts), *_tables(parts)]
    sections += [f"![{title}]({path.name})\n" for title, path in pictures.items()]
    sections += [*_what_stands_between(parts), *_printed(parts)]
    return "\n".join(sections)


def _what_was_run(parts: dict[str, Any]) -> Iterator[str]:
    rows = [
        [
            PARTS[name].title, f"`{part['command']}`", f"{part['seconds'] / 60:.1f}",
            part["status"] + (", in a hurry" if part["quick"] else ""),
        ]
        for name, part in parts.items()
    ]  # fmt: skip
    yield markdown_table(["part", "command", "minutes", ""], rows) + "\n"
    for name, part in parts.items():
        if "why" in part:
            yield f"`{name}` is {part['status']}: {part['why']}\n"


def _aims(parts: dict[str, Any]) -> Iterator[str]:
    # Of what was measured in a hurry nothing can be said.
    judged = {name: part for name, part in parts.items() if not part["quick"]}
    rows = [
        [aim.what, aim.wanted, aim.measured, VERDICTS[aim.reached]]
        for aim in charter_aims.aims(judged)
    ]
    if rows:
        yield "## Aims\n"
        yield markdown_table(["", "wanted", "measured", ""], rows) + "\n"


def _tables(parts: dict[str, Any]) -> Iterator[str]:
    for name, table in charter_tables.render(charter_tables.select(parts)).items():
        yield f"## {CAPTIONS[name]}\n"
        yield table + "\n"


def _what_stands_between(parts: dict[str, Any]) -> Iterator[str]:
    """Say what an epoch does more than the C loop, by the times and by the counts."""
    epochs = parts.get("floor", {}).get("report", {}).get("epochs", [])
    counts = parts.get("counters", {}).get("report", {}).get("further epoch", [])
    if epochs or counts:
        yield "## Between an epoch and the C loop\n"
    if epochs:
        yield (
            "A fit of one epoch has, beyond a further epoch, what a fit of two rows takes as well, "
            "and the checking of every row before its first use, in ns per nonzero:\n"
        )
    for entry in epochs:
        order, beyond = "shuffled" if entry["shuffled"] else "in order", entry["beyond_ns"]
        yield (
            f"- {entry['shape']}, {entry['dtype']}, {order}: {entry['ours_ns']['first']:.2f} = "
            f"{entry['ours_ns']['further']:.2f} + {beyond['fixed']:.2f} + {beyond['checks']:.2f}; "
            f"the C loop {entry['floor_ns']['first']:.2f}, then {entry['floor_ns']['further']:.2f}."
        )
    if counts:
        yield "\nA further epoch by callgrind, per nonzero (with many labels: and label):\n"
    for floor, ours in zip(counts[::2], counts[1::2], strict=True):
        order = "shuffled" if ours["shuffled"] else "in order"
        told = (
            f"{ours[name]:.2f} {name} where the C loop has {floor[name]:.2f}"
            for name in ("instructions", "loads and stores", "first-level misses")
        )
        yield f"- {ours['rows']}, {order}: {', '.join(told)}."
    yield ""


def _printed(parts: dict[str, Any]) -> Iterator[str]:
    for name, part in parts.items():
        yield f"## {PARTS[name].title}: all that was printed\n"
        yield f"```\n{part['printed'].strip()}\n```\n"
