"""The kinds of labels in files whose values have types: text, numbers and truth values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

#: Forms of files in which values have types.
TYPED_FORMS = ("jsonl", "parquet")

# The kinds of labels. Each kind can be converted to those before it. Types that `_KIND_OF` does not
# list are numbers.
_KINDS = _TEXT, _NUMBER, _TRUTH = "text", "a number", "a truth value"
_KIND_OF: dict[type, str] = {str: _TEXT, bytes: _TEXT, bool: _TRUTH}

# For each wanted kind: how to convert labels to it, its pandas dtype, and its Python function.
_REMEDIES = {
    _TEXT: ("Replace {}s by the names of their classes, or make text of them", "string", "str"),
    _NUMBER: ("Make numbers of {}s", "int", "int"),
}


class LabelKind(NamedTuple):
    """A kind of labels in a column of a block: whether the first such label is in a list, and the
    row and the location of this label."""

    name: str
    column: str
    in_list: bool
    row: int
    where: str = ""


def kinds_of(labels: Iterable[Any], column: str) -> list[LabelKind]:
    """Return the kinds of labels in the values of a column, each with its first row. Lists may hold
    any number of labels, and an empty text holds none."""
    found: dict[str, LabelKind] = {}
    for row, value in enumerate(labels):
        in_list = isinstance(value, list)
        for each in value if in_list else [value]:
            name = _KIND_OF.get(type(each), _NUMBER)
            if name not in found and each != "":
                found[name] = LabelKind(name, column, in_list, row)
    return [*found.values()]


def check_kind(kind: LabelKind, first: LabelKind) -> None:
    """Raise a ValueError if a kind of labels differs from the kind of the first label."""
    if kind.name == first.name:
        return
    wanted, other = sorted((kind, first), key=lambda each: _KINDS.index(each.name))
    remedy, dtype, function = _REMEDIES[wanted.name]
    how = f".map(lambda row: [*map({function}, row)])" if other.in_list else f".astype('{dtype}')"
    raise ValueError(
        f"{kind.where}: {kind.column!r} is {kind.name}, but {first.name} in {first.where}. All "
        f"labels must be of one kind. {remedy.format(other.name.replace('a ', 'the '))}, with "
        f"pandas by df[{kind.column!r}]{how}."
    )
