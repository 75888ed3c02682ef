"""Orders in which epochs visit the rows of a row cache."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from sparsemargin._engine.rows import csr
from sparsemargin.readers.row_cache import RowCache
from sparsemargin.readers.rows import LabelledRows

# Bytes of a group of rows that are shuffled together, and the number of spans of adjacent rows in
# a group. A span has 64 KiB, unless a row is longer. If rows are sorted by label, all rows of a
# span have the same label, so a group of fewer and longer spans would often lack a class.
_MIXED_BYTES, _SPANS = 1 << 26, 1 << 10
# Number of blocks into which `_MIXED_BYTES` of shuffled rows are divided.
_BLOCKS_PER_GROUP = 16


def block_order(n_blocks: int, seed: int) -> np.ndarray:
    """Return a random permutation of the blocks, for a seed from 0 to 2**64 - 1."""
    order = np.arange(n_blocks, dtype=np.int64)
    csr.shuffle(order, seed)
    return order


def ordered(
    cache: RowCache, seed: int | None, epoch: int, first: int = 0, last: int | None = None
) -> Iterator[tuple[int, LabelledRows, np.ndarray | None]]:
    """Yield the rows of a cache from row `first` to before row `last`, in blocks.

    Each item is the number of the block's first row, the block, and an order of its rows. If `seed`
    is None, the blocks are in their original order, and the order of the rows is None. Otherwise
    both orders are random and depend only on `seed` and `epoch`.
    """
    order = np.arange(cache.n_blocks)
    if seed is not None:
        order = block_order(cache.n_blocks, _seed(seed, epoch))
    last, starts = cache.n_rows if last is None else last, cache.first_rows[order]
    order = order[(starts < last) & (starts + np.array(cache.block_rows)[order] > first)]
    for i, rows in zip(order.tolist(), cache.blocks(order), strict=True):
        start = int(cache.first_rows[i])
        if start < first or start + rows.n_rows > last:
            rows = rows.part(max(first - start, 0), last - start)
            start = max(first, start)
        yield start, rows, None if seed is None else block_order(rows.n_rows, _seed(seed, epoch, i))


def shuffled_blocks(
    cache: RowCache, seed: int, epoch: int, first: int = 0, last: int | None = None
) -> Iterator[tuple[int, LabelledRows, np.ndarray]]:
    """Yield the rows of a cache in new blocks of random rows from all parts of the cache.

    This is for data whose neighbouring rows are similar. Each item is the number of the block's
    first row in the new order of the rows, the block, and a random order of its rows. The
    rows of a block, and their numbers, depend only on `seed`; the orders depend on `epoch`, too.
    Only the rows with numbers from `first` to before `last` are used.
    """
    groups = _groups_of_spans(cache, seed)
    first_rows = np.cumsum([0, *(int((stop - start).sum()) for start, stop in groups)])
    n_blocks = max(1, _BLOCKS_PER_GROUP * cache.bounds[-1] // (_MIXED_BYTES * len(groups)))
    last = cache.n_rows if last is None else last

    def dealt(g: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return a mask of the used rows of a group, and the places in the group of each block."""
        n_rows = int(first_rows[g + 1] - first_rows[g])
        places, is_used = block_order(n_rows, _seed(seed, "dealt", g)), np.zeros(n_rows, dtype=bool)
        is_used[places[max(first - first_rows[g], 0) : last - first_rows[g]]] = True
        return is_used, np.array_split(places, min(n_blocks, n_rows))

    def numbers(g: int) -> np.ndarray:
        spans = zip(*groups[g], strict=True)
        return np.concatenate([np.arange(*span) for span in spans])[dealt(g)[0]]

    order = block_order(len(groups), _seed(seed, epoch))
    order = order[np.maximum(first_rows[order], first) < np.minimum(first_rows[order + 1], last)]
    for g, rows in zip(order.tolist(), cache.take(map(numbers, order.tolist())), strict=True):
        is_used, blocks = dealt(g)
        place_among_used = np.cumsum(is_used) - 1
        starts = np.cumsum([first_rows[g], *map(len, blocks)])
        for i in block_order(len(blocks), _seed(seed, epoch, g)):
            chosen = blocks[i][is_used[blocks[i]]]
            if len(chosen):
                order_of_rows = block_order(len(chosen), _seed(seed, epoch, g, i))
                start = max(first, int(starts[i]))
                yield start, rows.take(place_among_used[chosen]), order_of_rows


def _groups_of_spans(cache: RowCache, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Divide the rows into spans, and the spans at random into groups of about `_MIXED_BYTES`.
    Return the first rows and the ends of the spans of each group, in increasing order."""
    n_bytes, n_rows = np.diff(cache.bounds), np.array(cache.block_rows, dtype=np.int64)
    # A block without rows has no span.
    n_spans = np.minimum(np.maximum(1, n_bytes * _SPANS // _MIXED_BYTES), n_rows)
    block, first = np.repeat(np.arange(cache.n_blocks), n_spans), np.cumsum(n_spans) - n_spans
    place = np.arange(len(block)) - first[block]
    starts = cache.first_rows[block] + place * n_rows[block] // n_spans[block]
    stops = cache.first_rows[block] + (place + 1) * n_rows[block] // n_spans[block]
    n_groups = max(1, -(-int(n_bytes.sum()) // _MIXED_BYTES))
    drawn = np.array_split(block_order(len(block), _seed(seed)), min(n_groups, len(block)))
    return [(starts[spans], stops[spans]) for spans in map(np.sort, drawn)]


def _seed(*key: Any) -> int:
    """Return a seed for a key. Seeds of similar keys are unrelated."""
    digest = blake2b(" ".join(map(str, key)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
