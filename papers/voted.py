"""Tables 1 to 3 and Figure 2 of Freund & Schapire (1999): the Perceptron with polynomial kernels on
MNIST. And in which units its greys are, which the counts tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from papers.curves import scale_log
from papers.hypotheses import HypothesisErrors, draw_hypothesis_errors
from papers.kernels import (
    AVERAGE,
    CORRECTIONS,
    LAST,
    PERCEPTRON,
    RANDOM,
    SUPPORT,
    VOTE,
    Pair,
    Printed,
    PrintedLine,
    Run,
    alike,
    allowed,
    figures_of,
    moments,
    smaller,
    table,
    varied,
)
from papers.recipe import (
    VOTED,
    Allowed,
    Claim,
    Finding,
    Measured,
    Picture,
    Recipe,
    Repeats,
    Table,
    each_once,
    incomparable,
    panels,
)

# -- What is printed ------------------------------------------------------------------------------

EPOCHS = (0.1, 1, 2, 3, 4, 10, 30)
DEGREES = (1, 2, 3, 4, 5, 6)
ONE_CLASS_DEGREE = 4  # of Table 2
ONE_CLASS = 9  # of Table 3
SCALE = 255.0

QUANTITIES = {
    "vote": VOTE,
    "avg": AVERAGE,
    "avg-norm": f"{AVERAGE}_normalized",
    "last": LAST,
    "last-norm": f"{LAST}_normalized",
    "rand": RANDOM,
    "rand-norm": f"{RANDOM}_normalized",
    "supvec": SUPPORT,
    "mistake": CORRECTIONS,
}

# By d, in the columns of EPOCHS; d = 1 was run for 10 epochs only.
_TABLE_1 = {
    1: """
        vote       10.7 8.5 8.3 8.2 8.2 8.1
        avg        10.9 8.7 8.5 8.4 8.3 8.3
        avg-norm   10.9 8.5 8.3 8.2 8.2 8.1
        last       16.0 14.7 13.6 13.9 13.7 13.5
        last-norm  15.4 14.1 13.1 13.5 13.2 13.0
        rand       22.0 15.7 14.7 14.3 14.1 13.8
        rand-norm  21.5 15.2 14.2 13.8 13.6 13.2
        supvec     2489 19795 24263 26704 28322 32994
        mistake    3342 25461 48431 70915 93090 223657
    """,
    2: """
        vote       6.0 2.8 2.4 2.2 2.1 1.8 1.8
        avg        6.0 2.8 2.4 2.2 2.1 1.9 1.8
        avg-norm   6.2 3.0 2.5 2.3 2.2 1.9 1.8
        last       8.6 4.0 3.4 3.0 2.7 2.3 2.0
        last-norm  8.4 3.9 3.3 3.0 2.7 2.3 1.9
        rand       13.4 5.9 4.7 4.1 3.8 2.9 2.4
        rand-norm  13.2 5.9 4.7 4.1 3.8 2.9 2.3
        supvec     1639 8190 9888 10818 11424 12963 13861
        mistake    2150 10201 15290 19093 22100 32451 41614
    """,
    3: """
        vote       5.4 2.3 1.9 1.8 1.7 1.6 1.6
        avg        5.3 2.3 1.9 1.8 1.7 1.6 1.5
        avg-norm   5.5 2.5 2.0 1.8 1.8 1.6 1.5
        last       6.9 3.1 2.5 2.2 2.0 1.7 1.6
        last-norm  6.8 3.1 2.5 2.2 2.0 1.7 1.6
        rand       11.6 4.9 3.7 3.2 2.9 2.2 1.8
        rand-norm  11.5 4.8 3.7 3.2 2.9 2.2 1.8
        supvec     1460 6774 8073 8715 9102 9883 10094
        mistake    1937 8475 11739 13757 15129 18422 19473
    """,
    4: """
        vote       5.4 2.2 1.8 1.7 1.6 1.6 1.6
        avg        5.3 2.2 1.8 1.7 1.7 1.6 1.6
        avg-norm   5.5 2.3 1.9 1.7 1.6 1.6 1.6
        last       6.5 2.8 2.3 2.0 1.9 1.6 1.6
        last-norm  6.5 2.8 2.3 2.0 1.9 1.6 1.6
        rand       11.5 4.6 3.5 3.1 2.7 2.1 1.8
        rand-norm  11.3 4.5 3.4 3.0 2.7 2.1 1.8
        supvec     1406 6338 7453 7944 8214 8673 8717
        mistake    1882 7977 10543 11933 12780 14375 14538
    """,
    5: """
        vote       5.7 2.2 1.9 1.8 1.8 1.7 1.7
        avg        5.7 2.3 1.9 1.8 1.7 1.7 1.7
        avg-norm   5.7 2.3 1.9 1.8 1.7 1.7 1.6
        last       6.6 3.0 2.2 1.9 1.9 1.8 1.7
        last-norm  6.3 2.9 2.1 1.9 1.9 1.7 1.7
        rand       11.9 4.7 3.5 3.0 2.7 2.1 1.9
        rand-norm  11.5 4.5 3.4 2.9 2.6 2.0 1.8
        supvec     1439 6327 7367 7788 7990 8295 8313
        mistake    1953 8044 10379 11563 12215 13234 13289
    """,
    6: """
        vote       6.0 2.5 2.1 2.0 1.9 1.9 1.9
        avg        6.2 2.5 2.1 2.0 1.9 1.9 1.9
        avg-norm   6.0 2.5 2.1 2.0 1.9 1.8 1.8
        last       7.3 3.2 2.4 2.2 2.0 1.9 1.9
        last-norm  6.9 3.0 2.3 2.1 2.0 1.9 1.9
        rand       12.8 5.0 3.8 3.3 3.0 2.3 2.0
        rand-norm  12.1 4.8 3.6 3.2 2.8 2.2 2.0
        supvec     1488 6521 7572 7947 8117 8284 8285
        mistake    2034 8351 10764 11892 12472 13108 13118
    """,
}

# By d, in the columns of EPOCHS: "9" against the rest.
_TABLE_3 = {
    1: """
        vote       4.5 3.9 3.8 3.8 3.8 3.7
        avg        4.5 3.9 3.8 3.8 3.8 3.7
        avg-norm   4.6 3.9 3.9 3.8 3.8 3.8
        last       7.9 6.4 5.7 6.3 5.8 5.9
        rand       8.3 6.7 6.5 6.3 6.2 6.2
        supvec     513 4085 5240 5888 6337 7661
        mistake    513 4085 7880 11630 15342 37408
    """,
    2: """
        vote       2.4 1.2 1.0 0.9 0.9 0.8 0.8
        avg        2.4 1.2 1.0 1.0 0.9 0.9 0.8
        avg-norm   2.5 1.3 1.1 1.0 1.0 0.9 0.8
        last       4.1 1.8 1.6 1.6 1.3 1.1 1.0
        rand       5.5 2.8 2.2 1.9 1.8 1.4 1.1
        supvec     337 1668 2105 2358 2527 2983 3290
        mistake    337 1668 2541 3209 3744 5694 7715
    """,
    3: """
        vote       2.2 1.0 0.8 0.8 0.7 0.7 0.7
        avg        2.1 0.9 0.8 0.8 0.7 0.7 0.6
        avg-norm   2.2 1.0 0.8 0.8 0.8 0.7 0.6
        last       2.9 1.3 1.0 1.0 0.8 0.7 0.7
        rand       4.9 2.2 1.7 1.5 1.4 1.0 0.8
        supvec     302 1352 1666 1842 1952 2192 2283
        mistake    302 1352 1867 2202 2448 3056 3318
    """,
    4: """
        vote       2.1 0.9 0.8 0.7 0.7 0.7 0.7
        avg        2.0 0.9 0.8 0.7 0.7 0.7 0.6
        avg-norm   2.1 1.0 0.8 0.8 0.7 0.7 0.6
        last       2.7 1.3 1.0 0.8 0.8 0.7 0.7
        rand       4.5 2.1 1.6 1.4 1.2 0.9 0.7
        supvec     290 1240 1528 1669 1746 1899 1920
        mistake    290 1240 1648 1882 2020 2323 2367
    """,
    5: """
        vote       2.2 0.9 0.8 0.7 0.7 0.7 0.7
        avg        2.2 0.9 0.8 0.7 0.7 0.7 0.7
        avg-norm   2.2 1.0 0.8 0.8 0.7 0.7 0.7
        last       2.7 1.3 1.0 0.9 0.8 0.7 0.7
        rand       4.6 2.0 1.5 1.3 1.2 0.9 0.8
        supvec     294 1229 1502 1628 1693 1817 1827
        mistake    294 1229 1598 1798 1908 2132 2150
    """,
    6: """
        vote       2.3 0.9 0.8 0.8 0.8 0.8 0.7
        avg        2.3 0.9 0.8 0.8 0.8 0.7 0.7
        avg-norm   2.3 1.0 0.8 0.8 0.8 0.7 0.7
        last       2.7 1.3 1.0 0.9 0.8 0.8 0.7
        rand       4.7 2.1 1.6 1.3 1.2 0.9 0.8
        supvec     302 1263 1537 1655 1715 1774 1776
        mistake    302 1263 1625 1810 1916 2035 2039
    """,
}

# By T, in the columns of the classes 0 to 9.
_TABLE_2 = {
    0.1: """
        vote       0.7 0.5 1.3 1.5 1.4 1.4 0.9 1.3 1.8 2.1
        avg        0.7 0.5 1.3 1.5 1.3 1.3 0.9 1.3 1.8 2.0
        avg-norm   0.7 0.5 1.3 1.5 1.4 1.4 0.9 1.3 1.8 2.1
        last       1.0 0.7 1.7 2.1 1.5 2.8 1.2 1.8 2.4 2.7
        rand       2.1 1.3 3.0 3.7 3.0 3.2 2.2 2.7 4.7 4.5
        supvec     133 89 180 228 179 202 136 160 285 290
        mistake    133 89 180 228 179 202 136 160 285 290
    """,
    1: """
        vote       0.3 0.3 0.6 0.5 0.5 0.5 0.5 0.6 0.7 0.9
        avg        0.3 0.2 0.6 0.5 0.5 0.5 0.4 0.6 0.7 0.9
        avg-norm   0.3 0.2 0.6 0.6 0.5 0.5 0.4 0.6 0.8 1.0
        last       0.5 0.5 1.0 1.1 0.7 0.8 0.5 1.0 1.2 1.3
        rand       0.8 0.6 1.4 1.5 1.2 1.3 0.9 1.2 1.9 2.1
        supvec     506 407 782 996 734 849 541 738 1183 1240
        mistake    506 407 782 996 734 849 541 738 1183 1240
    """,
    10: """
        vote       0.2 0.2 0.4 0.4 0.4 0.4 0.3 0.5 0.6 0.7
        avg        0.2 0.2 0.4 0.4 0.4 0.4 0.3 0.5 0.6 0.7
        avg-norm   0.2 0.2 0.4 0.4 0.4 0.4 0.3 0.5 0.6 0.7
        last       0.2 0.2 0.4 0.4 0.4 0.4 0.4 0.5 0.6 0.7
        rand       0.3 0.3 0.5 0.6 0.5 0.6 0.5 0.6 0.8 0.9
        supvec     736 636 1164 1504 1075 1271 817 1103 1833 1899
        mistake    837 824 1339 1796 1218 1487 951 1323 2278 2323
    """,
    30: """
        vote       0.2 0.2 0.4 0.4 0.4 0.4 0.4 0.5 0.6 0.7
        avg        0.2 0.2 0.4 0.4 0.4 0.4 0.3 0.5 0.6 0.6
        avg-norm   0.2 0.2 0.4 0.4 0.4 0.4 0.3 0.5 0.6 0.6
        last       0.2 0.2 0.4 0.4 0.4 0.4 0.4 0.5 0.6 0.7
        rand       0.2 0.3 0.5 0.5 0.4 0.5 0.4 0.5 0.6 0.7
        supvec     740 643 1168 1512 1078 1277 823 1103 1856 1920
        mistake    844 843 1345 1811 1222 1497 960 1323 2326 2367
    """,
}


def run_of(degree: int, digit: int | None = None) -> Run:
    """Return the Perceptron's run on the ten digits, or on one against the rest."""
    data = "mnist" if digit is None else f"mnist {digit}"
    return Run(data, PERCEPTRON, "poly", 10 if degree == 1 else 30, degree, SCALE)


def _by_epoch(digit: int | None, blocks: dict[int, str]) -> list[PrintedLine]:
    return [
        (f"d={degree} {name}", _cells(run_of(degree, digit), QUANTITIES[name], figures))
        for degree, text in blocks.items()
        for name, *figures in map(str.split, text.strip().splitlines())
    ]


def _cells(run: Run, quantity: str, figures: list[str]) -> tuple[Printed | None, ...]:
    cells = [Printed(run, quantity, T, text) for T, text in zip(EPOCHS, figures, strict=False)]
    return (*cells, *[None] * (len(EPOCHS) - len(cells)))


def _by_class(blocks: Mapping[float, str]) -> list[PrintedLine]:
    runs = [run_of(ONE_CLASS_DEGREE, digit) for digit in range(10)]
    return [
        (f"T={T:g} {name}", tuple(
            Printed(run, QUANTITIES[name], T, text)
            for run, text in zip(runs, figures, strict=True)
        ))
        for T, block in blocks.items()
        for name, *figures in map(str.split, block.strip().splitlines())
    ]  # fmt: skip


BY_EPOCH = tuple(f"T={T:g}" for T in EPOCHS)
BY_CLASS = tuple(map(str, range(10)))

LINES = {
    "voted-table1": _by_epoch(None, _TABLE_1),
    "voted-table2": _by_class(_TABLE_2),
    "voted-table3": _by_epoch(ONE_CLASS, _TABLE_3),
}


# -- What the figures may differ by ---------------------------------------------------------------

_INSEPARABLE = Allowed(
    1.0, spread=1.0,
    why="with d = 1 the rows cannot be separated: the last vector's error jumps by points from one "
    "tenth of an epoch to the next, and over two permutations the normalised random ones err 0.7 "
    "points more than printed, for a reason not known",
)  # fmt: skip


def _allowed(printed: Printed, quick: bool) -> Allowed:
    if printed.run.degree == 1 and printed.is_of_one_vector and not quick:
        return _INSEPARABLE
    return allowed(printed, quick)


# -- What the text says ---------------------------------------------------------------------------


def _pairs(lines: Sequence[PrintedLine], less: str, more: str) -> list[Pair]:
    """Errors of two hypotheses in the same run at the same moment."""
    errors = {(each.run, each.epochs, each.quantity): each for each in figures_of(lines)}
    return [
        (errors[run, T, less], each)
        for (run, T, quantity), each in errors.items() if quantity == more
    ]  # fmt: skip


def _claims(lines: Sequence[PrintedLine], quick: bool) -> tuple[Claim, ...]:
    """What section 5 says of the tables."""
    better = [pair for less in (VOTE, AVERAGE) for pair in _pairs(lines, less, LAST)]
    return (
        smaller(
            '"Voting and averaging perform better than using the last vector", before the updates '
            "converge (T < 10)",
            [pair for pair in better if pair[0].epochs < 10],
            quick, least_share=0.8 if quick else 0.95,
        ),
        smaller(
            '"Using random vectors performs the worst in all cases" (T < 10)',
            [pair for pair in _pairs(lines, LAST, RANDOM) if pair[0].epochs < 10],
            quick, least_share=0.8,
        ),
        alike(
            'There is no "significant difference between voting and averaging": less than half a '
            "point",
            _pairs(lines, VOTE, AVERAGE), quick, most=0.5,
        ),
    )  # fmt: skip


def _degrees(lines: Sequence[PrintedLine], quick: bool) -> Claim:
    found = {
        each.run.degree: each for each in figures_of(lines)
        if (each.quantity, each.epochs) == (VOTE, 1)
    }  # fmt: skip

    def examine(measured: Measured) -> Finding:
        errors = {d: each.mean(quick).of(measured) for d, each in found.items()}
        gained, rest = errors[1] - errors[2], errors[2] - min(errors.values())
        return Finding(gained > 2 * rest, f"{gained:.1f} points, and {rest:.1f} beyond (T = 1)")

    works = tuple(each.run.work(quick) for each in found.values())
    text = '"The most significant improvement in performance is clearly between d = 1 and d = 2"'
    return Claim(text, works, examine)


def _table(quick: bool, name: str) -> tuple[Table, ...]:
    lines = LINES[name]
    claims = _claims(lines, quick)
    if name == "voted-table2":
        title = f"Each digit against the rest, d = {ONE_CLASS_DEGREE}"
        return (table(title, BY_CLASS, lines, quick, _allowed, claims),)
    title = "MNIST" if name == "voted-table1" else f"{ONE_CLASS} against the rest"
    claims = (_degrees(lines, quick), *claims)
    return (table(title, BY_EPOCH, lines, quick, _allowed, claims),)


# -- Figure 2: test errors at every tenth of an epoch ---------------------------------------------

SHOWN = (RANDOM, LAST, AVERAGE, VOTE)
#: The vertical axis of all panels, in percent.
MOST_SHOWN = 25


def curves(measured: Measured, degree: int, quick: bool) -> HypothesisErrors:
    """Return the means over the permutations, as `hypothesis_errors` gives those of one."""
    run = run_of(degree)
    records = measured[run.work(quick)]
    return HypothesisErrors(
        moments(1 if quick else run.epochs),
        {name: np.mean([each["errors"][name] for each in records], axis=0) / 100 for name in SHOWN},
        np.mean([each[f"{CORRECTIONS} by class"] for each in records], axis=0),
        np.mean([each[SUPPORT] for each in records], axis=0),
    )


def _draw(measured: Measured, quick: bool) -> Figure:
    drawing, axes = panels(2, 3)
    for ax, degree in zip(axes, DEGREES, strict=True):
        draw_hypothesis_errors(curves(measured, degree, quick), ax, SHOWN)
        ax.set_title(f"d = {degree}")
        scale_log(ax)
        ax.set_ylim(0, MOST_SHOWN)
        # One legend is enough, in a panel whose curves are nowhere near it.
        if degree != DEGREES[-1] and (legend := ax.get_legend()):
            legend.remove()
    return drawing


def _order(measured: Measured, quick: bool) -> Finding:
    first = len(moments(1))
    held = np.concatenate([
        found.errors[RANDOM][:first] > found.errors[VOTE][:first]
        for found in (curves(measured, degree, quick) for degree in DEGREES)
    ])  # fmt: skip
    return Finding(bool(held.all()), f"at {held.sum()} of {len(held)} moments")


def _closing(measured: Measured) -> Finding:
    ends = {degree: curves(measured, degree, quick=False).errors for degree in DEGREES}
    gaps = {d: 100 * (errors[LAST][-1] - errors[VOTE][-1]) for d, errors in ends.items()}
    detail = ", ".join(f"d = {degree}: {gap:+.2f}" for degree, gap in gaps.items())
    separable = [gap for degree, gap in gaps.items() if degree > 1]
    return Finding(max(separable) < 0.3 < gaps[1], f"points: {detail}")


def figure_2(quick: bool) -> tuple[Picture, ...]:
    """Return Figure 2; a quick run's curves end after one epoch."""
    works = tuple(run_of(degree).work(quick) for degree in DEGREES)
    order = Claim(
        "In the first epoch the vote errs less than random vectors at every moment",
        works, partial(_order, quick=quick),
    )  # fmt: skip
    closing = Claim(
        "In the end the last vector errs as little as the vote (less than 0.3 points more) for "
        "d > 1, and not for d = 1, where the rows cannot be separated",
        works, _closing,
    )  # fmt: skip
    title = "Test error of four hypotheses over the epochs, by degree"
    claims = (order,) if quick else (order, closing)
    return (Picture(title, works, partial(_draw, quick=quick), claims),)


# -- In which units the greys are -----------------------------------------------------------------

#: Of (1 + x.z / s)^d: 1, the greys as they are; 255, the ALMA paper's; 65025, greys from 0 to 1.
SCALES = (1.0, SCALE, 1000.0, 65025.0)

_TRIED = incomparable("one of the units tried; which comes nearest is for the statements below")


def _allowed_of_scale(printed: Printed, quick: bool) -> Allowed:
    return allowed(printed, quick) if printed.run.scale == SCALE else _TRIED


BY_SCALE = varied(
    LINES["voted-table1"], (CORRECTIONS, SUPPORT), [{"scale": scale} for scale in SCALES],
    lambda run: f"d={run.degree} s={run.scale:g}",
)  # fmt: skip


def _units(quick: bool) -> tuple[Table, ...]:
    def deviations(measured: Measured, scale: float) -> np.ndarray:
        """The relative differences from the printed counts, by degree."""
        own = [each for each in figures_of(BY_SCALE) if each.run.scale == scale]
        return np.array([each.mean(quick).of(measured) / each.number - 1 for each in own])

    def hardly_matters(measured: Measured) -> Finding:
        worst = [np.abs(deviations(measured, scale)).max() for scale in SCALES]
        each = zip(SCALES, worst, strict=True)
        detail = ", ".join(f"s = {scale:g}: {100 * value:.1f} %" for scale, value in each)
        return Finding(bool(max(worst[:3]) <= 0.03), f"largest differences: {detail}")

    def too_few(measured: Measured) -> Finding:
        mistakes = deviations(measured, SCALES[-1])[0]
        return Finding(bool(mistakes < -0.05), f"{100 * mistakes:+.1f} %")

    works = each_once([each.run.work(quick) for each in figures_of(BY_SCALE)])
    claims = (
        Claim(
            "With s = 1, 255 and 1000 all counts come within 3 % of those printed",
            works, hardly_matters,
        ),
        Claim(
            "Greys from 0 to 1 (s = 65025) are out: with d = 1 more than 5 % too few mistakes",
            works, too_few,
        ),
    )  # fmt: skip
    columns = ("mistakes, T=1", "support vectors, T=1")
    title = "Counts by degree d and scale s"
    return (table(title, columns, BY_SCALE, quick, _allowed_of_scale, claims),)


# -- The recipes ----------------------------------------------------------------------------------


_DATA = "MNIST, 60,000 training and 10,000 test digits as they are; kernel (1 + x·z/255)^d"
_PROTOCOL = (
    "One against the rest. Each repeat takes the training rows in a random order of its own, the "
    "same in every epoch; 30 epochs, with d = 1 ten. T = 0.1 is a tenth of an epoch."
)
_UNITS = (
    "In which units the greys are is not said; voted-units finds s = 255 of (1 + x·z/s)^d from the "
    "counts."
)


def _recipe(
    name: str,
    item: str,
    title: str,
    parts: Callable[[bool], Sequence[Table | Picture]],
    *remarks: str,
) -> Recipe:
    repeats = Repeats(quick=1, full=10)
    return Recipe(
        name, VOTED, item, title, _DATA, _PROTOCOL, parts, repeats, ("mnist",), (_UNITS, *remarks)
    )  # fmt: skip


RECIPES = (
    _recipe(
        "voted-table1", "Table 1", "The Perceptron's hypotheses on ten digits",
        partial(_table, name="voted-table1"),
        'Of the ten digits together "SupVec" is the size of the union of the rows corrected on.',
    ),
    _recipe(
        "voted-table2", "Table 2", "The Perceptron's hypotheses on single digits",
        partial(_table, name="voted-table2"), "The lines quoted from Cortes & Vapnik are left out.",
    ),
    _recipe(
        "voted-table3", "Table 3", "The Perceptron's hypotheses, 9 against the rest",
        partial(_table, name="voted-table3"),
    ),
    _recipe("voted-figure2", "Figure 2", "The Perceptron's hypotheses over the epochs", figure_2),
    Recipe(
        "voted-units", VOTED, "Table 1, T = 1", "In which units the greys are",
        "MNIST, 60,000 training digits; kernel (1 + x·z/s)^d",
        "One epoch on a random order of the rows for every d and s.",
        _units, Repeats(quick=1, full=3), needs=("mnist",),
        remarks=(
            "A study of ours: the paper does not say in which units the greys are. Beside x·z/s "
            "the constant hardly counts for any s up to 1000; 255 is the ALMA paper's and Li & "
            "Long's, and runs in the recipes of the tables.",
        ),
    ),
)  # fmt: skip
