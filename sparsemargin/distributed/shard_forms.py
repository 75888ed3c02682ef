"""The forms in which shards are given."""

from __future__ import annotations

import os
from collections.abc import Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._checks import check_choice
from sparsemargin._heavy import sklearn_exceptions
from sparsemargin.distributed.row_makers import RowMaker, Texts
from sparsemargin.distributed.shards import FileShard
from sparsemargin.files.kinds import FORMS, kind_of
from sparsemargin.files.remote import is_url
from sparsemargin.files.sources import STANDARD_INPUT, files_named
from sparsemargin.readers.reading import Reading
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.streaming.learn_texts import vectorizer_for

_FORMS = (
    "Shards are a Dask array X of CSR blocks with its y, a list of pairs (X, y), a list of paths, "
    "or an AnnData with a Dask array"
)


class Pair(NamedTuple):
    """A matrix and its labels, in memory or to be computed."""

    X: Any
    y: Any


def row_maker_of(
    shards: Any, features: Any, how: DocumentForm, params: dict[str, Any]
) -> RowMaker | None:
    """The conversion of texts or cells to rows, depending on shards, file names, vectorizer and
    format; None if the shards are rows. Parameters for cells are removed from `params`."""

    def cells() -> Any:
        # Imported here because it imports scikit-learn, which svmlight text does not need.
        from sparsemargin.distributed.cell_shards import cell_rows

        return cell_rows(how.label, params)

    if hasattr(type(shards), "obs_names"):
        return cells()
    # The test uses types, because a Delayed has attributes of any name.
    is_text = hasattr(type(shards), "to_delayed") and not is_array(shards)
    first = shards[0] if isinstance(shards, list) and shards else shards
    first = first[0] if isinstance(first, list) and first else first
    if isinstance(first, tuple):
        # Lists without texts are shards without rows, which are left out later.
        lists = (each[0] for each in shards if isinstance(each, tuple) and each)
        some = next((each for each in lists if not isinstance(each, list) or each), None)
        is_text = isinstance(some, list) and isinstance(some[0], str)
    if isinstance(first, str | os.PathLike):
        # A folder of parquet files is recognized by the first of its files.
        name = os.fspath(first)
        kind = kind_of(name if is_url(name) else files_named(name)[0], how.form)
        if kind == "cells":
            return cells()
        is_text = kind in FORMS
    if isinstance(features, str):
        check_choice("features", features, ("auto",))
        if not is_text and how.form is None:
            return None
    elif not hasattr(features, "transform"):
        raise ValueError(f"features must be 'auto' or a vectorizer, got {features!r}.")
    vectorizer = vectorizer_for([]) if isinstance(features, str) else deepcopy(features)
    try:
        vectorizer.transform(["one text"])
    except sklearn_exceptions().NotFittedError:
        raise ValueError(
            f"features={vectorizer!r} has to read all texts first, and these are in shards. Pass a "
            "fitted vectorizer, or a HashingVectorizer."
        ) from None
    return Texts(how, vectorizer)


def shards_of(
    shards: Any, y: Any, reading: Reading, cache_dir: Any, max_index: int,
    row_maker: RowMaker | None,
) -> list[Pair] | list[FileShard]:  # fmt: skip
    """The shards in their order; a pattern of names is expanded to its files."""
    if hasattr(type(shards), "obs_names"):
        return _blocks_of(*row_maker.cells_and_types(shards))  # type: ignore[union-attr]
    if is_lazy(shards):
        if isinstance(row_maker, Texts):
            return _partitions_of(shards, y, row_maker.how)
        return _blocks_of(shards, y)
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
    # The error is raised for a shard that is not a pair, if there is one.
    for shard in sorted(odd, key=lambda shard: isinstance(shard, tuple)):
        what = f"A shard can't be of type {type(shard).__name__}."
        if is_lazy(shard) or is_future(shard):
            what = "Of a pair that is made elsewhere give both: tuple(delayed(load, nout=2)(...))."
        raise ValueError(f"{what} {_FORMS}.")
    directory = None if cache_dir is None else os.path.abspath(cache_dir)
    named = chain.from_iterable(
        [shard] if isinstance(shard, list) else files_named(os.fspath(shard)) for shard in listed
    )
    return [FileShard(_paths(shard), reading, directory, max_index, row_maker) for shard in named]


def _paths(shard: Any) -> list[str]:
    """The paths of the files of a shard."""
    paths = [shard] if isinstance(shard, str | os.PathLike) else shard
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        raise ValueError(f"A list among the shards holds paths, at least one. {_FORMS}.")
    # Paths are made absolute, because workers have other current folders.
    return [
        os.fspath(path) if path == STANDARD_INPUT or is_url(path) else os.path.abspath(path)
        for path in paths
    ]


def _blocks_of(X: Any, y: Any) -> list[Pair]:
    """Make a shard of each block of rows of a Dask array."""
    if not is_array(X):
        raise ValueError(f"Of Dask's collections an array is taken, got {X!r}. {_FORMS}.")
    if y is None:
        raise ValueError("y is missing: pass the labels of the rows beside the Dask array X.")
    if X.ndim != 2 or X.numblocks[1] != 1:
        raise ValueError(
            f"X must be a Dask array of two dimensions whose blocks have all columns, got "
            f"{X!r}. Rechunk it: X.rechunk({{1: -1}})."
        )
    lengths, blocks = X.chunks[0], X.to_delayed().ravel().tolist()
    if is_lazy(y):
        together = is_array(y) and y.ndim == 1
        if not together or not np.array_equal(y.chunks[0], lengths, equal_nan=True):
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
    n_vectors = y.shape[0] if hasattr(y, "shape") else len(y)
    if n_vectors != sum(lengths):
        raise ValueError(f"X has {sum(lengths)} rows, and y {n_vectors} labels.")
    starts = np.cumsum((0, *lengths))
    return [Pair(block, y[a:b]) for block, a, b in zip(blocks, starts, starts[1:], strict=False)]


def _partitions_of(texts: Any, y: Any, how: DocumentForm) -> list[Pair]:
    """Make a shard of each partition of texts, or of a table with a column of texts."""
    if getattr(texts, "ndim", 1) == 2:
        for name in how.columns:
            if name not in texts.columns:
                names = ", ".join(map(str, texts.columns))
                raise ValueError(f"The table has no column {name!r}, but {names}. Name the one by "
                                 f"{'text' if name in how.texts else 'label'}=.")  # fmt: skip
        y, columns = texts[how.label], [texts[name] for name in how.texts]
        texts = columns[0]
        for each in columns[1:]:
            texts = texts + "\n" + each
    if not hasattr(texts, "to_delayed") or not hasattr(y, "to_delayed"):
        raise ValueError(
            "Texts in Dask's collections need y, their labels, in one like it: two bags, or two "
            "columns of one table. A table has both, by text= and label=."
        )
    pairs = texts.to_delayed(), y.to_delayed()
    if len(pairs[0]) != len(pairs[1]):
        raise ValueError(
            f"The texts are in {len(pairs[0])} partitions, their labels in {len(pairs[1])}. "
            "Repartition them alike."
        )
    return [Pair(*pair) for pair in zip(*pairs, strict=True)]


def is_lazy(value: Any) -> bool:
    """Return whether a value is a Dask collection that has not been computed."""
    return hasattr(value, "__dask_graph__")


def is_future(value: Any) -> bool:
    """Return whether a value is a Dask Future. The type is tested, because tables can have columns
    of any name."""
    return type(value).__module__.startswith("distributed.") and hasattr(value, "result")


def is_array(collection: Any) -> bool:
    """Return whether a collection is a Dask array. A Delayed has lazy attributes of any name."""
    return isinstance(getattr(collection, "numblocks", None), tuple)
