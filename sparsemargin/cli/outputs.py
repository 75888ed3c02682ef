"""Where a command writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations, product
from typing import BinaryIO

import click

from sparsemargin.io.files import check_replaceable, is_one_file, replacing
from sparsemargin.io.sources import STANDARD_INPUT

#: The path that means standard output.
STANDARD_OUTPUT = STANDARD_INPUT

#: Files by what the command line calls them, such as --readable; None: not given.
Named = Sequence[tuple[str, str | None]]


def check_distinct(outputs: Named) -> None:
    """Refuse outputs of which one would replace another.

    Raises
    ------
    click.UsageError
        Names both.
    """
    for (name, path), (other, same) in combinations(outputs, 2):
        if _is_one_file(path, same):
            raise click.UsageError(
                f"{name} {path} and {other} {same} are one file, which can't take both. Name "
                "another."
            )


def check_kept(outputs: Named, inputs: Named) -> None:
    """Refuse outputs that would replace an input.

    Raises
    ------
    click.UsageError
        Names both.
    """
    for (name, path), (other, same) in product(outputs, inputs):
        if _is_one_file(path, same):
            raise click.UsageError(
                f"{name} {path} would replace {other} {same}, which is to be read. Name another."
            )


def _is_one_file(path: str | None, other: str | None) -> bool:
    """Whether both are given, and one file."""
    if path is None or other is None or STANDARD_OUTPUT in (path, other):
        return False
    return is_one_file(path, other)


def check_output(path: str) -> None:
    """Find out before the work whether a file can be made at `path`, or replaced.

    Raises
    ------
    OSError
        If it can't.
    click.UsageError
        If it is standard output.
    """
    if path == STANDARD_OUTPUT:
        raise click.UsageError("Standard output can't take this: name a file.")
    check_replaceable(path)


@contextmanager
def opened_output(path: str) -> Iterator[BinaryIO]:
    """A binary file to write to: standard output, a device or pipe, or a file that appears whole.

    Raises
    ------
    OSError
        If it can't be written to.
    """
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
    elif os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        with open(path, "wb") as file:
            yield file
    else:
        check_output(path)
        with replacing(path) as file:
            yield file


def is_on_terminal(path: str) -> bool:
    """Whether what is written to `path` is seen at once."""
    return path == STANDARD_OUTPUT and sys.stdout.isatty()
