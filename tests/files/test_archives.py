"""Damaged, padded and concatenated archives give the same result as gzip, bzip2, xz and zstd.

An archive that the tool refuses is refused, and one that it reads is read completely. A warning of
the tool counts as refusal, because content may be missing. For example, if a later header is
damaged, or zeros follow the last member, bzip2 writes the rows before, and ends with a message and
exit code 0.
"""

import gzip
import io
import random
import shutil
import struct
import subprocess
import tracemalloc

import pytest

from depth import some
from problems import sources
from problems.sources import source_of, text_of
from sparsemargin import load_svmlight
from sparsemargin.files.compression import HEAD_BYTES, CountingReader, DecompressedReader, codec_of

TOOLS = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "zstd"}
PACK = {**sources.PACK, "gz": lambda content: gzip.compress(content, mtime=0)}


def some_text(rng, least):
    """Return random rows. They may be empty or take more bytes than are decompressed at once."""
    n_rows = rng.choice([least, 1, 50, rng.randrange(1, 2000)])
    return b"".join(b"%d %d:1\n" % (i % 2, rng.getrandbits(30) + 1) for i in range(n_rows))


def some_archive(rng, kind):
    """Return a random archive of one or more members, which may be padded, damaged or cut off."""
    content, begins, ends = bytearray(), [], []
    # libzstd checks the size that a frame states, but not if its content is empty.
    padded, least = rng.random() < 0.4, int(kind == "zst")
    for _ in range(rng.choice([1, 1, 2, 3])):
        begins.append(len(content))
        unsigned = kind == "zst" and rng.random() < 0.3
        pack = sources.pack_zst if unsigned else PACK[kind]
        content += pack(some_text(rng, least))
        ends.append(len(content))
        content += bytes(rng.randint(1, 9) if padded and rng.random() < 0.5 else 0)
    damage = rng.choice(["none", "none", "bit", "header", "header", "cut", "tail", "garbage"])
    if damage == "bit":
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif damage == "header":
        content[rng.choice(begins) + rng.randrange(9)] ^= 1 << rng.randrange(8)
    elif damage == "cut":
        del content[rng.randrange(len(content)) :]
    elif damage == "tail":
        del content[-rng.randint(1, 12) :]
    elif damage == "garbage":
        at = rng.choice(ends)
        content[at:at] = rng.randbytes(rng.randint(1, 20))
    return bytes(content)


def told_by_tool(kind, path):
    """Return what the tool reads, or None if it refuses the archive."""
    quiet = ["-q"] if kind == "zst" else []
    told = subprocess.run([TOOLS[kind], "-dc", *quiet, path], capture_output=True)
    return None if told.returncode or told.stderr else told.stdout


def told_by_us(source):
    """Return what the package reads, or None if it refuses the archive. An archive with a damaged
    head is read as text, which is not valid svmlight."""
    try:
        if source.compression is None:
            load_svmlight(source.path)
        return text_of(source)
    except ValueError:
        return None


@pytest.mark.parametrize("kind", TOOLS)
def test_reading_agrees_with_the_decompression_tool(tmp_path, kind):
    if shutil.which(TOOLS[kind]) is None:
        pytest.skip(f"there is no {TOOLS[kind]} to compare with")
    rng, n_read, n_refused = random.Random(kind), 0, 0
    while n_read + n_refused < some(100, 250):
        content = some_archive(rng, kind)
        if len(content) < HEAD_BYTES:
            # Content without the bytes that identify the format may be valid text.
            continue
        source = source_of(tmp_path, content, f"text.{kind}")
        expected, ours = told_by_tool(kind, source.path), told_by_us(source)
        assert ours == expected, (content[:20], len(content))
        n_refused += expected is None
        n_read += expected is not None
    assert min(n_read, n_refused) > some(5, 20)


PARTS = [b"".join(b"%d %d:1\n" % (i % 2, part) for i in range(1500)) for part in (1, 2, 3, 4)]
WHOLE = b"".join(PARTS)


def assert_refused(source, begin):
    with pytest.raises(ValueError, match="archive is damaged or cut off") as caught:
        text_of(source)
    assert source.name in str(caught.value)
    assert f"begins at byte {begin:,} " in str(caught.value)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_zeros_after_a_member_are_allowed_only_where_legal(tmp_path, kind):
    """Zeros are legal in multiples of four in xz, and at the end of gzip. Otherwise they are
    damage."""
    members = [PACK[kind](part) for part in PARTS]
    whole = b"".join(members)
    for n_zeros in 1, 4, 6, 20_000:
        zeros, by_fours = bytes(n_zeros), kind == "xz" and n_zeros % 4 == 0
        for content, begin, legal in (
            (zeros.join(members), len(members[0]), by_fours),
            (whole + zeros, len(whole), by_fours or kind == "gz"),
        ):
            source = source_of(tmp_path, content)
            if legal:
                assert text_of(source) == WHOLE
            else:
                assert_refused(source, begin)


def test_empty_zst_frames_are_skipped(tmp_path):
    """Files of pzstd begin with such a frame."""
    skipped = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"
    content = skipped + PACK["zst"](PARTS[0]) + skipped + PACK["zst"](PARTS[1]) + skipped
    assert text_of(source_of(tmp_path, content)) == PARTS[0] + PARTS[1]
    assert_refused(source_of(tmp_path, content[:-1]), len(content) - len(skipped))


@pytest.mark.parametrize("kind", ["bz2", "xz"])
def test_highly_compressed_files_are_decompressed_in_parts(tmp_path, kind):
    (tmp_path / "text.svm").write_bytes(PACK[kind](b"1 1:1\n" * (1 << 20)))
    room = memoryview(bytearray(1 << 16))
    with io.FileIO(tmp_path / "text.svm") as file:
        reader = CountingReader(file, "text.svm")
        unpacked = DecompressedReader(reader, codec_of(reader.head), "text.svm")
        n_bytes = unpacked.readinto(room)
        tracemalloc.start()
        while n := unpacked.readinto(room):
            n_bytes += n
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert n_bytes == 6 << 20
    assert peak < 1 << 19
