"""svmlight files as CSR matrices."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin.io._in_place import InPlaceLoader
from sparsemargin.io._in_stream import StreamLoader, refuse_first
from sparsemargin.io._loaded import Loaded, label_values
from sparsemargin.io.reading import Reading, threads_for
from sparsemargin.io.sources import PathLike, Source, open_sources

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_LARGEST_INT32 = 2**31 - 1
_MOST_THREADS = 1024


def load_svmlight(
    paths: PathLike | Iterable[PathLike],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    zero_based: bool | Literal["auto"] = "auto",
    multilabel: bool = False,
    query_id: bool = False,
    hash_bits: int | None = None,
    n_jobs: int | None = None,
) -> tuple[Any, ...]:
    """Load svmlight text (libsvm's format) into a CSR matrix.

    What `sklearn.datasets.load_svmlight_file` reads is read alike, to the bit of every value.
    Indices that are unsorted or repeated (their values are summed), labels that are words, and
    int64 indices are read as well.

    Parameters
    ----------
    paths : path, or list of paths
        Files, plain or compressed by gz, bz2, xz or zst whatever their names; patterns such as
        `"day-*.svm.gz"`; `"-"` for standard input. Several are one data set, in this order.
    n_features : int, optional
        Number of columns; an index beyond is refused. By default as many as occur.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float64
        Type of the values. float32 is the double nearest to the text, rounded.
    zero_based : bool or "auto", default="auto"
        Whether indices count from 0 or from 1. "auto": from 0 if index 0 occurs anywhere, or no
        index at all.
    multilabel : bool, default=False
        Whether rows have any number of labels, separated by commas.
    query_id : bool, default=False
        Whether to return the numbers of `qid:N`, too.
    hash_bits : int, optional
        From 1 to 31: indices are hashed to 2**hash_bits columns. Excludes `n_features`.
    n_jobs : int, optional
        Number of threads; -1: as many as there are cores. By default 2, or 1 on a single core.
        The result does not depend on it. Compressed files and pipes make use of two at the most.

    Returns
    -------
    X : csr_matrix of shape (n_rows, n_features)
        In canonical format. int32 indices where those can count the columns and the entries.
    y : ndarray of shape (n_rows,), or list of tuples
        float64 where all labels are numbers; else text, all labels that are equal numbers being
        as the first of them was written. With `multilabel`, a sorted tuple of these for each row.
    query_ids : ndarray of int64
        Only if asked for: of the rows that have one.

    Raises
    ------
    OSError
        If a file is missing or can't be read.
    ValueError
        If an argument is wrong, or a file: names the file, the line, the column and the text. If
        there are no rows, or a file changes while it is read.

    Warns
    -----
    UserWarning
        If there are labels but no features.
    """
    reading = Reading(dtype, zero_based, multilabel, query_id, n_features, hash_bits)
    n_threads = threads_for(n_jobs)
    sources = open_sources(paths)
    in_place = all(source.plain for source in sources) and not (multilabel or query_id)
    loader = InPlaceLoader if in_place else StreamLoader
    loaded = loader(sources, reading, int(reading.zero_based is not True), n_threads).load()
    for source in sources:
        source.check_unchanged()
    _check_content(loaded, sources)
    X = _matrix(loaded, reading, sources)
    y = label_values(loaded.labels)
    labels = y if loaded.label_start is None else _tuples(y, loaded.label_start)
    return (X, labels) if loaded.query_ids is None else (X, labels, loaded.query_ids)


def _check_content(loaded: Loaded, sources: list[Source]) -> None:
    names = ", ".join(source.name for source in sources[:3]) + ", ..." * (len(sources) > 3)
    if len(loaded.indptr) == 1:
        raise ValueError(
            f"{names} has no rows. svmlight lines are 'label index:value index:value ...'."
        )
    if len(loaded.data) == 0:
        warnings.warn(
            f"{names} has labels but no features: nothing can be learned from it. svmlight lines "
            "are 'label index:value index:value ...'.",
            stacklevel=3,
        )


def _matrix(loaded: Loaded, reading: Reading, sources: list[Source]) -> csr_matrix:
    from scipy.sparse import csr_matrix

    n_features, indices = _columns(loaded, reading, sources)
    fits = max(n_features, len(loaded.data)) <= _LARGEST_INT32
    index_type = np.int32 if fits else np.int64
    X = csr_matrix(
        (
            loaded.data,
            indices.astype(index_type, copy=False),
            loaded.indptr.astype(index_type, copy=False),
        ),
        shape=(len(loaded.indptr) - 1, n_features),
        copy=False,
    )
    X.has_canonical_format = True
    return X


def _columns(loaded: Loaded, reading: Reading, sources: list[Source]) -> tuple[int, np.ndarray]:
    """Their number, and that of each entry, now that it is known from where indices count."""
    if reading.hash_bits is not None:
        return 2**reading.hash_bits, loaded.indices
    from_zero = reading.zero_based is True or loaded.lowest == 0
    indices, n_features = loaded.indices, loaded.highest + from_zero
    if reading.zero_based == "auto" and from_zero:
        if reading.n_features is not None and n_features > reading.n_features:
            _refuse_highest(loaded, reading, sources)
        if loaded.highest > _LARGEST_INT32:
            indices = indices.astype(np.int64, copy=False)
        np.add(indices, 1, out=indices)
    return reading.n_features or max(n_features, 1), indices


def _refuse_highest(loaded: Loaded, reading: Reading, sources: list[Source]) -> NoReturn:
    """Name the place of an index that is too large only where the first feature has index 0."""
    if all(source.rereadable for source in sources):
        refuse_first(sources, replace(reading, zero_based=True))
    raise ValueError(
        f"index {loaded.highest} is beyond n_features={reading.n_features}, since indices count "
        "from 0. Raise n_features, or leave it out."
    )


def _tuples(values: np.ndarray, starts: np.ndarray) -> list[tuple[Any, ...]]:
    """The sorted labels of each row."""
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    ordered = values[np.lexsort((values, rows))].tolist()
    return [tuple(ordered[first:last]) for first, last in pairwise(starts.tolist())]
