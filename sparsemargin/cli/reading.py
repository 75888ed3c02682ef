"""The options on how svmlight text is read."""

from __future__ import annotations

from collections.abc import Iterable

import click

from sparsemargin.cli.options import Option, choice
from sparsemargin.io.kinds import KIND_NAMES, kind_of
from sparsemargin.io.sources import Source, open_sources

_SECTION = "Reading"

ZERO_BASED = choice(
    _SECTION, "--zero-based", values={"auto": "auto", "yes": True, "no": False}, default="auto",
    help="Whether indices count from 0; auto: if index 0 occurs.",
)  # fmt: skip

#: For commands that a model tells how its features are numbered.
ZERO_BASED_UNLESS_KNOWN = choice(
    _SECTION, "--zero-based", values={"auto": "auto", "yes": True, "no": False}, default="auto",
    help="Whether indices count from 0; auto: as in the model's own files, or from 1 if it has "
    "learned from none.",
)  # fmt: skip

N_FEATURES = click.option(
    "--n-features", cls=Option, section=_SECTION, type=click.IntRange(min=1), metavar="N",
    help="Refuse indices beyond.",
)  # fmt: skip

HASH_BITS = click.option(
    "--hash-bits", cls=Option, section=_SECTION, type=click.IntRange(1, 31), metavar="N",
    help="Hash indices to 2^N features.",
)  # fmt: skip

SINGLE = click.option(
    "--float32/--float64", "single", cls=Option, section=_SECTION, default=False,
    help="Type of the values, and of what is made of them.  [default: float64]",
)  # fmt: skip

POSITIVE = click.option(
    "--positive", cls=Option, section=_SECTION, metavar="LABEL",
    help="Tell this label from all others, in rows of one label or of several.",
)  # fmt: skip

THREADS = click.option(
    "--threads", cls=Option, section=_SECTION, type=click.IntRange(min=1), metavar="N",
    help="Threads that read.  [default: 2]",
)  # fmt: skip


def text_sources(files: Iterable[str]) -> list[Source]:
    """The sources of svmlight text that are named.

    Raises
    ------
    OSError, ValueError
        If there is none of a name, or if one is another kind of file.
    """
    sources = open_sources(files)
    for source in sources:
        kind = kind_of(source)
        if kind != "svmlight":
            raise ValueError(f"{source.name} is {KIND_NAMES[kind]}, not svmlight text.")
    return sources
