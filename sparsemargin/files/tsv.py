"""Rows of tables whose fields are separated by tabs or commas."""

from __future__ import annotations

from collections.abc import Iterable

#: Code points that some readers treat as the end of a field or line, or that control a terminal.
CONTROL = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]

# The backslash is escaped because escapes begin with it.
_ESCAPES = {ord("\\"): "\\\\"} | {
    each: chr(each).encode("unicode_escape").decode() for each in CONTROL
}


def separator_for(path: str) -> bytes:
    """Return the separator of a table with this name: a comma for .csv, otherwise a tab."""
    return b"," if path.lower().endswith(".csv") else b"\t"


def escaped(text: str) -> bytes:
    r"""Escape the characters that a field of a table can't contain.

    Backslashes, tabs, line ends and other control characters are escaped, as ``\\``, ``\t``, ``\n``
    and ``\x00``. Bytes of a file that are not UTF-8 (surrogates of ``surrogateescape``) are written
    as they were, other surrogates as escapes.
    """
    if not text.isalnum():
        text = text.translate(_ESCAPES)
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def quoted(field: bytes, separator: bytes = b"\t") -> bytes:
    """Quote an escaped field, as `csv` does, if it contains quotes or the separator."""
    has_mark = b'"' in field or separator in field
    return b'"%b"' % field.replace(b'"', b'""') if has_mark else field


def tsv_row(fields: Iterable[str], separator: bytes = b"\t") -> bytes:
    r"""Return a line with one field for each text. See `escaped` and `quoted`.

    Examples
    --------
    >>> print(tsv_row(["a\tb", '5" b'], b",").decode(), end="")
    a\tb,"5"" b"
    """
    return separator.join(quoted(escaped(each), separator) for each in fields) + b"\n"
