"""Tables 1 and 2 of Brotto, Gentile & Vitale (2007), microarrays and topics of RCV1, and the claim
that HO_p(c) with c > 0 outperforms HO_p(0).

All as in section 4: the last hypothesis, training rows in the order the split draws, no intercept.
Two things to know when reading the tables:

- Each algorithm stands with the setting of c or a that is best on the test set; "best training and
  best test setting coincided" (Table 1). Which one it was is not printed.
- The text says that HO_p(c) with c > 0 outperforms HO_p(0) in all experiments; Table 1 prints the
  same test error of HO_7 and HO_7(0) on Lymphoma, where only the updates differ.

What is tested of the claim is c = 0.4, chosen beforehand, against c = 0 on the same splits.
Beside it stands the c > 0 that is best on the test sets, without a p-value: they have chosen it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.model_selection import ShuffleSplit

from papers.protocols import (
    Split,
    chosen_on_training_parts,
    compare_on_splits,
    wilcoxon_signed_rank,
)
from papers.recipe import (
    HIGHER_ORDER,
    STANDARD_ERRORS,
    Allowed,
    Cell,
    Claim,
    Finding,
    Line,
    Mean,
    Measured,
    Recipe,
    Record,
    Repeats,
    Table,
    Work,
    incomparable,
    smaller,
    work,
)
from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron
from sparsemargin.datasets import (
    load_breast_er,
    load_colon,
    load_leukemia,
    load_lymphoma,
    load_rcv1,
    make_ho_target,
)

# -- What is printed ------------------------------------------------------------------------------

#: What the paper's algorithms are in the library's parameters: the last hypothesis, through the
#: origin, with all mistakes in the matrix, and with no margin.
AS_PRINTED: dict[str, Any] = {
    "hypothesis": "last", "fit_intercept": False, "max_updates": None, "alpha": None,
}  # fmt: skip

#: The values of c that the paper tried; 0 is the p-norm Perceptron.
CS = (0.0, 0.2, 0.4, 0.6, 0.8)
POSITIVE_CS = CS[1:]
#: The paper's "generous range of values" is not printed.
AS = tuple(float(f"{a:.2g}") for a in np.logspace(-3, 2, 11))

#: Table 1, by data set and algorithm: updates over 5 epochs and test error in percent, means over
#: 1000 splits.
TABLE_1 = {
    "Breast": {
        "FO": ("45.2", "23.4"), "HO_2": ("21.7", "16.4"), "HO_4": ("24.5", "13.3"),
        "HO_7(0)": ("47.4", "15.7"), "HO_7": ("24.5", "12.0"), "HO_10": ("32.4", "13.5"),
        "SO": ("29.6", "15.0"),
    },
    "Lymphoma": {
        "FO": ("22.1", "11.8"), "HO_2": ("19.6", "10.0"), "HO_4": ("18.9", "10.0"),
        "HO_7(0)": ("23.0", "11.5"), "HO_7": ("20.0", "11.5"), "HO_10": ("23.1", "11.9"),
        "SO": ("19.3", "9.6"),
    },
}  # fmt: skip

#: The topics of section 4, Task 2, by the paper's numbers for them, in the order of Table 2. The
#: numbers are positions, from 0, in the paper's alphabetical list.
BROTTO_TOPICS = {70: "GCAT", 101: "MCAT", 4: "C15", 59: "ECAT"}

#: Table 2, likewise by topic: one epoch over 10,000 stories, 10,000 others to test.
TABLE_2 = {
    BROTTO_TOPICS[70]: {"FO": ("993", "7.20"), "HO_2": ("941", "6.83"), "SO": ("880", "6.95")},
    BROTTO_TOPICS[101]: {"FO": ("673", "6.39"), "HO_2": ("665", "5.81"), "SO": ("677", "5.48")},
    BROTTO_TOPICS[4]: {"FO": ("803", "6.14"), "HO_2": ("783", "5.94"), "SO": ("819", "6.05")},
    BROTTO_TOPICS[59]: {"FO": ("767", "6.45"), "HO_2": ("762", "6.04"), "SO": ("760", "6.84")},
}

TOPICS = tuple(BROTTO_TOPICS.values())

# -- Algorithms ----------------------------------------------------------------------------------

#: Estimators by the name of the setting.
Settings = dict[str, Any]


def higher_order(p: int, cs: Iterable[float], n_epochs: int) -> Settings:
    """Return HO_p(c) for each c."""
    run = {"max_iter": n_epochs, "shuffle": False, **AS_PRINTED}
    return {f"c={c:g}": HigherOrderPerceptron(p=p, c=c, **run) for c in cs}


def second_order(values: Iterable[float], n_epochs: int) -> Settings:
    """Return SO(a) for each a."""
    run = {"max_iter": n_epochs, "shuffle": False, **AS_PRINTED}
    return {f"a={a:g}": SecondOrderPerceptron(a=a, **run) for a in values}


def settings_of(algorithm: str, n_epochs: int) -> Settings:
    """Return the settings that a table chooses from, by the table's name of the algorithm.

    HO_p has c > 0 where it stands without a c; FO and HO_p(0) are those with c = 0.
    """
    if algorithm == "SO":
        return second_order(AS, n_epochs)
    if algorithm == "FO":
        return higher_order(2, [0.0], n_epochs)
    p = int(algorithm.removeprefix("HO_").removesuffix("(0)"))
    return higher_order(p, [0.0] if algorithm.endswith("(0)") else POSITIVE_CS, n_epochs)


# -- Data ----------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """A data set, and splits of it into training and test rows."""

    X: Any
    y: np.ndarray
    splits: list[Split]


#: How rows are loaded, and how many of them are to train and to test on. The paper has Lymphoma
#: and, of 58 rows split into 47 and 11, Breast; that of West, and the two sets that the paper has
#: not, are split in the proportions of these.
_MICROARRAYS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "Breast": (load_breast_er, 40, 9),
    "Lymphoma": (partial(load_lymphoma, "malignant_66"), 60, 36),
    "Colon": (load_colon, 39, 23),
    "Leukemia": (load_leukemia, 45, 27),
}
MICROARRAYS = tuple(_MICROARRAYS)
_ARTIFICIAL = {f"Artificial {noise}": noise for noise in (0.0, 0.1)}
ARTIFICIAL = tuple(_ARTIFICIAL)

SPLITS_A_REPEAT = 20  # of microarrays, which are small; of other data it is one
_N_STORIES = 10_000  # to train on, and to test on


def epochs_of(problem: str) -> int:
    """How many epochs the paper's algorithms learn a problem for."""
    return 1 if problem in TOPICS else 5


def rows_of(problem: str, repeat: int) -> Rows:
    """Load or draw the rows of a problem, with the splits of one repeat.

    All repeats' splits are parts of one list, drawn once, which all algorithms and, of RCV1, all
    topics share.
    """
    if problem in _ARTIFICIAL:
        return _draw(_ARTIFICIAL[problem], repeat)
    if problem in TOPICS:
        X, labels = _stories()
        return Rows(X, labels[problem], _part(len(labels[problem]), _N_STORIES, _N_STORIES, repeat))
    X, y = _load(problem)
    _, n_train, n_test = _MICROARRAYS[problem]
    return Rows(X, y, _part(len(y), n_train, n_test, repeat, SPLITS_A_REPEAT))


def _part(n_rows: int, n_train: int, n_test: int, repeat: int, length: int = 1) -> list[Split]:
    first = repeat * length
    splitter = ShuffleSplit(first + length, train_size=n_train, test_size=n_test, random_state=0)
    return list(splitter.split(np.empty(n_rows)))[first:]


@lru_cache
def _load(name: str) -> tuple[np.ndarray, np.ndarray]:
    load, *_ = _MICROARRAYS[name]
    return load(return_X_y=True)


@lru_cache
def _stories() -> tuple[Any, dict[str, np.ndarray]]:
    """The sample of RCV1, and its labels by topic."""
    X, topics = load_rcv1(TOPICS, source="sample", order="given", return_X_y=True)
    labels = np.where(csr_array(topics).toarray() == 1, 1, -1).T
    return X, dict(zip(TOPICS, labels, strict=True))


def _draw(noise: float, seed: int) -> Rows:
    X, y, X_test, y_test, _ = make_ho_target(noise=noise, random_state=seed)
    rows = np.arange(len(y) + len(y_test))
    split = rows[: len(y)], rows[len(y) :]
    return Rows(vstack([X, X_test], format="csr"), np.concatenate([y, y_test]), [split])


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
    settings = settings_of(algorithm, epochs_of(problem))
    found = compare_on_splits(settings, *rows)
    return {
        "updates": {name: own.mistakes.tolist() for name, own in found.items()},
        "errors": {name: (100 * own.test_errors).tolist() for name, own in found.items()},
        "chosen": chosen_on_training_parts(settings, *rows),
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


def _line(problem: str, algorithm: str, printed: tuple[str, str]) -> Line:
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
    printed: dict[str, dict[str, tuple[str, str]]],
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


_WORDS = {"errors": "errs less", "updates": "makes fewer updates"}


def _pair(problem: str, lower: str, upper: str, figure: str, why_not: str = "") -> Claim:
    values = partial(at_best, figure=figure)
    pair = Mean(_work(problem, lower), values), Mean(_work(problem, upper), values)
    return smaller(f"{lower} {_WORDS[figure]} than {upper}", [pair], why_not=why_not)


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


# -- The claim -----------------------------------------------------------------------------------

NORMS = (2, 4, 7)
TESTED_C = 0.4
LEVEL = 0.05


def run_cs(problem: str, p: int, seed: int) -> Record:
    """Run HO_p(c) for all c of the paper on the splits of a repeat.

    Returns
    -------
    dict
        ``updates`` and ``errors``, in percent: for each c of `CS` a list over the splits.
    """
    settings = higher_order(p, CS, epochs_of(problem))
    found = compare_on_splits(settings, *rows_of(problem, seed)).values()
    return {
        "updates": [own.mistakes.tolist() for own in found],
        "errors": [(100 * own.test_errors).tolist() for own in found],
    }


def _work_of_cs(problem: str, p: int) -> Work:
    return work(run_cs, problem=problem, p=p)


class Contrast(NamedTuple):
    """One figure at c = `TESTED_C` and at c = 0: means, their difference, and its p-value.

    `best_c` is the c > 0 of least mean, `best_difference` what it lies from c = 0.
    """

    without: float
    difference: float
    p_value: float
    best_c: float
    best_difference: float

    @property
    def verdict(self) -> str:
        """Whether c = `TESTED_C` is better, at `LEVEL`."""
        if not self.p_value < LEVEL:
            return "open"
        return "better" if self.difference < 0 else "worse"

    @property
    def words(self) -> str:
        """All of it, in a few words."""
        return (
            f"{self.without:.4g}, {self.difference:+.2f} ({self.verdict}, p-value "
            f"{self.p_value:.1g}; at best {self.best_difference:+.2f} by c = {self.best_c:g})"
        )


def compare_cs(records: list[Record], figure: str) -> Contrast:
    """Compare a figure over the splits of all repeats."""
    values = np.concatenate([record[figure] for record in records], axis=1)
    without, tested = values[CS.index(0.0)], values[CS.index(TESTED_C)]
    test = wilcoxon_signed_rank(tested, without)
    means = values.mean(axis=1)
    best = 1 + int(means[1:].argmin())
    return Contrast(
        float(means[0]), test.mean_difference, test.p_value, CS[best],
        float(means[best] - means[0]),
    )  # fmt: skip


def _examine(measured: Measured, problem: str, figure: str) -> Finding:
    """Whether c = `TESTED_C` is better for some p, and worse for none."""
    found = {p: compare_cs(measured[_work_of_cs(problem, p)], figure) for p in NORMS}
    verdicts = [contrast.verdict for contrast in found.values()]
    detail = "; ".join(f"p = {p}: {contrast.words}" for p, contrast in found.items())
    return Finding("better" in verdicts and "worse" not in verdicts, detail)


_NO_DIFFERENCE = "no difference in general: over random splits or draws some p gain, some lose"
_GAINS = {
    *((problem, "updates") for problem in MICROARRAYS),
    ("Breast", "errors"),
    ("Colon", "errors"),
    ("Leukemia", "errors"),
}


def _claims(problem: str) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            f"On {problem}, HO_p({TESTED_C:g}) {words} than HO_p(0)",
            tuple(_work_of_cs(problem, p) for p in NORMS),
            partial(_examine, problem=problem, figure=figure),
            "" if (problem, figure) in _GAINS else _NO_DIFFERENCE,
        )
        for figure, words in _WORDS.items()
    )


def _claim(quick: bool) -> tuple[Table, ...]:
    kinds = {"Microarrays": MICROARRAYS, "Topics of RCV1": TOPICS, "Artificial data": ARTIFICIAL}
    return tuple(
        Table(title, (), (), tuple(claim for problem in problems for claim in _claims(problem)))
        for title, problems in kinds.items()
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
    Recipe(
        "ho-claim", HIGHER_ORDER, "Section 4", "Whether c > 0 outperforms c = 0",
        "Microarrays (Breast by West's tumours, Lymphoma, and two that the paper has not, Colon "
        "and Leukemia), the topics of Table 2, the artificial data of Figure 2",
        f"Wilcoxon's signed-rank test of c = {TESTED_C:g}, chosen beforehand, against c = 0 on the "
        f"same splits or draws, for p = 2, 4 and 7; a repeat has {SPLITS_A_REPEAT} splits of "
        "microarrays, and one of other data.",
        _claim, Repeats(quick=5, full=30),
        needs=("breast_er", "lymphoma", "colon", "leukemia", "rcv1"),
        remarks=(
            "The paper says that c > 0 outperforms c = 0 in all experiments. It does not in "
            "general: where it is known not to, the statement says so.",
            "Splits share rows, so p-values are optimistic; they are not corrected for their "
            "number.",
        ),
    ),
)  # fmt: skip
