"""A forged row cache with correct checksums is refused unless its rows are valid."""

import json

import numpy as np
import pytest

from problems.cached_rows import END, HEAD, assert_cache_refused, assert_same_rows, forge
from problems.hostile import members_of, pack
from sparsemargin.readers.row_cache import RowCache

# The cache is refused when it is opened, not when its first block is read.
AT_ONCE = "is damaged: (?!block)"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache"


def good_block(multilabel=False):
    block = [
        np.array([0.5, -1.0, 2.0]),
        np.array([0, 8, 3], np.int32),
        np.array([0, 2, 2, 3], np.int32),
        np.array([0, 1, 1], np.int32),
    ]
    return [*block, np.array([0, 0, 2, 3])] if multilabel else block


@pytest.mark.parametrize("multilabel", [False, True])
def test_cache_written_by_hand_is_read(path, multilabel):
    block = good_block(multilabel)
    forge(path, [block, block], {"multilabel": multilabel})
    with RowCache.open(path) as cache:
        assert cache.n_columns == 9
        for rows in cache.blocks():
            assert_same_rows(rows, block)


def test_other_format_version_is_reported(path):
    forge(path, changes={"version": 3})
    with pytest.raises(ValueError, match=r"has format 3, but .* reads only format 1"):
        RowCache.open(path)


def assert_block_refused(path, i, message):
    """Block `i` is refused, also the second time. The other blocks can be read."""
    with RowCache.open(path) as cache:
        for _ in range(2):
            with pytest.raises(ValueError, match=rf"damaged: block {i} .*{message}.*Delete it"):
                cache.block(i)
        others = [each for each in range(cache.n_blocks) if each != i]
        passing = cache.blocks([*others, i, *others])
        for each in others:
            assert next(passing).data.tobytes() == cache.block(each).data.tobytes()
        with pytest.raises(ValueError, match=f"block {i} "):
            next(passing)


ANYTHING = [None, True, 0, -2, 2**63, 1.5, "", "float16", "object", [], [1], {}, {"a": 1}]
STILL_GOOD = {
    "identity": [{}, {"a": 1}], "lowest": [0], "highest": [0],
    # It is too narrow for the rows, which is detected when the block is read.
    "n_columns": [0], "n_entries": [0], "multilabel": [], "dtype": [],
    "version": [1],
}  # fmt: skip


@pytest.mark.parametrize("name", [*HEAD, *END])
def test_invalid_document_entries_are_rejected(path, name):
    for entry in ANYTHING:
        forge(path, [good_block()], {name: entry})
        if entry in STILL_GOOD[name] and (type(entry) is not bool or name == "version"):
            RowCache.open(path).close()
        else:
            assert_cache_refused(path, "format" if name == "version" else AT_ONCE)


def test_incomplete_or_contradictory_documents_are_rejected(path):
    for changes in (
        {"rows": [3], "n_entries": float("inf")},
        {"rows": [3, 3]},
        {},
    ):
        forge(path, [good_block()], json.dumps(END | changes).encode())
        assert_cache_refused(path, AT_ONCE)
    for rows in [[-1], [2**40], [2**63], [2**1000], [1.0], [True], 3, None, {}]:
        forge(path, [good_block()], {"rows": rows})
        assert_cache_refused(path, "it is wrong at 'rows'")
    for n in 0, 2, 4:
        forge(path, [good_block()], {"rows": [n]})
        assert_block_refused(path, 0, "other rows")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("label_texts", np.frombuffer(b'["+1", 1]', np.uint8)),
        ("label_texts", np.frombuffer(b'{"+1": 1}', np.uint8)),
        ("label_texts", np.frombuffer(b'["+1"]', np.uint8)),
        ("label_texts", np.frombuffer(b'["+1", "-1"]', np.int8)),
        ("label_texts", np.zeros((6, 1), np.uint8)),
        ("label_texts", np.array(["+1", "-1"])),
        ("label_numbers", np.array([1.0, np.inf])),
        ("label_numbers", np.array([1, -1])),
        ("label_numbers", np.array([[1.0, -1.0]])),
        *(("label_numbers", np.zeros(n)) for n in (0, 1, 3)),
    ],
)
def test_label_arrays_of_other_types_are_rejected(path, name, array):
    forge(path, [good_block()], {name: array})
    assert_cache_refused(path, "it is wrong at 'label_(texts|numbers)'")


def test_members_in_another_order_are_rejected(path):
    forge(path, [good_block(), good_block()])
    members = members_of(path)
    names = sorted(members, reverse=True)
    pack(path, [(name, members[name]) for name in sorted(names, key="row_cache.json".__ne__)])
    assert_cache_refused(path, "its blocks are in another order")


FORGED_ROWS = {
    "pointers fall": (2, [0, 2, 1, 3], "row pointers"),
    "pointers don't begin": (2, [1, 2, 2, 3], "row pointers"),
    "pointers end late": (2, [0, 2, 2, 4], "row pointers"),
    "pointers end early": (2, [0, 2, 2, 2], "row pointers"),
    "pointers are huge": (2, [0, 2**31 - 1, -(2**31), 3], "row pointers"),
    "column too high": (1, [0, 9, 3], "row 0 holds a column out of range"),
    "column negative": (1, [0, 8, -1], "row 2 holds a column out of range"),
    "column repeated": (1, [8, 8, 3], "row 0 holds a column twice"),
    "columns fall": (1, [8, 0, 3], "increasing order"),
    "NaN": (0, [0.5, 1.0, np.nan], "row 2 holds a value that is NaN"),
    "infinity": (0, [-np.inf, 1.0, 0.5], "row 0 holds a value that is NaN or infinite"),
    "label too high": (3, [0, 1, 2], "id of a label"),
    "label negative": (3, [0, -1, 1], "id of a label"),
    "label pointers fall": (4, [0, 2, 1, 3], "label pointers"),
    "label pointers end late": (4, [0, 0, 2, 2**62], "label pointers"),
    "label pointers end early": (4, [0, 0, 2, 2], "label pointers"),
    "fewer values": (0, [0.5, -1.0], "differ in the number of entries"),
    "fewer labels": (3, [0, 1], "differ in the number of .* rows"),
    "other values": (0, np.zeros(3, "f4"), "data is of type float32"),
    "other indices": (1, np.zeros(3, "u4"), "indices is of type uint32"),
    "other pointers": (2, np.array([0, 2, 2, 3]), "indptr is of type int64"),
    "other labels": (3, np.array([0, 1, 1]), "labels is of type int64"),
    "two axes": (0, np.ones((3, 1)), "data is not one-dimensional"),
}


@pytest.mark.parametrize("name", FORGED_ROWS)
def test_invalid_rows_are_rejected(path, name):
    place, entries, message = FORGED_ROWS[name]
    multilabel = place == 4
    block = good_block(multilabel)
    kind = entries.dtype if isinstance(entries, np.ndarray) else block[place].dtype
    block[place] = np.array(entries, kind)
    forge(path, [good_block(multilabel), block], {"multilabel": multilabel})
    assert_block_refused(path, 1, message)


def test_misaligned_arrays_are_rejected(path):
    forge(path, [good_block()])
    members, refused = members_of(path), 0
    for pad in range(8):
        spaced = members | {"row_cache.json": members["row_cache.json"] + b" " * pad}
        pack(path, spaced.items())
        with RowCache.open(path) as cache:
            try:
                assert all(array.flags.aligned for array in cache.block(0).arrays[:4])
            except ValueError as error:
                refused += "contiguous" in str(error)
    assert refused > 0


@pytest.mark.parametrize("labels", [
    np.array([0, 1, 2], np.int32), np.array([0, -1, 1], np.int32), np.array([0, 1, 1]),
    np.array([[0], [1], [1]], np.int32),
])  # fmt: skip
def test_labels_are_read_alone_unless_they_are_invalid(path, labels):
    block = good_block()
    forge(path, [block, block])
    with RowCache.open(path) as cache:
        assert [ids.tolist() for ids in cache.labels()] == [[0, 1, 1], [0, 1, 1]]
    forge(path, [block, [*block[:3], labels]])
    with RowCache.open(path) as cache:
        found = cache.labels()
        assert next(found).tolist() == [0, 1, 1]
        with pytest.raises(ValueError, match=r"damaged: block 1 .*Delete it"):
            next(found)
