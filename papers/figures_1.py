"""The papers' Figures 1, which are algorithms: run as they are printed, beside the library.

Each is written out here line by line over dense vectors; the report shows these lines.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rcParams
from matplotlib.figure import Figure
from sklearn.base import clone

from papers.ho_tables import AS_PRINTED
from papers.recipe import (
    ALMA,
    ALMA_CONFERENCE,
    CRAMMA,
    HIGHER_ORDER,
    VOTED,
    Claim,
    Finding,
    Measured,
    Paper,
    Picture,
    Recipe,
    Record,
    Repeats,
    Work,
    work,
)
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    PNormPerceptron,
)
from sparsemargin.datasets import make_alma_target

N_ROWS, N_FEATURES, N_RELEVANT = 300, 40, 8
EPOCHS = 2
#: Of the largest weight: what rounding may make of so many corrections.
TOLERANCE = 1e-10


# -- the algorithms as printed --------------------------------------------------------------------


def alma(X, y, p, alpha, B, C):
    q = p / (p - 1)
    w, k = np.zeros(X.shape[1]), 1
    for x_t, y_t in zip(X, y, strict=True):
        x_hat = x_t / norm(x_t, p)
        gamma_k = B * np.sqrt(p - 1) / np.sqrt(k)
        if y_t * w @ x_hat <= (1 - alpha) * gamma_k:
            eta_k = C / (np.sqrt(p - 1) * np.sqrt(k))
            w = f(f(w, q) + eta_k * y_t * x_hat, p)
            w = w / max(1, norm(w, q))
            k = k + 1
    return w, k - 1


def voted_perceptron(X, y, epochs):
    v, c = [np.zeros(X.shape[1])], [0]
    for _ in range(epochs):
        for x_i, y_i in zip(X, y, strict=True):
            if y_i * v[-1] @ x_i > 0:
                c[-1] += 1
            else:
                v.append(v[-1] + y_i * x_i)
                c.append(1)
    return np.array(v), np.array(c)


def higher_order_perceptron(X, y, c):
    n = X.shape[1]
    B, v, w, k = np.eye(n), np.zeros(n), np.zeros(n), 1
    for x_t, y_t in zip(X, y, strict=True):
        x_t = x_t / norm(x_t, 2)
        if y_t * w @ x_t <= 0:
            rho_k = c / k
            v = v + y_t * x_t
            B = B @ (np.eye(n) - rho_k * np.outer(x_t, x_t))
            w = B.T @ B @ v
            k = k + 1
    return w, k - 1


def cramma(Y, beta_1, eta_eff, epsilon):
    Y = Y / max(norm(y_k, 2) for y_k in Y)
    u, t = Y[0] / norm(Y[0], 2), 1
    updated = True
    while updated:
        updated = False
        for y_k in Y:
            if u @ y_k <= beta_1 / t**epsilon:
                u = u + eta_eff * y_k
                u = u / norm(u, 2)
                t, updated = t + 1, True
    return u, t


def norm(v, p):
    return np.sum(np.abs(v) ** p) ** (1 / p)


def f(v, p):
    """Return the mapping f^-1; with q in the place of p, f."""
    length = norm(v, p)
    return np.sign(v) * np.abs(v) ** (p - 1) / length ** (p - 2) if length else v


# -- beside the library ---------------------------------------------------------------------------


def run_alma(p: int, seed: int) -> Record:
    """Compare ALMA_p(0.8; B, C) of Theorem 3 on one epoch."""
    X, y = _rows(seed)
    alpha, C = 0.8, np.sqrt(2)
    model = ALMAClassifier(
        p=p, alpha=alpha, C=C, hypothesis="last", max_iter=1, shuffle=False, fit_intercept=False
    ).fit(X, y)  # fmt: skip
    w, corrections = alma(X, y, p, alpha, np.sqrt(8) / alpha, C)
    return _compared(w, corrections, model.coef_[0], model.n_corrections_)


def run_voted(seed: int) -> Record:
    """Compare all vectors, and the votes on other rows."""
    X, y = _rows(seed)
    perceptron = PNormPerceptron(
        normalize=False, hypothesis="vote", max_iter=EPOCHS, shuffle=False, fit_intercept=False
    )  # fmt: skip
    model = clone(perceptron).fit(X, y)
    v, c = voted_perceptron(X, y, EPOCHS)
    others, _ = _rows(seed + 1000)
    votes = c @ np.sign(v @ others.T) / c.sum()
    last = perceptron.set_params(hypothesis="last")
    record = _compared(v[-1], len(v) - 1, last.fit(X, y).coef_[0], model.n_corrections_)
    votes_differ = np.abs(votes - model.decision_function(others)).max()
    return record | {"difference": float(np.maximum(record["difference"], votes_differ))}


def run_higher_order(c: float, seed: int) -> Record:
    """Compare HO_2(c) on one epoch."""
    X, y = _rows(seed)
    model = HigherOrderPerceptron(c=c, max_iter=1, shuffle=False, **AS_PRINTED).fit(X, y)
    w, corrections = higher_order_perceptron(X, y, c)
    return _compared(w, corrections, model.coef_[0], model.n_corrections_)


def run_cramma(epsilon: float, seed: int) -> Record:
    """Compare CRAMMA^epsilon, run to its end."""
    X, y = _rows(seed)
    beta_1, eta_eff = 0.5, 0.01
    model = CRAMMAClassifier(
        beta=beta_1, eta0=eta_eff, delta=0.0, epsilon=epsilon, max_iter=None,
        hypothesis="last", shuffle=False, fit_intercept=False,
    ).fit(X, y)  # fmt: skip
    u, t = cramma(y[:, None] * X, beta_1, eta_eff, epsilon)
    return _compared(u, t - 1, model.coef_[0], model.n_corrections_)


def _rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y, *_ = make_alma_target(
        N_ROWS, 1, n_features=N_FEATURES, n_relevant=N_RELEVANT, random_state=seed
    )
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X), y


def _compared(w: np.ndarray, corrections: int, coef: np.ndarray, n_corrections: Any) -> Record:
    difference = np.abs(w - coef).max() / np.abs(w).max()
    return {
        "printed": int(corrections),
        "library": int(n_corrections),
        "difference": float(difference),
    }


# -- the recipes ----------------------------------------------------------------------------------


class Algorithm(NamedTuple):
    """A Figure 1: the recipe's name, what it prints, its transcription, and the runs of it."""

    name: str
    paper: Paper
    title: str
    transcribed: tuple[Callable, ...]
    runs: dict[str, Work]


def _same(measured: Measured, runs: dict[str, Work]) -> Finding:
    found, holds = [], True
    for name, run in runs.items():
        records = measured[run]
        counts = [record["printed"] for record in records]
        # Unlike Python's, NumPy's maximum does not pass over NaN.
        worst = float(np.max([record["difference"] for record in records]))
        holds &= counts == [record["library"] for record in records] and worst <= TOLERANCE
        found.append(f"{name}: {min(counts)} to {max(counts)} corrections, differences {worst:.0e}")
    return Finding(holds, "; ".join(found))


def _listing(_: Measured, transcribed: tuple[Callable, ...]) -> Figure:
    """The lines of a transcription as a figure, in the theme's colours."""
    text = "\n\n".join(inspect.getsource(function).rstrip() for function in transcribed)
    figure = Figure(figsize=(7.5, 0.19 * (text.count("\n") + 2)))
    figure.text(
        0.02, 0.5, text, family="monospace", size=9, color=rcParams["text.color"],
        verticalalignment="center", parse_math=False,
    )  # fmt: skip
    return figure


def _parts(quick: bool, algorithm: Algorithm) -> tuple[Picture, ...]:
    works = tuple(algorithm.runs.values())
    claim = Claim(
        f"The library makes the same corrections, and its weights differ by at most {TOLERANCE:g} "
        "of the largest",
        works, partial(_same, runs=algorithm.runs),
    )  # fmt: skip
    draw = partial(_listing, transcribed=algorithm.transcribed)
    return (Picture("The algorithm as it is run here", (), draw, (claim,)),)


_OF_ALMA = {f"p = {p}": work(run_alma, p=p) for p in (2, 6, 10)}
_ALGORITHMS = (
    Algorithm("alma-figure1", ALMA, "ALMA_p", (alma, f, norm), _OF_ALMA),
    Algorithm("nips-figure1", ALMA_CONFERENCE, "ALMA_p", (alma, f, norm), _OF_ALMA),
    Algorithm(
        "voted-figure1", VOTED, "The voted Perceptron", (voted_perceptron,),
        {"vectors and votes": work(run_voted)},
    ),
    Algorithm(
        "ho-figure1", HIGHER_ORDER, "The Higher-order Perceptron, p = 2",
        (higher_order_perceptron, norm),
        {f"c = {c:g}": work(run_higher_order, c=c) for c in (0.0, 0.4, 0.8)},
    ),
    Algorithm(
        "cramma-figure1", CRAMMA, "CRAMMA^ε", (cramma, norm),
        {f"ε = {epsilon:g}": work(run_cramma, epsilon=epsilon) for epsilon in (0.5, 2.0)},
    ),
)  # fmt: skip

RECIPES = tuple(
    Recipe(
        each.name, each.paper, "Figure 1", each.title,
        f"{N_ROWS} rows of {N_FEATURES} features, {N_RELEVANT} of them relevant, separable, drawn "
        "anew for each repeat",
        "The algorithm, line by line over dense vectors, and the library on the same rows in the "
        "same order.",
        partial(_parts, algorithm=each), Repeats(quick=3, full=20),
    )
    for each in _ALGORITHMS
)  # fmt: skip
