"""Read what pages have for the site only: Markdown in a comment that begins with `site only`.

The hosting shows directives of Sphinx as code. In such a comment they are invisible there."""

import re
from typing import Any

_COMMENT = re.compile(r"^<!-- site only\n(.*?)\n-->$", flags=re.DOTALL | re.MULTILINE)


def uncover(app: Any, page: str, source: list[str]) -> None:
    """Remove the marks of the comments, so that their content is read."""
    source[0] = _COMMENT.sub(r"\1", source[0])


def setup(app: Any) -> dict[str, bool]:
    """Register the rule."""
    app.connect("source-read", uncover)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
