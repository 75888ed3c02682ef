"""Outputs for held-out rows, from models with the same settings as the fitted model.

After the first of several epochs, a model has been trained on every row, so its outputs do not
show how accurate it is on new rows. Models with the same settings that are trained on some of the
rows provide such outputs for the other rows, as in `sklearn.calibration.CalibratedClassifierCV`.
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

#: With fewer rows than this, the outputs stored in the first epoch are too few for probabilities.
FEW_ROWS = 500

# Number of folds; each model is trained on all folds except one.
_FOLDS = 3

# Sufficient number of held-out rows. With 6,000 rows or more, the first of the three folds has as
# many, so only one model is fitted.
_ENOUGH = 2000

#: Outputs and boolean indicators of shape (n_rows, n_vectors), and step weights of shape (n_rows,).
HeldOut = tuple[np.ndarray, np.ndarray, np.ndarray]


def held_out_outputs(
    learner: Learner, task: Task, first: Beginning, seed: int | None, groups: Any = None
) -> HeldOut | None:
    """Return outputs for training rows of a learner from models that were not trained on them.

    The models have the settings of the learner and run at most as many epochs. They are fitted one
    after the other, to at most `learner._most_rows_held_out` rows. A fit takes up to 3 times as
    long with these models, and 1.7 times with 6,000 rows or more.

    Parameters
    ----------
    learner : Learner
        The fitted learner. The outputs are multiplied by a ratio that gives them its scale. The
        ratio is measured on rows that both models were trained on.
    task : Task
        The rows that it was trained on.
    first : Beginning
        The data that the learner was initialized with.
    seed : int or None
        Seed of the shuffling.
    groups : ndarray of shape (n_rows,), default=None
        Group of each row; the rows of a group are held out together.

    Returns
    -------
    HeldOut or None
        None if there are too few rows, or if a model can't be fitted.
    """
    n_vectors, weights = learner.space.n_vectors, task.weights
    trials = np.arange(len(task.codes)) if weights is None else np.flatnonzero(weights)
    random = np.random.RandomState(0)  # a separate generator, so that the model does not change
    # With many labels, the outputs of all rows would not fit into memory.
    n_places = count_places(n_vectors, averaged=False)
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
        del like  # Only one such model is in memory at a time.
        if groups is None and sum(map(len, held)) >= min(_ENOUGH, n_places):
            break
    if not held:
        return None
    # Random order, so that the outputs that are kept are a random sample.
    order = random.permutation(sum(map(len, held)))
    which = np.concatenate(held)[order]
    targets = _part(drawn, which, with_rows=False)
    positive = targets.is_positive(slice(0, len(which)), n_vectors)
    steps = np.ones(len(which)) if drawn.weights is None else drawn.weights[which]
    return np.concatenate(outputs)[order], positive, steps


def _folds(
    task: Task, random: np.random.RandomState, groups: Any
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the training rows and the held-out rows of each fold, both sorted.

    Folds are stratified by class, or contain whole groups if `groups` is given.
    """
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
    """Return a task with some of the rows, or with only their targets."""
    positives = task.positives
    if positives is not None:
        starts, at = gathered(positives.starts, which)
        positives = Positives(starts, positives.labels[at])
    weights = None if task.weights is None else task.weights[which]
    return replace(
        task, rows=rows_at(task.rows, which) if with_rows else None, codes=task.codes[which],
        weights=weights, positives=positives, row_state=None, progress=None, check=False,
    )  # fmt: skip


def _narrowed(task: Task) -> Task:
    """Return the task with checked rows.

    If there are more columns than entries, only the columns that occur are kept, so that a model
    has no weights for the others, of which there may be millions.
    """
    rows = check_rows(task.rows)
    if rows.n_features > len(rows.data):
        rows = Chosen(rows.n_features, rows).of_rows(rows)
    return replace(task, rows=rows, distinct=True)


def _like(
    learner: Learner, task: Task, part: Task, first: Beginning, seed: int | None
) -> Learner | None:
    """Return a learner with the same settings, fitted to a part of the task with fewer columns.

    The fit emits no warnings. The result is None if the fit fails or is interrupted.
    """
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
    except (BadRow, ValueError):  # the steps for these rows are too large or too small
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
    """Return the ratio of the mean absolute outputs of a learner and of a similar one.

    It corrects for outputs that grow with the number of rows or epochs. It is 1 if it would not be
    finite and positive.
    """
    ratio = size / like if like > 0 else 1.0
    return ratio if 0 < ratio < np.inf else 1.0
