"""Outputs for held-out rows of the row cache. Probabilities are fitted to them after several epochs
over files."""

from __future__ import annotations

import numpy as np

from sparsemargin._engine.rows.columns import NO_ROWS
from sparsemargin.models import Learner
from sparsemargin.models.inputs.training_set import Beginning
from sparsemargin.readers.row_cache import RowCache
from sparsemargin.readers.rows import LabelledRows, join_blocks
from sparsemargin.streaming.stream_labels import StreamLabels

# Largest number of entries and largest number of rows of the sample of the row cache. The entries
# take 48 MB.
_MOST_ENTRIES, _MOST_ROWS = 1 << 22, 30_000


def hold_out_rows(learner: Learner, labels: StreamLabels, cache: RowCache, n_epochs: int) -> None:
    """Replace the stored outputs of a model by outputs for held-out rows, as is done after several
    epochs over rows in memory.

    Models with the same settings are trained on parts of a sample of the cache. A model that had
    been trained on other rows before, or that stores no outputs, is not changed.
    """
    fitted = learner.fitted
    kept = fitted.progress
    if kept is None or not kept.spoiled or fitted.trials_before:
        return
    block = _sampled(cache)
    rows, targets = block.with_columns(fitted.space.n_features), labels.targets_of(block)
    fitted.n_iter = float(n_epochs)  # the largest number of epochs of the similar models
    task = learner.make_task(
        rows, targets, None, progress=None, distinct=True, n_threads=learner.n_threads()
    )
    seed = 0 if learner.shuffle else None
    learner.hold_out(task, Beginning(NO_ROWS, fitted.classes, fitted.form), seed)


def _sampled(cache: RowCache) -> LabelledRows:
    """Return a random sample of the rows of a cache, in the order of the cache."""
    fitting = int(cache.n_rows * min(1.0, _MOST_ENTRIES / max(1, cache.n_entries)))
    n_rows = min(cache.n_rows, _MOST_ROWS, max(1, fitting))
    drawn = np.random.RandomState(0).choice(cache.n_rows, n_rows, replace=False)
    wanted, found = np.sort(drawn), []
    for first, block in zip(cache.first_rows.tolist(), cache.blocks(), strict=True):
        start, stop = np.searchsorted(wanted, [first, first + block.n_rows])
        found.append(block.take(wanted[start:stop] - first))
    return join_blocks(found)
