"""Text for messages and terminals."""

from collections.abc import Iterable
from itertools import islice


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


def first_three(names: Iterable[str]) -> str:
    """Return the first three names, separated by commas."""
    some = list(islice(names, 4))
    return ", ".join(some[:3]) + ", ..." * (len(some) > 3)
