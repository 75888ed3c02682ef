"""Warnings about shards that lack classes, or whose rows are sorted by their labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsemargin._engine.messages import warn_user
from sparsemargin.streaming.label_order import LabelOrder

# A shard is narrow if it has one class only, or if the classes that it lacks have this share of all
# rows, beyond the share expected if rows were divided at random. The share is below 0.5, because
# half of the classes may have slightly fewer than half of the rows.
_SHARE = 0.4
# The least excess over this expectation, in rows of a shard. With fewer rows it may be chance.
_LEAST_MISSING = 10.0


def warn_of_labels(
    orders: Sequence[LabelOrder], titles: Sequence[str], function: str,
    shuffled: Sequence[LabelOrder],
) -> None:  # fmt: skip
    """Warn once if shards lack classes, or if rows are sorted by their labels, within shards or
    across them. `titles` are the titles of the shards, and `function` trains on one machine. If
    sorted rows were shuffled, `shuffled` has the label orders before this."""
    remedy = (
        "Mix all rows before they are divided into shards, or train on one machine by "
        f"{function}, which shuffles them."
    )
    whole = LabelOrder()
    for order in orders:
        whole.join(order)
    given = shuffled or orders
    are_sorted = [s for s, order in enumerate(given) if order.is_sorted]
    if narrow := _narrow(orders, whole.counts):
        most = max(np.count_nonzero(orders[s].counts) for s in narrow)
        warn_user(
            f"{len(narrow)} of {len(orders)} shards {'has' if len(narrow) == 1 else 'have'} rows "
            f"of {'one class' if most == 1 else f'at most {most} classes'} only (first: "
            f"{titles[narrow[0]]}), and the data have {np.count_nonzero(whole.counts)} "
            f"classes. A shard can't learn the classes that it lacks. {remedy}"
        )
    elif are_sorted:
        first, more = are_sorted[0], len(are_sorted) - 1
        names = titles[first].capitalize() + f", and {more} more like it" * bool(more)
        warn_user(
            f"{given[first].description(names)} The rows of each shard are shuffled. Pass "
            "shuffle=False to keep their order."
            if shuffled else given[first].warning(names, remedy)
        )  # fmt: skip
    elif whole.is_sorted:
        warn_user(whole.warning(f"{len(orders)} shards, one after the other", remedy))


def _narrow(orders: Sequence[LabelOrder], counts: np.ndarray) -> list[int]:
    """Indices of the narrow shards, unless all of them may be narrow by chance. `counts` has the
    number of rows of each class in all shards."""
    shares, narrow, most_missing = counts / max(int(counts.sum()), 1), list[int](), 0.0
    for s, order in enumerate(orders):
        there, n_rows = np.flatnonzero(order.counts), float(order.counts.sum())
        by_chance = float(shares @ (1.0 - shares) ** n_rows)
        excess = 1.0 - float(shares[there].sum()) - by_chance
        if len(there) == 1 or excess >= _SHARE:
            narrow.append(s)
            most_missing = max(most_missing, excess * n_rows)
    return narrow if most_missing >= _LEAST_MISSING else []
