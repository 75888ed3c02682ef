"""Joining of shards that have too few rows to train on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
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
    for is_small, group in groupby(range(len(n_rows)), lambda s: n_rows[s] < least):
        numbers = [*group]
        if not is_small:
            runs += [range(s, s + 1) for s in numbers]
            continue
        joined_runs, first, total = list[range](), numbers[0], 0
        for s in numbers:
            total += n_rows[s]
            if total >= least:
                joined_runs.append(range(first, s + 1))
                first, total = s + 1, 0
        if first <= numbers[-1]:
            # The shards that are left over are joined with the run before them, if there is one.
            first = joined_runs.pop().start if joined_runs else first
            joined_runs.append(range(first, numbers[-1] + 1))
        runs += joined_runs
    return runs


def joined(shards: Sequence[Any]) -> Shard:
    """One shard with the rows of several, which are all in memory, or all files."""
    first = shards[0]
    if isinstance(first, FileShard):
        paths = [path for shard in shards for path in shard.paths]
        return replace(first, paths=paths)
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
