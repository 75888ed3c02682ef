"""The picture of how fits grow with the number of rows, ours and SVC's."""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

STEPS = ("fit", "predict")


def plot(growth: list[list[dict[str, Any]]], path: Path) -> None:
    """Draw the seconds of fits and of predictions against the training rows.

    Parameters
    ----------
    growth : list of lists of dict
        For each number of rows the results of the contestants, the same in all.
    path : Path
    """
    with matplotlib.rc_context({"font.size": 9}):
        figure = Figure(figsize=(10, 4), layout="constrained")
        for axes, step in zip(figure.subplots(1, 2), STEPS, strict=True):
            for results in zip(*growth, strict=True):
                sizes = [each["n_rows"] for each in results]
                label = f"{results[0]['contestant']}, {results[0]['n_jobs']} threads"
                axes.loglog(sizes, [each[step] for each in results], marker="o", label=label)
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
            axes.set_xticks([], minor=True)
            axes.set_xlabel("training rows")
            axes.set_ylabel(f"seconds to {step}")
            axes.legend()
        figure.savefig(path, dpi=120)
    print(f"\nwritten: {path}")
