"""Doing what the recipes need and no record tells yet, on several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

from joblib import Parallel, delayed

from papers._recipe import Record, Work
from papers._records import Records
from sparsemargin.evaluation.protocols import ended_by_ctrl_c


class Progress(NamedTuple):
    """How far a run has come: how much of its work is done, and what was done last."""

    n_done: int
    n_pieces: int
    work: Work
    repeat: int
    seconds: float


def run_missing(
    pieces: Sequence[tuple[Work, int]],
    records: Records,
    n_jobs: int | None,
    report: Callable[[Progress], None],
) -> None:
    """Do the work that has no record, each piece once, and keep what it measures.

    Interrupted, it leaves the records of all that was finished.

    Parameters
    ----------
    pieces : sequence of (Work, int)
        Work and repeat.
    records : Records
    n_jobs : int or None
        Processes, as in scikit-learn.
    report : callable
        Told after each piece.
    """
    missing = [piece for piece in dict.fromkeys(pieces) if not records.has(*piece)]
    run = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
    for n_done, (at, record, seconds) in enumerate(
        run(delayed(_do)(at, *piece) for at, piece in enumerate(missing)), start=1
    ):
        work, repeat = missing[at]
        records.keep(work, repeat, record, seconds)
        report(Progress(n_done, len(missing), work, repeat, seconds))


def _do(at: int, work: Work, repeat: int) -> tuple[int, Record, float]:
    start = perf_counter()
    with ended_by_ctrl_c():
        record = work(repeat)
    return at, record, perf_counter() - start
