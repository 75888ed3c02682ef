"""Row caches are written block by block, and take their place as a whole."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin._engine.rows.csr import INDEX_TYPES, VALUE_TYPES
from sparsemargin.io._cache_format import (
    BLOCK,
    HEAD,
    Footer,
    array_bytes,
    pack_end,
    padded,
    stored,
    wrong_field,
)
from sparsemargin.io._cache_rows import fault
from sparsemargin.io.files import naming, replacing
from sparsemargin.io.rows import LabelledRows

_LABEL, _LABEL_START = np.dtype(np.int32), np.dtype(np.int64)


class _Abandoned(Exception):
    """Makes `replacing` take the unfinished file away."""


class RowCacheWriter:
    """Writes a row cache; a context manager.

    The file appears at `path` when the `with` block is left after `finish`. Left without it, or
    by an error, it leaves what was there. Memory does not depend on the number of rows, but for
    32 bytes a block.

    Parameters
    ----------
    path : path
    identity : dict
        What the rows come from, and how they were read; of what JSON can hold.
    dtype : {numpy.float32, numpy.float64}
        Type of the values.
    multilabel : bool, default=False
        Whether a row has any number of labels.

    Raises
    ------
    TypeError
        If JSON can't hold `identity`.
    ValueError
        If `dtype` is another one, or `identity` holds NaN or an infinity.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        identity: dict[str, Any],
        dtype: DTypeLike,
        multilabel: bool = False,
    ):
        self.path = os.fspath(path)
        self.identity = stored(identity)
        self.dtype = np.dtype(dtype)
        if self.dtype not in VALUE_TYPES:
            raise ValueError(f"dtype is {self.dtype}; a row cache holds float32 or float64.")
        self.multilabel = multilabel

    def __enter__(self) -> RowCacheWriter:
        self._table = bytearray()
        self._end = 0
        self._n_columns = self._n_labels = 0
        self._finished = False
        with ExitStack() as stack:
            self._file: BinaryIO = stack.enter_context(replacing(self.path))
            self._write(HEAD)
            self._place = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._finished and error is None:
            self._place.close()
        else:
            # Not the error itself, which may be another file's and would be named after this one.
            self._place.__exit__(_Abandoned, _Abandoned(), None)

    def append(
        self,
        data: np.ndarray,
        indices: np.ndarray,
        indptr: np.ndarray,
        labels: np.ndarray,
        label_start: np.ndarray | None = None,
    ) -> None:
        """Write some rows as one block; the arrays are free for other use thereafter.

        Parameters
        ----------
        data : ndarray of shape (n_entries,), the writer's dtype
        indices : ndarray of shape (n_entries,), int32 or int64
            Columns, strictly increasing within a row.
        indptr : ndarray of shape (n_rows + 1,), the type of `indices`
        labels : ndarray of int32
            Ids of labels: one for each row; if `multilabel`, those of all rows.
        label_start : ndarray of shape (n_rows + 1,), int64
            Where the labels of each row begin; only if `multilabel`.

        Raises
        ------
        ValueError
            If the arrays are of other types or lengths, or no rows that can be learned from.
        OSError
            If they can't be written; names the file.
        """
        rows = LabelledRows(data, indices, indptr, labels, label_start)
        _check_types(rows, self.dtype, self.multilabel)
        n_columns = int(indices.max()) + 1 if len(indices) else 0
        n_labels = int(labels.max()) + 1 if len(labels) else 0
        wrong = fault(rows, n_columns, n_labels)
        if wrong:
            raise ValueError(f"The block can't be cached: {wrong}.")
        self._write_block(rows)
        self._n_columns = max(self._n_columns, n_columns)
        self._n_labels = max(self._n_labels, n_labels)

    def finish(
        self,
        label_texts: Sequence[str],
        label_numbers: Sequence[float],
        lowest: int,
        highest: int,
    ) -> None:
        """Write what is known once all rows are.

        Parameters
        ----------
        label_texts : sequence of str
            Labels as written, by their ids.
        label_numbers : sequence of float
            The same as numbers; NaN for words.
        lowest, highest : int
            Range of the indices as written; 2**63 - 1 and -1 where there are none.

        Raises
        ------
        ValueError
            If a row has the id of a label that is not given.
        OSError
            If it can't be written; names the file.
        """
        if len(label_texts) < self._n_labels:
            raise ValueError(
                f"Rows have label ids up to {self._n_labels - 1}, but label_texts has "
                f"{len(label_texts)} entries. Give the text of every label."
            )
        footer = Footer(
            identity=self.identity,
            dtype=self.dtype.name,
            multilabel=self.multilabel,
            label_texts=[str(text) for text in label_texts],
            label_numbers=[None if math.isnan(n) else float(n) for n in label_numbers],
            lowest=int(lowest),
            highest=int(highest),
            n_columns=self._n_columns,
        )
        wrong = wrong_field(vars(footer))
        if wrong is not None:
            raise ValueError(
                f"A row cache can't be finished with this {wrong}: it takes as many label_numbers "
                "as label_texts, finite or NaN, and indices from 0 to 2**63 - 1."
            )
        table, offset = bytes(self._table), self._end
        self._write(table + pack_end(table, offset, footer))
        self._finished = True

    def _write_block(self, rows: LabelledRows) -> None:
        shape = (rows.n_rows, len(rows.data), len(rows.labels), rows.indices.itemsize, 0)
        record = np.array(shape, BLOCK)
        for array, n_bytes in zip(
            rows.arrays, array_bytes(self.dtype.itemsize, self.multilabel, record), strict=True
        ):
            gap = bytes(int(padded(n_bytes) - n_bytes))
            record["crc"] = zlib.crc32(gap, zlib.crc32(array.data, int(record["crc"])))
            self._write(array)
            self._write(gap)
        self._table += record.tobytes()

    def _write(self, content: Any) -> None:
        try:
            self._file.write(content)
        except OSError as error:
            raise naming(error, self.path) from None
        self._end += memoryview(content).nbytes


def _check_types(rows: LabelledRows, dtype: np.dtype, multilabel: bool) -> None:
    """Raise a ValueError where the arrays are no block, whatever is in them."""
    if any(array.ndim != 1 or not array.flags.c_contiguous for array in rows.arrays):
        raise ValueError("The arrays of a block must be one-dimensional and contiguous.")
    if (rows.label_start is not None) != multilabel:
        raise ValueError("label_start goes with multilabel=True, and only with it.")
    if rows.indices.dtype not in INDEX_TYPES:
        raise ValueError(f"indices is of type {rows.indices.dtype}, not int32 or int64.")
    expected = [dtype, rows.indices.dtype, rows.indices.dtype, _LABEL, _LABEL_START]
    names = ["data", "indices", "indptr", "labels", "label_start"]
    for name, array, wanted in zip(names, rows.arrays, expected, strict=False):
        if array.dtype != wanted:
            raise ValueError(f"{name} is of type {array.dtype}, not {wanted}.")
    per_row = len(rows.labels) if rows.label_start is None else len(rows.label_start) - 1
    if len(rows.data) != len(rows.indices) or per_row != rows.n_rows or per_row < 0:
        raise ValueError("The arrays of a block differ in the number of entries or of rows.")
