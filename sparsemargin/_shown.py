"""Text that people see."""


def shown(text: str) -> str:
    r"""The text with escapes for what can't be seen, or would move a terminal's cursor.

    Bytes that are not UTF-8 are let through where the encodings that files may be in instead have
    letters.

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
    """The text in quotes, cut where it is longer."""
    return repr(text if len(text) <= most else f"{text[:most]}...")
