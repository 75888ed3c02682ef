"""Files that lie elsewhere: URLs that fsspec knows, read in large blocks, ahead of whoever reads
them, and again where a connection breaks or a store is busy; written whole or not at all."""

from __future__ import annotations

import io
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[^/]+)?://")
_BLOCK_BYTES, _BLOCKS_AHEAD = 1 << 23, 2

# Seconds to wait before what has failed is tried again: a store may be away for a minute.
WAITS = (0.1, 0.5, 1, 2, 4, 8, 16, 30)

# HTTP's way to say that a store is busy, or has a fault of its own.
_BUSY = {408, 409, 425, 429, *range(500, 600)}

# What stores call that which changes when an object does.
_VERSIONS = (
    "VersionId", "version_id", "ETag", "etag", "generation", "blob_id", "md5", "LastModified",
    "last_modified", "mtime", "created",
)  # fmt: skip

_T = TypeVar("_T")


def is_url(path: Any) -> bool:
    """Whether a path is a URL of a file that lies elsewhere."""
    return isinstance(path, str) and bool(_URL.match(path))


def _store_of(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path there."""
    try:
        from fsspec.core import url_to_fs

        store, path = url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        raise ImportError(
            f"{url} is read by fsspec, and its own package for each kind of store ({error}): pip "
            "install 'sparsemargin[remote]', and s3fs, gcsfs, adlfs or huggingface_hub."
        ) from None
    except ValueError as error:
        raise ValueError(f"{url}: {error}. It is no URL that fsspec knows.") from None
    return store, path


def located(url: str) -> tuple[str | None, str]:
    """Return the kind of store of a URL and the path in it; the kind is None for local files."""
    store, path = _store_of(url)
    kind = store.protocol if isinstance(store.protocol, str) else store.protocol[0]
    return None if kind in ("file", "local") else kind, path


def _tried(url: str, call: Callable[[], _T]) -> _T:
    """What the call gives, which is tried again for a minute where that may help."""
    for wait in (*WAITS, None):
        try:
            return call()
        except FileNotFoundError:
            raise FileNotFoundError(f"{url}: no such file.") from None
        except PermissionError as error:
            raise PermissionError(f"{url} may not be read or written: {error}.") from None
        except (ValueError, NotImplementedError):
            raise
        except Exception as error:
            status = getattr(error, "status", None)
            if wait is None or (isinstance(status, int) and status not in _BUSY):
                raise OSError(
                    f"{url} can't be had: {type(error).__name__}: {error}. Is the store there?"
                ) from None
            time.sleep(wait)
    raise AssertionError


@dataclass(frozen=True)
class RemoteFile:
    """A file that lies elsewhere, as it was found."""

    url: str
    size: int
    version: str  # changes when the file does

    @classmethod
    def find(cls, url: str) -> RemoteFile:
        """The file as it is now; an OSError tells that there is none, or no way to it."""
        store, path = _store_of(url)
        told = _tried(url, lambda: store.info(path))
        if told["type"] == "directory":
            raise IsADirectoryError(f"{url} is a directory. Name the files in it: '{url}/*'")
        if told.get("size") is None:
            raise ValueError(
                f"{url}: the server does not tell how long it is. Fetch it, and name the copy."
            )
        known = [f"{name}={told[name]}" for name in _VERSIONS if told.get(name) is not None]
        return cls(url, int(told["size"]), known[0] if known else "")

    def read(self, start: int, stop: int) -> bytes:
        """These bytes."""
        store, path = _store_of(self.url)

        def call() -> bytes:
            data = store.cat_file(path, start=start, end=stop)
            # A server that knows no ranges sends all of it.
            if len(data) == self.size:
                data = data[start:stop]
            if len(data) < stop - start:
                self.check_unchanged()
                raise ConnectionError(f"it broke off after {start + len(data):,} bytes")
            return data

        return _tried(self.url, call) if stop > start else b""

    def check_unchanged(self) -> None:
        """Raise a ValueError where it is not what it was."""
        if RemoteFile.find(self.url) != self:
            raise ValueError(
                f"{self.url} changed while it was read. Read it again when nothing writes to it."
            )


class RemoteReader(io.RawIOBase):
    """The bytes of a remote file, in blocks of which the next ones are on their way."""

    def __init__(self, file: RemoteFile) -> None:
        self._file, self._position = file, 0
        self._coming: dict[int, Future[bytes]] = {}
        self._pool = ThreadPoolExecutor(_BLOCKS_AHEAD)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begins = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._file.size}
        self._position = begins[whence] + offset
        return self._position

    def readinto(self, room: Any) -> int:
        """Fill the beginning of `room`: the number of bytes, 0 at the end."""
        room = memoryview(room).cast("B")
        which, offset = divmod(self._position, _BLOCK_BYTES)
        if not len(room) or self._position >= self._file.size:
            return 0
        data = self._block(which)[offset : offset + len(room)]
        room[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _block(self, which: int) -> bytes:
        wanted = range(which, which + 1 + _BLOCKS_AHEAD)
        for i in self._coming.keys() - set(wanted):
            self._coming.pop(i).cancel()
        for i in wanted:
            start, stop = i * _BLOCK_BYTES, min((i + 1) * _BLOCK_BYTES, self._file.size)
            if i not in self._coming and start < stop:
                self._coming[i] = self._pool.submit(self._file.read, start, stop)
        return self._coming[which].result()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        super().close()


def matches(url: str) -> list[str]:
    """The URLs that a pattern stands for, sorted."""
    store, path = _store_of(url)
    found = _tried(url, lambda: store.glob(path))
    return sorted(str(store.unstrip_protocol(each)) for each in found)


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file, here or elsewhere."""
    if not is_url(path):
        return os.path.exists(path)
    try:
        return bool(RemoteFile.find(str(path)))
    except FileNotFoundError:
        return False


def size_of(path: str) -> int:
    """The bytes of a file, here or elsewhere."""
    return RemoteFile.find(path).size if is_url(path) else os.path.getsize(path)


def delete(path: str) -> None:
    """Delete a file, here or elsewhere."""
    if not is_url(path):
        os.unlink(path)
        return
    store, at = _store_of(path)
    _tried(path, lambda: store.rm_file(at))


def check_store(url: str) -> None:
    """Find out whether there is a store of that kind."""
    _store_of(url)


@contextmanager
def uploading(url: str) -> Iterator[BinaryIO]:
    """A new binary file here, which takes the place of `url` once the block is left without an
    error."""
    store, path = _store_of(url)
    with tempfile.NamedTemporaryFile() as file:
        yield file  # type: ignore[misc]
        file.flush()
        _tried(url, lambda: store.put_file(file.name, path))


@contextmanager
def fetched(url: str) -> Iterator[BinaryIO]:
    """A copy of a remote file here, open for reading."""
    remote = RemoteFile.find(url)
    with tempfile.TemporaryFile() as file, RemoteReader(remote) as reader:
        while data := reader.read(_BLOCK_BYTES):
            file.write(data)
        remote.check_unchanged()
        file.flush()
        file.seek(0)
        yield file


def cache_folder() -> Path:
    """Where row caches of remote files are kept on this machine."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
    return Path(base).expanduser() / "sparsemargin" / "rows"
