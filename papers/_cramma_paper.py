"""Tables 1 to 4 of Tsampouka & Shawe-Taylor (2006): what they print, and how it was made.

Three things the paper leaves open, settled by its own counts:

- Counts of updates include the starting vector, except for the Perceptron in Tables 1 and 3. In
  Table 4 the Perceptron's do: b = 2.4 R^2 is no integer, so nothing depends on ties there, and
  exact arithmetic makes 144,937 corrections where the paper prints 144,938.
- ALMA_2 divides the patterns by R, the largest norm, and has B = sqrt(8)/alpha, C = sqrt(2).
- R includes the augmentation and, in Table 4, the coordinates of the extended space.

Source: P. Tsampouka and J. Shawe-Taylor, "Constant Rate Approximate Maximum Margin Algorithms",
ECML 2006, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from papers.data import load_sonar, load_wbc

PERCEPTRON, ALMA, CRAMMA = "Perceptron", "ALMA_2", "CRAMMA"
SYMBOLS = {PERCEPTRON: "b/(η R²)", ALMA: "α", CRAMMA: "β/R"}


class Figure(NamedTuple):
    """A column of a table, in units of 10^-power and to so many digits.

    `measure` takes it from the fitted model and the largest margin there is.
    """

    name: str
    power: int
    digits: int
    measure: Callable[[Any, float], float]

    @property
    def header(self) -> str:
        """The name that the paper gives it."""
        return f"{10**self.power:,} {self.name}"

    def print(self, value: float) -> str:
        """Return a value in the table's digits."""
        return f"{value:.{self.digits}f}"


def _margin(model: Any, largest: float) -> float:
    return model.margin_


def _deviation(model: Any, largest: float) -> float:
    return model.relative_deviation_


def _margin_deviation(model: Any, largest: float) -> float:
    return 1 - model.margin_ / largest


class Run(NamedTuple):
    """A run of an algorithm: its parameter, and the figures and updates that the paper prints."""

    algorithm: str
    parameter: float
    figures: tuple[float, ...]
    updates: int

    @property
    def label(self) -> str:
        """The algorithm and its parameter."""
        return f"{self.algorithm} {SYMBOLS[self.algorithm]} = {self.parameter:g}"


@dataclass(frozen=True)
class Printed:
    """One table.

    Attributes
    ----------
    number : int
    data : str
        As `sparsemargin.datasets` names them.
    load : callable
        Returns X and y.
    rho : float
        Value of the augmenting coordinate.
    soft_margin : float
        Delta of the extended space; 0: there is none.
    largest_margin : str
        As the text states it.
    cramma : dict
        Parameters of CRAMMA apart from beta.
    figures : tuple of Figure
    lines : dict
        By algorithm, the lines: parameter, figures, updates.
    start_not_counted : frozenset of str
        Algorithms whose counts of updates leave out the starting vector.
    """

    number: int
    data: str
    load: Callable[[], tuple[np.ndarray, np.ndarray]]
    rho: float
    largest_margin: str
    cramma: dict[str, Any]
    figures: tuple[Figure, ...]
    lines: dict[str, tuple[tuple[float, ...], ...]] = field(repr=False)
    soft_margin: float = 0.0
    start_not_counted: frozenset[str] = frozenset()

    def runs(self, algorithm: str | None = None) -> Iterator[Run]:
        """Yield the runs, algorithm by algorithm, or those of one."""
        for each, lines in self.lines.items():
            for parameter, *figures, updates in lines:
                if algorithm in (None, each):
                    yield Run(each, parameter, tuple(figures), int(updates))


TABLES = {
    1: Printed(
        number=1,
        data="sonar",
        load=partial(load_sonar, return_X_y=True),
        rho=1.0,
        largest_margin="0.00841",
        cramma={"epsilon": 0.5, "eta0": 0.001, "delta": 1.0},
        figures=(Figure("γ'_d", 3, 2, _margin),),
        start_not_counted=frozenset({PERCEPTRON}),
        lines={
            PERCEPTRON: (
                (1, 5.78, 247_140),
                (3.1, 7.14, 660_698),
                (5.4, 7.45, 1_117_124),
                (20, 7.80, 3_977_612),
                (90, 7.91, 17_647_271),
                (200, 7.92, 39_131_402),
                (500, 7.93, 97_717_549),
                (1000, 7.93, 195_358_932),
            ),
            ALMA: (
                (0.75, 5.65, 415_119),
                (0.55, 7.08, 1_584_785),
                (0.45, 7.45, 3_133_968),
                (0.35, 7.76, 6_657_109),
                (0.3, 7.91, 10_170_590),
                (0.2, 8.11, 28_339_340),
                (0.1, 8.27, 137_693_242),
                (0.03, 8.37, 1_735_836_937),
            ),
            CRAMMA: (
                (0.73, 5.73, 248_267),
                (1.52, 7.12, 669_170),
                (2, 7.46, 1_047_757),
                (3, 7.82, 2_143_989),
                (3.45, 7.92, 2_762_005),
                (5, 8.11, 5_531_113),
                (10, 8.28, 21_220_354),
                (30.1, 8.37, 188_073_965),
            ),
        },
    ),
    2: Printed(
        number=2,
        data="sonar",
        load=partial(load_sonar, return_X_y=True),
        rho=1.0,
        largest_margin="0.00841",
        cramma={"epsilon": 2.0, "eta0": 0.4, "delta": 0.3},
        figures=(Figure("γ'_d", 3, 2, _margin),),
        lines={
            CRAMMA: (
                (1e6, 1.03, 70_798),
                (1e7, 3.66, 106_507),
                (1e8, 5.52, 264_396),
                (1e9, 6.69, 756_035),
                (1e10, 7.37, 2_275_334),
                (1e11, 7.80, 6_994_002),
                (1e12, 8.10, 21_690_267),
                (1e13, 8.27, 67_893_557),
            ),
        },
    ),
    3: Printed(
        number=3,
        data="wbc",
        load=partial(load_wbc, "separable", return_X_y=True),
        rho=30.0,
        largest_margin="0.0243",
        cramma={"epsilon": 0.5, "eta0": 0.0001, "delta": 1.0},
        figures=(Figure("γ'_d", 2, 3, _margin),),
        start_not_counted=frozenset({PERCEPTRON}),
        lines={
            PERCEPTRON: (
                (0.52, 1.784, 1_718_705),
                (0.9, 2.008, 2_720_447),
                (1.4, 2.141, 3_976_477),
                (2.1, 2.228, 5_734_457),
                (4, 2.317, 10_508_566),
            ),
            ALMA: (
                (0.8, 1.783, 2_704_553),
                (0.7, 2.008, 6_254_523),
                (0.6, 2.141, 13_320_425),
                (0.5, 2.228, 27_666_246),
                (0.35, 2.315, 88_363_792),
            ),
            CRAMMA: (
                (0.22, 1.794, 259_036),
                (0.32, 2.019, 431_543),
                (0.42, 2.143, 660_486),
                (0.49, 2.238, 824_120),
                (0.8, 2.318, 2_044_555),
            ),
        },
    ),
    4: Printed(
        number=4,
        data="wbc",
        load=partial(load_wbc, return_X_y=True),
        rho=10.0,
        soft_margin=1.0,
        largest_margin="0.13033",
        cramma={"epsilon": 0.5, "eta0": None, "delta": 1.0},
        figures=(
            Figure("δD/D", 1, 2, _deviation),
            Figure("δΓ/Γ", 1, 2, _margin_deviation),
            Figure("Γ_Δ", 1, 4, _margin),
        ),
        lines={
            PERCEPTRON: (
                (1, 2.22, 2.14, 1.0244, 67_913),
                (2.4, 1.13, 1.11, 1.1585, 144_938),
                (10, 0.39, 0.38, 1.2542, 560_591),
                (45, 0.19, 0.19, 1.2789, 2_474_607),
                (700, 0.15, 0.15, 1.2837, 38_336_601),
            ),
            ALMA: (
                (0.75, 2.18, 2.19, 1.0185, 79_061),
                (0.6, 1.13, 1.16, 1.1524, 248_461),
                (0.35, 0.42, 0.42, 1.2481, 1_625_682),
                (0.2, 0.19, 0.19, 1.2784, 7_184_572),
                (0.1, 0.08, 0.08, 1.2933, 35_542_412),
            ),
            CRAMMA: (
                (0.95, 2.36, 2.22, 1.0143, 80_671),
                (1.64, 1.10, 1.12, 1.1568, 185_687),
                (3.1, 0.36, 0.37, 1.2551, 560_229),
                (5, 0.18, 0.19, 1.2791, 1_401_588),
                (11.5, 0.08, 0.08, 1.2934, 7_252_904),
            ),
        },
    ),
}
