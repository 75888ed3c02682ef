"""Where a command writes."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from sparsemargin.io.files import naming, replacing
from sparsemargin.io.sources import STANDARD_INPUT, Source

#: The path that means standard output.
STANDARD_OUTPUT = STANDARD_INPUT


def check_output(path: str, sources: Iterable[Source] = ()) -> None:
    """Find out before the work whether a file can be made at `path`, or replaced.

    Raises
    ------
    OSError
        If it can't.
    click.UsageError
        If it is one of the sources, or standard output.
    """
    target = Path(os.path.realpath(path))
    if path == STANDARD_OUTPUT:
        raise click.UsageError("Standard output can't take this: name a file.")
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a directory. Name a file in it: {Path(path, 'FILE')}")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{path}: there is no folder {target.parent}. Make it first: mkdir -p {target.parent}"
        )
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is no regular file, which could be replaced as a whole.")
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise naming(error, path) from None
    for source in sources:
        if source.path is not None and target.exists() and os.path.samefile(source.path, target):
            raise click.UsageError(f"{path} is to be read, and can't be written to as well.")


@contextmanager
def opened_output(path: str, sources: Iterable[Source] = ()) -> Iterator[BinaryIO]:
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
        check_output(path, sources)
        with replacing(path) as file:
            yield file


def is_on_terminal(path: str) -> bool:
    """Whether what is written to `path` is seen at once."""
    return path == STANDARD_OUTPUT and sys.stdout.isatty()
