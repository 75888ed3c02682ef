"""The forms in which shards are given."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from sparsemargin.distributed._crew import Pair, is_future, is_lazy
from sparsemargin.distributed._shards import FileShard
from sparsemargin.io.reading import Reading
from sparsemargin.io.sources import STANDARD_INPUT

# Of a float32 weight vector for one label.
_LEAST_PER_FEATURE = 4

_FORMS = (
    "Shards are a Dask array X of CSR blocks with its y, a list of pairs (X, y), or a list of paths"
)


def shards_of(
    shards: Any, y: Any, reading: Reading, cache_dir: Any, memory_limit: int
) -> list[Pair] | list[FileShard]:
    """The shards, in their order.

    Raises
    ------
    ValueError
        If they are given in no form that is known.
    """
    if is_lazy(shards):
        return _of_array(shards, y)
    if y is not None:
        raise ValueError(f"y goes with a Dask array X. {_FORMS}.")
    if isinstance(shards, str | os.PathLike):
        shards = [shards]
    listed = list(shards) if isinstance(shards, Iterable) else []
    if not listed:
        raise ValueError(f"There are no shards in {type(shards).__name__}. {_FORMS}.")
    if all(isinstance(shard, tuple) and len(shard) == 2 for shard in listed):
        return [Pair(*shard) for shard in listed]
    odd = [shard for shard in listed if not isinstance(shard, str | os.PathLike | list)]
    if odd:
        # A pair among others that are none is not to blame.
        blamed = next((shard for shard in odd if not isinstance(shard, tuple)), odd[0])
        if isinstance(blamed, tuple):
            what = f"A shard of {len(blamed)} parts stands among others that are no pairs (X, y)."
        elif is_lazy(blamed) or is_future(blamed):
            what = "Of a pair that is made elsewhere give both: tuple(delayed(load, nout=2)(...))."
        else:
            what = f"A shard can't be of type {type(blamed).__name__}."
        raise ValueError(f"{what} {_FORMS}.")
    most = memory_limit // _LEAST_PER_FEATURE
    directory = None if cache_dir is None else os.path.abspath(cache_dir)
    return [FileShard(_paths(shard), reading, directory, most) for shard in listed]


def _paths(shard: Any) -> list[str]:
    """Those of the files of a shard."""
    paths = [shard] if isinstance(shard, str | os.PathLike) else shard
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        raise ValueError(f"A list among the shards holds paths, at least one. {_FORMS}.")
    # In a worker's folder there may be another file of the name.
    return [os.fspath(path) if path == STANDARD_INPUT else os.path.abspath(path) for path in paths]


def _of_array(X: Any, y: Any) -> list[Pair]:
    """A shard for each block of rows of a Dask array."""
    if not _is_array(X):
        raise ValueError(f"Of Dask's collections an array is taken, got {X!r}. {_FORMS}.")
    if y is None:
        raise ValueError("y is missing: pass the labels of the rows beside the Dask array X.")
    if X.ndim != 2 or X.numblocks[1] != 1:
        raise ValueError(
            f"X must be a Dask array of two dimensions whose blocks have all columns, got "
            f"{X!r}. Rechunk it: X.rechunk({{1: -1}})."
        )
    lengths = X.chunks[0]
    blocks = X.to_delayed().ravel().tolist()
    if is_lazy(y):
        if not _is_array(y) or y.ndim != 1 or _differ(y.chunks[0], lengths):
            raise ValueError(
                f"y must be a Dask array of one dimension with the blocks of X, {lengths}, got "
                f"{y!r}. Rechunk it: y.rechunk((X.chunks[0],))."
            )
        return [Pair(*pair) for pair in zip(blocks, y.to_delayed().ravel(), strict=True)]
    if np.isnan(lengths).any():
        raise ValueError(
            "The blocks of X have unknown lengths, by which y can't be cut. Pass y as a Dask array "
            "with the same blocks, or call X.compute_chunk_sizes()."
        )
    n_labels = y.shape[0] if hasattr(y, "shape") else len(y)
    if n_labels != sum(lengths):
        raise ValueError(f"X has {sum(lengths)} rows, and y {n_labels} labels.")
    starts = np.cumsum((0, *lengths))
    return [Pair(block, y[a:b]) for block, a, b in zip(blocks, starts, starts[1:], strict=False)]


def _is_array(collection: Any) -> bool:
    """Whether it is a Dask array; others have attributes that are lazy, too."""
    return isinstance(getattr(collection, "numblocks", None), tuple)


def _differ(some: Any, others: Any) -> bool:
    """Whether lengths differ that are known."""
    return not np.array_equal(some, others, equal_nan=True)
