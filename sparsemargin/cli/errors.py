"""Errors as the command line tells them: one line, in terms of its options."""

from __future__ import annotations

import errno
import re

import click

from sparsemargin.cli.parameters import OPTION_OF

#: What a shell reports of a process that the signal SIGINT has ended.
INTERRUPTED = 130

# Values that the library's arguments have, where the options say it otherwise.
_PHRASES = {
    "multilabel=True": "--positive LABEL",
    "dtype=numpy.float64": "--float64",
    "zero_based=True": "--zero-based yes",
    "zero_based=False": "--zero-based no",
    "cache=PATH": "--cache PATH",
    "init_model": "--init",
}

_REMEDIES = {
    errno.ENOSPC: "Make room, or write elsewhere; what was there before is as it was.",
    errno.EFBIG: "It is larger than files may be here; what was there before is as it was.",
    errno.EROFS: "Write elsewhere.",
    errno.EACCES: "Change the permissions, or write elsewhere.",
}


class Failure(click.ClickException):
    """A file, or what is in it, can't be used."""

    exit_code = 1


def failure_of(error: Exception) -> Failure:
    """What to tell of an error."""
    if isinstance(error, OSError) and error.errno is not None:
        place = f"{error.filename}: " if error.filename else ""
        remedy = _REMEDIES.get(error.errno, "")
        return Failure(f"{place}{error.strerror}. {remedy}".rstrip())
    if isinstance(error, OSError | ValueError):
        return Failure(in_options(str(error)))
    if isinstance(error, MemoryError):
        return Failure("There is not enough memory. Lower --memory-limit or --hash-bits.")
    return Failure(
        f"An error inside sparsemargin, {type(error).__name__}: {error}. Please report it, with "
        "what --traceback shows."
    )


def in_options(message: str) -> str:
    """The message with the library's arguments named as the options they are here.

    Examples
    --------
    >>> in_options("max_iter=0.5 ends within rows. Pass max_iter=a whole number.")
    '--epochs 0.5 ends within rows. Pass --epochs a whole number.'
    """
    for phrase, option in _PHRASES.items():
        message = re.sub(rf"(?<![\w/.]){re.escape(phrase)}(?![\w/])", option, message)
    # A word that is a parameter's name may also be another's, so it takes a value or an underscore
    # to be known as one.
    names = "|".join(map(re.escape, OPTION_OF))
    message = re.sub(
        rf"(?<![\w/.])({names})=('?)(?=[\w\"'-])([\w.+-]*\w)?\2",
        lambda match: f"{OPTION_OF[match[1]]} {match[3] or ''}".rstrip(),
        message,
    )
    compound = "|".join(name for name in OPTION_OF if "_" in name)
    return re.sub(
        rf"(?<![\w/.-])({compound})(?![\w/]|\.\w)", lambda match: OPTION_OF[match[1]], message
    )
