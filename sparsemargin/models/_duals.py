"""What learners with a matrix do with the pool of rows they learn in, in dual variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.hypotheses.matrix import SupportPoints, random_outputs, votes
from sparsemargin._engine.kernel.functions import Kernel, PrecomputedKernel
from sparsemargin._engine.kernel.outputs import hypothesis_outputs
from sparsemargin._engine.matrix.spaces import MATRIX_MEMORY, DualSpaces
from sparsemargin.models._replays import draw


def open_space(learner: Any, kernel: Kernel, n_features: int) -> DualSpaces:
    """An empty one, for the learner's parameters."""
    n_labels = learner._n_labels()
    settings = {
        "averaged": learner.hypothesis == "average",
        "normalized": bool(learner.normalize_hypotheses),
        "logged": learner.hypothesis in ("vote", "random"),
        "most_updates": learner.max_updates,
        "room": MATRIX_MEMORY // n_labels,
    }
    return DualSpaces(kernel, n_features, lambda: learner._make_dual(**settings), n_labels)


def recall_rows(learner: Any, space: DualSpaces, task: Task) -> None:
    """Let rows that the last fit learned from be those of the pool.

    Raises
    ------
    ValueError
        If a precomputed kernel is to go on with others.
    """
    earlier = getattr(learner, "_learned", None)
    learner._learned = None
    if learner.warm_start:
        import joblib

        rows = task.rows
        learner._learned = joblib.hash((rows.data, rows.indices, rows.indptr)), None
        if earlier is not None and earlier[0] == learner._learned[0]:
            task.row_state = earlier[1]
    if isinstance(space.kernel, PrecomputedKernel):
        if space.trials and task.row_state is None:
            raise ValueError(
                "warm_start with kernel='precomputed' goes on with the very X of the last fit; "
                "this is another. Pass warm_start=False."
            )
        space.kernel.check(task.rows)


def keep_rows(learner: Any, task: Task) -> None:
    """Remember, under warm_start, which rows of the pool these have become."""
    if learner._learned is not None:
        learner._learned = learner._learned[0], task.row_state


def outputs(learner: Any, space: DualSpaces, rows: Any) -> np.ndarray:
    """Outputs of checked rows by the learner's hypothesis, shape (n_rows, n_labels)."""
    hypothesis = learner._structure["hypothesis"]
    if hypothesis in ("vote", "random"):
        points = SupportPoints(space, rows, learner._n_threads())
        if hypothesis == "vote":
            return votes(points)
        return random_outputs(points, draw(learner, learner._points(rows)[0], space.trials))
    return hypothesis_outputs(space, rows, learner._n_threads())
