"""What the papers' kernel tables consist of: runs of algorithms, and the figures printed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sparsemargin import ALMAClassifier, PNormPerceptron, ROMMAClassifier

PERCEPTRON, ALMA, ROMMA, AGGRESSIVE = "Perceptron", "ALMA_2", "ROMMA", "agg-ROMMA"

#: The ALMA paper's; `kernel_scale.py` finds the same for Freund & Schapire's.
MNIST_SCALE = 255

CORRECTIONS, SUPPORT = "corrections", "support vectors"
LAST, AVERAGE, VOTE, RANDOM = "last", "average", "vote", "random"


def normalized(hypothesis: str) -> str:
    """Return the name of the hypothesis whose vectors are normalised."""
    return f"{hypothesis}_normalized"


@dataclass(frozen=True)
class Run:
    """An algorithm with a kernel on a data set.

    Attributes
    ----------
    data : str
        A name that `_digits.load` knows.
    algorithm : str
    kernel : {"poly", "rbf", "polyrbf"}
        ``(1 + x.z / 255) ** degree``, ``G = exp(-|x - z|^2 / (2 sigma^2))``, ``(1 + G) ** degree``.
    degree : int
    sigma : float
        The width of the Gaussian; 0 where there is none.
    alpha : float
        Of ALMA; 0 where there is none.
    """

    data: str
    algorithm: str
    kernel: str
    degree: int = 1
    sigma: float = 0.0
    alpha: float = 0.0

    @property
    def name(self) -> str:
        """What identifies the run, for people and for files."""
        numbers = {"d": self.degree, "sigma": self.sigma, "alpha": self.alpha}
        settings = (f"{name}={value:g}" for name, value in numbers.items() if value)
        return " ".join([self.data, self.algorithm, self.kernel, *settings])

    def estimator(self, **parameters: Any) -> Any:
        """Return the classifier; rows are taken in the given order, instances as they are but for
        ALMA's."""
        parameters |= {"shuffle": False, "kernel": self.kernel, "degree": self.degree}
        if self.kernel == "poly":
            parameters |= {"gamma": 1 / MNIST_SCALE, "coef0": 1.0}
        else:
            parameters |= {"gamma": 1 / (2 * self.sigma**2)}
        if self.algorithm == PERCEPTRON:
            return PNormPerceptron(normalize=False, **parameters)
        if self.algorithm == ALMA:
            return ALMAClassifier(alpha=self.alpha, B=1 / self.alpha, **parameters)
        return ROMMAClassifier(aggressive=self.algorithm == AGGRESSIVE, **parameters)


@dataclass(frozen=True)
class Cell:
    """A printed figure.

    Attributes
    ----------
    run : Run
    quantity : str
        `CORRECTIONS`, `SUPPORT`, or a hypothesis: its test error in percent.
    epochs : float
        When in the run.
    printed : str
    label : int or None
        The class whose corrections or support vectors these are; None: those of all.
    """

    run: Run
    quantity: str
    epochs: float
    printed: str
    label: int | None = None

    @property
    def paper(self) -> float:
        """The printed figure as a number."""
        return float(self.printed.replace(",", ""))

    @property
    def is_count(self) -> bool:
        """Whether it is a number of rows, not an error."""
        return self.quantity in (CORRECTIONS, SUPPORT)


@dataclass(frozen=True)
class Line:
    """A line of a table: its name, and a cell for each column; None: nothing is printed there."""

    name: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Table:
    """A table of a paper."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]

    def cells(self, most_epochs: float) -> Iterator[Cell]:
        """Yield the figures of runs of up to so many epochs."""
        for line in self.lines:
            for cell in line.cells:
                if cell is not None and cell.epochs <= most_epochs:
                    yield cell

    def runs(self, most_epochs: float) -> dict[Run, float]:
        """Return the runs that the cells need, and the most epochs of each."""
        needed: dict[Run, float] = {}
        for cell in self.cells(most_epochs):
            needed[cell.run] = max(cell.epochs, needed.get(cell.run, 0.0))
        return needed
