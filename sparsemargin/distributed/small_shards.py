"""Joining of shards that have too few rows to train on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.rows.parts import joined_rows, pointers_of
from sparsemargin.distributed.shards import TEXTS_KEPT, FileShard, MatrixShard, Shard
from sparsemargin.models.inputs.multilabel_targets import MultilabelTargets


def runs_of(n_rows: Sequence[int], least: int) -> list[range]:
    """The ranges of consecutive shards that become one shard each. Shards with `least` rows or more
    stay as they are; consecutive smaller shards are joined until they have `least` rows."""
    runs = list[range]()

    def add_rest(first: int, stop: int) -> None:
        """Join the shards that are left over with the joined shard before them, if there is one;
        otherwise make one shard of them."""
        if first == stop:
            return
        if runs and n_rows[runs[-1].start] < least:
            first = runs.pop().start
        runs.append(range(first, stop))

    first, total = 0, 0
    for s, n in enumerate(n_rows):
        if n >= least:
            add_rest(first, s)
        total += n
        if total >= least:
            runs.append(range(s if n >= least else first, s + 1))
            first, total = s + 1, 0
    add_rest(first, len(n_rows))
    return runs


def joined(shards: Sequence[Any]) -> Shard:
    """One shard with the rows of several, which are all in memory, or all files."""
    first = shards[0]
    if isinstance(first, FileShard):
        paths = [path for shard in shards for path in shard.paths]
        return replace(first, paths=paths, passes=None, read_in=0)
    texts = [text for shard in shards for text in shard.texts][:TEXTS_KEPT]
    rows = joined_rows([shard.rows for shard in shards])
    return MatrixShard(rows, _joined_labels([shard.y for shard in shards]), texts)


def _joined_labels(labels: Sequence[Any]) -> Any:
    first = labels[0]
    if not isinstance(first, MultilabelTargets):
        return np.concatenate(labels)
    lengths = np.concatenate([np.diff(each.given.starts) for each in labels])
    # An array without labels has no type of labels.
    names = [each.given.labels for each in labels if len(each.given.labels)]
    given = Positives(pointers_of(lengths, np.int64), np.concatenate(names or [first.given.labels]))
    return replace(first, shape=(len(lengths), *first.shape[1:]), given=given)
