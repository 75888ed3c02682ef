"""Make the tables of docs/scale.md from what scale.py measured, and, for `make docs`, its picture.

The figures are kept beside this file, in scale.json, so that they can be made again without
measuring. Parts that were measured in a hurry, or not at all, stay as they were.

    python benchmarks/scale_pages.py [--figures results/scale.json]
"""

import argparse
from pathlib import Path
from typing import Any

import scale
import scale_tables
from doc_tables import fill
from matplotlib.figure import Figure
from measure import replace_text

from sparsemargin.plotting import theme
from sparsemargin.plotting.display import scale_epochs
from sparsemargin.plotting.style import line_style

FIGURES = Path(__file__).with_name("scale.json")
PAGE = FIGURES.parent.parent / "docs" / "scale.md"
DRAWN = {"rcv1": "RCV1, ten topics", "generated": "generated, $10^8$ nonzeros"}
DRAWN_SHARDS = (1, 4, 16, 64)


def figures_of(parts: dict[str, Any]) -> dict[str, Any]:
    """What was measured, without how."""
    return {name: part["figures"] for name, part in parts.items()}


def draw_pictures(folder: Path) -> None:
    """Draw the picture from the figures that are kept, on light ground and on dark."""
    figures = figures_of(scale.read(FIGURES))
    for ground in ("light", "dark"):
        with theme(ground):
            _draw(figures).savefig(folder / f"scale-{ground}.svg")


def _draw(figures: dict[str, Any]) -> Figure:
    """Draw test error over epochs: a row for each kind of rows, a panel for each learner."""
    names = [name for name in DRAWN if name in figures]
    learners = list(dict.fromkeys(
        curve["learner"] for name in names for curve in figures[name]["curves"]
        if curve["learner"] != "Second-order"
    ))  # fmt: skip
    figure = Figure(figsize=(3.1 * len(learners), 2.9 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), len(learners), squeeze=False)
    for name, row in zip(names, panels, strict=True):
        for learner, axes in zip(learners, row, strict=True):
            _draw_panel(axes, figures[name]["curves"], learner)
            axes.set_title(learner)
        row[0].set_ylabel(f"{DRAWN[name]}\ntest error (%)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw_panel(axes: Any, curves: list[dict[str, Any]], learner: str) -> None:
    """The curves of one learner, uniformly mixed."""
    for curve in curves:
        chosen = curve["learner"] == learner and curve["mixing"] == "uniform"
        if chosen and curve["shards"] in DRAWN_SHARDS:
            epochs = range(1, len(curve["errors"]) + 1)
            n = curve["shards"]
            style = line_style(axes, len(epochs), {"label": f"{n} shard{'s' * (n > 1)}"})
            axes.plot(epochs, [100 * error for error in curve["errors"]], **style)
    scale_epochs(axes, list(epochs))
    axes.set_xlabel("epochs")


def main() -> None:
    """Bring figures and tables up to date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--figures", type=Path, default=Path("results/scale.json"))
    options = parser.parse_args()
    new = {name: part for name, part in scale.read(options.figures).items() if not part["quick"]}
    parts = scale.read(FIGURES) | new
    scale.write(FIGURES, {name: parts[name] for name in scale.PARTS if name in parts})
    figures = figures_of(parts)
    tables = scale_tables.render(figures)
    replace_text(PAGE, fill(PAGE.read_text(), tables))
    print(f"written: {PAGE.name}, the tables {', '.join(tables)}")


if __name__ == "__main__":
    main()
