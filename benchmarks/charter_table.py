"""A short table of the charter: which figures it tells, and how."""

from collections.abc import Callable
from typing import Any, NamedTuple

Entries = list[dict[str, Any]]


class Table(NamedTuple):
    """A table made from one part of the charter.

    `select` picks the few figures that it tells out of what the part reported, and `render` tells
    them in Markdown. So the tables of the pages can be made again from a small file.
    """

    part: str
    select: Callable[[Any], Entries]
    render: Callable[[Entries], str]


def percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f}"
