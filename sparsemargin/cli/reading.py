"""The options on how svmlight text is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import click

from sparsemargin.cli.options import Option, choice
from sparsemargin.io.kinds import KIND_NAMES, Kind, kind_of
from sparsemargin.io.sources import Source, open_sources
from sparsemargin.models import Learner

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

MULTILABEL = click.option(
    "--multilabel", is_flag=True, cls=Option, section=_SECTION,
    help="Rows have any number of labels, separated by commas, each of which is learned.",
)  # fmt: skip

THREADS = click.option(
    "--threads", cls=Option, section=_SECTION, type=click.IntRange(min=1), metavar="N",
    help="Threads that read.  [default: 2]",
)  # fmt: skip

# What to do with a file of another kind.
_WAYS_OUT: dict[Kind, str] = {
    "cache": " Name the text it was made of: train with --cache {name} takes the rows from here.",
    "npz": " Make it text first: sparsemargin convert {name} FILE.svm",
    "model": "",
}

# Remedies of the library, and what there is to do where a model has settled the matter.
_CHOOSE_BASE = "Pass zero_based=True or zero_based='auto'."
_SHIFT = (
    "The model has learned from files whose indices count from 1: add 1 to the indices here, or "
    "train on files that count as these do."
)
_TELL_BASE = "Pass zero_based=True."
_CHOOSE_CLASSES = "Pass classes=[...] with all there are; a model"


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
            raise ValueError(
                f"{source.name} is {KIND_NAMES[kind]}, not svmlight text."
                f"{_WAYS_OUT[kind].format(name=source.name)}"
            )
    return sources


def named_sources(sources: Iterable[Source], name: str) -> list[tuple[str, str | None]]:
    """The files among the sources, by what the command line calls them."""
    return [(name, source.path) for source in sources]


@contextmanager
def read_for(learner: Learner | None) -> Iterator[None]:
    """Reading files for a model that has learned; None: there is none.

    Raises
    ------
    ValueError
        Without the remedies that this model leaves no room for.
    """
    try:
        yield
    except ValueError as error:
        if learner is None:
            raise
        knows = hasattr(learner, "_reading")
        message = str(error).replace(_CHOOSE_BASE, _SHIFT if knows else _TELL_BASE)
        message = message.replace(_CHOOSE_CLASSES, "A model")
        if message == str(error):
            raise
        raise ValueError(message) from None
