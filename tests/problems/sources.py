"""Text from the library's sources, in all compression formats, and a pipe for standard input."""

import bz2
import gzip
import lzma
import os
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from sparsemargin._engine.svmlight.scan import PADDING
from sparsemargin.files.sources import open_sources


def pack_zst(content, **how):
    zstandard = pytest.importorskip("zstandard", reason="zst files need the package zstandard")
    return zstandard.ZstdCompressor(**how).compress(content)


PACK = {
    "gz": gzip.compress,
    "bz2": lambda content: bz2.compress(content, 1),
    "xz": lzma.compress,
    "zst": lambda content: pack_zst(content, write_checksum=True),
}


def source_of(folder, content, name="text.svm"):
    path = folder / name
    path.write_bytes(content)
    (source,) = open_sources(path)
    return source


def text_of(source):
    """The whole text; blocks are checked on the way."""
    free, pieces = [], []
    for block in source.blocks(free):
        assert len(block.buffer) >= block.stop + PADDING
        pieces.append(bytes(block.buffer[: block.stop]))
        free.append(block.buffer)
    assert all(pieces)
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    return b"".join(pieces)


@contextmanager
def standard_input(content, *, blocks=True):
    """Make a pipe with this content standard input. With `blocks` false the pipe does not block,
    and half of the content comes late."""
    theirs, ours = os.pipe()
    os.set_blocking(theirs, blocks)
    before = os.dup(0)
    os.dup2(theirs, 0)
    os.close(theirs)

    def write():
        # The reader may stop early.
        with suppress(BrokenPipeError), open(ours, "wb") as pipe:
            half = len(content) // 2
            pipe.write(content[:half])
            if not blocks:
                pipe.flush()
                time.sleep(0.1)
            pipe.write(content[half:])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)
        writer.join()
