"""Table 1 of Gentile (2000): ALMA_2 on MNIST, by votes."""

from __future__ import annotations

from papers._alma_printed import BY_EPOCH, by_epoch
from papers._kernel_runs import VOTE
from papers._kernel_tables import smaller, table
from papers._recipe import Recipe, Table
from papers.alma_kernels import (
    MNIST,
    PROTOCOL,
    QUOTED,
    REPEATS,
    allowed_on_mnist,
    best_of_alma,
    better_than_last,
)
from papers.sources import ALMA_CONFERENCE

_TABLE_1 = """
    Perceptron last      2.71 7901  2.14 10421 2.03 11787
    Perceptron voted     2.23 7901  1.86 10421 1.76 11787
    agg-ROMMA last       2.05 30088 1.76 44495 1.67 58583
    ALMA_2 1.0 last      2.52 7454  2.01 9658  1.86 10934
    ALMA_2 1.0 voted     1.77 7454  1.52 9658  1.47 10934
    ALMA_2 0.9 last      2.10 9911  1.74 12711 1.64 14244
    ALMA_2 0.9 voted     1.69 9911  1.49 12711 1.40 14244
    ALMA_2 0.8 last      1.98 12810 1.72 16464 1.60 18528
    ALMA_2 0.8 voted     1.68 12810 1.44 16464 1.35 18528
"""


LINES = by_epoch("mnist", _TABLE_1)


def table_1(quick: bool) -> tuple[Table, ...]:
    """Return Table 1."""
    claims = (
        best_of_alma(LINES, VOTE, quick),
        smaller("The vote errs less than the last vector", better_than_last(LINES, VOTE), quick),
    )
    return (table("MNIST, d = 4", BY_EPOCH, LINES, quick, allowed_on_mnist, claims),)


RECIPES = (
    Recipe(
        "nips-table1", ALMA_CONFERENCE, "Table 1", "ALMA_2 on MNIST, by votes",
        MNIST, PROTOCOL, table_1, REPEATS, needs=("mnist",),
        remarks=(
            QUOTED,
            'The figures under "voted" are those that the journal paper prints under "avg", and '
            "says to be the average's. Each is compared with what its own word stands for: of one "
            "epoch the vote comes nearer.",
        ),
    ),
)  # fmt: skip
