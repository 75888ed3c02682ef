"""A damaged or forged row cache is refused; nothing else than what was written is ever read."""

import json
import re
import tracemalloc
import zipfile

import numpy as np
import pytest

from problems.cached_rows import (
    END,
    HEAD,
    IDENTITY,
    NAMES,
    TEXTS,
    assert_same_rows,
    forge,
    random_block,
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
    """Whether the file, or a block of it, is refused; all else must be what was written."""
    cache = outcome(str(path), lambda: RowCache.open(path))
    if isinstance(cache, ValueError):
        return True
    assert cache.n_blocks == len(blocks)
    assert (cache.identity, cache.label_texts) == (IDENTITY, TEXTS)
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
    _, content = written
    for end in range(len(content)):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match="damaged" if end >= 44 else "not a row cache"):
            RowCache.open(path)


def test_every_changed_byte_is_refused_or_tells_of_nothing(path, written):
    """A member's date, say, which nothing reads."""
    blocks, content = written
    rng, n_refused = np.random.RandomState(0), 0
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << rng.randint(8)
        path.write_bytes(changed)
        n_refused += refused(path, blocks)
    assert n_refused > len(content) / 2


def test_bytes_put_in_taken_out_or_moved_are_refused(path, written):
    blocks, content = written
    rng, n_refused = np.random.RandomState(1), 0
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
            n_refused += refused(path, blocks)
    assert n_refused > 900


@pytest.mark.parametrize("version", [1, 3])
def test_another_format_is_named(path, version):
    forge(path, changes={"version": version})
    if version == 1:
        path.write_bytes(b"\x93smrows\n\1\0\0\0" + bytes(200))
    with pytest.raises(ValueError, match=f"is of format {version}, and .* reads format 2 only"):
        RowCache.open(path)


def test_a_damaged_block_leaves_the_others_of_use(path, written):
    blocks, content = written
    place = content.index(blocks[0][0].tobytes())
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with RowCache.open(path) as cache:
        for i in 1, 2, 3:
            assert_same_rows(cache.block(i), blocks[i])
        for _ in range(2):
            with pytest.raises(ValueError, match=r"block 0 .*checksum.*Delete it"):
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
    forge(path, [block, block], {"multilabel": multilabel})
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


def test_members_that_are_missing_or_elsewhere(path):
    block = good_block()
    forge(path, [block, block])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name in members:
        forge_members(path, {each: members[each] for each in members if each != name})
        if name != "row_cache.json":
            assert_refused_cheaply(path)
    forge_members(path, {name: members[name] for name in sorted(members, reverse=True)})
    assert_refused_cheaply(path)
    forge(path, [block], compression=zipfile.ZIP_DEFLATED)
    assert_refused_cheaply(path)


def forge_members(path, members):
    """`row_cache.json` before all others."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(members, key="row_cache.json".__ne__):
            archive.writestr(name, members[name])


def test_numbers_of_rows_that_are_not_the_blocks(path):
    block = good_block()
    for rows in [[3, 3], [-1], [2**63], [2**1000], [1.0], [True], 3, None, {}]:
        forge(path, [block], {"rows": rows})
        assert_refused_cheaply(path)
    for n in 0, 2, 4:
        forge(path, [block], {"rows": [n]})
        with RowCache.open(path) as cache, pytest.raises(ValueError, match=r"block 0 .*other rows"):
            cache.block(0)


HUGE = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }"


@pytest.mark.parametrize("n", [-1, 0, 2, 4, 2**31, 2**61, 2**61 + 3, 2**64 + 3])
def test_arrays_that_are_not_as_long_as_they_say(path, n):
    forge(path, [good_block()])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    data = members["0.data.npy"]
    header = (HUGE % n).ljust(117) + b"\n"
    members["0.data.npy"] = data[:8] + len(header).to_bytes(2, "little") + header + data[128:]
    forge_members(path, members)
    with (
        RowCache.open(path) as cache,
        pytest.raises(ValueError, match="block 0 "),
    ):
        cache.block(0)


def test_arrays_that_lie_where_their_type_may_not(path):
    forge(path, [good_block()])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for pad in range(8):
        forge_members(path, members | {"row_cache.json": members["row_cache.json"] + b" " * pad})
        with RowCache.open(path) as cache:
            rows = outcome(f"{path} is damaged: block 0 .*contiguous", lambda: cache.block(0))
            assert isinstance(rows, ValueError) or all(array.flags.aligned for array in rows[:4])


OTHER_TYPES = {"data": "f4", "indices": "u4", "indptr": "i8", "labels": "i8"}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_arrays_of_another_type(path, name):
    block = good_block()
    place = NAMES.index(name)
    block[place] = block[place].astype(OTHER_TYPES[name])
    forge(path, [block])
    with RowCache.open(path) as cache, pytest.raises(ValueError, match=f"block 0 .*{name}.* type"):
        cache.block(0)


ANYTHING = [None, True, 0, -2, 2**63, 1.5, "", "float16", "object", [], [1], {}, {"a": 1}]
STILL_GOOD = {
    "identity": [{}, {"a": 1}], "lowest": [0], "highest": [0],
    # Too narrow for the rows, which only shows in the block.
    "n_columns": [0], "n_entries": [0], "multilabel": [], "dtype": [],
    "label_texts": [], "label_numbers": [], "version": [],
}  # fmt: skip


@pytest.mark.parametrize("name", [*HEAD, *END])
def test_documents_of_anything(path, name):
    for entry in ANYTHING:
        forge(path, [good_block()], {name: entry})
        if type(entry) is not bool and entry in STILL_GOOD[name]:
            RowCache.open(path).close()
        elif name != "version":
            assert_refused_cheaply(path)
        else:
            with pytest.raises(ValueError, match="format"):
                RowCache.open(path)


@pytest.mark.parametrize(
    "end",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"{",
        b"[" * 100_000,
        b"9" * 10_000,
        json.dumps(END).encode(),
        json.dumps(END | {"rows": [3], "label_numbers": [1.0, float("inf")]}).encode(),
        json.dumps(END | {"rows": [3], "n_entries": 3, "label_numbers": [1.0]}).encode(),
        json.dumps(END | {"rows": [3], "n_entries": 3, "label_texts": ["a", 1]}).encode(),
    ],
)
def test_documents_that_are_none(path, end):
    forge(path, [good_block()], end)
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
    forge(path, [good_block(multilabel), block], {"multilabel": multilabel})
    with RowCache.open(path) as cache:
        cache.block(0)
        with pytest.raises(ValueError, match=rf"damaged: block 1 .*{message}"):
            cache.block(1)
