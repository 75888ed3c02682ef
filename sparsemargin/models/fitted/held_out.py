"""Outputs for held-out rows, from models with the same settings as the fitted model.

After the first of several epochs, a model has been trained on every row, so its outputs do not
show how accurate it is on new rows. Models with the same settings that are trained on some of the
rows provide such outputs for the other rows, as in `sklearn.calibration.CalibratedClassifierCV`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.progressive import count_places
from sparsemargin._engine.fitting.task import Positives, Task
from sparsemargin._engine.rows.columns import without_unused_columns
from sparsemargin._engine.rows.parts import gathered, rows_at
from sparsemargin.models.fitted.outputs import outputs_of
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.inputs.rows import Rows, check_rows

#: With fewer rows than this, the outputs stored in the first epoch are too few for probabilities.
FEW_ROWS = 500

# Number of folds; each model is trained on all folds except one.
_FOLDS = 3

# Number of held-out rows that suffices for probabilities. With 6,000 rows or more, the first of the
# three folds has that many, so only one model is fitted.
_ENOUGH = 2000

#: Outputs and boolean indicators of shape (n_rows, n_vectors), and step weights of shape (n_rows,).
HeldOut = tuple[np.ndarray, np.ndarray, np.ndarray]


def held_out_outputs(
    fitted: Fitted, task: Task, fit_part: Callable[[Task], Fitted | None], most_rows: int,
    n_threads: int, groups: Any = None, norm: str | None = None,
) -> HeldOut | None:  # fmt: skip
    """Return outputs for training rows of a model from models that were not trained on them.

    The models are fitted one after the other. A fit takes up to 3 times as long with these models,
    and 1.7 times with 6,000 rows or more.

    `fit_part` fits a similar model, with at most as many columns and epochs, to a part of the rows
    of the task, of which at most `most_rows` are used. The outputs are multiplied by a ratio that
    gives them the scale of the model, measured on rows that both models were trained on. Rows with
    equal entries in `groups`, shape (n_rows,), are held out together. `norm` is the norm of rows
    whose vectorizer took its vocabulary from them, see `_without_new_terms`. The result is None if
    there are too few rows, or if a model can't be fitted.
    """
    n_vectors, weights = fitted.space.n_vectors, task.weights
    trials = np.arange(len(task.codes)) if weights is None else np.flatnonzero(weights)
    random = np.random.RandomState(0)  # a separate generator, so that the model does not change
    # With many labels, the outputs of all rows would not fit into memory.
    n_places = count_places(n_vectors, averaged=False)
    if len(trials) > most_rows:
        trials = np.sort(random.choice(trials, most_rows, replace=False))
    groups = None if groups is None else groups[trials]
    drawn = task if len(trials) == len(task.codes) else _part(task, trials)
    rows = without_unused_columns(check_rows(drawn.rows))
    drawn = replace(drawn, rows=rows, distinct=True)
    outputs, held = list[np.ndarray](), list[np.ndarray]()
    for left, rest in _folds(drawn, random, groups):
        part, rest = _part(drawn, left), random.permutation(rest)[:n_places]
        similar = fit_part(part)
        if similar is None:
            return None
        n_compared = min(len(left), len(rest), _ENOUGH)
        learned = left[np.linspace(0, len(left) - 1, n_compared).astype(np.intp)]
        own = _outputs(fitted, rows_at(task.rows, trials[learned]), n_threads)
        ratio = _ratio(own, _outputs(similar, rows_at(drawn.rows, learned), n_threads))
        rows = rows_at(drawn.rows, rest)
        if norm is not None:
            rows = _without_new_terms(rows, part.rows, norm)
        outputs.append(_outputs(similar, rows, n_threads) * ratio)
        held.append(rest)
        del similar, part  # Only one such model is in memory at a time.
        if groups is None and sum(map(len, held)) >= min(_ENOUGH, n_places):
            break
    if not held:
        return None
    # The rows are shuffled, so that the outputs that are kept are a random sample.
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
        codes = task.codes if task.positives is None else np.zeros(n_rows, np.intp)
        folds = stratified_folds(codes, _FOLDS, random)
    for fold in range(_FOLDS):
        left, rest = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(left) and len(rest):
            yield left, rest


def stratified_folds(codes: np.ndarray, n_folds: int, random: np.random.RandomState) -> np.ndarray:
    """Return the fold of each row, shape (n_rows,). Folds have about equal numbers of rows, and of
    rows of each class."""
    mixed = random.permutation(len(codes))
    mixed = mixed[np.argsort(codes[mixed], kind="stable")]
    folds = np.empty(len(codes), np.intp)
    folds[mixed] = np.arange(len(codes)) % n_folds
    return folds


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


def _outputs(fitted: Fitted, rows: Rows, n_threads: int) -> np.ndarray:
    return outputs_of(fitted, check_rows(rows, repeats_allowed=True), n_threads)


def _without_new_terms(rows: Rows, training_rows: Rows, norm: str) -> Rows:
    """Return held-out rows as the vectorizer would, had it been fitted to the training rows.

    A vectorizer ignores unknown terms of a new text, and normalizes the rest. Entries in columns
    that do not occur in the training rows are therefore set to 0, and the others are multiplied so
    that the norm of the row, "l1" or "l2", is as before. Otherwise held-out rows would have smaller
    outputs than new ones, and probabilities would be too close to 0 and 1.
    """
    known = np.zeros(rows.n_features, dtype=bool)
    known[training_rows.indices] = True
    row = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    sizes = np.abs(rows.data.astype(np.float64)) ** (1 if norm == "l1" else 2)
    stays = known[rows.indices]
    before = np.bincount(row, sizes, rows.n_rows)
    after = np.bincount(row, sizes * stays, rows.n_rows)
    ratio = np.divide(before, after, out=np.zeros(rows.n_rows), where=after > 0)
    ratio = ratio if norm == "l1" else np.sqrt(ratio)
    return rows.with_data((rows.data * stays * ratio[row]).astype(rows.data.dtype))


def _ratio(outputs: np.ndarray, others: np.ndarray) -> float:
    """Return the ratio of the mean absolute outputs of a model and of a similar one.

    It corrects for outputs that grow with the number of rows or epochs. It is 1 if it would not be
    finite and positive.
    """
    size, similar = float(np.abs(outputs).mean()), float(np.abs(others).mean())
    ratio = size / similar if similar > 0 else 1.0
    return ratio if 0 < ratio < np.inf else 1.0
