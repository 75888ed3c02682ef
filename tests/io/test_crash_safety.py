"""Whatever is cut short, by a kill, a power failure or a full disk: files are old or new, whole."""

import bz2
import errno
import mmap
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from problems.cached_rows import IDENTITY, assert_holds, random_block, write_cache
from problems.faults import KINDS, Faults, Scenario, strike_everywhere
from sparsemargin.io.files import replacing
from sparsemargin.io.row_cache import RowCache, find_cache


@pytest.fixture(scope="module")
def faults():
    with Faults() as running:
        yield running


# -- files of any kind ----------------------------------------------------------------------------

OLD, NEW = b"old" * 5000, b"new" * 9000


def write_old_file(folder):
    (folder / "file").write_bytes(OLD)


def write_file(folder):
    """In parts small and large, and with a place left open and filled in later."""
    with replacing(folder / "file") as file:
        file.write(bytes(3) + NEW[3:10])
        for start in range(10, len(NEW), 11_000):
            file.write(NEW[start : start + 11_000])
        file.seek(0)
        file.write(NEW[:3])


def write_file_through_a_link(folder):
    with replacing(folder / "link") as file:
        file.write(NEW)


def prepare_link(folder):
    write_old_file(folder)
    (folder / "link").symlink_to("file")


def state_of_file(folder):
    content = (folder / "file").read_bytes()
    assert content in (OLD, NEW)
    return "old" if content == OLD else "new"


# -- row caches -----------------------------------------------------------------------------------


def cached_blocks(seed):
    """Some larger than what file objects gather before they write, and one without rows."""
    rng = np.random.RandomState(seed)
    return [random_block(rng, m, 30) for m in (20, 400, 0, 3)]


def write_old_cache(folder):
    write_cache(folder / "cache", cached_blocks(1))


def write_new_cache(folder):
    write_cache(folder / "cache", cached_blocks(2), identity={"source": "new"})


def state_of_cache(folder):
    """By way of `find_cache`, which any warning of damage makes fail."""
    path = folder / "cache"
    for seed, identity in (1, IDENTITY), (2, {"source": "new"}):
        cache = find_cache(path, identity)
        if cache is not None:
            cache.close()
            assert_holds(path, cached_blocks(seed))
            return "old" if seed == 1 else "new"
    assert not path.exists()
    return "old"


def nothing(folder):
    """No file there before."""


SCENARIOS = {
    "file": Scenario(write_old_file, write_file, state_of_file, "file"),
    "link": Scenario(prepare_link, write_file_through_a_link, state_of_file, "link"),
    "cache": Scenario(write_old_cache, write_new_cache, state_of_cache, "cache"),
    "first cache": Scenario(nothing, write_new_cache, state_of_cache, "cache"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.filterwarnings("error")
def test_a_fault_anywhere_leaves_old_or_new(faults, name, kind, tmp_path):
    scenario = SCENARIOS[name]
    struck = strike_everywhere(faults, scenario, kind, tmp_path)
    operations = faults.run(scenario.write, tmp_path / "undisturbed").operations
    assert operations.count("write") >= 1
    if kind == "full":
        # All up to the new name; that it lasts is more than some file systems can promise.
        assert operations[-5:] == ["replace", "close", "open", "fsync", "close"]
        assert struck == operations.index("replace") + 1
    elif kind == "full amid":
        assert struck == operations.count("write")
    else:
        assert struck == (operations.count("write") if "amid" in kind else len(operations))


def write_caches_for_ever(folder):
    while True:
        write_new_cache(folder)
        write_old_cache(folder)


@pytest.mark.filterwarnings("error")
def test_killed_at_random_moments_a_whole_cache_is_there(faults, tmp_path):
    rng = np.random.RandomState(0)
    write_old_cache(tmp_path)
    seen, longest = set(), 0.06
    for _ in range(40):
        outcome = faults.run(write_caches_for_ever, tmp_path, kill_after=rng.uniform(0, longest))
        assert outcome.killed
        seen.add(state_of_cache(tmp_path))
        if "new" not in seen:  # a busy machine, or an engine under the sanitizers
            longest = min(1.3 * longest, 1.0)
    assert seen == {"old", "new"}
    write_old_cache(tmp_path)
    assert os.listdir(tmp_path) == ["cache"]


def test_writers_side_by_side_do_not_remove_each_other_s_files(tmp_path):
    def write(i):
        for _ in range(60):
            (write_old_cache, write_new_cache)[i % 2](tmp_path)

    write_old_cache(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert os.listdir(tmp_path) == ["cache"]
    assert state_of_cache(tmp_path) in ("old", "new")


def test_what_looks_like_a_file_left_over_but_is_not_stays(tmp_path):
    """Another file's, one of another name, a folder, a link, and one that is being written."""
    names = ["cache.0123456789ab.tmp", ".other.0123456789ab.tmp", ".cache.0123456789.tmp"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".cache.ffffffffffff.tmp").mkdir()
    (tmp_path / ".cache.eeeeeeeeeeee.tmp").symlink_to(names[0])
    (tmp_path / ".cache.dddddddddddd.tmp").write_bytes(b"left over")
    there = {*os.listdir(tmp_path), "cache"} - {".cache.dddddddddddd.tmp"}
    with replacing(tmp_path / "cache") as file:
        (being_written,) = set(os.listdir(tmp_path)) - there
        write_old_cache(tmp_path)
        assert set(os.listdir(tmp_path)) == {*there, being_written}
        file.write(NEW)
    assert set(os.listdir(tmp_path)) == there
    assert (tmp_path / "cache").read_bytes() == NEW


# -- a disk that is full --------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, of 256 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small file system can't be mounted here: {error}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_leaves_the_old_cache(small_disk):
    write_old_cache(small_disk)
    path = small_disk / "cache"
    block = cached_blocks(3)[1]
    for n_blocks in 4, 5, 100:
        free = os.statvfs(small_disk).f_bavail
        with pytest.raises(OSError, match="No space left") as caught:
            write_cache(path, [block] * n_blocks)
        assert caught.value.errno == errno.ENOSPC
        assert caught.value.filename == str(path)
        assert os.statvfs(small_disk).f_bavail == free
        assert os.listdir(small_disk) == ["cache"]
        assert_holds(path, cached_blocks(1))
    write_cache(path, [block])
    assert_holds(path, [block])


# -- the faults themselves ------------------------------------------------------------------------


def write_in_place(folder):
    (folder / "file").write_bytes(NEW)


def replace_unsynchronised(folder):
    with open(folder / "fresh", "wb") as file:
        file.write(NEW)
    os.replace(folder / "fresh", folder / "file")


def leave_fresh_file(folder):
    try:
        with open(folder / "fresh", "wb") as file:
            file.write(NEW)
            os.fsync(file.fileno())
        os.replace(folder / "fresh", folder / "file")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder / "file")) from None


def name_another_file(folder):
    try:
        write_file(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, "fresh") from None


def unlink_first(folder):
    os.unlink(folder / "file")
    write_file(folder)


@pytest.mark.parametrize(
    ("write", "kind"),
    [
        (write_in_place, "kill"),
        (write_in_place, "kill amid"),
        (write_in_place, "full"),
        (replace_unsynchronised, "power"),
        (leave_fresh_file, "full"),
        (leave_fresh_file, "full amid"),
        (name_another_file, "full"),
        (unlink_first, "kill"),
    ],
)
def test_a_planted_mistake_is_found(faults, write, kind, tmp_path):
    scenario = Scenario(write_old_file, write, state_of_file, "file")
    with pytest.raises((AssertionError, FileNotFoundError)):
        strike_everywhere(faults, scenario, kind, tmp_path)


def write_bz2(folder):
    with bz2.open(folder / "file", "wb") as file:
        file.write(NEW)


def write_map(folder):
    with open(folder / "file", "r+b") as file, mmap.mmap(file.fileno(), 0) as contents:
        contents[:3] = NEW[:3]


def write_vectors(folder):
    with open(folder / "file", "wb") as file:
        os.writev(file.fileno(), [NEW])


@pytest.mark.parametrize("write", [write_bz2, write_map, write_vectors])
def test_writing_that_is_not_counted_is_refused(faults, write, tmp_path):
    write_old_file(tmp_path)
    outcome = faults.run(write, tmp_path)
    assert outcome.error["type"] == "RuntimeError"
    assert "gets past the faulty disk" in outcome.error["message"]


def test_operations_are_counted(faults, tmp_path):
    write_old_file(tmp_path)
    ending = ["fsync", "replace", "close", "open", "fsync", "close"]
    outcome = faults.run(write_file_through_a_link, tmp_path)
    assert outcome.operations == ["create", "write", *ending]
    assert (tmp_path / "link").read_bytes() == NEW
    outcome = faults.run(write_in_place, tmp_path)
    assert outcome.operations == ["create", "write", "close"]


def read_cache(folder):
    with RowCache.open(folder / "cache") as cache:
        for _ in cache.blocks():
            pass


def test_reading_a_cache_writes_nothing(faults, tmp_path):
    write_old_cache(tmp_path)
    outcome = faults.run(read_cache, tmp_path)
    assert outcome.operations == []
    assert outcome.error is None
