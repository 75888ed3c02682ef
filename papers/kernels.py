"""Algorithms with kernels on digits and letters, run as the papers do: one fit tells all hypotheses
at every moment. And the tables of what the papers print of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from papers import recipe
from papers.data import load_letter, load_mnist, load_usps
from papers.hypotheses import hypothesis_errors
from papers.recipe import (
    Allowed,
    Cell,
    Claim,
    Finding,
    Line,
    Mean,
    Record,
    Table,
    Work,
    compared,
    entry,
    incomparable,
    work,
)
from papers.theory import alma_alpha
from sparsemargin import ALMAClassifier, PNormPerceptron, ROMMAClassifier
from sparsemargin._engine.fitting.epochs import count_trials
from sparsemargin.kernels import RBF, Polynomial, PolynomialRBF

PERCEPTRON, ALMA, ROMMA, AGGRESSIVE = "Perceptron", "ALMA_2", "ROMMA", "agg-ROMMA"

CORRECTIONS, SUPPORT = "corrections", "support vectors"
LAST, AVERAGE, VOTE, RANDOM = "last", "average", "vote", "random"

#: Moments of an epoch at which figures are taken: Freund & Schapire's Figure 2 has a point at each.
PER_EPOCH = 10

#: Permutations that the papers' figures are means of.
N_PERMUTATIONS = 10

# -- Data -----------------------------------------------------------------------------------------

_LOADERS: dict[str, Callable[..., Any]] = {
    "mnist": load_mnist,
    "usps": load_usps,
    "letter": load_letter,
}


class Data(NamedTuple):
    """Rows to train on and to test on, as published."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


@lru_cache
def _whole(name: str) -> Data:
    load = _LOADERS[name]
    return Data(*load("train", return_X_y=True), *load("test", return_X_y=True))


def load(name: str) -> Data:
    """Load a data set, or, of ``"mnist 9"``, that class against the rest.

    Raises
    ------
    FileNotFoundError
        If its files are not at hand; the message says how to get them.
    """
    whole, _, positive = name.partition(" ")
    data = _whole(whole)
    if not positive:
        return data
    y, y_test = (np.where(y == int(positive), 1, -1) for y in (data.y, data.y_test))
    return data._replace(y=y, y_test=y_test)


# -- Runs -----------------------------------------------------------------------------------------


def moments(epochs: int) -> np.ndarray:
    """Return every tenth of an epoch."""
    return np.arange(1, PER_EPOCH * epochs + 1) / PER_EPOCH


@dataclass(frozen=True)
class Run:
    """An algorithm with a kernel on a data set, for so many epochs.

    Kernels are ``(1 + x.z / scale) ** degree``, ``G = exp(-|x - z|^2 / (2 sigma^2))`` and
    ``(1 + G) ** degree``.
    """

    data: str  # a name that `load` knows
    algorithm: str
    kernel: Literal["poly", "rbf", "polyrbf"]
    epochs: int  # a quick run makes one
    degree: int = 0
    scale: float = 0.0
    sigma: float = 0.0
    alpha: float = 0.0  # of ALMA

    def work(self, quick: bool) -> Work:
        """Return the work of running it, for one epoch if quick."""
        settings = {name: value for name, value in asdict(self).items() if value}
        return work(run_epochs, **settings | {"epochs": 1 if quick else self.epochs})

    @property
    def _kernel(self) -> Polynomial | RBF | PolynomialRBF:
        if self.kernel == "poly":
            return Polynomial(self.degree, gamma=1 / self.scale, coef0=1.0)
        gamma = 1 / (2 * self.sigma**2)
        return PolynomialRBF(self.degree, gamma=gamma) if self.degree else RBF(gamma)

    def estimator(self, **parameters: Any) -> Any:
        """Return the classifier; rows are taken in the given order, instances as they are but for
        ALMA's."""
        parameters |= {"kernel": self._kernel, "shuffle": False, "fit_intercept": False}
        if self.algorithm == PERCEPTRON:
            return PNormPerceptron(normalize=False, **parameters)
        if self.algorithm == ALMA:
            return ALMAClassifier(alpha=alma_alpha(self.alpha, B=1 / self.alpha), **parameters)
        return ROMMAClassifier(
            aggressive=self.algorithm == AGGRESSIVE, early_stopping=False, **parameters
        )


def run_epochs(seed: int, **settings: Any) -> Record:
    """Fit on a random permutation of the rows, the same in every epoch.

    Parameters
    ----------
    seed : int
        Of the permutation.
    **settings
        Those of a `Run`.

    Returns
    -------
    dict
        Lists with an entry for every tenth of an epoch: ``errors``, by hypothesis, in percent;
        corrections and support vectors, of all classes together and, under ``"... by class"``, of
        each.
    """
    run = Run(**settings)
    X, y, X_test, y_test = load(run.data)
    order = np.random.default_rng(seed).permutation(len(y))
    model = run.estimator(hypothesis="vote", random_state=seed, max_iter=run.epochs)
    with warnings.catch_warnings():
        # The papers stop after so many epochs, converged or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[order], y[order])
    at = moments(run.epochs)
    found = hypothesis_errors(model, X_test, y_test, at)
    return {
        "errors": {name: np.round(100 * each, 6).tolist() for name, each in found.errors.items()},
        CORRECTIONS: found.n_corrections.sum(axis=1).tolist(),
        f"{CORRECTIONS} by class": found.n_corrections.tolist(),
        SUPPORT: found.n_support.tolist(),
        f"{SUPPORT} by class": _support_by_class(model, [count_trials(T, len(y)) for T in at]),
    }


def _support_by_class(model: Any, ends: list[int]) -> list[list[int]]:
    """Rows that each vector was corrected on in so many trials."""
    log = model.space.log.entries()
    order = np.argsort(log["start"], kind="stable")
    pairs = np.stack([log["vector"], log["row"]])[:, order]
    (vectors, _), first = np.unique(pairs, axis=1, return_index=True)
    starts = log["start"][order][first]
    n_vectors = model.space.n_vectors
    return [np.bincount(vectors[starts < end], minlength=n_vectors).tolist() for end in ends]


# -- Printed figures ------------------------------------------------------------------------------


class Printed(NamedTuple):
    """A figure of a paper."""

    run: Run
    quantity: str  # CORRECTIONS, SUPPORT, or a hypothesis: its test error in percent
    epochs: float  # when in the run
    text: str  # in the paper's digits
    label: int | None = None  # the class whose counts these are; None: those of all

    @property
    def number(self) -> float:
        """The figure."""
        return float(self.text)

    @property
    def is_count(self) -> bool:
        """Whether it is a number of rows, not an error."""
        return self.quantity in (CORRECTIONS, SUPPORT)

    @property
    def is_of_one_vector(self) -> bool:
        """Whether it is the error of a single weight vector for each class."""
        return self.quantity.startswith((LAST, RANDOM))

    @property
    def values(self) -> Callable[[list[Record]], list[float]]:
        """What reads it from the records of its run."""
        at = round(PER_EPOCH * self.epochs) - 1
        if not self.is_count:
            return entry("errors", self.quantity, at)
        if self.label is None:
            return entry(self.quantity, at)
        return entry(f"{self.quantity} by class", at, self.label)

    def work(self, quick: bool) -> Work | None:
        """What measures it; None where a quick run does not come so far."""
        return None if quick and self.epochs > 1 else self.run.work(quick)

    def mean(self, quick: bool) -> Mean:
        """The measured one, over the permutations."""
        return Mean(self.run.work(quick), self.values)


#: A line of a table: its name, and for each column a figure or None.
PrintedLine = tuple[str, tuple[Printed | None, ...]]


def figures_of(lines: Sequence[PrintedLine]) -> Iterator[Printed]:
    """Yield all that is printed."""
    for _, cells in lines:
        yield from (cell for cell in cells if cell is not None)


def varied(
    lines: Sequence[PrintedLine],
    quantities: tuple[str, ...],
    settings: Sequence[dict[str, Any]],
    name: Callable[[Run], str],
) -> list[PrintedLine]:
    """Return what lines print of one epoch, once for each change of a run's settings."""
    found = {
        (replace(each.run, epochs=1), each.quantity): each
        for each in figures_of(lines) if each.epochs == 1
    }  # fmt: skip
    return [
        (name(run), tuple(found[printed, each]._replace(run=run) for each in quantities))
        for printed in dict.fromkeys(printed for printed, _ in found)
        for run in (replace(printed, **changed) for changed in settings)
    ]


_ONE_VECTOR = incomparable(
    "a single vector's error moves by more than its mean is off from permutation to permutation, "
    "and a quick run has one"
)
_SPREAD = Allowed(
    0.15, spread=1.0,
    why="0.15 points, and the deviation of one permutation, as errors of one vector differ much",
)  # fmt: skip
_ERROR = Allowed(
    0.15,
    why="0.15 points, of which 0.03 to 0.12 is one permutation's deviation as Gentile (2001) has "
    "it",
)
_COUNT = "3 %, and twice what a mean of such counts spreads by: n events by their root"
_ONE_PERMUTATION = Allowed(
    0.3, relative=0.15, why="of one permutation, twice as much as of ten, or 15 % of the error"
)
_TENTH_OF_AN_EPOCH = Allowed(
    0.3, relative=0.25,
    why="learned from a tenth of the rows, the errors of one permutation deviate by up to a tenth",
)  # fmt: skip


def allowed(printed: Printed, quick: bool) -> Allowed:
    """Return what a figure may differ by where nothing particular is known of it."""
    if printed.is_count:
        n_events = printed.number * (1 if quick else N_PERMUTATIONS)
        return Allowed(relative=0.03 + 2 / np.sqrt(n_events), why=_COUNT)
    if printed.is_of_one_vector:
        return _ONE_VECTOR if quick else _SPREAD
    if quick:
        return _TENTH_OF_AN_EPOCH if printed.epochs < 1 else _ONE_PERMUTATION
    return _ERROR


def table(
    title: str,
    columns: tuple[str, ...],
    lines: Sequence[PrintedLine],
    quick: bool,
    allowed: Callable[[Printed, bool], Allowed] = allowed,
    claims: tuple[Claim, ...] = (),
) -> Table:
    """Return a table whose quick form leaves out what comes after the first epoch."""

    def cell(each: Printed | None) -> Cell | None:
        return each and Cell(each.text, each.work(quick), each.values, allowed(each, quick))

    return Table(
        title, columns, tuple(Line(name, tuple(map(cell, cells))) for name, cells in lines), claims
    )


#: Two figures of which a paper says something.
Pair = tuple[Printed, Printed]


def means(pairs: Sequence[Pair], quick: bool) -> list[tuple[Mean, Mean]]:
    """Return the measured ones; those beyond the first epoch are no part of a quick run."""
    return [(a.mean(quick), b.mean(quick)) for a, b in pairs if a.work(quick) and b.work(quick)]


def smaller(
    text: str, pairs: Sequence[Pair], quick: bool, least_share: float = 1.0, why_not: str = ""
) -> Claim:
    """Return the claim that in at least this share of the pairs the first figure is the smaller."""
    share = "" if least_share == 1 else f" (in {100 * least_share:g} % of the comparisons at least)"
    return recipe.smaller(text + share, means(pairs, quick), least_share, why_not)


def alike(text: str, pairs: Sequence[Pair], quick: bool, most: float) -> Claim:
    """Return the claim that the figures of no pair differ by more."""

    def examine(found: list[tuple[float, float]]) -> Finding:
        gap = max(abs(a - b) for a, b in found)
        return Finding(gap <= most, f"{gap:.2f} points apart at most")

    return compared(text, means(pairs, quick), examine)
