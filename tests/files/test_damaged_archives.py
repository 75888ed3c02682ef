"""Damaged or forged model files and row caches are refused, or give what was written."""

import json
import re
import warnings
import zipfile

import numpy as np
import pytest

from depth import some
from problems.cached_rows import (
    IDENTITY,
    TEXTS,
    assert_cache_refused,
    assert_same_rows,
    random_block,
    write_cache,
)
from problems.hostile import assert_refused, members_of, pack
from problems.models import assert_same, make_problem
from sparsemargin import ALMAClassifier, save_model
from sparsemargin.readers.row_cache import RowCache
from sparsemargin.tasks.load_model import load_model


class ModelFile:
    begin, document, array = "This (is not a|model file was cut short)", "model.json", "space.t"

    def __init__(self, path):
        self.path = path
        self.model = ALMAClassifier(hypothesis="last").fit(*make_problem(n=5))
        save_model(self.model, path)

    def refused(self):
        """Return whether the file is refused. Otherwise it must give the model."""
        loaded = outcome(f"^{self.path}: ", lambda: load_model(self.path))
        if isinstance(loaded, ValueError):
            return True
        assert_same(loaded, self.model)
        return False

    def assert_refused(self, message=""):
        assert_refused(self.path, message)


class CacheFile:
    begin, document, array = "damaged|not a row cache", "row_cache.json", "0.data"
    multilabel = True

    def __init__(self, path):
        self.path = path
        rng, kinds = np.random.RandomState(3), [("i4", 5), ("i8", 4), ("i4", 0), ("i4", 6)]
        self.blocks = [random_block(rng, m, 5, "f4", index, self.multilabel) for index, m in kinds]
        write_cache(path, self.blocks, "f4", self.multilabel)

    def refused(self):
        """Return whether the file or a block is refused. Everything else must be what was
        written."""
        cache = outcome(str(self.path), lambda: RowCache.open(self.path))
        if isinstance(cache, ValueError):
            return True
        assert cache.n_blocks == len(self.blocks)
        assert (cache.identity, cache.label_texts) == (IDENTITY, TEXTS)
        n_refused = 0
        for i, block in enumerate(self.blocks):
            rows = outcome(f"{self.path} is damaged.* block {i} ", lambda i=i: cache.block(i))
            if isinstance(rows, ValueError):
                n_refused += 1
            else:
                assert_same_rows(rows, block)
        return n_refused > 0

    def assert_refused(self, message=""):
        assert_cache_refused(self.path, message)


class LoneLabelsFile(CacheFile):
    multilabel = False


def outcome(message, read):
    """Return what is read, or a ValueError with this message."""
    try:
        return read()
    except ValueError as error:
        if not re.search(message, str(error)):
            raise
        return error


@pytest.fixture(params=some([ModelFile, CacheFile], [ModelFile, CacheFile, LoneLabelsFile]))
def file(request, tmp_path):
    return request.param(tmp_path / "file")


def places_in(content, step):
    """Return all positions near both ends, where the headers and the directory are, and every
    `step`-th position between."""
    n, ends = len(content), 130
    return [*range(ends), *range(ends, n - ends, some(step, 1)), *range(n - ends, n)]


def test_truncated_file_is_rejected(file):
    content = file.path.read_bytes()
    for end in places_in(content, 61):
        file.path.write_bytes(content[:end])
        file.assert_refused(file.begin)


def test_flipped_bit_is_rejected_or_has_no_effect(file):
    """A changed bit has no effect if it is, for example, in the date of a member."""
    content, rng = file.path.read_bytes(), np.random.RandomState(0)
    places, n_refused = places_in(content, 61), 0
    for place in places:
        bit = 1 << rng.randint(8)
        file.path.write_bytes(
            content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]
        )
        n_refused += file.refused()
    assert n_refused > len(places) / 3


def test_inserted_removed_or_moved_bytes_are_rejected(file):
    """Bytes are also changed at random in the directory."""
    content, rng = file.path.read_bytes(), np.random.RandomState(1)
    directory, n_refused, n = content.index(b"PK\x01\x02"), 0, some(60, 400)
    for _ in range(n):
        i, j, k = np.sort(rng.randint(0, len(content) + 1, 3))
        if rng.uniform() < 0.3:
            i, j, k = 64 * (np.array([i, j, k]) // 64)
        elif rng.uniform() < 0.3:
            i, j, k = np.sort(rng.randint(directory, len(content) + 1, 3))
        anything = bytearray(content)
        for _ in range(3):
            anything[rng.randint(directory, len(content))] = rng.randint(256)
        for changed in (
            content[:i] + content[j:],
            content[:j] + content[i:],
            content[:i] + bytes(j - i) + content[j:],
            content[:i] + content[j:k] + content[i:j] + content[k:],
            anything,
        ):
            file.path.write_bytes(changed)
            n_refused += file.refused()
    assert n_refused > 3.5 * n


def test_missing_repeated_or_long_members_are_rejected(file):
    members = members_of(file.path)
    pack(file.path, members.items())
    # The arrays of a cache must also be aligned.
    assert file.refused() is isinstance(file, CacheFile)
    pack(file.path, members.items(), zipfile.ZIP_DEFLATED)
    file.assert_refused("members are compressed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        pack(file.path, [*members.items(), (f"{file.array}.npy", b"again")])
    file.assert_refused("lie over each other")
    for name in members:
        pack(file.path, [(each, members[each]) for each in members if each != name])
        file.assert_refused()
    members[file.document] += b" " * (1 << 24)
    pack(file.path, members.items())
    file.assert_refused(f"{file.document} takes more than")


def test_overlapping_members_are_rejected(file):
    """Two entries of the directory refer to the same contents."""
    long = b"x" * 10 * file.path.stat().st_size
    pack(file.path, [*members_of(file.path).items(), ("aaa", long), ("bbb", b"")])
    archive = file.path.read_bytes()
    directory = archive.rindex(b"PK\x01\x02")
    first = archive.rindex(b"PK\x01\x02", 0, directory)
    entry = archive[first : first + 46] + b"bbb"
    file.path.write_bytes(archive[:directory] + entry + archive[directory + 49 :])
    file.assert_refused("lie over each other")


MODEL = {"format": "sparsemargin model", "version": 1}
DOCUMENTS = {
    "nothing": b"",
    "null": b"null",
    "no JSON": b"{",
    "not UTF-8": b'{"format": "\xff"}',
    "empty": b"{}",
    "a list": b"[1, 2]",
    "another format": b'{"format": "a tale", "version": 1}',
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep in its contents": json.dumps(MODEL).encode()[:-1]
    + b', "class": "ALMAClassifier", "parameters": {}, "state": {"form": null, "classes": '
    + b'{"tuple": [' * 900 + b"1" + b"]}" * 900 + b"}}",
    "infinite": b'{"format": Infinity}',
    "a long number": b'{"format": "sparsemargin model", "version": 1' + b"0" * 5000 + b"}",
}  # fmt: skip


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_empty_documents_are_rejected(document, file):
    members = members_of(file.path)
    for name in members.keys() & {file.document, "rows.json"}:
        pack(file.path, (members | {name: document}).items())
        file.assert_refused()


def header(dtype, shape, rest=b"", fortran=b"False", version=b"\1\0"):
    text = b"{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n" % (dtype, fortran, shape)
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + rest


ARRAYS = {
    "empty": b"",
    "not an array": b"no array at all",
    "another version": header(b"<f8", b"", version=b"\2\0"),
    "objects": header(b"|O", b"3,", b"x" * 24),
    "a huge one": header(b"<f8", b"99999999999,"),
    "huger": header(b"<f8", b"99999999999999, 9999999999999"),
    "a long number": header(b"<f8", b"1" * 50_000),
    "of no width": header(b"<U0", b"9999999,"),
    "less than none": header(b"<f8", b"-3,"),
    "a program": header(b"<f8", b"print(),"),
    "no type": header(b"<f7", b"3,", b"x" * 21),
    "by columns": header(b"<f8", b"3,", b"x" * 24, b"True"),
    "short": header(b"<f8", b"3,", b"x" * 23),
    "long": header(b"<f8", b"3,", b"x" * 25),
    "length as an int64 wraps": header(b"<f8", b"%d," % (2**61 + 3), b"x" * 24),
    "no bools": header(b"|b1", b"3,", b"xyz"),
    "no text": header(b"<U1", b"1,", b"\xff" * 4),
}


@pytest.mark.parametrize("content", ARRAYS.values(), ids=ARRAYS)
def test_invalid_arrays_are_rejected(content, file):
    pack(file.path, (members_of(file.path) | {f"{file.array}.npy": content}).items())
    file.assert_refused("block 0 " if isinstance(file, CacheFile) else file.array)
