"""Tables 1 and 2 of Brotto, Gentile & Vitale (2007): microarrays, and topics of RCV1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial

import numpy as np

from papers._ho_paper import TABLE_1, TABLE_2, Printed
from papers._ho_problems import (
    SPLITS_A_REPEAT,
    epochs_of,
    rows_of,
    settings_of,
)
from papers._recipe import (
    STANDARD_ERRORS,
    Allowed,
    Cell,
    Claim,
    Finding,
    Line,
    Measured,
    Recipe,
    Record,
    Repeats,
    Table,
    Work,
    incomparable,
    work,
)
from papers.sources import HIGHER_ORDER
from sparsemargin.evaluation import select_setting

COLUMNS = ("updates", "error in %", "updates, chosen", "error in %, chosen")

# -- What is measured ----------------------------------------------------------------------------


def run_algorithm(problem: str, algorithm: str, seed: int) -> Record:
    """Run all settings of an algorithm on the splits of a repeat.

    Returns
    -------
    dict
        ``updates`` and ``errors``, in percent, by setting: one for each split. ``chosen``, for
        each split the setting of least error in 5-fold cross-validation on its training rows.
    """
    rows = rows_of(problem, seed)
    found = select_setting(settings_of(algorithm, epochs_of(problem)), *rows)
    return {
        "updates": {name: own.mistakes.tolist() for name, own in found.results.items()},
        "errors": {name: (100 * own.test_errors).tolist() for name, own in found.results.items()},
        "chosen": found.chosen,
    }


def _joined(records: list[Record], figure: str) -> dict[str, np.ndarray]:
    """A figure on the splits of all repeats, by setting."""
    return {
        name: np.concatenate([record[figure][name] for record in records])
        for name in records[0][figure]
    }


def best_setting(records: list[Record]) -> str:
    """Return the setting of least mean error on the test sets, as the paper prints it."""
    errors = _joined(records, "errors")
    return min(errors, key=lambda name: errors[name].mean())


def at_best(records: list[Record], figure: str) -> list[float]:
    """Return a figure at the best setting, for each split."""
    return _joined(records, figure)[best_setting(records)].tolist()


def _chosen(records: list[Record]) -> list[str]:
    return [name for record in records for name in record["chosen"]]


def cross_validated(records: list[Record], figure: str) -> list[float]:
    """Return a figure, for each split at the setting that cross-validation chose there."""
    of_setting = _joined(records, figure)
    return [float(of_setting[name][k]) for k, name in enumerate(_chosen(records))]


def _most_chosen(records: list[Record]) -> str:
    chosen = _chosen(records)
    ((name, times),) = Counter(chosen).most_common(1)
    return f"{name} on {times / len(chosen):.0%}"


# -- Tables --------------------------------------------------------------------------------------

_NOT_PRINTED = incomparable("the paper prints the setting that is best on the test sets")
_OTHER_TUMOURS = incomparable("West's 49 tumours stand in for Gruvberger's 58")
_OTHER_STORIES = incomparable("other stories of the corpus than the paper's")
_LYMPHOMA_ERROR = Allowed(
    3.5,
    why="the paper says neither which samples are positive nor what stands for missing values; "
    "between four readings of the labels a line's errors lie 4 to 7 points apart",
)
_LYMPHOMA_UPDATES = Allowed(
    relative=0.2,
    why="as errors: between the readings of the labels updates lie a quarter to a third apart",
)
_LYMPHOMA_LARGE_P = Allowed(
    relative=0.4,
    why="p = 7 and 10 make more updates than printed under every reading of the labels, as p = 7 "
    "does on the artificial data of Figure 2, and we do not know why; errors are as for other p",
)


def _allowed(problem: str, algorithm: str) -> tuple[Allowed, Allowed]:
    if problem == "Breast":
        return _OTHER_TUMOURS, _OTHER_TUMOURS
    if problem != "Lymphoma":
        return _OTHER_STORIES, _OTHER_STORIES
    large = algorithm in ("HO_7", "HO_10")
    return (_LYMPHOMA_LARGE_P if large else _LYMPHOMA_UPDATES), _LYMPHOMA_ERROR


def _work(problem: str, algorithm: str) -> Work:
    return work(run_algorithm, problem=problem, algorithm=algorithm)


def _line(problem: str, algorithm: str, printed: Printed) -> Line:
    piece, allowed = _work(problem, algorithm), _allowed(problem, algorithm)
    figures = tuple(zip(("updates", "errors"), printed, allowed, strict=True))
    is_chosen = len(settings_of(algorithm, 1)) > 1
    note = best_setting if is_chosen else None
    best = [
        Cell(text, piece, partial(at_best, figure=figure), own, note)
        for figure, text, own in figures
    ]
    if not is_chosen:
        return Line(algorithm, (*best, None, None))
    chosen = [
        Cell(text, piece, partial(cross_validated, figure=figure), _NOT_PRINTED, _most_chosen)
        for figure, text, _ in figures
    ]
    return Line(algorithm, (*best, *chosen))


def _tables(
    quick: bool,
    printed: dict[str, dict[str, Printed]],
    claims: Mapping[str, tuple[Claim, ...]],
) -> tuple[Table, ...]:
    return tuple(
        Table(
            problem, COLUMNS,
            tuple(_line(problem, algorithm, own) for algorithm, own in lines.items()),
            claims[problem],
        )
        for problem, lines in printed.items()
    )  # fmt: skip


# -- What the tables show ------------------------------------------------------------------------


def _mean(measured: Measured, problem: str, algorithm: str, figure: str) -> float:
    return float(np.mean(at_best(measured[_work(problem, algorithm)], figure)))


def _less(measured: Measured, problem: str, pair: tuple[str, str], figure: str) -> Finding:
    lower, upper = (_mean(measured, problem, algorithm, figure) for algorithm in pair)
    return Finding(lower < upper, f"{lower:.2f} and {upper:.2f}")


def _least(measured: Measured, problem: str, algorithm: str) -> Finding:
    """Whether an algorithm errs least, or so little more that the splits don't tell them apart."""
    errors = {
        each: np.array(at_best(measured[_work(problem, each)], "errors"))
        for each in TABLE_1[problem]
    }
    best = min(errors, key=lambda each: errors[each].mean())
    more = errors[algorithm] - errors[best]
    allowed = STANDARD_ERRORS * more.std(ddof=1) / np.sqrt(len(more))
    return Finding(
        bool(more.mean() <= allowed),
        f"{best} does, {errors[best].mean():.2f} %; {algorithm} {more.mean():+.2f}",
    )


_WORDS = {"updates": "makes fewer updates", "errors": "errs less"}


def _pair(problem: str, lower: str, upper: str, figure: str, why_not: str = "") -> Claim:
    return Claim(
        f"{lower} {_WORDS[figure]} than {upper}",
        (_work(problem, lower), _work(problem, upper)),
        partial(_less, problem=problem, pair=(lower, upper), figure=figure),
        why_not,
    )


def _best(problem: str, algorithm: str, why_not: str = "") -> Claim:
    works = tuple(_work(problem, each) for each in TABLE_1[problem])
    examine = partial(_least, problem=problem, algorithm=algorithm)
    return Claim(
        f"{algorithm} errs least, to within {STANDARD_ERRORS:g} standard errors", works, examine,
        why_not,
    )  # fmt: skip


_CLAIMS_1 = {
    "Breast": (
        _pair("Breast", "HO_2", "FO", "updates"),
        _pair("Breast", "HO_2", "FO", "errors"),
        _pair("Breast", "HO_7", "HO_7(0)", "updates"),
        _pair("Breast", "HO_7", "HO_7(0)", "errors"),
        _best("Breast", "HO_7", "with West's tumours smaller p err less, and SO least"),
    ),
    "Lymphoma": (
        _pair("Lymphoma", "HO_2", "FO", "updates"),
        _pair("Lymphoma", "HO_2", "FO", "errors"),
        _pair(
            "Lymphoma", "HO_7", "HO_7(0)", "updates",
            "over 1000 splits the two lie within 0.3 of each other; printed are 20.0 and 23.0",
        ),
        _best("Lymphoma", "SO"),
    ),
}  # fmt: skip

_ON_MCAT = "over 30 splits of the stories at hand the two lie within 0.1 points of each other"
_CLAIMS_2 = {
    topic: (
        _pair(topic, "HO_2", "FO", "errors", _ON_MCAT if topic == "MCAT" else ""),
        _pair(
            topic, "HO_2", "FO", "updates",
            "on the stories at hand the two make the same number but for some percent",
        ),
    )
    for topic in TABLE_2
}  # fmt: skip

_PROTOCOL = (
    "The last hypothesis, without an intercept, rows in the order drawn. Each algorithm stands "
    "with the c (0.2 to 0.8) or a (10^-3 to 10^2) that is best on the test sets; beside it with "
    "the one that 5-fold cross-validation chooses on each training part. "
)

RECIPES = (
    Recipe(
        "ho-table1", HIGHER_ORDER, "Table 1", "Higher-order Perceptrons on microarrays",
        "Breast: 49 tumours of 7129 probes (West 2001); Lymphoma: 96 samples of 4026 genes",
        _PROTOCOL + f"Five epochs; random splits, {SPLITS_A_REPEAT} in a repeat.",
        partial(_tables, printed=TABLE_1, claims=_CLAIMS_1), Repeats(quick=2, full=50),
        needs=("breast_er", "lymphoma"),
        remarks=(
            "No public copy of the paper's Breast data, 58 tumours of 3389 genes, was found.",
            "Of Lymphoma 66 samples are taken for malignant, and 0 for missing values. Taking 62, "
            "72, or the activated kind alone brings some lines nearer the paper's, none all.",
            "Standard errors take splits for independent, though they share rows.",
        ),
    ),
    Recipe(
        "ho-table2", HIGHER_ORDER, "Table 2", "Higher-order Perceptrons on topics of RCV1",
        "Random splits of a sample of 27,695 stories, 10,000 to train and 10,000 to test on",
        _PROTOCOL + "One epoch; a split in a repeat.",
        partial(_tables, printed=TABLE_2, claims=_CLAIMS_2), Repeats(quick=2, full=30),
        needs=("rcv1",),
        remarks=(
            "The paper's are the first 20,000 stories of the corpus, in their order, once; they "
            "are not at hand, so figures are not comparable: topics have other shares here.",
        ),
    ),
)  # fmt: skip
