"""Figure 2 of Gentile (2001): the update rule of ALMA_2 in two dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from papers._recipe import (
    Claim,
    Finding,
    Measured,
    Picture,
    Recipe,
    Record,
    Repeats,
    work,
)
from papers.sources import ALMA
from sparsemargin import ALMAClassifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_ROWS = 200
NOISE = 0.2
#: What makes a legible picture: how far beyond the unit circle a step ends at least, and the cosine
#: of the angle by which it turns the weights at most.
LEAST_LENGTH, MOST_COSINE = 1.15, 0.9
#: How far the axes reach to either side.
_SHOWN = 1.3


def run_update(seed: int) -> Record:
    """Learn row by row, up to a correction that turns the weights and leads out of the unit circle.

    Returns
    -------
    dict
        ``k``, the corrections up to and with this one; ``w`` before it; ``step``, the learning rate
        times label and normalised instance; ``projected``, the weights that the library goes on
        with.
    """
    X, y = _rows(seed)
    model = ALMAClassifier(alpha=0.9, p=2, fit_intercept=False, hypothesis="last")
    w = np.zeros(2)
    for row, label in zip(X, y, strict=True):
        model.partial_fit(row[np.newaxis], [label], classes=[-1, 1])
        k = int(model.n_corrections_)
        projected = model.coef_[0].copy()
        step = model.C / np.sqrt(max(k, 1)) * label * row / np.linalg.norm(row)
        if not np.array_equal(projected, w) and _is_legible(w, w + step):
            return {"k": k, "w": w.tolist(), "step": step.tolist(), "projected": projected.tolist()}
        w = projected
    raise RuntimeError(f"no correction of {N_ROWS} rows leads out of the unit circle")


def _rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N_ROWS, 2))
    y = np.where(X @ [1.0, 2.0] > 0, 1, -1)
    return X, np.where(rng.random(N_ROWS) < NOISE, -y, y)


def _is_legible(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether a step turns the weights, and ends well beyond the circle."""
    length = float(np.linalg.norm(after))
    # The first correction starts from 0 and turns nothing.
    turned = before.any() and before @ after < MOST_COSINE * np.linalg.norm(before) * length
    return bool(turned and length > LEAST_LENGTH)


WORK = work(run_update)


def _vectors(measured: Measured) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights before, after the step and after the projection."""
    (record,) = measured[WORK]
    w, step, projected = (np.array(record[name]) for name in ("w", "step", "projected"))
    return w, w + step, projected


def _draw(measured: Measured) -> Figure:
    from matplotlib.patches import Circle

    from papers._panels import panels

    w, stepped, projected = _vectors(measured)
    figure, (ax,) = panels(1, n_columns=1)
    ax.add_patch(Circle((0, 0), 1, fill=False, edgecolor="C6"))
    _arrow(ax, np.zeros(2), w, "C0", "$w_k$")
    _arrow(ax, w, stepped, "C1", r"$w'_k = w_k + \eta_k y_t \hat x_t$")
    _arrow(ax, np.zeros(2), projected, "C2", r"$w_{k+1} = w'_k / \|w'_k\|$")
    ax.plot(*np.stack([projected, stepped], axis=1), linestyle=":", color="C2")
    ax.set_aspect("equal")
    ax.set_xlim(-_SHOWN, _SHOWN)
    ax.set_ylim(-_SHOWN, _SHOWN)
    ax.set_xlabel("first weight")
    ax.set_ylabel("second weight")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _arrow(ax: Axes, start: np.ndarray, end: np.ndarray, color: str, label: str) -> None:
    ax.quiver(
        *start, *(end - start), angles="xy", scale_units="xy", scale=1, width=0.008, color=color,
        label=label,
    )  # fmt: skip


def _projected(measured: Measured) -> Finding:
    _, stepped, projected = _vectors(measured)
    length = float(np.linalg.norm(stepped))
    error = float(np.abs(projected - stepped / length).max())
    return Finding(length > 1 and error < 1e-12, f"‖w'‖ = {length:.3f}, differing by {error:.0e}")


def figure_2(quick: bool) -> tuple[Picture, ...]:
    """Return Figure 2."""
    claim = Claim(
        "A step that leads out of the unit ball W is followed by the projection onto W: the "
        "library's weights are w'/‖w'‖",
        (WORK,), _projected,
    )  # fmt: skip
    return (Picture("The update rule when p = q = 2", (WORK,), _draw, (claim,)),)


RECIPES = (
    Recipe(
        "alma-figure2", ALMA, "Figure 2", "The update rule of ALMA_2",
        f"{N_ROWS} rows in two dimensions, a share of {NOISE} of them with the wrong label",
        "One run of ALMA_2(0.9), up to a correction that leads out of the unit circle.",
        figure_2, Repeats(quick=1, full=1),
        remarks=("The paper draws the rule without data; here it is a correction of a real run.",),
    ),
)  # fmt: skip
