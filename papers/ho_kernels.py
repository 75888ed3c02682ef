"""Table 3 of Brotto, Gentile & Vitale (2007): Higher-order Perceptrons with kernels on digits.

It has one epoch with kernels "with parameters chosen via 5-fold cross validation on the training
set across standard ranges", which are not printed; only the best on the test set are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from papers.ho_tables import AS, AS_PRINTED, POSITIVE_CS
from papers.kernels import Data, load
from papers.protocols import compare_on_splits
from papers.recipe import (
    HIGHER_ORDER,
    Allowed,
    Cell,
    Claim,
    Finding,
    Line,
    Mean,
    Recipe,
    Record,
    Repeats,
    Table,
    Work,
    compared,
    entry,
    incomparable,
    smaller,
    work,
)
from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron
from sparsemargin.kernels import RBF, Polynomial


class Printed(NamedTuple):
    """Corrections in training, of all ten digits, and the error on the test set in percent.

    `matrix_updates` are those of the sparse version that changed the matrix; None: not printed.
    """

    updates: str
    error: str
    matrix_updates: str | None = None


#: By data set and kernel, and by algorithm.
TABLE_3 = {
    ("usps", "gauss"): {
        "FO": Printed("1385", "6.53"), "HO_2": Printed("945", "4.76"),
        "sparse HO_2": Printed("965", "5.13", "440"), "SO": Printed("1003", "5.05"),
    },
    ("usps", "poly"): {
        "FO": Printed("1609", "7.37"), "HO_2": Printed("1090", "5.71"),
        "sparse HO_2": Printed("1081", "5.52", "551"), "SO": Printed("1054", "5.53"),
    },
    ("mnist", "gauss"): {
        "FO": Printed("5834", "2.10"), "HO_2": Printed("5351", "1.79"),
        "sparse HO_2": Printed("5363", "1.81", "2596"), "SO": Printed("5684", "1.82"),
    },
    ("mnist", "poly"): {
        "FO": Printed("8148", "3.04"), "HO_2": Printed("6404", "2.27"),
        "sparse HO_2": Printed("6476", "2.28", "3311"), "SO": Printed("6440", "2.03"),
    },
}  # fmt: skip

#: In units in which a white pixel differs from a black one by 1.
SIGMAS = (2.0, 2.5, 3.0, 4.0, 5.0)
#: Of (1 + x.z / s)^d.
DEGREES = (2, 3, 4, 5, 6)
#: By how much the data's values range: -1 to 1, and 0 to 255.
RANGES = {"usps": 2, "mnist": 255}
#: s: 255 is the ALMA paper's; 256 pixels of at most 1 keep x.z / s from exceeding 1.
SCALES = {"usps": 256, "mnist": 255}

_CV_ROWS = 10_000
_WHICH = {"best": "best on the test set", "chosen": "cross-validated"}

Setting = tuple[float, float]  # sigma or degree, and c or a


def _kernel(data: str, kernel: str, parameter: float) -> RBF | Polynomial:
    if kernel == "gauss":
        return RBF(1 / (2 * (parameter * RANGES[data]) ** 2))
    return Polynomial(int(parameter), gamma=1 / SCALES[data], coef0=1.0)


def settings(algorithm: str, kernel: str) -> list[Setting]:
    """Return what cross-validation chooses from."""
    values = {"FO": (0.0,), "SO": AS}.get(algorithm, POSITIVE_CS)
    parameters = SIGMAS if kernel == "gauss" else DEGREES
    return [(parameter, value) for parameter in parameters for value in values]


def estimator(data: str, kernel: str, algorithm: str, setting: Setting) -> Any:
    """Return an algorithm of the table: one epoch, rows as they come, the last hypothesis."""
    parameter, value = setting
    common: dict[str, Any] = {"max_iter": 1, "shuffle": False, **AS_PRINTED}
    common |= {"kernel": _kernel(data, kernel, parameter)}
    if algorithm == "SO":
        return SecondOrderPerceptron(a=value, **common)
    sparse = algorithm.startswith("sparse")
    return HigherOrderPerceptron(c=value, sparse_updates=sparse, **common)


# -- What is measured ----------------------------------------------------------------------------


def _permuted(data: Data, seed: int) -> Data:
    order = np.random.default_rng(seed).permutation(len(data.y))
    return data._replace(X=data.X[order], y=data.y[order])


def _choose(candidates: dict[Setting, Any], data: Data) -> Setting:
    """The setting of least mean error in 5-fold cross-validation on the first rows."""
    by_name = {str(setting): model for setting, model in candidates.items()}
    results = compare_on_splits(by_name, data.X[:_CV_ROWS], data.y[:_CV_ROWS], 5)
    return min(candidates, key=lambda setting: results[str(setting)].test_errors.mean())


def _learn(model: Any, data: Data) -> Record:
    """Fit on all rows; return updates, matrix updates, and the test error in percent."""
    model.fit(data.X, data.y)
    return {
        "updates": int(np.sum(model.n_corrections_)),
        "matrix_updates": int(np.sum(model.n_updates_)),
        "error": 100 * float(np.mean(model.predict(data.X_test) != data.y_test)),
    }


def run_line(data: str, kernel: str, algorithm: str, seed: int) -> Record:
    """Choose a kernel's parameter and c or a; learn with that kernel and every c or a.

    Returns
    -------
    dict
        Setting, updates, matrix updates and error, of the setting ``chosen`` by cross-validation
        and of the ``best`` on the test set.
    """
    rows = _permuted(load(data), seed)
    candidates = {
        setting: estimator(data, kernel, algorithm, setting)
        for setting in settings(algorithm, kernel)
    }
    parameter, value = _choose(candidates, rows)
    learned = [
        {"setting": list(setting)} | _learn(model, rows)
        for setting, model in candidates.items()
        if setting[0] == parameter
    ]
    (chosen,) = (own for own in learned if own["setting"] == [parameter, value])
    return {"chosen": chosen, "best": min(learned, key=lambda own: own["error"])}


def _work(kind: tuple[str, str], algorithm: str) -> Work:
    data, kernel = kind
    return work(run_line, data=data, kernel=kernel, algorithm=algorithm)


# -- The table -----------------------------------------------------------------------------------

_COLUMNS = tuple(
    f"{figure}, {which}"
    for which in _WHICH.values()
    for figure in ("updates", "error in %", "matrix updates")
)
_OURS = "the kernels' parameters are not printed; they are chosen here from a range of our own"
_ALLOWED = {
    ("usps", "updates"): Allowed(relative=0.35, why=_OURS),
    ("usps", "error"): Allowed(
        2.0, why=f"{_OURS}, and the digits at hand seem to differ from those of earlier papers"
    ),
    ("mnist", "updates"): Allowed(relative=0.3, why=_OURS),
    ("mnist", "error"): Allowed(0.7, why=_OURS),
}
_SPARSE_LOSES = (
    f"{_OURS}; with the degree so chosen there are 1.4 times the printed updates, and 2 points "
    "more errors"
)
_EXCEPTIONS = {
    ("mnist", "poly", "FO", "error"): Allowed(
        1.2,
        why="rows divided by their lengths, as the algorithm says, err 2.0 %; rows as they are "
        "make the paper's number of updates, nearly",
    ),
    ("usps", "poly", "sparse HO_2", "updates"): Allowed(relative=0.5, why=_SPARSE_LOSES),
    ("usps", "poly", "sparse HO_2", "error"): Allowed(2.5, why=_SPARSE_LOSES),
}
_MATRIX = incomparable("hangs on c, which is not printed: from 0.2 to 0.8 it grows several times")


def _note(records: list[Record], which: str) -> str:
    found = dict.fromkeys("{:g}, {:g}".format(*record[which]["setting"]) for record in records)
    return "; ".join(found)


def _cells(
    kind: tuple[str, str], algorithm: str, piece: Work | None, which: str
) -> Iterator[Cell | None]:
    printed = TABLE_3[kind][algorithm]
    for figure, text in (("updates", printed.updates), ("error", printed.error)):
        allowed = _EXCEPTIONS.get((*kind, algorithm, figure), _ALLOWED[kind[0], figure])
        yield Cell(text, piece, entry(which, figure), allowed, partial(_note, which=which))
    if printed.matrix_updates is None:
        yield None
    else:
        yield Cell(printed.matrix_updates, piece, entry(which, "matrix_updates"), _MATRIX)


def _is_run(kind: tuple[str, str], quick: bool) -> bool:
    return not quick or kind[0] == "usps"


def _line(kind: tuple[str, str], algorithm: str, quick: bool) -> Line:
    piece = _work(kind, algorithm) if _is_run(kind, quick) else None
    cells = (cell for which in _WHICH for cell in _cells(kind, algorithm, piece, which))
    return Line(algorithm, tuple(cells))


def table_3(quick: bool) -> tuple[Table, ...]:
    """Return the four quarters of the table."""
    return tuple(
        Table(
            f"{kind[0].upper()}, {_KERNELS[kind[1]]}", _COLUMNS,
            tuple(_line(kind, algorithm, quick) for algorithm in printed),
            tuple(_claims(kind)) if _is_run(kind, quick) else (),
        )
        for kind, printed in TABLE_3.items()
    )  # fmt: skip


_KERNELS = {"gauss": "Gaussian kernel", "poly": "polynomial kernel"}

# -- What it shows -------------------------------------------------------------------------------


def _claims(kind: tuple[str, str]) -> Iterator[Claim]:
    for lower in ("HO_2", "SO"):
        for figure, words in (("updates", "makes fewer updates"), ("error", "errs less")):
            pair = _best(kind, lower, figure), _best(kind, "FO", figure)
            why_not = _WHY_NOT.get((*kind, lower, figure), "")
            yield smaller(f"{lower} {words} than FO", [pair], why_not=why_not)
    updates, matrix = (
        _best(kind, "sparse HO_2", figure) for figure in ("updates", "matrix_updates")
    )
    yield compared(
        "The sparse version changes its matrix at about half of its updates, or fewer",
        [(matrix, updates)], _half,
    )  # fmt: skip


def _best(kind: tuple[str, str], algorithm: str, figure: str) -> Mean:
    return Mean(_work(kind, algorithm), entry("best", figure))


def _half(means: list[tuple[float, float]]) -> Finding:
    ((matrix, updates),) = means
    return Finding(matrix < 0.6 * updates, f"{matrix:,.0f} of {updates:,.0f}")


_WHY_NOT = {
    ("usps", "gauss", "HO_2", "updates"): "by a percent more with the kernels chosen here",
}

RECIPES = (
    Recipe(
        "ho-table3", HIGHER_ORDER, "Table 3", "Higher-order Perceptrons with kernels on digits",
        "USPS, 7,291 digits to train and 2,007 to test on; MNIST, 60,000 and 10,000",
        "One epoch, ten classes one against the rest, the last hypothesis; a repeat permutes the "
        f"training rows. 5-fold cross-validation on the first {_CV_ROWS:,} of them chooses the "
        "kernel's parameter and c or a together; with that kernel every c or a learns all rows. "
        f"Gaussians of width {SIGMAS[0]:g} to {SIGMAS[-1]:g} (a white pixel differs from a black "
        f"one by 1), polynomials of degree {DEGREES[0]} to {DEGREES[-1]}.",
        table_3, Repeats(quick=1, full=3),
        needs=("usps", "mnist"),
        remarks=(
            "The paper chooses its kernels by cross-validation too, and prints neither the range "
            "nor the choice.",
            "A quick run leaves MNIST out.",
        ),
    ),
)  # fmt: skip
