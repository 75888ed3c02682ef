"""Text for messages and terminals."""

import shutil
import sys
import textwrap
from collections.abc import Iterable
from itertools import islice
from typing import TextIO


def shown(text: str) -> str:
    r"""Return the text with escapes for characters that are invisible or move the cursor.

    Surrogates for bytes from 0xA0, which are not valid UTF-8, are kept: the single-byte encodings
    that files may have instead use these bytes for letters.

    Examples
    --------
    >>> print(shown("c\nd"))
    c\nd
    """
    return "".join(
        c if c.isprintable() or "\udca0" <= c <= "\udcff" else c.encode("unicode_escape").decode()
        for c in text
    )


def quoted(text: str, most: int = 40) -> str:
    """Return the text in quotes, cut after `most` characters."""
    return repr(text if len(text) <= most else f"{text[:most]}...")


def columns_of(stream: TextIO) -> int:
    """Return the number of columns of a terminal, or `sys.maxsize` for other streams."""
    return shutil.get_terminal_size().columns if stream.isatty() else sys.maxsize


def folded(text: str, stream: TextIO, indent: int) -> str:
    """Return the text folded between words to the width of a terminal. All lines but the first are
    indented."""
    columns = columns_of(stream)
    if len(text) <= columns:
        return text
    return textwrap.fill(
        text, columns, subsequent_indent=" " * indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def first_three(names: Iterable[str]) -> str:
    """Return the first three names, separated by commas."""
    some = list(islice(names, 4))
    return ", ".join(some[:3]) + ", ..." * (len(some) > 3)
