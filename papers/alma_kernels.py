"""Tables 1 to 5 of Gentile (2001): ALMA_2 with kernels on USPS, MNIST and Letter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from papers._alma_printed import BY_CLASS, BY_EPOCH, EPOCHS, LINES, run_of
from papers._kernel_runs import (
    AGGRESSIVE,
    ALMA,
    AVERAGE,
    CORRECTIONS,
    LAST,
    PERCEPTRON,
    ROMMA,
    SUPPORT,
    VOTE,
    Run,
)
from papers._kernel_tables import (
    Pair,
    Printed,
    PrintedLine,
    allowed,
    figures_of,
    smaller,
    table,
)
from papers._recipe import (
    Allowed,
    Claim,
    Finding,
    Measured,
    Recipe,
    Repeats,
    Table,
    incomparable,
)
from papers.sources import ALMA as PAPER

# -- What the figures may differ by ---------------------------------------------------------------

_OTHER_DIGITS = incomparable(
    "the digits at hand lie further apart than the paper's: ALMA_2(0.9) corrects six times as often"
)
_NOISE_CONTROL = incomparable(
    'the paper quotes the "best noise-controlled version", whose amount of noise control is '
    "printed nowhere; here it runs without any"
)
_ROMMA_COUNTS = Allowed(
    relative=0.08,
    why="5.5 to 7 % fewer than Li & Long's, whose figures the paper quotes, in any scale of x and "
    "with soft margins too; the cause was not found",
)
_MISPRINT = Allowed(
    relative=0.05,
    why="7001 is 300 more than is measured, while all other counts of the table come within 1 %: "
    "6701 misprinted, it seems",
)
_LETTER_AVERAGE = Allowed(
    0.4,
    why="after one epoch the averages err 0.1 to 0.4 points more than printed, as on MNIST up to "
    "0.16; votes come nearer",
)
_ONE_LETTER_AVERAGE = Allowed(
    1.0, why=f"of one permutation, whose deviation is 0.3 points; {_LETTER_AVERAGE.why}"
)


def allowed_on_mnist(printed: Printed, quick: bool) -> Allowed:
    """Return what a figure may differ by: ROMMA's have reasons of their own."""
    if printed.run.algorithm == AGGRESSIVE:
        return _NOISE_CONTROL
    if printed.run.algorithm == ROMMA and printed.is_count:
        return _ROMMA_COUNTS
    return allowed(printed, quick)


def _allowed_on_usps(printed: Printed, quick: bool) -> Allowed:
    return _OTHER_DIGITS


def _allowed_on_letter(printed: Printed, quick: bool) -> Allowed:
    if printed.text == "7001":
        return _MISPRINT
    if (printed.quantity, printed.epochs) == (AVERAGE, 1):
        return _ONE_LETTER_AVERAGE if quick else _LETTER_AVERAGE
    return allowed(printed, quick)


# -- What the text says ---------------------------------------------------------------------------


def _errors(lines: Sequence[PrintedLine]) -> dict[tuple[Run, str, float], Printed]:
    return {
        (each.run, each.quantity, each.epochs): each
        for each in figures_of(lines) if not each.is_count
    }  # fmt: skip


def better_than_last(lines: Sequence[PrintedLine], hypothesis: str) -> list[Pair]:
    """Return errors of a hypothesis beside those of the last vector of the same run."""
    errors = _errors(lines)
    return [
        (each, errors[run, LAST, T])
        for (run, quantity, T), each in errors.items() if quantity == hypothesis
    ]  # fmt: skip


def _falling_alpha(lines: Sequence[PrintedLine], quantity: str) -> list[Pair]:
    """Pairs of figures of ALMA_2 that differ in alpha alone, the smaller alpha first."""
    # By alpha, as corrections stand in the lines of both hypotheses.
    found: dict[tuple, dict[float, Printed]] = {}
    for each in figures_of(lines):
        if each.run.algorithm == ALMA and each.quantity == quantity:
            like = (each.run.degree, each.epochs, each.label)
            found.setdefault(like, {})[each.run.alpha] = each
    return [(of[a], of[b]) for of in found.values() for a, b in pairwise(sorted(of))]


def _less_sparse(lines: Sequence[PrintedLine], quantity: str, quick: bool) -> Claim:
    """The smaller alpha, the larger a count."""
    pairs = [(more, less) for less, more in _falling_alpha(lines, quantity)]
    return smaller(f"The smaller α, the more {quantity}", pairs, quick)


def _more_accurate(lines: Sequence[PrintedLine], quick: bool) -> Claim:
    """The smaller alpha, the less the averages err."""
    pairs = _falling_alpha(lines, AVERAGE)
    text = "The smaller α, the less the averages of ALMA_2 err"
    return smaller(text, pairs, quick, least_share=0.75)


def best_of_alma(lines: Sequence[PrintedLine], hypothesis: str, quick: bool) -> Claim:
    """Return the claim that ALMA_2's hypothesis errs less than any other algorithm's."""
    errors = _errors(lines)
    pairs = [
        (ours, theirs)
        for (run, quantity, T), ours in errors.items()
        for (other, _, at), theirs in errors.items()
        if run.algorithm == ALMA != other.algorithm and quantity == hypothesis and at == T
    ]
    return smaller(
        f'ALMA_2\'s "{"voted" if hypothesis == VOTE else "avg"}" is the most accurate of all',
        pairs, quick,
    )  # fmt: skip


def _larger_degree(lines: Sequence[PrintedLine], quick: bool) -> Claim:
    errors = _errors(lines)
    pairs = [
        (errors[run_of("mnist", ALMA, alpha, 6), AVERAGE, T],
         errors[run_of("mnist", ALMA, alpha, 4), AVERAGE, T])
        for alpha in (1.0, 0.9) for T in EPOCHS
    ]  # fmt: skip
    return smaller("The averages of ALMA_2 err less with d = 6 than with d = 4", pairs, quick)


def _comparable(lines: Sequence[PrintedLine], quick: bool) -> Claim:
    errors = _errors(lines)
    runs = [run_of("usps", PERCEPTRON), run_of("usps", ALMA, 1.0)]
    pairs = [
        [errors[run, hypothesis, T] for run in runs]
        for hypothesis in (LAST, AVERAGE)
        for T in (EPOCHS[:1] if quick else EPOCHS)
    ]

    def examine(measured: Measured) -> Finding:
        gaps = [abs(a.mean(measured, quick) - b.mean(measured, quick)) for a, b in pairs]
        return Finding(max(gaps) < 1.0, f"{max(gaps):.2f} points apart at most")

    works = tuple(run.work(quick) for run in runs)
    return Claim("ALMA_2(1.0) and the Perceptron err alike: by less than a point", works, examine)


def _once_each(lines: Sequence[PrintedLine], quick: bool) -> Claim:
    """In one epoch a row corrects a label once at most."""
    first = [each for each in figures_of(lines) if each.epochs == 1]
    pairs = [
        (each, each._replace(quantity=SUPPORT)) for each in first if each.quantity == CORRECTIONS
    ]

    def examine(measured: Measured) -> Finding:
        same = [a.mean(measured, quick) == b.mean(measured, quick) for a, b in pairs]
        return Finding(all(same), f"in {sum(same)} of {len(same)} cells")

    works = tuple(dict.fromkeys(each.run.work(quick) for each in first))
    return Claim('For one epoch "clearly" Corr = SV', works, examine)


# -- The recipes ----------------------------------------------------------------------------------


def table_1(quick: bool) -> tuple[Table, ...]:
    """Return Table 1: USPS."""
    lines = LINES["alma-table1"]
    claims = (
        _comparable(lines, quick),
        _more_accurate(lines, quick),
        _less_sparse(lines, CORRECTIONS, quick),
        smaller(
            "The average errs less than the last vector",
            better_than_last(lines, AVERAGE), quick,
            why_not="with a kernel so narrow to the digits at hand, the Perceptron's average errs "
            "as much as its last vector",
        ),
    )  # fmt: skip
    return (table("USPS", BY_EPOCH, lines, quick, _allowed_on_usps, claims),)


def table_2(quick: bool) -> tuple[Table, ...]:
    """Return Table 2: USPS, by class."""
    lines = LINES["alma-table2"]
    claims = (_once_each(lines, quick), _less_sparse(lines, SUPPORT, quick))
    return (table("USPS, by class", BY_CLASS, lines, quick, _allowed_on_usps, claims),)


def table_3(quick: bool) -> tuple[Table, ...]:
    """Return Table 3: MNIST."""
    lines = LINES["alma-table3"]
    claims = (
        best_of_alma(lines, AVERAGE, quick),
        _larger_degree(lines, quick),
        _more_accurate(lines, quick),
        _less_sparse(lines, CORRECTIONS, quick),
        smaller(
            "The average errs less than the last vector", better_than_last(lines, AVERAGE), quick
        ),
    )
    return (table("MNIST", BY_EPOCH, lines, quick, allowed_on_mnist, claims),)


def table_4(quick: bool) -> tuple[Table, ...]:
    """Return Table 4: MNIST, by class."""
    lines = LINES["alma-table4"]
    claims = (_once_each(lines, quick), _less_sparse(lines, SUPPORT, quick))
    return (table("MNIST, by class, d = 4", BY_CLASS, lines, quick, claims=claims),)


def table_5(quick: bool) -> tuple[Table, ...]:
    """Return Table 5: Letter."""
    lines = LINES["alma-table5"]
    claims = (
        _more_accurate(lines, quick),
        _less_sparse(lines, CORRECTIONS, quick),
        smaller(
            "The average errs less than the last vector",
            better_than_last(lines, AVERAGE), quick, least_share=0.75 if quick else 1.0,
        ),
    )  # fmt: skip
    return (table("Letter", BY_EPOCH, lines, quick, _allowed_on_letter, claims),)


USPS = "USPS, 7,291 training and 2,007 test digits; Gaussian kernel, σ = 3.5"
MNIST = "MNIST, 60,000 training and 10,000 test digits; kernel (1 + x·z/255)^d"
_LETTER = (
    "Letter, the first 16,000 rows to train, 4,000 to test; kernel (1 + G)^5, the Gaussian's width "
    "σ = 4 for the Perceptron, 3 for ALMA_2"
)
PROTOCOL = (
    "One against the rest, C = √2 and B = 1/α. Each repeat takes the training rows in a random "
    "order of its own, the same in every epoch."
)
REPEATS = Repeats(quick=1, full=10)

USPS_REMARK = (
    "With the stated width ALMA_2(0.9) corrects six times as often as printed: the digits at hand "
    "lie further apart than the paper's. alma-width finds the width that makes up for it."
)
_SVM_LINE = "The line that the paper quotes of a support vector machine is left out."
QUOTED = (
    "The paper quotes the Perceptron's and ROMMA's lines from Freund & Schapire, Li & Long and Li; "
    "here they are run. The best noise control of aggressive ROMMA is not printed: its line is not "
    "comparable."
)
_AVERAGES = (
    "Over five permutations the averages of ALMA_2 err 0.11 points more than printed after one "
    "epoch, 0.04 after two and three; counts and last vectors come out. The cause is not known."
)

RECIPES = (
    Recipe(
        "alma-table1", PAPER, "Table 1", "ALMA_2 on USPS",
        USPS, PROTOCOL, table_1, REPEATS, needs=("usps",), remarks=(USPS_REMARK,),
    ),
    Recipe(
        "alma-table2", PAPER, "Table 2", "Corrections and support vectors on USPS, by class",
        USPS, PROTOCOL, table_2, REPEATS, needs=("usps",), remarks=(USPS_REMARK, _SVM_LINE),
    ),
    Recipe(
        "alma-table3", PAPER, "Table 3", "ALMA_2 on MNIST",
        MNIST, PROTOCOL, table_3, REPEATS, needs=("mnist",), remarks=(QUOTED, _AVERAGES),
    ),
    Recipe(
        "alma-table4", PAPER, "Table 4", "Corrections and support vectors on MNIST, by class",
        MNIST, PROTOCOL, table_4, REPEATS, needs=("mnist",), remarks=(_SVM_LINE,),
    ),
    Recipe(
        "alma-table5", PAPER, "Table 5", "ALMA_2 on Letter",
        _LETTER, PROTOCOL, table_5, REPEATS, needs=("letter",),
    ),
)  # fmt: skip
