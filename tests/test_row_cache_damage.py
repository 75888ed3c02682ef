"""A damaged or forged row cache is refused; nothing else than what was written is ever read."""

import json
import re
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from cached_rows import (
    FOOTER,
    arrays,
    assert_same_rows,
    forge,
    random_block,
    record,
    write_cache,
)

from sparsemargin.io.row_cache import RowCache


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache"


@pytest.fixture(params=[False, True], ids=["one label", "multilabel"])
def written(request, path):
    """The blocks of a small cache, and its bytes."""
    rng = np.random.RandomState(3)
    kinds = [("i4", 5), ("i8", 4), ("i4", 0), ("i4", 6)]
    blocks = [random_block(rng, m, 5, "f4", index, request.param) for index, m in kinds]
    write_cache(path, blocks, "f4", request.param)
    return blocks, path.read_bytes()


def refused(path, blocks):
    """Whether the file, or a block of it, is refused; all others must be these."""
    cache = outcome(str(path), lambda: RowCache.open(path))
    if isinstance(cache, ValueError):
        return True
    assert cache.n_blocks == len(blocks)
    all_rows = [
        outcome(f"{path} is damaged.* block {i} ", lambda i=i: cache.block(i))
        for i in range(len(blocks))
    ]
    readable = [i for i, rows in enumerate(all_rows) if not isinstance(rows, ValueError)]
    for i in readable:
        assert_same_rows(all_rows[i], blocks[i])
    return len(readable) < len(blocks)


def outcome(message, read):
    """What is read, or a ValueError with this message."""
    try:
        return read()
    except ValueError as error:
        if not re.search(message, str(error)):
            raise
        return error


# -- damage ---------------------------------------------------------------------------------------


def test_every_cut_is_refused(path, written):
    blocks, content = written
    for end in range(len(content)):
        path.write_bytes(content[:end])
        assert refused(path, blocks)
        with pytest.raises(ValueError, match="damaged" if end >= 8 else "not a row cache"):
            RowCache.open(path)


def test_every_changed_byte_is_refused(path, written):
    blocks, content = written
    rng = np.random.RandomState(0)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << rng.randint(8)
        path.write_bytes(changed)
        assert refused(path, blocks)


def test_bytes_put_in_taken_out_or_moved_are_refused(path, written):
    blocks, content = written
    rng = np.random.RandomState(1)
    for _ in range(300):
        i, j, k = np.sort(rng.randint(0, len(content) + 1, 3))
        if rng.uniform() < 0.3:
            i, j, k = 64 * (np.array([i, j, k]) // 64)
        for changed in (
            content[:i] + content[j:],
            content[:j] + content[i:],
            content[:i] + bytes(j - i) + content[j:],
            content[:i] + content[j:k] + content[i:j] + content[k:],
        ):
            path.write_bytes(changed)
            assert refused(path, blocks) or changed == content


def test_a_newer_format_is_named(path, written):
    _, content = written
    path.write_bytes(content[:8] + struct.pack("<I", 2) + content[12:])
    with pytest.raises(ValueError, match=r"is of format 2, and this sparsemargin reads format 1"):
        RowCache.open(path)


def test_a_damaged_block_leaves_the_others_of_use(path, written):
    blocks, content = written
    path.write_bytes(content[:70] + bytes([content[70] ^ 1]) + content[71:])
    with RowCache.open(path) as cache:
        for i in 1, 2, 3:
            assert_same_rows(cache.block(i), blocks[i])
        for _ in range(2):
            with pytest.raises(ValueError, match=r"checksum of block 0 is wrong.*Delete it"):
                cache.block(0)
        passing = cache.blocks([1, 0, 2])
        assert_same_rows(next(passing), blocks[1])
        with pytest.raises(ValueError, match="block 0"):
            next(passing)


# -- forgeries, their checksums right -------------------------------------------------------------


def good_block(multilabel=False):
    block = [
        np.array([0.5, -1.0, 2.0]),
        np.array([0, 8, 3], np.int32),
        np.array([0, 2, 2, 3], np.int32),
        np.array([0, 1, 1], np.int32),
    ]
    return [*block, np.array([0, 0, 2, 3])] if multilabel else block


@pytest.mark.parametrize("multilabel", [False, True])
def test_a_cache_packed_by_hand_is_read(path, multilabel):
    block = good_block(multilabel)
    forge(path, [block, block], footer=FOOTER | {"multilabel": multilabel})
    with RowCache.open(path) as cache:
        assert cache.n_columns == 9
        for rows in cache.blocks():
            assert_same_rows(rows, block)


def assert_refused_cheaply(path):
    """Whatever sizes a file speaks of, reading it takes little more than its own."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=re.escape(f"{path} is damaged")):
            RowCache.open(path)
        assert tracemalloc.get_traced_memory()[1] < 100_000 + 20 * path.stat().st_size
    finally:
        tracemalloc.stop()


SIZES = [-1, -(2**63), 0, 1, 2, 4, 2**20, 2**31, 2**32 - 1, 2**61, 2**62, 2**63 - 1]


@pytest.mark.parametrize("multilabel", [False, True])
def test_sizes_that_are_not_the_blocks(path, multilabel):
    block = good_block(multilabel)
    footer = FOOTER | {"multilabel": multilabel}
    right = [3, 3, 3, 4, zlib.crc32(arrays(block))]
    refusals = 0
    for place in range(4):
        for size in SIZES if place < 3 else [0, 1, 2, 16, 2**31, 2**32 - 1]:
            changed = list(right)
            changed[place] = size
            forge(path, [block], [struct.pack("<qqqII", *changed)], footer)
            try:
                cache = RowCache.open(path)
            except ValueError:
                assert_refused_cheaply(path)
                refusals += 1
            else:
                # The padded arrays are as long as they were: the rows can't be.
                with pytest.raises(ValueError, match="block 0"):
                    cache.block(0)
    assert refusals > 30


@pytest.mark.parametrize("multilabel", [False, True])
def test_sizes_whose_sums_wrap_around(path, multilabel):
    footer = FOOTER | {"multilabel": multilabel}
    for size in SIZES[6:]:
        for n in 2, 4, 8, 16, 64:
            huge = struct.pack("<qqqII", 0, size, 0, 8, 0)
            forge(path, [], [huge] * n, footer)
            assert_refused_cheaply(path)


def test_sizes_whose_sums_wrap_around_to_the_right_ones(path):
    """2**60 entries of 16 bytes are no bytes at all, modulo 2**64."""
    for size, n in (2**60, 1), (2**59, 2), (2**57, 8):
        content = bytes(64)
        huge = struct.pack("<qqqII", 0, size, 0, 8, zlib.crc32(content))
        forge(path, [content] * n, [huge] * n)
        assert_refused_cheaply(path)


def test_negative_sizes_made_up_for_by_others(path):
    """20 rows take 192 bytes of pointers and 128 of labels, -8 entries -64 and -64."""
    content = bytes(192)
    forge(path, [content], [struct.pack("<qqqII", 20, -8, 20, 8, zlib.crc32(content))])
    assert_refused_cheaply(path)


def test_more_or_fewer_sizes_than_blocks(path):
    block = good_block()
    right = record(block, arrays(block))
    for records in [], [right] * 2, [right, right[:16]], [right[:31]]:
        forge(path, [block], records)
        assert_refused_cheaply(path)


def test_offsets_of_anything(path):
    block = good_block()
    forge(path, [block])
    length = path.stat().st_size
    right = 320, 352
    places = [0, 63, 64, 128, 319, 320, 321, 352, 360, length - 33, length - 32, length, 2**63]
    for table in places:
        for footer in [*places, 2**64 - 1]:
            if (table, footer) != right:
                forge(path, [block], offsets=(table, footer))
                assert_refused_cheaply(path)
    forge(path, [block], offsets=right)
    assert_same_rows(RowCache.open(path).block(0), block)


ANYTHING = [None, True, 0, -2, 2**63, 1.5, "", "float16", "object", [], [1], {}, {"a": 1}]
STILL_GOOD = {
    "identity": [{}, {"a": 1}],
    "lowest": [0],
    "highest": [0],
    # Too narrow for the rows, which only shows in the block.
    "n_columns": [0],
    "multilabel": [],
    "dtype": [],
    "byte_order": [],
    "label_texts": [],
    "label_numbers": [],
}


@pytest.mark.parametrize("name", FOOTER)
def test_footers_of_anything(path, name):
    for entry in ANYTHING:
        forge(path, [good_block()], footer=FOOTER | {name: entry})
        if type(entry) is not bool and entry in STILL_GOOD[name]:
            RowCache.open(path).close()
        else:
            assert_refused_cheaply(path)
    forge(path, [good_block()], footer={key: FOOTER[key] for key in FOOTER if key != name})
    assert_refused_cheaply(path)


@pytest.mark.parametrize(
    "footer",
    [
        b"",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"{",
        b"[" * 100_000,
        b"9" * 10_000,
        json.dumps(FOOTER | {"more": 1}).encode(),
        json.dumps(FOOTER | {"label_numbers": [1.0, float("inf")]}).encode(),
        json.dumps(FOOTER | {"label_numbers": [1.0]}).encode(),
        json.dumps(FOOTER | {"label_numbers": [1.0, 2]}).encode(),
        json.dumps(FOOTER | {"label_texts": ["a", 1]}).encode(),
        json.dumps(FOOTER).replace('"lowest": 1', '"lowest": 1e999').encode(),
    ],
)
def test_footers_that_are_none(path, footer):
    forge(path, [good_block()], footer=footer)
    assert_refused_cheaply(path)


FORGED_ROWS = {
    "pointers fall": (2, [0, 2, 1, 3], "row pointers"),
    "pointers don't begin": (2, [1, 2, 2, 3], "row pointers"),
    "pointers are negative": (2, [0, -1, 2, 3], "row pointers"),
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
    "label pointers don't begin": (4, [1, 2, 2, 3], "label pointers"),
    "label pointers end late": (4, [0, 0, 2, 2**62], "label pointers"),
    "label pointers end early": (4, [0, 0, 2, 2], "label pointers"),
}


@pytest.mark.parametrize("name", FORGED_ROWS)
def test_rows_that_the_engine_must_not_see(path, name):
    place, entries, message = FORGED_ROWS[name]
    multilabel = place == 4
    block = good_block(multilabel)
    block[place] = np.array(entries, block[place].dtype)
    forge(path, [good_block(multilabel), block], footer=FOOTER | {"multilabel": multilabel})
    with RowCache.open(path) as cache:
        cache.block(0)
        with pytest.raises(ValueError, match=rf"damaged: block 1 .*{message}"):
            cache.block(1)
