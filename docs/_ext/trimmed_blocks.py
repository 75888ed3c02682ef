"""Show code without the empty line at its end that doctest needs after the last output."""

from typing import Any

from docutils import nodes


def trim(app: Any, doctree: nodes.document) -> None:
    """Cut blank lines off the end of every literal block."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource = text
        block.children = [nodes.Text(text)]


def setup(app: Any) -> dict[str, bool]:
    """Register the transformation."""
    app.connect("doctree-read", trim)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
