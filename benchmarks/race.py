"""One epoch, all contestants side by side, each speed beside its test error."""

from collections import defaultdict

import numpy as np
from contestants import CONTESTANTS, FLOOR
from corpora import Corpus
from measure import garbage_collection_off, in_turn, minimum_and_median, text_table, timed

NANOSECOND = 1e-9

COLUMNS = [
    ("", ""),
    ("ns/nnz min", ".2f"),
    ("median", ".2f"),
    ("x sklearn", ".2f"),
    ("x C loop", ".2f"),
    ("test error %", ".2f"),
]


def race(corpus: Corpus, n_rounds: int) -> list[dict]:
    """Time one epoch of every contestant on a corpus.

    Parameters
    ----------
    corpus : Corpus
    n_rounds : int
        The number of fits of each contestant; round r shuffles with seed r.

    Returns
    -------
    list of dict
        One entry per contestant: nanoseconds per nonzero (``min``, ``median``), the ratios of both
        to its scikit-learn baseline and to the C loop, and the mean test error.
    """
    seconds, errors = _run_rounds(corpus, n_rounds)
    nanoseconds = {
        name: minimum_and_median(values, corpus.X.nnz * NANOSECOND)
        for name, values in seconds.items()
    }
    return [
        {
            "shape": corpus.shape.name,
            "dtype": corpus.X.dtype.name,
            "contestant": contestant.name,
            "ns_per_nonzero": nanoseconds[contestant.name],
            "baseline": contestant.baseline,
            "times_baseline": _ratios(
                nanoseconds[contestant.name], nanoseconds[contestant.baseline]
            ),
            "times_floor": _ratios(nanoseconds[contestant.name], nanoseconds[FLOOR]),
            "test_error": float(np.mean(errors[contestant.name])),
        }
        for contestant in CONTESTANTS
    ]


def _ratios(own: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {statistic: own[statistic] / other[statistic] for statistic in own}


def _run_rounds(corpus: Corpus, n_rounds: int) -> tuple[dict, dict]:
    seconds, errors = defaultdict(list), defaultdict(list)
    with garbage_collection_off():
        for seed in range(n_rounds):
            for contestant in in_turn(CONTESTANTS, seed):
                elapsed, model = timed(contestant.prepare(corpus.X, corpus.y, seed))
                seconds[contestant.name].append(elapsed)
                wrong = model.predict(corpus.X_test) != corpus.y_test
                errors[contestant.name].append(np.mean(wrong))
    return seconds, errors


def show(corpus: Corpus, entries: list[dict], n_rounds: int) -> None:
    """Print the table of one race."""
    X = corpus.X
    print(
        f"\nOne epoch, {corpus.shape.name}, {X.dtype.name}: {X.shape[0]:,} x {X.shape[1]:,}, "
        f"{X.nnz / X.shape[0]:.0f} nonzeros a row, {n_rounds} rounds"
    )
    rows = [
        (
            entry["contestant"],
            entry["ns_per_nonzero"]["min"],
            entry["ns_per_nonzero"]["median"],
            entry["times_baseline"]["min"],
            entry["times_floor"]["min"],
            100 * entry["test_error"],
        )
        for entry in entries
    ]
    print(text_table(COLUMNS, rows))
