"""Write docs/reference/index.md, the public API as tables: `python docs/_ext/public_api.py`."""

import re
from collections.abc import Iterator
from importlib import import_module
from inspect import Parameter, getdoc, isclass, ismodule, signature
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "reference" / "index.md"
ROOMS = ("text", "genomes", "evaluation", "plotting", "distributed", "datasets", "kernels")
STARS = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}

HEAD = """# Public API

All public classes and functions, with their parameters and defaults. In Python,
`help(sparsemargin.fit_text)` prints a complete docstring. `python docs/_ext/public_api.py`
generates this page.
"""


def summary(thing: Any) -> str:
    """Return the first sentence of a docstring as Markdown, without references and roles."""
    paragraph = (getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
    text = re.sub(r",? \[\d\]_|:\w+:(?=`)", "", paragraph).replace("``", "`").replace("|", r"\|")
    return re.split(r"(?<=\.) (?=[A-Z])", text)[0]


def parameters(thing: Any) -> Iterator[str]:
    """Yield the parameters of a class or function, with their defaults as in code."""
    # Exception classes without a constructor have no signature.
    plain = isclass(thing) and issubclass(thing, Exception)
    for name, each in ({} if plain else signature(thing).parameters).items():
        if not name.startswith("_"):
            default = each.default.__name__ if isclass(each.default) else repr(each.default)
            shown = "" if each.default is each.empty else "=" + default.replace("'", '"')
            yield f"`{STARS.get(each.kind, '')}{name}{shown}`"


def page() -> str:
    """Return the text of the page."""
    lines = [HEAD]
    for path in ("sparsemargin", *(f"sparsemargin.{room}" for room in ROOMS)):
        module = import_module(path)
        lines += [f"## {path}\n", "| name | description | parameters |", "|---|---|---|"]
        for name in sorted(module.__all__):
            if not ismodule(thing := getattr(module, name)):
                lines.append(f"| `{name}` | {summary(thing)} | {', '.join(parameters(thing))} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
