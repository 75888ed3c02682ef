"""Show each chart on a matching background.

A page names the light chart, `NAME-light.svg`, so that it can be read without Sphinx. The site
adds the dark one, which is next to it."""

from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

_LIGHT, _DARK = "-light.svg", "-dark.svg"


class DarkTwins(SphinxTransform):
    """Put the dark chart next to each light one; the theme shows one of the two."""

    # Sphinx collects the images of a page after all transforms.
    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Add the dark images of the page."""
        for light in list(self.document.findall(nodes.image)):
            if light["uri"].endswith(_LIGHT):
                dark = light.deepcopy()
                dark["uri"] = light["uri"].removesuffix(_LIGHT) + _DARK
                light["classes"].append("only-light")
                dark["classes"].append("only-dark")
                light.parent.insert(light.parent.index(light) + 1, dark)


def setup(app: Any) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(DarkTwins)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
