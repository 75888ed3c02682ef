"""Algorithms with kernels, run as the papers do: one fit tells all hypotheses at every moment."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from papers._digits import load
from papers._recipe import Record, Work, entry, work
from sparsemargin import ALMAClassifier, PNormPerceptron, ROMMAClassifier
from sparsemargin._engine.fitting.epochs import count_trials
from sparsemargin.evaluation import hypothesis_errors

PERCEPTRON, ALMA, ROMMA, AGGRESSIVE = "Perceptron", "ALMA_2", "ROMMA", "agg-ROMMA"

CORRECTIONS, SUPPORT = "corrections", "support vectors"
LAST, AVERAGE, VOTE, RANDOM = "last", "average", "vote", "random"

#: Moments of an epoch at which figures are taken: Freund & Schapire's Figure 2 has a point at each.
PER_EPOCH = 10


def normalized(hypothesis: str) -> str:
    """Return the name of the hypothesis whose vectors are normalised."""
    return f"{hypothesis}_normalized"


def moments(epochs: int) -> np.ndarray:
    """Return every tenth of an epoch."""
    return np.arange(1, PER_EPOCH * epochs + 1) / PER_EPOCH


@dataclass(frozen=True)
class Run:
    """An algorithm with a kernel on a data set, for so many epochs.

    Attributes
    ----------
    data : str
        A name that `_digits.load` knows.
    algorithm : str
    kernel : {"poly", "rbf", "polyrbf"}
        ``(1 + x.z / scale) ** degree``, ``G = exp(-|x - z|^2 / (2 sigma^2))``,
        ``(1 + G) ** degree``.
    epochs : int
        A quick run makes one.
    degree : int
    scale : float
    sigma : float
    alpha : float
        Of ALMA; this and the kernel's numbers are 0 where there is none.
    """

    data: str
    algorithm: str
    kernel: str
    epochs: int
    degree: int = 0
    scale: float = 0.0
    sigma: float = 0.0
    alpha: float = 0.0

    def work(self, quick: bool) -> Work:
        """Return the work of running it, for one epoch if quick."""
        settings = {name: value for name, value in asdict(self).items() if value}
        return work(run_epochs, **settings | {"epochs": 1 if quick else self.epochs})

    def estimator(self, **parameters: Any) -> Any:
        """Return the classifier; rows are taken in the given order, instances as they are but for
        ALMA's."""
        parameters |= {
            "shuffle": False,
            "fit_intercept": False,
            "kernel": self.kernel,
            "degree": self.degree or 1,
        }
        if self.kernel == "poly":
            parameters |= {"gamma": 1 / self.scale, "coef0": 1.0}
        else:
            parameters |= {"gamma": 1 / (2 * self.sigma**2)}
        if self.algorithm == PERCEPTRON:
            return PNormPerceptron(normalize=False, **parameters)
        if self.algorithm == ALMA:
            return ALMAClassifier(alpha=self.alpha, B=1 / self.alpha, **parameters)
        return ROMMAClassifier(aggressive=self.algorithm == AGGRESSIVE, **parameters)


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
        "errors": {
            name: np.round(100 * errors, 6).tolist() for name, errors in found.errors.items()
        },
        CORRECTIONS: found.n_corrections.sum(axis=1).tolist(),
        f"{CORRECTIONS} by class": found.n_corrections.tolist(),
        SUPPORT: found.n_support.tolist(),
        f"{SUPPORT} by class": _support_by_class(model, [count_trials(T, len(y)) for T in at]),
    }


def _support_by_class(model: Any, ends: list[int]) -> list[list[int]]:
    """Rows that each label was corrected on in so many trials."""
    log = model._space.log.entries()
    order = np.argsort(log["start"], kind="stable")
    pairs = np.stack([log["label"], log["row"]])[:, order]
    (labels, _), first = np.unique(pairs, axis=1, return_index=True)
    starts = log["start"][order][first]
    n_labels = model._space.n_labels
    return [np.bincount(labels[starts < end], minlength=n_labels).tolist() for end in ends]


def figure(
    quantity: str, epochs: float, label: int | None = None
) -> Callable[[list[Record]], list[float]]:
    """Return what reads from records a count or the error of a hypothesis.

    Parameters
    ----------
    quantity : str
        `CORRECTIONS`, `SUPPORT` or a hypothesis.
    epochs : float
        When in the run.
    label : int or None
        The class whose corrections or support vectors these are; None: those of all.
    """
    at = round(PER_EPOCH * epochs) - 1
    if quantity not in (CORRECTIONS, SUPPORT):
        return entry("errors", quantity, at)
    return entry(quantity, at) if label is None else entry(f"{quantity} by class", at, label)
