"""Figure 2 of the Higher-order Perceptron paper: updates and test error over 20 epochs."""

from itertools import product
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from ho_paper import FIGURE_2_AXES, FIGURE_2_EPOCHS, FIGURE_2_ORDER
from joblib import Parallel, delayed
from matplotlib.figure import Figure
from measure import text_table

from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron
from sparsemargin.datasets import make_ho_target
from sparsemargin.evaluation import learning_curve_over_epochs, wilcoxon_signed_rank

CURVES = {
    "FO": HigherOrderPerceptron(c=0.0, hypothesis="last"),
    "SO(0.2)": SecondOrderPerceptron(a=0.2, hypothesis="last"),
    "HO_2(0.4)": HigherOrderPerceptron(p=2, c=0.4, hypothesis="last"),
    "HO_4(0.4)": HigherOrderPerceptron(p=4, c=0.4, hypothesis="last"),
    "HO_7(0)": HigherOrderPerceptron(p=7, c=0.0, hypothesis="last"),
    "HO_7(0.4)": HigherOrderPerceptron(p=7, c=0.4, hypothesis="last"),
}
FIGURES = ("updates", "test error %")


def run_draw(noise: float, seed: int, curves: dict[str, Any]) -> np.ndarray:
    """Draw a set and run every algorithm on it.

    Returns
    -------
    ndarray of shape (n_curves, 2, n_epochs)
        `FIGURES`, after each of `FIGURE_2_EPOCHS`.
    """
    X, y, X_test, y_test, _ = make_ho_target(noise=noise, random_state=seed)
    runs = [
        learning_curve_over_epochs(model, X, y, X_test, y_test, epochs=FIGURE_2_EPOCHS)
        for model in curves.values()
    ]
    return np.array([[run.mistakes, 100 * run.test_errors] for run in runs])


def run_all(n_repeats: int, n_jobs: int) -> dict[float, np.ndarray]:
    """Return the runs of each set, of shape (n_repeats, n_curves, 2, n_epochs), by its noise."""
    tasks = list(product(FIGURE_2_AXES, range(n_repeats)))
    runs = Parallel(n_jobs)(delayed(run_draw)(noise, seed, CURVES) for noise, seed in tasks)
    return {
        noise: np.array([run for (of, _), run in zip(tasks, runs, strict=True) if of == noise])
        for noise in FIGURE_2_AXES
    }


def mean_and_error(runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over the draws and its standard error."""
    return runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))


def compare_order(runs: np.ndarray) -> list[dict]:
    """Compare, after every epoch shown, the pairs of curves whose order the text states."""
    names = list(CURVES)
    return [
        {"lower": lower, "upper": upper, "figure": FIGURES[f], "epochs": epochs}
        | wilcoxon_signed_rank(
            runs[:, names.index(lower), f, e], runs[:, names.index(upper), f, e]
        )._asdict()
        for lower, upper in FIGURE_2_ORDER
        for f in range(len(FIGURES))
        for e, epochs in enumerate(FIGURE_2_EPOCHS)
    ]


def as_json(runs: np.ndarray) -> dict[str, Any]:
    """Return the curves of one set as they are written to the report."""
    mean, error = mean_and_error(runs)
    curves = {
        name: {
            figure: {"mean": mean[k, f].tolist(), "standard error": error[k, f].tolist()}
            for f, figure in enumerate(FIGURES)
        }
        for k, name in enumerate(CURVES)
    }
    return {"epochs": FIGURE_2_EPOCHS, "curves": curves, "order": compare_order(runs)}


def show(noise: float, runs: np.ndarray) -> None:
    """Print the curves of one set as tables, and the order of those the text speaks of."""
    mean, error = mean_and_error(runs)
    for f, figure in enumerate(FIGURES):
        digits = 0 if f == 0 else 1
        axis = FIGURE_2_AXES[noise][f]
        shift = 100 * noise * f
        print(
            f"\nArtificial {noise}, {figure} after so many epochs, +- standard error of the mean; "
            f"the paper's axis: {axis[0] + shift:g} to {axis[1] + shift:g}\n"
        )
        rows = [
            (
                name,
                *(
                    f"{m:,.{digits}f} +-{s:.{digits}f}"
                    for m, s in zip(mean[k, f], error[k, f], strict=True)
                ),
            )
            for k, name in enumerate(CURVES)
        ]
        print(text_table([("", ""), *((str(n), "") for n in FIGURE_2_EPOCHS)], rows))
    print(f"\nArtificial {noise}, the order that the text states: difference (p-value)\n")
    _show_order(compare_order(runs))


def _show_order(comparisons: list[dict]) -> None:
    width = len(FIGURE_2_EPOCHS)
    rows = []
    for first in range(0, len(comparisons), width):
        line = comparisons[first : first + width]
        label = f"{line[0]['lower']} less {line[0]['upper']}, {line[0]['figure']}"
        cells = (f"{each['mean_difference']:+.1f} ({each['p_value']:.1g})" for each in line)
        rows.append((label, *cells))
    print(text_table([("", ""), *((str(n), "") for n in FIGURE_2_EPOCHS)], rows))


def plot(all_runs: dict[float, np.ndarray], path: Path) -> None:
    """Draw the paper's four panels, its axes widened where a curve leaves them."""
    with matplotlib.rc_context({"font.size": 9}):
        figure = Figure(figsize=(10, 8), layout="constrained")
        panels = figure.subplots(2, len(all_runs), squeeze=False)
        for column, (noise, runs) in enumerate(all_runs.items()):
            for f in range(len(FIGURES)):
                _draw_panel(panels[f, column], noise, f, runs)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
    print(f"\nwritten: {path}")


def _draw_panel(axes: Any, noise: float, f: int, runs: np.ndarray) -> None:
    mean, error = mean_and_error(runs)
    shift = 100 * noise * f
    for k, name in enumerate(CURVES):
        style = "--" if name in ("FO", "HO_7(0)") else "-"
        axes.errorbar(
            FIGURE_2_EPOCHS, mean[k, f] - shift, error[k, f], label=name, marker=".", ls=style
        )
    low, high = FIGURE_2_AXES[noise][f]
    drawn = mean[:, f] - shift
    axes.set_ylim(min(low, 0.95 * drawn.min()), max(high, 1.05 * drawn.max()))
    axes.set_xticks(FIGURE_2_EPOCHS)
    axes.set_xlabel("# of training epochs")
    axes.set_ylabel(FIGURES[f] + (f" (minus {shift:g})" if shift else ""))
    axes.set_title(f"Artificial {noise}")
    axes.legend()
