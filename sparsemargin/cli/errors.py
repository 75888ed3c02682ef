"""Errors as the command line tells them: one line, in terms of its options."""

from __future__ import annotations

import errno
import re

import click

from sparsemargin.io.shown import shown

#: What a shell reports of a process that the signal SIGINT has ended.
INTERRUPTED = 130

_REMEDIES = {
    errno.ENOSPC: "Make room, or write elsewhere; what was there before is as it was.",
    errno.EFBIG: "Files may not be as large here; what was there before is as it was.",
    errno.EROFS: "Write elsewhere.",
    errno.EACCES: "Change its permissions, or name another.",
}

_WHILE_LEARNING = {"multilabel=True": "--multilabel"}

# What a model can do with several labels a row was chosen when it learned.
_OF_A_MODEL = {
    "multilabel=True, to learn them all, or positive=LABEL": "--positive LABEL",
    "multilabel=True": "--positive LABEL",
}

# What the library's messages call arguments that the command line has other words for.
_PHRASES = {
    "dtype=numpy.float64": "--float64",
    "cache=PATH": "--cache FILE",
    "leave cache out": "leave it out",
    "classes=[...]": "--classes A,B,...",
    "init_model": "--init MODEL",
    "partial_fit can't know": "a stream can't know",
    "pass it as radius": "pass it as --radius",
    "Pass gamma as a number": "Pass --gamma X",
    "Fit a model for each: sklearn.multiclass.OneVsRestClassifier(model).fit(X, Y), Y being an "
    "indicator": "Train a model for each with --positive LABEL",
    "threshold and top_k are": "--threshold and --top-k are",
    "Call fit, or pass the kernel as a function": "Take another",
    ", or call fit first": "",
    "save_model writes them": "sparsemargin train writes them",
    "checkpoint=": "-o ",
    "pass a checkpoint": "pass -o",
    "another checkpoint, or leave resume out": "another -o, or leave --resume out",
    "with resume": "with --resume",
    "another cache_dir": "another --cache",
}

# Arguments that are options, beside the parameters of the algorithms.
_ARGUMENTS = ("zero_based", "n_features", "hash_bits", "memory_limit", "positive", "cache", "algo")


class Failure(click.ClickException):
    """A file, or what is in it, can't be used."""

    exit_code = 1


def failure_of(error: Exception, command: str | None) -> Failure:
    """What to tell of an error in a command, its notes included."""
    return Failure(shown(" ".join([_told(error, command), *getattr(error, "__notes__", ())])))


def _told(error: Exception, command: str | None) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}. {_REMEDIES.get(error.errno, '')}".rstrip()
    if isinstance(error, OSError | ValueError):
        return in_options(str(error), command)
    if isinstance(error, MemoryError):
        return "There is not enough memory. Try a lower --memory-limit, or --hash-bits."
    return (
        f"An error inside sparsemargin, {type(error).__name__}: {error}. Please report it with "
        "what --traceback shows."
    )


def in_options(message: str, command: str | None = None) -> str:
    """A message of the library with its arguments named as the options they are.

    Examples
    --------
    >>> in_options("max_iter=0.5 ends within rows. Pass max_iter=None, or hash_bits.")
    '--max-iter 0.5 ends within rows. Pass --max-iter until, or --hash-bits.'
    """
    # Only here, as a command that ends well has no use for it.
    from sparsemargin.cli.parameters import ALL_PARAMETERS, option_name, word_for

    def with_value(match: re.Match[str]) -> str:
        name, value = match[1], match[2].strip("'")
        return f"{option_name(name)} {word_for(name, value)}"

    makes_its_choice = command in ("convert", "train")
    several = _WHILE_LEARNING if makes_its_choice else _OF_A_MODEL
    for phrase, words in {**several, **_PHRASES}.items():
        message = message.replace(phrase, words)
    names = (*ALL_PARAMETERS, *_ARGUMENTS)
    message = re.sub(
        rf"(?<![\w/.=-])({'|'.join(names)})=('[^']*'|[\w.,+-]*\w)", with_value, message
    )
    # Without a value, only a name of several words is sure to be an argument's.
    compound = "|".join(name for name in names if "_" in name)
    return re.sub(
        rf"(?<![\w/.=-])({compound})(?![\w/=]|\.\w)", lambda match: option_name(match[1]), message
    )
