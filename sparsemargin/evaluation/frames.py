"""Tables of results."""

from __future__ import annotations

from typing import Any


def frame_of(columns: dict[str, Any], index: str | None = None) -> Any:
    """Return a pandas DataFrame with these columns, one of which becomes its index. Without pandas,
    return the columns."""
    try:
        # pandas is an optional dependency.
        import pandas
    except ImportError:
        return columns
    frame = pandas.DataFrame(columns)
    return frame if index is None else frame.set_index(index)
