"""Outputs for rows that are held out of models like the one that was fitted.

A model that makes several epochs has learned every row by the end of the first one, so that no
output of it tells how good it is on new rows. Models with the same settings that learn a part of
the rows give such outputs for the rest, as in `sklearn.calibration.CalibratedClassifierCV`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemargin._engine.fitting.progressive import count_places
from sparsemargin._engine.fitting.task import Positives, Task
from sparsemargin._engine.rows.columns import Chosen
from sparsemargin._engine.rows.csr import BadRow
from sparsemargin._engine.rows.parts import gathered, rows_at
from sparsemargin.models.fitted.state import Beginning
from sparsemargin.models.inputs.rows import check_rows

if TYPE_CHECKING:
    from sparsemargin.models.learner import Learner

#: In a fit to fewer rows, outputs kept in the first epoch would be too few.
FEW_ROWS = 500

# Each of the models leaves out one of so many parts of the rows.
_FOLDS = 3

# Rows held out that are enough: of 6,000 rows or more, only one model is fitted.
_ENOUGH = 2000

#: Outputs, whether each row has each label, and what multiplies the steps of the rows.
HeldOut = tuple[np.ndarray, np.ndarray, np.ndarray]


def held_out_outputs(
    learner: Learner, task: Task, first: Beginning, seed: int | None, groups: Any = None
) -> HeldOut | None:
    """Return outputs for rows of a task that a learner has learned, each of a model like it that
    has not learned the row; None where there are too few rows.

    The models are fitted one after the other, over the columns of their rows alone, in no more
    epochs than the learner, and to at most `learner._most_rows_held_out` rows. A fit takes up to
    three times as long by it, and 1.7 times from 6,000 rows on.

    Parameters
    ----------
    learner : Learner
        Its outputs have to be on the scale of those returned: these are multiplied by the ratio of
        the outputs for rows that both have learned.
    first : Beginning
        What the learner began with.
    seed : int or None
        Of the shuffling.
    groups : ndarray of shape (n_rows,), default=None
        Groups of rows that are held out together.
    """
    n_labels, weights = learner.space.n_labels, task.weights
    trials = np.arange(len(task.codes)) if weights is None else np.flatnonzero(weights)
    random = np.random.RandomState(0)  # of its own: it must not change the model
    # As many outputs are kept; those of all rows would not fit the memory where labels are many.
    n_places = count_places(n_labels, averaged=False)
    if len(trials) > learner._most_rows_held_out:
        trials = np.sort(random.choice(trials, learner._most_rows_held_out, replace=False))
    groups = None if groups is None else groups[trials]
    drawn = _narrowed(task if len(trials) == len(task.codes) else _part(task, trials))
    outputs, held = list[np.ndarray](), list[np.ndarray]()
    for left, rest in _folds(drawn, random, groups):
        like = _like(learner, task, _part(drawn, left), first, seed)
        if like is None:
            return None
        rest = random.permutation(rest)[:n_places]
        n_compared = min(len(left), len(rest), _ENOUGH)
        learned = left[np.linspace(0, len(left) - 1, n_compared).astype(np.intp)]
        size = _mean_size(_outputs(learner, task, trials[learned]))
        ratio = _ratio(size, _mean_size(_outputs(like, drawn, learned)))
        outputs.append(_outputs(like, drawn, rest) * ratio)
        held.append(rest)
        del like  # The weights of two such models never take memory at the same time.
        if groups is None and sum(map(len, held)) >= min(_ENOUGH, n_places):
            break
    if not held:
        return None
    # In random order, for as many as there are places to be drawn from all of them.
    order = random.permutation(sum(map(len, held)))
    which = np.concatenate(held)[order]
    targets = _part(drawn, which, with_rows=False)
    positive = targets.is_positive(slice(0, len(which)), n_labels)
    steps = np.ones(len(which)) if drawn.weights is None else drawn.weights[which]
    return np.concatenate(outputs)[order], positive, steps


def _folds(
    task: Task, random: np.random.RandomState, groups: Any
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows that a model learns and those that are held out, both in their order: as many
    of each class in every fold, or whole groups."""
    n_rows = len(task.codes)
    if groups is not None:
        names, of_rows = np.unique(groups, return_inverse=True)
        sizes = np.argsort(-np.bincount(of_rows), kind="stable")
        fold_of = np.empty(len(names), np.intp)
        fold_of[sizes] = np.arange(len(names)) % _FOLDS
        folds = fold_of[of_rows]
    else:
        mixed = random.permutation(n_rows)
        if task.positives is None:
            mixed = mixed[np.argsort(task.codes[mixed], kind="stable")]
        folds = np.empty(n_rows, np.intp)
        folds[mixed] = np.arange(n_rows) % _FOLDS
    for fold in range(_FOLDS):
        left, rest = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(left) and len(rest):
            yield left, rest


def _part(task: Task, which: np.ndarray, *, with_rows: bool = True) -> Task:
    """Return a task of some of the rows, or of their targets alone."""
    positives = task.positives
    if positives is not None:
        starts, at = gathered(positives.starts, which)
        positives = Positives(starts, positives.labels[at])
    weights = None if task.weights is None else task.weights[which]
    return replace(
        task, rows=rows_at(task.rows, which) if with_rows else None, codes=task.codes[which],
        weights=weights, positives=positives, row_state=None, kept=None, check=False,
    )  # fmt: skip


def _narrowed(task: Task) -> Task:
    """Return the task with checked rows, over the columns that occur in them if there are more
    columns than entries. A model that learns the rows has no weights for the other columns, of
    which there may be millions."""
    rows = check_rows(task.rows)
    if rows.n_features > len(rows.data):
        rows = Chosen(rows.n_features, rows).of_rows(rows)
    return replace(task, rows=rows, distinct=True)


def _like(
    learner: Learner, task: Task, part: Task, first: Beginning, seed: int | None
) -> Learner | None:
    """Return a learner of the same settings that has learned a part of the task, over fewer
    columns; None if it can't. It warns of nothing."""
    like: Learner = object.__new__(type(learner))
    vars(like).update(vars(learner), _learned=None, warm_start=False)
    like.p = learner.p_for(task.rows.n_features)  # 'log' depends on the number of features
    n_iter, fitted = learner.fitted.n_iter, learner.fitted
    if n_iter and (like.max_iter is None or like.max_iter > n_iter):
        like.max_iter = n_iter
    like._open(replace(first, rows=part.rows, blocks=()), fitted.slice_seed, fitted.class_weight)
    like.fitted.progress = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = like._train(part, seed, 0)
    except (BadRow, ValueError):  # of steps that are too large or too small for these rows
        return None
    return None if result.interrupted else like


def _outputs(learner: Learner, task: Task, which: np.ndarray) -> np.ndarray:
    """Return the outputs of a learner for some rows of a task."""
    rows, fitted = check_rows(rows_at(task.rows, which), repeats_allowed=True), learner.fitted
    outputs: np.ndarray = fitted.space.outputs_by(
        fitted.hypothesis, rows, fitted.slice_seed, learner.n_threads()
    )
    return outputs


def _mean_size(outputs: np.ndarray) -> float:
    return float(np.abs(outputs).mean())


def _ratio(size: float, like: float) -> float:
    """Return how much larger the outputs of a learner are than those of one like it, for rows that
    both have learned: they may grow with the rows, and with the epochs."""
    ratio = size / like if like > 0 else 1.0
    return ratio if 0 < ratio < np.inf else 1.0
