"""Random blocks of rows for row caches, their bitwise comparison, and caches packed by hand."""

import io
import json
import re
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.readers import row_cache
from sparsemargin.readers.row_cache import RowCache
from sparsemargin.readers.rows import LabelledRows

IDENTITY = {"source": [["train.svm", 120, 7]], "base": 1}
TEXTS = ["+1", "-1", "spam", "2.5", ""]
NUMBERS = [1.0, -1.0, float("nan"), 2.5, float("nan")]


def random_block(rng, n_rows, width, dtype="f8", index="i4", multilabel=False):
    """Rows with up to `width` entries, some of them empty, as the arrays of a block."""
    lengths = rng.randint(0, width + 1, n_rows)
    lengths[rng.uniform(size=n_rows) < 0.2] = 0
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    # Indices exceed the 32-bit range if the dtype permits.
    top = 2**40 if np.dtype(index).itemsize == 8 else 2**31 - 1
    columns = [np.sort(rng.choice(2 * width, n, replace=False)) for n in lengths]
    columns += [np.empty(0, np.int64)]
    indices = np.concatenate(columns)
    indices = np.where(rng.uniform() < 0.3, indices + top - 2 * width, indices).astype(index)
    # All finite values are possible, including both zeros and subnormal numbers.
    data = np.frombuffer(rng.bytes(int(indptr[-1]) * np.dtype(dtype).itemsize), dtype).copy()
    data[~np.isfinite(data) | (rng.uniform(size=len(data)) < 0.1)] = -0.0
    if not multilabel:
        return data, indices, indptr, rng.randint(0, len(TEXTS), n_rows).astype("i4")
    start = np.concatenate([[0], np.cumsum(rng.randint(0, 3, n_rows))]).astype("i8")
    return data, indices, indptr, rng.randint(0, len(TEXTS), start[-1]).astype("i4"), start


def write_cache(path, blocks, dtype="f8", multilabel=False, identity=IDENTITY):
    for _ in writing(path, blocks, dtype, multilabel, identity):
        pass


def writing(path, blocks, dtype="f8", multilabel=False, identity=IDENTITY):
    """Yield the blocks as rows, each while it is written."""
    rows = (
        LabelledRows(*block, lowest=3 if i else 1, highest=9 if i else 2**40)
        for i, block in enumerate(blocks)
    )
    table = LabelTable(TEXTS, NUMBERS)
    return row_cache.write_cache(path, identity, dtype, multilabel, rows, table)


def assert_same_rows(rows, block):
    """Assert that arrays are bitwise equal and have the same dtypes."""
    for read, written in zip(rows.arrays, block, strict=True):
        assert (read is None) == (written is None)
        if written is not None:
            assert read.dtype == written.dtype
            assert read.tobytes() == written.tobytes()


def assert_holds(path, blocks):
    with RowCache.open(path) as cache:
        assert cache.n_blocks == len(blocks)
        for rows, block in zip(cache.blocks(), blocks, strict=True):
            assert_same_rows(rows, block)


def assert_cache_refused(path, message):
    """Assert the error, and that reading uses little more memory than the size of the file."""
    tracemalloc.start()
    try:
        with (
            pytest.raises(ValueError, match=f"{re.escape(str(path))}.*{message}"),
            RowCache.open(path) as cache,
        ):
            list(cache.blocks())
        assert tracemalloc.get_traced_memory()[1] < 100_000 + 20 * path.stat().st_size
    finally:
        tracemalloc.stop()


HEAD = {"version": 1, "identity": {}, "dtype": "float64", "multilabel": False}
END = {"lowest": 1, "highest": 9, "n_columns": 9}
LABELS = {
    "label_texts": np.frombuffer(b'["+1", "-1"]', np.uint8), "label_numbers": np.array([1.0, -1.0])
}  # fmt: skip
NAMES = ["data", "indices", "indptr", "labels", "label_start"]


def forge(path, blocks=(), changes=None):
    """A cache packed by hand, in the documented format, with correct checksums.

    `changes` are entries of the two documents, or arrays of labels, or text that replaces the
    second document.
    """
    n_rows = [len(block[2]) - 1 for block in blocks]
    n_entries = sum(len(block[0]) for block in blocks)
    told = {**HEAD, **END, **LABELS, "rows": n_rows, "n_entries": n_entries}
    told.update({} if isinstance(changes, bytes) else changes or {})
    head = {name: told.pop(name) for name in HEAD if name in told}
    labels = {name: told.pop(name) for name in LABELS}
    end = changes if isinstance(changes, bytes) else json.dumps(told).encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("row_cache.json", json.dumps(head))
        for i, block in enumerate(blocks):
            for name, array in zip(NAMES, block, strict=False):
                write_aligned(archive, f"{i}.{name}.npy", array)
        for name, array in labels.items():
            write_aligned(archive, f"{name}.npy", array)
        archive.writestr("rows.json", end)


def write_aligned(archive, name, array):
    """Write a member whose array starts at a multiple of 64 bytes."""
    content = io.BytesIO()
    np.save(content, array)
    info = zipfile.ZipInfo(name)
    padding = -(archive.fp.tell() + 34 + len(name)) % 64
    info.extra = struct.pack("<HH", 0xD935, padding) + bytes(padding)
    archive.writestr(info, content.getvalue())
