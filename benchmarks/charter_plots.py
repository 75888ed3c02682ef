"""The pictures of the charter: what grows with what, both axes logarithmic."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from growth_fit import exponent
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

# Okabe & Ito's colours, which the colour-blind can tell apart; marks and dashes do so in print.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933",
)  # fmt: skip
MARKS = "osD^vP*X"
MOST_TICKS = 8
DOTS_PER_INCH = 130


class Line(NamedTuple):
    """A named line of a picture."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


class Picture(NamedTuple):
    """A picture: its file's name, what stands above it and beside its axes, and its lines."""

    name: str
    title: str
    x_label: str
    y_label: str
    lines: list[Line]


X_LABELS = {
    "nonzeros": "nonzeros (entries of X)",
    "features": "features n (columns of X)",
    "labels": "labels",
    "corrections": "corrections in the epoch",
    "threads": "labels",
}


def pictures(parts: dict[str, Any]) -> list[Picture]:
    """Return the pictures that the measured parts suffice for."""
    reports = {name: part["report"] for name, part in parts.items() if "report" in part}
    return [
        *_of_growth(reports.get("growth", {})),
        *_of_mistakes(reports.get("ho", {}).get("growth", {})),
        *_of_kernels(reports.get("kernels", {}).get("growth", [])),
    ]


def _of_growth(report: dict[str, Any]) -> Iterable[Picture]:
    for name, x_label in X_LABELS.items():
        if name in report:
            yield Picture(
                f"growth-{name}", report[name]["title"], x_label, "seconds an epoch",
                [
                    Line(_with_exponent(curve["name"], **curve["exponent"]),
                         curve["sizes"], curve["seconds"])
                    for curve in report[name]["curves"]
                ],
            )  # fmt: skip


def _of_mistakes(growths: dict[str, Any]) -> Iterable[Picture]:
    if growths:
        lines = [
            Line(_with_exponent(name, **growth["exponent"]), growth["nonzeros"], growth["seconds"])
            for name, growth in growths.items()
        ]
        title = "A mistake of the Perceptrons with a matrix"
        yield Picture(
            "growth-mistakes", title, "nonzeros of the stored mistakes", "seconds a mistake", lines
        )


def _of_kernels(growth: list[list[dict[str, Any]]]) -> Iterable[Picture]:
    for step in ("fit", "predict") if growth else ():
        lines = []
        for results in zip(*growth, strict=True):
            sizes, seconds = (
                [each["n_rows"] for each in results], [each[step] for each in results],
            )  # fmt: skip
            name = f"{results[0]['contestant']}, {results[0]['n_jobs']} threads"
            lines.append(Line(_with_exponent(name, *exponent(sizes, seconds)), sizes, seconds))
        title = f"Kernels on MNIST: {step}"
        yield Picture(f"growth-kernels-{step}", title, "training rows", "seconds", lines)


def _with_exponent(name: str, slope: float, standard_error: float) -> str:
    return f"{name}: {slope:.2f} ± {standard_error:.2f}"


def draw(picture: Picture, path: Path) -> None:
    """Draw the lines of a picture and write them as SVG."""
    style = {"font.size": 10, "svg.hashsalt": picture.name, "svg.fonttype": "path"}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(9, 7), layout="constrained")
        axes = figure.subplots()
        for i, line in enumerate(picture.lines):
            axes.loglog(
                line.x, line.y, label=line.name, color=COLOURS[i % len(COLOURS)],
                marker=MARKS[i % len(MARKS)], markersize=5, linewidth=1.3,
                linestyle=("-", "--")[i // len(COLOURS) % 2],
            )  # fmt: skip
        axes.set_xlabel(picture.x_label)
        axes.set_ylabel(picture.y_label)
        axes.set_title(picture.title)
        _tick_sizes(axes, picture.lines)
        axes.grid(which="major", alpha=0.4)
        axes.grid(which="minor", alpha=0.15)
        figure.legend(loc="outside lower center", ncols=2, title="exponent ± standard error")
        figure.savefig(path, metadata={"Date": None}, dpi=DOTS_PER_INCH)


def _tick_sizes(axes: Axes, lines: list[Line]) -> None:
    """Name the sizes that were measured, where all lines have the same few."""
    sizes = set(lines[0].x)
    if len(sizes) <= MOST_TICKS and all(set(line.x) == sizes for line in lines):
        axes.set_xticks(sorted(sizes))
        axes.xaxis.set_major_formatter(FuncFormatter(_in_thousands))
        axes.xaxis.set_minor_locator(NullLocator())


def _in_thousands(size: float, _: int) -> str:
    return f"{size:,.0f}" if size < 10_000 else f"{size / 1000:,.0f}k"


def draw_all(parts: dict[str, Any], folder: Path) -> dict[str, Path]:
    """Draw all pictures of the parts, and return their files by title."""
    files = {}
    for picture in pictures(parts):
        files[picture.title] = folder / f"{picture.name}.svg"
        draw(picture, files[picture.title])
    return files
