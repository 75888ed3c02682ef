"""Warnings about shards that lack classes, or whose rows are sorted by their labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsemargin._engine.messages import warn_user
from sparsemargin.streaming.label_order import LabelOrder

# A shard counts as narrow if it has one class only, or lacks classes that have this share of all
# rows. Below `_LEAST_MISSING` expected rows of the classes that it lacks, this could be chance.
_SHARE, _LEAST_MISSING = 0.5, 10.0


def warn_of_labels(orders: Sequence[LabelOrder], numbers: Sequence[int], function: str) -> None:
    """Warn once if shards lack classes, or if rows are sorted by their labels, within the shards or
    over them. `numbers` are those of the shards, `function` trains on one machine."""
    remedy = (
        "Mix all rows before they are divided into shards, or train on one machine by "
        f"{function}, which shuffles them."
    )
    whole = LabelOrder()
    for order in orders:
        whole.join(order)
    are_sorted = [s for s, order in enumerate(orders) if order.is_sorted]
    if narrow := _narrow(orders, whole.counts):
        most = max(np.count_nonzero(orders[s].counts) for s in narrow)
        classes = "one class" if most == 1 else f"at most {most} classes"
        warn_user(
            f"{len(narrow)} of {len(orders)} shards have rows of {classes} only (the first is "
            f"shard {numbers[narrow[0]]}), and the data have {np.count_nonzero(whole.counts)} "
            f"classes. What a shard learns of the others is wrong, and so is a part of the "
            f"mixture. {remedy}"
        )
    elif are_sorted:
        first, more = are_sorted[0], len(are_sorted) - 1
        names = f"Shard {numbers[first]}" + f", and {more} more like it" * bool(more)
        warn_user(orders[first].warning(names, remedy))
    elif whole.is_sorted:
        warn_user(whole.warning(f"{len(orders)} shards, one after the other", remedy))


def _narrow(orders: Sequence[LabelOrder], counts: np.ndarray) -> list[int]:
    """Indices of the shards that have far fewer classes than the data, whose rows of each class are
    `counts`."""
    n_all, narrow = max(int(counts.sum()), 1), list[int]()
    for s, order in enumerate(orders):
        there = np.flatnonzero(order.counts)
        lacking = 1.0 - counts[there].sum() / n_all
        one_class = len(there) == 1 or lacking >= _SHARE
        if one_class and lacking * order.counts.sum() >= _LEAST_MISSING:
            narrow.append(s)
    return narrow
