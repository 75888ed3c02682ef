"""Choice between AROW with and without a Naive Bayes prior by held-out training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np

from sparsemargin._engine.rows.csr import BadRow
from sparsemargin._engine.rows.parts import part_of
from sparsemargin.models.fitted.outputs import codes_of, outputs_of
from sparsemargin.models.inputs.rows import Rows
from sparsemargin.models.inputs.training_set import Beginning
from sparsemargin.models.learner import Learner

# Number of training rows of the first comparison, and the factor by which it grows from one
# comparison to the next. Each comparison predicts the rows that the next one adds for training.
_FIRST, _GROWTH = 1000, 2.25

#: Minimum number of rows for a comparison. With fewer rows, a prior does not have a lower error.
LEAST_ROWS = 2000

# Lead, in standard errors of the difference, that the prior needs to be used. It is lower than
# for other algorithms, because the prior has a lower error on most texts. It was chosen on short
# messages, questions of 6 kinds and film reviews.
_LEAD = 0.75


def prior_pays(
    learner_of: Callable[[bool], Learner], rows: Rows, codes: np.ndarray,
    weights: np.ndarray | None, share: np.ndarray, first: Beginning, n_epochs: int,
) -> bool:  # fmt: skip
    """Return whether the error on held-out rows is lower with a prior.

    `learner_of` returns an untrained AROW without (False) or with a prior (True). The rows are
    checked and in random order. `share` has the weight of the error of each row, and `first` the
    data that models are initialized with. Both models are trained for `n_epochs` epochs, because a
    prior can have a lower error after one epoch and a higher one after two.
    """
    total = squares = 0.0
    for n_before, n_rows in _stages(rows.n_rows):
        wrong = []
        for prior in False, True:
            learner = learner_of(prior)
            try:
                _train(learner, part_of(rows, 0, n_before), codes, weights, first, n_epochs)
            except BadRow:
                return False
            held_out = part_of(rows, n_before, n_rows)
            found = codes_of(learner.fitted, outputs_of(learner.fitted, held_out, 1))
            wrong.append(found != codes[n_before:n_rows])
        fewer = share[n_before:n_rows] * (wrong[0].astype(float) - wrong[1])
        total, squares = total + float(fewer.sum()), squares + float(fewer @ fewer)
    return total > _LEAD * sqrt(squares)


def _stages(n_rows: int) -> list[tuple[int, int]]:
    """Return the ends of the training rows and of the held-out rows for each comparison."""
    ends = [_FIRST] if n_rows >= LEAST_ROWS else []
    while ends and _GROWTH * ends[-1] < n_rows:
        ends.append(int(_GROWTH * ends[-1]))
    return list(zip(ends, [*ends[1:], n_rows], strict=True)) if ends else []


def _train(
    learner: Learner, rows: Rows, codes: np.ndarray, weights: np.ndarray | None,
    first: Beginning, n_epochs: int,
) -> None:  # fmt: skip
    """Train a new model on the rows, in another random order in each epoch."""
    n_rows, random = rows.n_rows, np.random.RandomState(0)
    codes, weights = codes[:n_rows], None if weights is None else weights[:n_rows]
    prior = learner.prior_of(rows, codes, first.classes, None)
    learner.open_stream(replace(first, rows=rows, prior=prior), slice_seed=0)
    task = learner.make_task(rows, codes, weights, progress=None)
    for _ in range(n_epochs):
        learner.learn_stream(task, random.permutation(n_rows))
