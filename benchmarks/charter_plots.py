"""The pictures of the charter: what grows with what, both axes logarithmic."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure

from sparsemargin.evaluation import growth_exponent
from sparsemargin.evaluation.growth import GrowthExponent
from sparsemargin.plotting import GrowthCurve, GrowthDisplay, theme

SIZE = (11, 6)  # inches


class Picture(NamedTuple):
    """A picture: its file's name, what stands above it and beside its axes, and its curves."""

    name: str
    title: str
    x_label: str
    y_label: str
    curves: dict[str, GrowthCurve]


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
            curves = {
                curve["name"]: _curve(curve["sizes"], curve["seconds"], curve["exponent"])
                for curve in report[name]["curves"]
            }
            title = report[name]["title"]
            yield Picture(f"growth-{name}", title, x_label, "seconds an epoch", curves)


def _of_mistakes(growths: dict[str, Any]) -> Iterable[Picture]:
    if growths:
        curves = {
            name: _curve(growth["nonzeros"], growth["seconds"], growth["exponent"])
            for name, growth in growths.items()
        }
        title, x_label = "A mistake of the Perceptrons with a matrix", "nonzeros of the mistakes"
        yield Picture("growth-mistakes", title, x_label, "seconds a mistake", curves)


def _of_kernels(growth: list[list[dict[str, Any]]]) -> Iterable[Picture]:
    for step in ("fit", "predict") if growth else ():
        curves = {}
        for results in zip(*growth, strict=True):
            sizes, seconds = ([each[key] for each in results] for key in ("n_rows", step))
            name = f"{results[0]['contestant']}, {results[0]['n_jobs']} threads"
            curves[name] = GrowthCurve(sizes, seconds, growth_exponent(sizes, seconds))
        title = f"Kernels on MNIST: {step}"
        yield Picture(f"growth-kernels-{step}", title, "training rows", "seconds", curves)


def _curve(sizes: Any, seconds: Any, exponent: dict[str, float]) -> GrowthCurve:
    """A curve with the exponent of the report, which need not be that of all its points: the
    points are joined."""
    fitted = GrowthExponent(exponent["slope"], exponent["standard_error"])
    return GrowthCurve(sizes, seconds, fitted)


def draw(picture: Picture, path: Path) -> None:
    """Draw the curves of a picture and write them as SVG."""
    with theme("light"), matplotlib.rc_context({"svg.hashsalt": picture.name}):
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        axes.set_title(picture.title)
        display = GrowthDisplay(
            picture.curves, size_name=picture.x_label, time_name=picture.y_label
        )
        display.plot(axes)
        figure.savefig(path, metadata={"Date": None})


def draw_all(parts: dict[str, Any], folder: Path) -> dict[str, Path]:
    """Draw all pictures of the parts, and return their files by title."""
    files = {}
    for picture in pictures(parts):
        files[picture.title] = folder / f"{picture.name}.svg"
        draw(picture, files[picture.title])
    return files
