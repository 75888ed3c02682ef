"""Sources of text are found, decompressed, and divided into blocks of complete lines."""

import io
import os
import random
import sys
import threading
from itertools import combinations

import pytest

from problems.sources import PACK, source_of, standard_input, text_of
from sparsemargin.files import sources
from sparsemargin.files.sources import open_sources

# Text that is too random to be compressed into less than several blocks.
TEXT = b"".join(b"%d %d:1\n" % (i, random.Random(i).getrandbits(60)) for i in range(2000))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 64)


def test_files_are_found_by_name_list_and_pattern(tmp_path):
    (tmp_path / "folder").mkdir()
    for name in "b", "a", "c", "folder/d":
        (tmp_path / name).write_bytes(b"")

    def found(path):
        return [os.path.relpath(source.name, tmp_path) for source in open_sources(path)]

    assert found(str(tmp_path / "b")) == ["b"]
    assert found([tmp_path / "b", tmp_path / "a"]) == ["b", "a"]
    assert found(tmp_path / "*") == ["a", "b", "c"]
    assert found(tmp_path / "[b-z]") == ["b", "c"]
    assert found(tmp_path / "**" / "?") == ["a", "b", "c", "folder/d"]
    # A file whose name equals the pattern takes precedence.
    for name in "a1", "a[1]":
        (tmp_path / name).write_bytes(b"")
    assert found(tmp_path / "a[1]") == ["a[1]"]


@pytest.mark.parametrize(
    ("paths", "error", "words"),
    [
        ("trian.svm", FileNotFoundError, "trian.svm: no such file.*Did you mean train.svm"),
        ("zzz", FileNotFoundError, "zzz: no such file.*It was looked for in"),
        ("no/train.svm", FileNotFoundError, "no/train.svm.*There is no folder.*/no either"),
        ("*.txt", FileNotFoundError, r"\*.txt: no file matches"),
        ("link", FileNotFoundError, "link: no such file.*a link to a file that is gone"),
        ("folder", IsADirectoryError, r"folder is a directory. Name the files in it: 'folder/\*'$"),
        ("deep", IsADirectoryError, r"deep is a directory. Name the files in it: 'deep/\*\*/\*'$"),
        ("empty", IsADirectoryError, r"empty is a directory without files. Name a file, or a fold"),
        ([], ValueError, "empty list"),
        ("", ValueError, "paths must be a path.*''"),
        ([None], ValueError, "paths must be a path.*None"),
        (b"train.svm", ValueError, "paths must be a path"),
        (["-", "train.svm", "-"], ValueError, "twice"),
    ],
)
def test_missing_files_are_named_with_suggestions(tmp_path, monkeypatch, paths, error, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.svm").write_bytes(TEXT)
    for folder, files in ("empty/inner", []), ("folder", ["a.svm"]), ("deep/inner", ["a.svm"]):
        (tmp_path / folder).mkdir(parents=True)
        for name in files:
            (tmp_path / folder / name).write_bytes(TEXT)
    (tmp_path / "link").symlink_to("gone")
    with pytest.raises(error, match=words):
        open_sources(paths)


def test_unreadable_file_is_named(tmp_path, monkeypatch):
    path = source_of(tmp_path, b"").path

    def forbidden(path):
        raise PermissionError(13, "Permission denied", path)

    # A change of permissions would not prevent root from reading.
    monkeypatch.setattr(sources.io, "FileIO", forbidden)
    with pytest.raises(PermissionError, match=f"{path} may not be read"):
        open_sources(path)


def test_identity_changes_with_the_file(tmp_path):
    source = source_of(tmp_path, TEXT)
    identities = [source.identity]
    for position in 0, len(TEXT) - 1:
        changed = bytearray(TEXT)
        changed[position] ^= 1
        changed_source = source_of(tmp_path, changed)
        os.utime(changed_source.path, ns=(0, source.mtime_ns))
        identities.append(open_sources(changed_source.path)[0].identity)
    assert {identity["mtime_ns"] for identity in identities} == {source.mtime_ns}
    identities.append(source_of(tmp_path, TEXT + b"\n").identity)
    assert all(first != second for first, second in combinations(identities, 2))
    # A pipe has no identity, and can't change.
    (pipe,) = open_sources("-")
    assert (pipe.head, pipe.rereadable, pipe.size) == (None, False, None)
    assert (pipe.name, pipe.identity) == ("<standard input>", None)
    pipe.check_unchanged()


@pytest.mark.parametrize("kind", PACK)
def test_compression_is_detected_by_content(tmp_path, kind, small_blocks):
    pack, content = PACK[kind], PACK[kind](TEXT)
    source = source_of(tmp_path, content)
    assert (source.compression, source.rereadable) == (kind, True)
    assert text_of(source) == TEXT
    # Progress is counted in bytes before decompression.
    consumed = [block.consumed for block in source.blocks([])]
    assert consumed == sorted(consumed)
    assert consumed[-1] == len(content)
    assert text_of(source_of(tmp_path, pack(b""))) == b""
    bad = [content[: len(content) // 2], content[:-1]]
    members = pack(TEXT[:777]) + pack(b"") + pack(TEXT[777:])
    assert text_of(source_of(tmp_path, members)) == TEXT
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 0x10
    bad.append(flipped)
    for each in bad:
        source = source_of(tmp_path, each)
        with pytest.raises(ValueError, match=f"{source.name}.*{kind} archive is damaged or cut"):
            text_of(source)


def test_zst_without_zstandard_suggests_installing_it(tmp_path, monkeypatch):
    source = source_of(tmp_path, PACK["zst"](TEXT))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ValueError, match=r"pip install 'sparsemargin\[files\]'"):
        text_of(source)


def test_lines_longer_than_a_block_are_read_up_to_a_limit(tmp_path, small_blocks, monkeypatch):
    long = b"1 " + b"1:1 " * 1000 + b"\n"
    content = b"1 2:3\n" + long + b"1 2:3\n" * 5 + long
    assert text_of(source_of(tmp_path, content)) == content
    assert list(source_of(tmp_path, b"").blocks([])) == []
    monkeypatch.setattr(sources, "LONGEST_LINE", 100)
    with pytest.raises(ValueError, match=r"text\.svm: the line that begins after 6 bytes"):
        text_of(source_of(tmp_path, content))


def test_released_buffers_are_reused(tmp_path, small_blocks):
    source, seen, free = source_of(tmp_path, TEXT), [], []
    for block in source.blocks(free):
        seen.append(id(block.buffer))
        free.append(block.buffer)
    assert len(seen) > 100
    assert len(set(seen)) == 1
    held = list(source.blocks([]))
    assert b"".join(bytes(block.buffer[: block.stop]) for block in held) == TEXT
    assert [block.consumed for block in held][-1] == len(TEXT)


def test_byte_order_marks_are_skipped_or_rejected(tmp_path):
    for pack in bytes, PACK["gz"]:
        assert text_of(source_of(tmp_path, pack(b"\xef\xbb\xbf1 2:3\n"))) == b"   1 2:3\n"
    for encoding in "utf-16-le", "utf-16-be":
        with pytest.raises(ValueError, match="is UTF-16 text"):
            text_of(source_of(tmp_path, "\ufeff1 2:3\n".encode(encoding)))


@pytest.mark.parametrize("kind", [None, *PACK])
def test_shortened_file_is_rejected(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 1000)
    text = random.Random(0).randbytes(200_000).hex(" ", 30).replace(" ", "\n").encode()
    source = source_of(tmp_path, PACK.get(kind, bytes)(text))
    reading = source.blocks([])
    next(reading)
    os.truncate(source.path, source.size - 100)
    with pytest.raises(ValueError, match=r"text\.svm became shorter while it was read"):
        list(reading)


def test_changed_file_is_detected(tmp_path):
    source = source_of(tmp_path, TEXT)
    assert (source.compression, source.rereadable, source.size) == (None, True, len(TEXT))
    source.check_unchanged()
    os.utime(source.path, ns=(0, 0))
    with pytest.raises(ValueError, match=r"text\.svm changed while it was read"):
        source.check_unchanged()


@pytest.mark.parametrize("kind", [None, *PACK])
@pytest.mark.parametrize(
    "given",
    [
        lambda: "-",
        lambda: 0,
        lambda: io.FileIO(0, closefd=False),
        lambda: io.BufferedReader(io.FileIO(0, closefd=False)),
    ],
)
def test_nonblocking_standard_input_is_waited_for(small_blocks, kind, given):
    with standard_input(PACK.get(kind, bytes)(TEXT), blocks=False):
        assert text_of(*open_sources(given())) == TEXT


@pytest.mark.parametrize("kind", [None, *PACK])
def test_named_pipes_are_read_once(tmp_path, small_blocks, kind):
    os.mkfifo(tmp_path / "pipe")
    (source,) = open_sources(tmp_path / "pipe")
    content = PACK.get(kind, bytes)(TEXT)
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[content])
    writer.start()
    assert not source.rereadable
    assert text_of(source) == TEXT
    writer.join()
