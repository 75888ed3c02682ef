"""Fits of all contestants side by side, each speed beside its test error."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from contestants import FLOOR, Contestant
from corpora import Corpus
from measure import garbage_collection_off, in_turn, minimum_and_median, text_table, timed

NANOSECOND = 1e-9

SORTED = "sorted"

COLUMNS = [
    ("", ""),
    ("rows", ""),
    ("ms min", ".1f"),
    ("ns/nnz min", ".2f"),
    ("median", ".2f"),
    ("x baseline", ".2f"),
    ("x sorted", ""),
    ("x C loop", ""),
    ("test error %", ".2f"),
]


def race(
    corpora: Mapping[str, Corpus], contestants: Sequence[Contestant], n_rounds: int
) -> list[dict]:
    """Time the fits of every contestant on every corpus, all in turn.

    Parameters
    ----------
    corpora : dict of str to Corpus
        The same rows by the order of their entries, such as ``"sorted"``.
    contestants : sequence of Contestant
    n_rounds : int
        The number of fits of each contestant; round r shuffles with seed r.

    Returns
    -------
    list of dict
        One entry per corpus and contestant: nanoseconds per nonzero (``min``, ``median``), the
        ratios of both to its baseline on these rows, to itself on sorted ones and to the C loop,
        None where that did not run, and the mean test error.
    """
    seconds, errors = _run_rounds(corpora, contestants, n_rounds)
    nanoseconds = {
        (rows, name): minimum_and_median(values, corpora[rows].X.nnz * NANOSECOND)
        for (rows, name), values in seconds.items()
    }
    return [
        {
            "shape": corpus.shape.name,
            "dtype": corpus.X.dtype.name,
            "rows": rows,
            "n_samples": corpus.X.shape[0],
            "n_features": corpus.X.shape[1],
            "contestant": contestant.name,
            "seconds": min(seconds[rows, contestant.name]),
            "ns_per_nonzero": (own := nanoseconds[rows, contestant.name]),
            "baseline": contestant.baseline,
            "times_baseline": _ratios(own, nanoseconds[rows, contestant.baseline]),
            "times_sorted": _ratios(own, nanoseconds.get((SORTED, contestant.name))),
            "times_floor": _ratios(own, nanoseconds.get((rows, FLOOR))),
            "test_error": float(np.mean(errors[rows, contestant.name])),
        }
        for (rows, corpus), contestant in product(corpora.items(), contestants)
    ]


def _ratios(own: dict[str, float], other: dict[str, float] | None) -> dict[str, float] | None:
    return other and {statistic: own[statistic] / other[statistic] for statistic in own}


def _run_rounds(
    corpora: Mapping[str, Corpus], contestants: Sequence[Contestant], n_rounds: int
) -> tuple[dict, dict]:
    seconds, errors = defaultdict(list), defaultdict(list)
    with garbage_collection_off():
        for seed in range(n_rounds):
            for rows, contestant in in_turn(list(product(corpora, contestants)), seed):
                corpus = corpora[rows]
                elapsed, model = timed(contestant.prepare(corpus.X, corpus.y, seed))
                seconds[rows, contestant.name].append(elapsed)
                wrong = model.predict(corpus.X_test) != corpus.y_test
                errors[rows, contestant.name].append(np.mean(wrong))
    return seconds, errors


def show(corpus: Corpus, entries: list[dict], n_rounds: int) -> None:
    """Print the table of one race."""
    X = corpus.X
    print(
        f"\n{corpus.shape.name}, {X.dtype.name}: {X.shape[0]:,} x {X.shape[1]:,}, "
        f"{X.nnz / X.shape[0]:.0f} nonzeros a row, {n_rounds} rounds"
    )
    rows = [
        (
            entry["contestant"],
            entry["rows"],
            1000 * entry["seconds"],
            entry["ns_per_nonzero"]["min"],
            entry["ns_per_nonzero"]["median"],
            entry["times_baseline"]["min"],
            _told(entry["times_sorted"]),
            _told(entry["times_floor"]),
            100 * entry["test_error"],
        )
        for entry in entries
    ]
    print(text_table(COLUMNS, rows))


def _told(ratios: dict[str, float] | None) -> str:
    return "" if ratios is None else f"{ratios['min']:.2f}"
