"""Figure 2 of Freund & Schapire (1999): test errors at every tenth of an epoch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from papers._kernel_runs import (
    AVERAGE,
    CORRECTIONS,
    LAST,
    RANDOM,
    SUPPORT,
    VOTE,
    figure,
    moments,
)
from papers._recipe import Claim, Finding, Measured, Picture, Recipe, Work
from papers._voted_printed import DEGREES, run_of
from papers.sources import VOTED
from papers.voted_kernels import (
    DATA,
    PROTOCOL,
    REPEATS,
    UNITS,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sparsemargin.evaluation.hypotheses import HypothesisErrors

SHOWN = (RANDOM, LAST, AVERAGE, VOTE)
#: The vertical axis of all panels, in percent.
MOST_SHOWN = 25


def _work(degree: int, quick: bool) -> Work:
    return run_of(degree).work(quick)


def curves(measured: Measured, degree: int, quick: bool) -> HypothesisErrors:
    """Return the means over the permutations, as `hypothesis_errors` gives those of one."""
    from sparsemargin.evaluation.hypotheses import HypothesisErrors

    records = measured[_work(degree, quick)]
    at = moments(1 if quick else run_of(degree).epochs)
    return HypothesisErrors(
        at,
        {name: np.mean([each["errors"][name] for each in records], axis=0) / 100 for name in SHOWN},
        np.mean([each[f"{CORRECTIONS} by class"] for each in records], axis=0),
        np.mean([each[SUPPORT] for each in records], axis=0),
    )


def _draw(measured: Measured, quick: bool) -> Figure:
    from papers._panels import panels
    from sparsemargin.plotting import HypothesisErrorsDisplay
    from sparsemargin.plotting.display import scale_log

    drawing, axes = panels(len(DEGREES), n_columns=3)
    for ax, degree in zip(axes, DEGREES, strict=True):
        HypothesisErrorsDisplay(curves(measured, degree, quick)).plot(ax=ax, hypotheses=SHOWN)
        ax.set_title(f"d = {degree}")
        scale_log(ax)
        ax.set_ylim(0, MOST_SHOWN)
        # One legend is enough, in a panel whose curves are nowhere near it.
        if degree != DEGREES[-1] and (legend := ax.get_legend()):
            legend.remove()
    return drawing


def _mean(measured: Measured, degree: int, hypothesis: str, epochs: float, quick: bool) -> float:
    return float(np.mean(figure(hypothesis, epochs)(measured[_work(degree, quick)])))


def _order(measured: Measured, quick: bool) -> Finding:
    at = moments(1)
    held = []
    for degree in DEGREES:
        means = {
            name: [_mean(measured, degree, name, T, quick) for T in at] for name in (RANDOM, VOTE)
        }
        held += list(np.array(means[RANDOM]) > means[VOTE])
    return Finding(all(held), f"at {sum(held)} of {len(held)} moments")


def _closing(measured: Measured) -> Finding:
    gaps = {
        degree: _mean(measured, degree, LAST, run_of(degree).epochs, quick=False)
        - _mean(measured, degree, VOTE, run_of(degree).epochs, quick=False)
        for degree in DEGREES
    }
    detail = ", ".join(f"d = {degree}: {gap:+.2f}" for degree, gap in gaps.items())
    separable = [gap for degree, gap in gaps.items() if degree > 1]
    return Finding(max(separable) < 0.3 < gaps[1], f"points: {detail}")


def figure_2(quick: bool) -> tuple[Picture, ...]:
    """Return Figure 2; a quick run's curves end after one epoch."""
    works = tuple(_work(degree, quick) for degree in DEGREES)
    claims = [
        Claim(
            "In the first epoch the vote errs less than random vectors at every moment",
            works, partial(_order, quick=quick),
        )
    ]  # fmt: skip
    if not quick:
        claims.append(
            Claim(
                "In the end the last vector errs as little as the vote (less than 0.3 points more) "
                "for d > 1, and not for d = 1, where the rows cannot be separated",
                works, _closing,
            )
        )  # fmt: skip
    title = "Test error of four hypotheses over the epochs, by degree"
    return (Picture(title, works, partial(_draw, quick=quick), tuple(claims)),)


RECIPES = (
    Recipe(
        "voted-figure2", VOTED, "Figure 2", "The Perceptron's hypotheses over the epochs",
        DATA, PROTOCOL, figure_2, REPEATS, needs=("mnist",), remarks=(UNITS,),
    ),
)  # fmt: skip
