"""Row caches return the rows that were written, and appear completely or not at all."""

import gc
import os
import re
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from depth import some
from problems.cached_rows import (
    IDENTITY,
    NUMBERS,
    TEXTS,
    assert_holds,
    assert_same_rows,
    random_block,
    write_cache,
    writing,
)
from sparsemargin.files.archive import ArchiveWriter
from sparsemargin.readers import cache_order
from sparsemargin.readers.cache_order import block_order, ordered, shuffled_blocks
from sparsemargin.readers.row_cache import (
    RowCache,
    default_cache_path,
    find_cache,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "train.svm.smcache"


def some_blocks(n_blocks=5, seed=0):
    rng = np.random.RandomState(seed)
    return [random_block(rng, 8, 6) for _ in range(n_blocks)]


@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_row_cache_round_trip_is_bitwise_equal(dtype, multilabel, path):
    """The blocks include empty ones, empty rows, and indices of different widths."""
    rng = np.random.RandomState(0)
    for n_blocks in [0, 1, *rng.randint(7, size=some(25, 100))]:
        kinds = zip(rng.choice([0, 1, 30], n_blocks), rng.randint(1, 40, n_blocks), strict=True)
        blocks = [
            random_block(rng, m, n, dtype, rng.choice(["i4", "i8"]), multilabel) for m, n in kinds
        ]
        write_cache(path, blocks, dtype, multilabel)
        assert_holds(path, blocks)
        with RowCache.open(path) as cache:
            np.testing.assert_array_equal(cache.label_numbers, NUMBERS)
            told = vars(cache).copy()
        assert told.items() >= {
            "path": str(path), "identity": IDENTITY, "dtype": np.dtype(dtype),
            "multilabel": multilabel, "label_texts": TEXTS,
            "n_rows": sum(len(block[2]) - 1 for block in blocks),
            "n_entries": sum(len(block[0]) for block in blocks),
            "n_columns": max((block[1].max() + 1 for block in blocks if len(block[1])), default=0),
            "lowest": 1 if blocks else 2**63 - 1, "highest": 2**40 if blocks else -1,
        }.items()  # fmt: skip


def test_blocks_are_written_while_the_consumer_works(path, monkeypatch):
    taken, write = threading.Event(), ArchiveWriter.array

    def array(archive, name, values):
        assert taken.wait(30)
        write(archive, name, values)

    monkeypatch.setattr(ArchiveWriter, "array", array)
    blocks = some_blocks()
    for _ in writing(path, blocks):
        taken.set()
    assert_holds(path, blocks)


def test_arrays_are_aligned_read_only_views(path):
    write_cache(path, some_blocks())
    with RowCache.open(path) as cache:
        first, again = cache.block(0), cache.block(0)
    for array, same in zip(first.arrays[:4], again.arrays[:4], strict=True):
        assert not array.flags.writeable
        assert array.ctypes.data % 64 == 0
        assert array.ctypes.data == same.ctypes.data


@pytest.mark.parametrize("error", [None, OSError(5, "reading", "text"), KeyboardInterrupt()])
def test_unfinished_cache_keeps_the_old_file(path, error):
    """Writing stops because of an error, or because the consumer stops."""
    old = some_blocks(3, seed=1)
    write_cache(path, old)

    def blocks():
        yield from some_blocks()
        raise error

    written = writing(path, blocks())
    if error is None:
        next(written)
        written.close()
    else:
        with pytest.raises(type(error)) as caught:
            list(written)
        assert caught.value is error
    assert os.listdir(path.parent) == [path.name]
    assert_holds(path, old)


def test_writing_a_cache_needs_constant_memory(path):
    block = random_block(np.random.RandomState(0), 500, 60)
    n_bytes = sum(array.nbytes for array in block)

    def read():
        with RowCache.open(path) as cache:
            assert sum(len(rows.data) for rows in cache.blocks()) == cache.n_entries

    write_cache(path, [block])
    read()  # the first call imports modules
    for work in lambda: write_cache(path, [block] * 300), read:
        tracemalloc.start()
        work()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20 * n_bytes
    assert path.stat().st_size > 300 * n_bytes


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read from")
def test_memory_map_releases_used_blocks(path):
    def resident():
        status = Path("/proc/self/status").read_text()
        return int(re.search(r"RssFile:\s+(\d+) kB", status)[1]) * 1024

    block = random_block(np.random.RandomState(0), 2000, 60)
    write_cache(path, [block] * 60)
    with RowCache.open(path) as cache:
        sums = {rows.data.tobytes() for rows in cache.blocks()}
        before = resident()
        for _ in ordered(cache, 0, 0):
            assert resident() - before < path.stat().st_size / 4
        everything = [cache.block(i) for i in range(cache.n_blocks)]
        assert {rows.data.tobytes() for rows in everything} == sums
        assert resident() - before > path.stat().st_size / 2


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to count files in")
def test_files_are_closed_and_views_outlive_them(path):
    def n_open():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    blocks = some_blocks()
    write_cache(path, blocks)
    before = n_open()
    cache = RowCache.open(path)
    kept = cache.block(1)
    passing = cache.blocks()
    next(passing)
    cache.close()
    cache.close()
    with pytest.raises(ValueError, match="closed"):
        cache.block(0)
    with pytest.raises(ValueError, match="closed"):
        next(passing)
    path.unlink()
    path.write_bytes(b"no cache")
    with pytest.raises(ValueError, match="not a row cache"):
        RowCache.open(path)
    assert_same_rows(kept, blocks[1])
    del kept, cache, passing
    assert n_open() == before


def test_threads_read_blocks_in_the_given_order(path):
    blocks = some_blocks(30)
    write_cache(path, blocks)

    def read(seed):
        order = np.append(block_order(30, seed), [3, 0, 3])
        for i, rows in zip(order, cache.blocks(order), strict=True):
            assert_same_rows(rows, blocks[i])
        return True

    with RowCache.open(path) as cache, ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(24)))
        for i in -1, 30:
            with pytest.raises(IndexError, match=f"no block {i}"):
                cache.block(i)


def test_cache_is_reused_for_its_own_source_only(path):
    assert find_cache(path, IDENTITY) is None
    write_cache(path, some_blocks(), identity={"source": ("a.svm", 7), "base": 1})
    for identity in {"source": ["a.svm", 7], "base": 1}, {"base": 1, "source": ("a.svm", 7)}:
        with find_cache(path, identity) as cache:
            assert cache.n_blocks == 5
    for identity in {"source": ["a.svm", 8], "base": 1}, {"source": ["a.svm", 7]}, {}:
        assert find_cache(path, identity) is None
    write_cache(path, some_blocks())
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(RuntimeWarning, match=rf"{re.escape(str(path))} is damaged.*written again"):
        assert find_cache(path, IDENTITY) is None
    for content in b"", b"1 3:0.5\n":
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"is not a row cache.*Name another file"):
            find_cache(path, IDENTITY)


def test_cache_paths_follow_the_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_cache_path([Path("/a/b.svm.gz")]) == Path("/a/b.svm.gz.smcache")
    several = default_cache_path(["a/x.svm", "b/y.svm"])
    assert re.fullmatch(r"a/x\.svm\.[0-9a-f]{12}\.smcache", str(several))
    assert default_cache_path([tmp_path / "a/x.svm", "b/y.svm"]) == tmp_path / several
    others = [["b/y.svm", "a/x.svm"], ["a/x.svm", "b/y.svm", "c"], ["a/x.svm", "c"], ["a/x.svm"]]
    assert len({several, *map(default_cache_path, others)}) == 5


def test_without_a_home_folder_caches_of_remote_files_need_a_path(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", str)
    with pytest.raises(FileNotFoundError, match=r"Set XDG_CACHE_HOME, or give the cache a path\."):
        default_cache_path(["https://example.org/a.svm"])


def test_block_orders_are_seeded_permutations():
    assert block_order(8, 1).tolist() == [0, 3, 7, 1, 2, 6, 5, 4]
    for n in 0, 1, 2, 100:
        order = block_order(n, 2**64 - 1)
        assert order.dtype == np.int64
        assert sorted(order) == list(range(n))
    assert len({tuple(block_order(20, seed)) for seed in range(50)}) == 50


@pytest.mark.parametrize("multilabel", [False, True])
def test_rows_are_shuffled_across_blocks_in_bounded_memory(path, multilabel, monkeypatch):
    rng = np.random.RandomState(0)
    kinds = rng.choice(["i4", "i8"], 12)
    blocks = [random_block(rng, 40, 6, "f8", kind, multilabel) for kind in kinds]
    write_cache(path, blocks, multilabel=multilabel)
    monkeypatch.setattr(cache_order, "_MIXED_BYTES", path.stat().st_size // 3)

    def row(rows, i):
        data, indices, _, *labels = rows.part(i, i + 1).arrays
        return data.tobytes(), tuple(indices), *(tuple(array) for array in labels)

    with RowCache.open(path) as cache:
        origin = {row(rows, i): b for b, rows in enumerate(cache.blocks()) for i in range(40)}
        expected = sorted(row(rows, i) for rows in cache.blocks() for i in range(40))

        def epoch(seed, number):
            passed = list(shuffled_blocks(cache, seed, number))
            assert all(sorted(order) == list(range(rows.n_rows)) for _, rows, order in passed)
            rows = {
                first + i: row(rows, i) for first, rows, _ in passed for i in range(rows.n_rows)
            }
            assert sorted(rows) == list(range(480))
            assert sorted(rows.values()) == expected
            # Each block has rows from several blocks of the cache.
            for _, each, _ in passed:
                assert len({origin[row(each, i)] for i in range(each.n_rows)}) >= 3
            return rows, [(first, order.tolist()) for first, _, order in passed]

        rows, first = epoch(5, 1)
        assert epoch(np.int64(5), 1) == (rows, first)
        # The next epoch has another order of the same rows, which keep their numbers.
        again, second = epoch(5, 2)
        assert again == rows
        assert [number for number, _ in second] != [number for number, _ in first]
        assert epoch(6, 1)[0] != rows


def test_shuffled_blocks_mix_large_blocks_of_one_label_each(path, monkeypatch):
    """Each file of one label is a block, and is as large as many groups of rows."""
    rng = np.random.RandomState(0)
    write_cache(path, [
        (*random_block(rng, 400, 6, "f8", "i4", False)[:3], np.full(400, i, np.int32))
        for i in range(5)
    ])  # fmt: skip
    monkeypatch.setattr(cache_order, "_MIXED_BYTES", path.stat().st_size // 12)
    with RowCache.open(path) as cache:
        blocks = [rows for _, rows, _ in shuffled_blocks(cache, 0, 1)]
    assert sum(rows.n_rows for rows in blocks) == 2000
    for start in range(0, len(blocks), 16):
        labels = np.concatenate([rows.labels for rows in blocks[start : start + 16]])
        assert np.bincount(labels, minlength=5).min() > 0.1 * len(labels)


def test_shuffled_epochs_are_equal_for_equal_seeds(path):
    blocks = some_blocks(12)
    write_cache(path, blocks)
    with RowCache.open(path) as cache:

        def epoch(seed, epoch):
            passed = list(ordered(cache, seed, epoch))
            starts = cache.first_rows.tolist()
            for start, rows, order in passed:
                i = starts.index(start)
                assert rows.data.tobytes() == blocks[i][0].tobytes()
                assert start == sum(len(block[2]) - 1 for block in blocks[:i])
                assert sorted(order) == list(range(rows.n_rows))
            assert len({tuple(order) for _, _, order in passed}) > 6
            return [(rows.data.tobytes(), order.tolist()) for _, rows, order in passed]

        first = epoch(5, 0)
        assert sorted(data for data, _ in first) == sorted(block[0].tobytes() for block in blocks)
        assert epoch(np.int64(5), np.int32(0)) == first
        others = [epoch(seed, i) for seed in (4, 5, 6) for i in range(4)]
        for part in 0, 1:
            assert len({str([block[part] for block in passed]) for passed in others}) == 12
