"""What first-order learners with a kernel do with the pool of rows they learn in."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.hypotheses.log import CorrectionLog
from sparsemargin._engine.kernel.functions import Kernel, PrecomputedKernel
from sparsemargin._engine.kernel.loop import BLOCK, SupportFull
from sparsemargin._engine.kernel.space import KernelSpace
from sparsemargin.models._kernels import refuse_precomputed


def open_space(learner: Any, kernel: Kernel, n_features: int) -> KernelSpace:
    """An empty one, for the learner's parameters."""
    return KernelSpace(
        kernel, n_features, learner._n_labels(), bias=kernel.bias,
        slack=float(learner.soft_margin), averaged=learner.hypothesis == "average",
        normalized=learner.normalize_hypotheses,
        log=CorrectionLog() if learner.hypothesis in ("vote", "random") else None,
        max_support=learner.max_support,
    )  # fmt: skip


def largest_length(
    kernel: Kernel, rows: Any, weights: np.ndarray | None, soft_margin: float
) -> float:
    """The largest length of the rows in feature space, those of weight 0 left out."""
    which = np.arange(len(rows.indptr) - 1)
    which = which if weights is None else which[weights > 0]
    largest = 0.0
    for start in range(0, len(which), BLOCK):
        lengths = kernel.points(rows, which[start : start + BLOCK]).lengths
        largest = max(largest, float(lengths.max()))
    return float(np.hypot(largest, soft_margin))


def refuse_full(learner: Any, done: str) -> NoReturn:
    """Say that after what was done a row found no room in the pool, and what helps."""
    raise ValueError(
        f"After {done} another row would have to join the pool, which holds "
        f"max_support={learner.max_support} rows by now. Raise max_support, or pass "
        "when_full='skip' to learn on with the rows it has."
    ) from None


def warn_of_full(learner: Any, space: KernelSpace) -> None:
    """Say what the bound on the pool has cost, if anything."""
    missed, made = int(space.passed_over.sum()), int(space.per_label("corrections").sum())
    if missed:
        share = missed / max(1, space.trials_per_label.sum())
        warnings.warn(
            f"The pool was full at max_support={learner.max_support} rows: {missed} trials "
            f"({100 * share:.2g} % of all) that would have corrected were passed over; {made} "
            "corrections were made. n_passed_over_ has them label by label.",
            stacklevel=6,
        )


def _places(space: KernelSpace, first_row: int, n_rows: int) -> np.ndarray:
    """Where in the pool the rows of these numbers are, -1 for those that are not."""
    places = np.full(n_rows, -1, dtype=np.int64)
    rows = space.origin - first_row
    which = np.flatnonzero((rows >= 0) & (rows < n_rows))
    places[rows[which]] = which
    return places


def number(space: KernelSpace, task: Task) -> None:
    """Number the rows of a fit: on from those taken before, but for the very rows of the last."""
    known = 0 if task.row_state is None else len(task.codes)
    task.first_row = space.rows_taken - known


def number_on(space: KernelSpace, task: Task) -> None:
    """Number the next rows on from the task's."""
    first_row = space.rows_taken if task.first_row is None else task.first_row
    space.count_rows(max(0, first_row + len(task.codes) - space.rows_taken))


def learn_stream(
    learner: Any, space: KernelSpace, task: Task, take: Callable[[], int | None]
) -> int | None:
    """Take the task's rows, as `take` does, and number those of the next one on from them."""
    if isinstance(space.kernel, PrecomputedKernel):
        refuse_precomputed()
    was_full, n_rows = space.passed_over.any(), len(task.codes)
    if task.first_row is not None:
        task.row_state = _places(space, task.first_row, n_rows), None
    try:
        mistakes = take()
    except SupportFull:
        refuse_full(learner, f"{space.trials:,} trials")
    finally:
        number_on(space, task)
    if space.passed_over.any() and not was_full:
        warnings.warn(
            f"The pool holds max_support={learner.max_support} rows, and takes no more: trials "
            "that would have corrected with another row are passed over. n_passed_over_ counts "
            "them.",
            stacklevel=7,
        )
    return mistakes
