"""The picture of how fits grow with the number of rows, ours and SVC's."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from sparsemargin.plotting import GrowthDisplay, theme

STEPS = ("fit", "predict")


def plot(growth: list[list[dict[str, Any]]], path: Path) -> None:
    """Draw the seconds of fits and of predictions against the training rows.

    Parameters
    ----------
    growth : list of lists of dict
        For each number of rows the results of the contestants, the same in all.
    path : Path
    """
    with theme("light"):
        figure = Figure(figsize=(14, 5), layout="constrained")
        for axes, step in zip(figure.subplots(1, 2), STEPS, strict=True):
            times = {}
            for results in zip(*growth, strict=True):
                name = f"{results[0]['contestant']}, {results[0]['n_jobs']} threads"
                times[name] = tuple([each[key] for each in results] for key in ("n_rows", step))
            GrowthDisplay.from_measurements(
                times, size_name="training rows", time_name=f"seconds to {step}", ax=axes
            )
        figure.savefig(path, dpi=120)
    print(f"\nwritten: {path}")
