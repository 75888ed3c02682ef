"""What Tables 1 to 3 of Freund & Schapire (1999) print, and of which runs."""

from __future__ import annotations

from collections.abc import Mapping

from papers._kernel_runs import (
    AVERAGE,
    CORRECTIONS,
    LAST,
    PERCEPTRON,
    RANDOM,
    SUPPORT,
    VOTE,
    Run,
    normalized,
)
from papers._kernel_tables import Printed, PrintedLine

EPOCHS = (0.1, 1, 2, 3, 4, 10, 30)
DEGREES = (1, 2, 3, 4, 5, 6)
ONE_CLASS_DEGREE = 4  # of Table 2
ONE_CLASS = 9  # of Table 3
SCALE = 255.0

QUANTITIES = {
    "vote": VOTE,
    "avg": AVERAGE,
    "avg-norm": normalized(AVERAGE),
    "last": LAST,
    "last-norm": normalized(LAST),
    "rand": RANDOM,
    "rand-norm": normalized(RANDOM),
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
