"""What features are called: by a dictionary, or by the indices that files have."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import overload

import click

from sparsemargin.cli.options import PATH, Decorator, Option
from sparsemargin.io.fit import columns_of
from sparsemargin.io.readable import _entries, read_dictionary
from sparsemargin.models import Learner


def dictionary_option(section: str) -> Decorator:
    """The option that names a dictionary, in a section of --help."""
    return click.option(
        "--dictionary", cls=Option, section=section, metavar="FILE", type=PATH,
        help="Names of the features: one a line, in the order of their indices, or name<TAB>number "
        "counted from 0.",
    )  # fmt: skip


class Indices(Sequence[str]):
    """The features' numbers as files have them, which may be too many to be kept."""

    def __init__(self, n_features: int, first: int) -> None:
        self._numbers = range(first, first + n_features)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [str(number) for number in self._numbers[i]]
        return str(self._numbers[i])


def check_dictionary(path: str) -> None:
    """Find out before the work whether a dictionary can be read, and has the form of one.

    Raises
    ------
    OSError, ValueError
        If not.
    """
    # A pipe can be read only once.
    if not Path(path).is_fifo():
        deque(_entries(path), maxlen=0)


def feature_names(learner: Learner, dictionary: str | None) -> Sequence[str]:
    """A name for each feature.

    Raises
    ------
    OSError, ValueError
        If the dictionary can't be used.
    """
    n_features = learner.n_features_in_
    if dictionary is not None:
        return read_dictionary(dictionary, n_features)
    columns = columns_of(learner)
    hashed = columns.get("hash_bits") is not None
    return Indices(n_features, 0 if hashed or columns["zero_based"] else 1)
