"""Figures 2 and 3 of Gentile (2001): the update rule of ALMA_2 in two dimensions, and its margins
on USPS beside those of the Perceptron.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from papers.alma_kernels import PROTOCOL, USPS, USPS_REMARK, USPS_SIGMA, run_of
from papers.kernels import ALMA, AVERAGE, LAST, PERCEPTRON, load
from papers.recipe import ALMA as PAPER
from papers.recipe import (
    Claim,
    Finding,
    Measured,
    Picture,
    Recipe,
    Record,
    Repeats,
    Work,
    panels,
    work,
)
from sparsemargin import ALMAClassifier
from sparsemargin.evaluation import MarginDistribution, margin_distribution, margins
from sparsemargin.plotting import MarginDistributionDisplay

# -- Figure 2 -------------------------------------------------------------------------------------

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


def _draw_update(measured: Measured) -> Figure:
    w, stepped, projected = _vectors(measured)
    figure, (ax,) = panels(1, 1)
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
    return (Picture("The update rule when p = q = 2", (WORK,), _draw_update, (claim,)),)


# -- Figure 3 -------------------------------------------------------------------------------------

#: By what stands in the legend: algorithm and alpha.
ALGORITHMS = {
    "Perceptron": (PERCEPTRON, 0.0), "ALMA_2(1.0)": (ALMA, 1.0), "ALMA_2(0.9)": (ALMA, 0.9),
}  # fmt: skip
HYPOTHESES: dict[str, Literal["last", "average"]] = {LAST: "last", AVERAGE: "average"}
EPOCHS = (1, 3)
#: The width as stated, and the one that gives the paper's counts on the digits at hand.
SIGMAS = (USPS_SIGMA, 5.25)
#: Where the margins lie; in feature space the digits are nearly orthogonal to each other.
THRESHOLDS = np.linspace(-0.3, 0.3, 301)
#: In percent of the training rows.
A_ROW = 100 / 7291


def run_margins(
    algorithm: str, sigma: float, epochs: int, hypothesis: Literal["last", "average"], seed: int
) -> Record:
    """Return the distribution of the training rows' margins after a fit.

    Returns
    -------
    dict
        ``share``: of the rows with at most each of `THRESHOLDS`.
    """
    X, y, *_ = load("usps")
    order = np.random.default_rng(seed).permutation(len(y))
    run = replace(run_of("usps", *ALGORITHMS[algorithm]), sigma=sigma)
    model = run.estimator(hypothesis=hypothesis, max_iter=epochs).fit(X[order], y[order])
    return {"share": margin_distribution(margins(model, X, y), THRESHOLDS).share.tolist()}


def _work(algorithm: str, sigma: float, epochs: int, hypothesis: str) -> Work:
    return work(run_margins, algorithm=algorithm, sigma=sigma, epochs=epochs, hypothesis=hypothesis)


def works(sigma: float) -> tuple[Work, ...]:
    """Return what the figure with a width takes."""
    return tuple(
        _work(name, sigma, epochs, hypothesis)
        for name, epochs, hypothesis in product(ALGORITHMS, EPOCHS, HYPOTHESES)
    )


def _shares(
    measured: Measured, sigma: float, algorithm: str, epochs: int, hypothesis: str
) -> np.ndarray:
    """Of the rows with at most each of `THRESHOLDS`, the mean over the repeats."""
    records = measured[_work(algorithm, sigma, epochs, hypothesis)]
    return np.mean([record["share"] for record in records], axis=0)


def _not_positive(measured: Measured, *run: Any) -> float:
    """Percentage of the rows without a positive margin."""
    return 100 * float(np.interp(0.0, THRESHOLDS, _shares(measured, *run)))


def _fall(measured: Measured, sigma: float, *run: Any) -> float:
    """By how many points fewer rows are without one by ALMA_2(0.9) than by the Perceptron."""
    return _not_positive(measured, sigma, "Perceptron", *run) - _not_positive(
        measured, sigma, "ALMA_2(0.9)", *run
    )


def draw_margins(thresholds: np.ndarray, shares: dict[str, dict[str, np.ndarray]]) -> Figure:
    """Draw four panels, by title, with a distribution for each name."""
    figure, axes = panels(2, 2)
    for ax, (title, of_panel) in zip(axes, shares.items(), strict=True):
        distributions = {
            name: MarginDistribution(thresholds, own) for name, own in of_panel.items()
        }
        MarginDistributionDisplay(distributions).plot(ax=ax)
        ax.set_title(title)
    return figure


def _draw(measured: Measured, sigma: float) -> Figure:
    return draw_margins(THRESHOLDS, {
        f"{hypothesis}, {epochs} epoch{'s' if epochs > 1 else ''}": {
            name: _shares(measured, sigma, name, epochs, hypothesis) for name in ALGORITHMS
        }
        for epochs, hypothesis in product(EPOCHS, HYPOTHESES)
    })  # fmt: skip


def _more_positive(measured: Measured, sigma: float) -> Finding:
    falls = {
        (hypothesis, epochs): _fall(measured, sigma, epochs, hypothesis)
        for hypothesis, epochs in product(HYPOTHESES, EPOCHS)
    }
    detail = "; ".join(f"{name}, {epochs}: {fall:+.2f}" for (name, epochs), fall in falls.items())
    in_one = min(falls[hypothesis, EPOCHS[0]] for hypothesis in HYPOTHESES)
    holds = in_one > 0 and min(falls.values()) >= -A_ROW
    return Finding(holds, f"points, by hypothesis and epochs: {detail}")


def _more_by_average(measured: Measured, sigma: float) -> Finding:
    last, average = (_fall(measured, sigma, EPOCHS[0], each) for each in (LAST, AVERAGE))
    return Finding(
        average > last, f"points: {average:+.2f} with the average, {last:+.2f} with last"
    )


def _with_epochs(measured: Measured, sigma: float) -> Finding:
    falls = {}
    for name, hypothesis in product(ALGORITHMS, HYPOTHESES):
        first, last = (_not_positive(measured, sigma, name, T, hypothesis) for T in EPOCHS)
        falls[f"{name} {hypothesis}"] = first - last
    detail = "; ".join(f"{name}: {fall:+.2f}" for name, fall in falls.items())
    return Finding(min(falls.values()) > 0, f"points: {detail}")


#: What the text says of the figure, how it is examined, and why it may not hold.
_STATEMENTS = (
    (
        '"ALMA_2(0.9) tends to increase the number of examples with a strictly positive margin": '
        "after 1 epoch fewer are without one than by the Perceptron, after 3 at most one more",
        _more_positive, "",
    ),
    (
        'This is "more evident" with the average than with the last vector, after 1 epoch',
        _more_by_average,
        "the digits at hand are nearly orthogonal, and either vector leaves hardly a training row "
        "without a positive margin",
    ),
    (
        'Going through the training set again "tends to increase the margin" (section 4.5): after '
        "3 epochs fewer rows are without a positive one than after 1",
        _with_epochs, "",
    ),
)  # fmt: skip


def figure_3(quick: bool) -> tuple[Picture, ...]:
    """Return Figure 3, with the width as stated and with the one that gives the counts."""
    return tuple(
        Picture(
            f"Margins of the training rows, σ = {sigma:g}", works(sigma),
            partial(_draw, sigma=sigma),
            tuple(
                Claim(text, works(sigma), partial(examine, sigma=sigma), why_not)
                for text, examine, why_not in _STATEMENTS
            ),
        )
        for sigma in SIGMAS
    )  # fmt: skip


RECIPES = (
    Recipe(
        "alma-figure2", PAPER, "Figure 2", "The update rule of ALMA_2",
        f"{N_ROWS} rows in two dimensions, a share of {NOISE} of them with the wrong label",
        "One run of ALMA_2(0.9), up to a correction that leads out of the unit circle.",
        figure_2, Repeats(quick=1, full=1),
        remarks=("The paper draws the rule without data; here it is a correction of a real run.",),
    ),
    Recipe(
        "alma-figure3", PAPER, "Figure 3", "Margins of the Perceptron and of ALMA_2 on USPS",
        USPS, PROTOCOL, figure_3, Repeats(quick=1, full=10), needs=("usps",),
        remarks=(
            USPS_REMARK,
            "A margin is the output of the row's own class less the largest other one, weights and "
            "instances of unit norm in feature space.",
        ),
    ),
)  # fmt: skip
