"""svmlight files as CSR matrices."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin.files.sources import File, open_sources
from sparsemargin.models.inputs.labels import LabelTable
from sparsemargin.readers.reading import LARGEST_INDEX, Reading, threads_for
from sparsemargin.readers.rows import LabelledRows
from sparsemargin.readers.svmlight import FORM, Corpus

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_LARGEST_INT32 = 2**31 - 1

# Of what the density of the first block makes of all, so that seldom more room must be found.
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

    What `sklearn.datasets.load_svmlight_file` reads is read alike, to the bit of every value.
    Indices that are unsorted or repeated (their values are summed), labels that are words, and
    int64 indices are read as well.

    Parameters
    ----------
    paths : path, open binary file or descriptor of one, or list of these
        Files, plain or compressed by gz, bz2, xz or zst whatever their names; patterns such as
        `"day-*.svm.gz"`; `"-"` for standard input. Several are one data set, in this order. An open
        file is read from where it stands, and left open.
    n_features : int, optional
        Number of columns; an index beyond is refused. By default as many as occur.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float64
        Type of the values. float32 is the double nearest to the text, rounded.
    zero_based : bool or "auto", default="auto"
        Whether indices count from 0 or from 1. "auto": from 0 if index 0 occurs anywhere, or no
        index at all.
    multilabel : bool, default=False
        Whether rows have any number of labels, separated by commas.
    hash_bits : int, optional
        From 1 to 31: indices are hashed to 2**hash_bits columns, which are the highest bits of the
        finaliser of splitmix64. They may then be names, too, as in ``goal:1``: what is no whole
        number counts as the lower 63 bits of its bytes' FNV-1a hash of 64. Excludes `n_features`.
    n_jobs : int, optional
        Number of threads; -1: as many as there are cores. By default 2, or 1 on a single core.
        The result does not depend on it.

    Returns
    -------
    X : csr_matrix of shape (n_rows, n_features)
        In canonical format. int32 indices where those can count the columns and the entries.
    y : ndarray of shape (n_rows,), or list of tuples
        float64 where all labels are numbers; else text, all labels that are equal numbers being
        as the first of them was written. With `multilabel`, a sorted tuple of these for each row.

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
    """A vector with room at its end."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._room, self.size = np.empty(0, dtype=dtype), 0

    def extend(self, values: np.ndarray, share: float) -> None:
        """Append values, so far about such a share of all; where theirs is the wider type, all
        become of that."""
        if values.dtype.itemsize > self._room.itemsize:
            self._room = self._room.astype(values.dtype)
        end = self.size + len(values)
        if end and not self.size:
            # Room that is never written to costs nothing; the system may have less all the same.
            with suppress(MemoryError, ValueError):
                self._room = np.empty(int(_SPARE * end / share), self._room.dtype)
        if end > len(self._room):
            # The system moves large vectors by renaming pages: nothing is copied.
            self._room.resize(max(end, 5 * len(self._room) // 4), refcheck=False)
        self._room[self.size : end] = values
        self.size = end

    def trimmed(self) -> np.ndarray:
        """All values, without the room; nothing can be appended any more."""
        self._room.resize(self.size, refcheck=False)
        return self._room


def _load(corpus: Corpus) -> tuple[LabelledRows, np.ndarray]:
    """All rows, columns being indices as written less 1 unless they are known to count from 0; and
    the labels by id."""
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
    from scipy.sparse import csr_matrix

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
    """Their number, and that of each entry, now that it is known from where indices count."""
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
    """The sorted labels of each row."""
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    ordered = values[np.lexsort((values, rows))].tolist()
    return [tuple(ordered[first:last]) for first, last in pairwise(starts.tolist())]
