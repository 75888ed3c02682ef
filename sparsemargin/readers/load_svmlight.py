"""svmlight files as CSR matrices."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix

from sparsemargin.files.sources import File, open_sources
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.readers.reading import LARGEST_INDEX, Reading, threads_for
from sparsemargin.readers.rows import LabelledRows
from sparsemargin.readers.svmlight import FORM, Corpus

_LARGEST_INT32 = 2**31 - 1

# Memory is allocated for this multiple of the size estimated from the first block, so that arrays
# seldom have to grow.
_SPARE = 1.05


def load_svmlight(
    paths: File | Iterable[File],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    zero_based: bool | Literal["auto"] = "auto",
    multilabel: bool = False,
    hash_bits: int | None = None,
    n_jobs: int | None = None,
) -> tuple[Any, Any]:
    """Load svmlight text (libsvm's format) into a CSR matrix.

    The result for files that `sklearn.datasets.load_svmlight_file` reads is identical, to the bit.
    In addition, indices may be unsorted or repeated (their values are summed) or need int64, and
    labels may be words.

    Parameters
    ----------
    paths : path, open binary file or descriptor of one, or list of these
        Files, plain or compressed by gz, bz2, xz or zst, which is recognized by their content;
        patterns such as `"day-*.svm.gz"`; or `"-"` for standard input. Several files are
        concatenated in this order. An open file is read from its current position and stays open.
    n_features : int, optional
        Number of columns; a larger index raises a ValueError. None uses the largest index.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float64
        Type of the values. For float32, the float64 nearest to the text is rounded.
    zero_based : bool or "auto", default="auto"
        Whether indices count from 0 (True) or from 1 (False). With "auto" they count from 0 if
        index 0 occurs anywhere, else from 1.
    multilabel : bool, default=False
        Whether rows may have any number of labels, separated by commas.
    hash_bits : int, optional
        Number of bits, from 1 to 31. Indices are hashed to 2**hash_bits columns: the column is the
        highest bits of splitmix64's finaliser of the index. Indices may then be names, as in
        ``goal:1``. The index of a name is the lower 63 bits of the 64-bit FNV-1a hash of its
        bytes. Excludes `n_features`. None does not hash.
    n_jobs : int, optional
        Number of threads; -1 uses all cores. None uses 2 threads, or 1 on a single core. The result
        does not depend on it.

    Returns
    -------
    X : csr_matrix of shape (n_rows, n_features)
        Matrix in canonical format. Indices are int32 if it can represent the numbers of columns
        and entries, else int64.
    y : ndarray of shape (n_rows,), or list of tuples
        Labels, as float64 if all are numbers, else as text. In text, numbers that are equal are all
        written like the first of them. With `multilabel`, a sorted tuple of labels for each row.

    Raises
    ------
    OSError
        If a file is missing or can't be read.
    ValueError
        If an argument is invalid, a file is malformed (the message names the file, the line, the
        column and the text), there are no rows, or a file changes while it is read.

    Warns
    -----
    UserWarning
        If there are labels but no features.
    """
    reading = Reading(dtype, zero_based, multilabel, n_features, hash_bits)
    corpus = Corpus(open_sources(paths), reading, threads_for(n_jobs))
    rows, values = _load(corpus)
    if not rows.n_rows:
        raise ValueError(f"{corpus.names} has no rows. {FORM}.")
    if not len(rows.data):
        warnings.warn(
            f"{corpus.names} has labels but no features: nothing can be learned from it. {FORM}.",
            stacklevel=2,
        )
    X, y = _matrix(rows, corpus), values[rows.labels]
    return X, y if rows.label_start is None else _tuples(y, rows.label_start)


class _Vector:
    """A growing one-dimensional array, with spare room at its end."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._room, self.size = np.empty(0, dtype=dtype), 0

    def extend(self, values: np.ndarray, share: float) -> None:
        """Append values. If their dtype is wider, the array is converted to it. `share` is the
        estimated share of the source that has been read so far, these values included. The first
        call allocates memory for the whole source accordingly."""
        if values.dtype.itemsize > self._room.itemsize:
            self._room = self._room.astype(values.dtype)
        end = self.size + len(values)
        if end and not self.size:
            # Unused room takes no physical memory. The system may still refuse the request.
            with suppress(MemoryError, ValueError):
                self._room = np.empty(int(_SPARE * end / share), self._room.dtype)
        if end > len(self._room):
            # The system moves large arrays by remapping pages, without a copy.
            self._room.resize(max(end, 5 * len(self._room) // 4), refcheck=False)
        self._room[self.size : end] = values
        self.size = end

    def trimmed(self) -> np.ndarray:
        """Return all values without the spare room. Nothing can be appended afterwards."""
        self._room.resize(self.size, refcheck=False)
        return self._room


def _load(corpus: Corpus) -> tuple[LabelledRows, np.ndarray]:
    """Return all rows, and the labels by id. Columns are the written indices minus 1, unless
    `zero_based` is True."""
    reading, table = corpus.reading, LabelTable()
    data, indices, ends = _Vector(reading.dtype), _Vector(np.int32), _Vector(np.int64)
    labels, label_ends = _Vector(np.int32), _Vector(np.int64)
    lowest, highest = LARGEST_INDEX, -1
    for block in corpus.scan(table, base=int(reading.zero_based is not True)):
        share = min((block.consumed or 0) / corpus.size, 1.0) if corpus.size else 1.0
        ends.extend(block.indptr[1:].astype(np.int64) + data.size, share)
        if block.label_start is not None:
            label_ends.extend(block.label_start[1:] + labels.size, share)
        data.extend(block.data, share)
        indices.extend(block.indices, share)
        labels.extend(block.labels, share)
        lowest, highest = min(lowest, block.lowest), max(highest, block.highest)
    rows = LabelledRows(
        data.trimmed(), indices.trimmed(), _from_zero(ends), labels.trimmed(),
        _from_zero(label_ends) if reading.multilabel else None, lowest, highest,
    )  # fmt: skip
    return rows, table.values()


def _from_zero(ends: _Vector) -> np.ndarray:
    return np.concatenate([np.zeros(1, dtype=np.int64), ends.trimmed()])


def _matrix(rows: LabelledRows, corpus: Corpus) -> csr_matrix:
    n_features, indices = _columns(rows, corpus)
    fits = max(n_features, len(rows.data)) <= _LARGEST_INT32
    index_type = np.int32 if fits else np.int64
    X = csr_matrix(
        (
            rows.data,
            indices.astype(index_type, copy=False),
            rows.indptr.astype(index_type, copy=False),
        ),
        shape=(rows.n_rows, n_features),
        copy=False,
    )
    X.has_canonical_format = True
    return X


def _columns(rows: LabelledRows, corpus: Corpus) -> tuple[int, np.ndarray]:
    """Return the number of columns and the column of each entry. `rows.lowest` must be set."""
    reading = corpus.reading
    if reading.hash_bits is not None:
        return 2**reading.hash_bits, rows.indices
    from_zero = reading.zero_based is True or rows.lowest == 0
    indices, n_features = rows.indices, rows.highest + from_zero
    if reading.zero_based == "auto" and from_zero:
        if reading.n_features is not None and n_features > reading.n_features:
            raise ValueError(
                f"{corpus.names}: index {rows.highest} is beyond "
                f"n_features={reading.n_features}, since indices count from 0. Raise n_features, "
                "or leave it out."
            )
        if rows.highest > _LARGEST_INT32:
            indices = indices.astype(np.int64, copy=False)
        np.add(indices, 1, out=indices)
    return reading.n_features or max(n_features, 1), indices


def _tuples(values: np.ndarray, starts: np.ndarray) -> list[tuple[Any, ...]]:
    """Return the sorted labels of each row."""
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    ordered = values[np.lexsort((values, rows))].tolist()
    return [tuple(ordered[first:last]) for first, last in pairwise(starts.tolist())]
