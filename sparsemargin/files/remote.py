"""Remote files: URLs that fsspec supports.

Files are read in large blocks, which are fetched ahead. A read is repeated if a connection breaks
or a store is busy. An upload starts after the complete file has been written locally.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from sparsemargin.files.compression import CountingReader, DecompressedReader, codec_of

if TYPE_CHECKING:
    from sparsemargin.files import http

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[^/]+)?://")
# Bytes of one request, and number of blocks that are requested ahead.
_BLOCK_BYTES, _BLOCKS_AHEAD = 1 << 23, 2

# Seconds to wait before each new attempt. The sum is about one minute, for which a store may be
# unavailable.
WAITS = (0.1, 0.5, 1, 2, 4, 8, 16, 30)

# HTTP statuses of a busy store or of a temporary fault.
_BUSY = {408, 409, 425, 429, *range(500, 600)}
_MISSING, _FORBIDDEN = {404, 410}, {401, 403, 407}

# Names under which stores report a version of a file, in order of preference.
_VERSIONS = (
    "VersionId", "version_id", "ETag", "etag", "generation", "blob_id", "md5", "LastModified",
    "last_modified", "mtime", "created",
)  # fmt: skip

# Largest number of characters that a message quotes from the answer of a server.
_LONGEST_REASON = 300

_T = TypeVar("_T")


def is_url(path: Any) -> bool:
    """Return whether a path is a URL."""
    return isinstance(path, str) and bool(_URL.match(path))


def _store_of(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    try:
        # fsspec is an optional dependency.
        from fsspec.core import url_to_fs

        store, path = url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        raise ImportError(
            f"{url} is read by fsspec, and its own package for each kind of store ({error}): pip "
            "install 'sparsemargin[remote]', and s3fs, gcsfs, adlfs or huggingface_hub."
        ) from None
    except ValueError as error:
        raise ValueError(f"{url}: {error}. fsspec does not support this URL.") from None
    return store, path


def _is_http(store: Any) -> bool:
    """Return whether a file system of fsspec reads files from HTTP servers."""
    protocol = store.protocol
    return "http" in ([protocol] if isinstance(protocol, str) else protocol)


def _http() -> Any:
    # Imported here because aiohttp is an optional dependency, and its import takes 0.2 s.
    from sparsemargin.files import http

    return http


def located(url: str) -> tuple[str | None, str]:
    """Return the kind of store of a URL and the path in it. The kind is None for local files."""
    store, path = _store_of(url)
    kind = store.protocol if isinstance(store.protocol, str) else store.protocol[0]
    return None if kind in ("file", "local") else kind, path


class UnreachableError(OSError):
    """A remote file that could not be read or written after all attempts."""


def _tried(url: str, call: Callable[[], _T]) -> _T:
    """Call a function, and return its result. A call that fails is repeated for about a minute if
    the error may be temporary. The error that is raised names the URL and the reason."""
    for wait in (*WAITS, None):
        try:
            return call()
        except Exception as raised:
            error = _cause_of(raised)
            if isinstance(error, UnreachableError):
                raise
            status = getattr(error, "status", None)
            if isinstance(error, FileNotFoundError) or status in _MISSING:
                raise FileNotFoundError(f"{url}: no such file{_with_status(error)}.") from None
            if isinstance(error, PermissionError) or status in _FORBIDDEN:
                reason = _with_status(error) or f": {error}"
                raise PermissionError(f"{url} may not be read or written{reason}.") from None
            if isinstance(error, ValueError | NotImplementedError) and status is None:
                if url in str(error):
                    raise error from None
                raise type(error)(f"{url}: {_reason(error)}") from None
            if wait is None or (isinstance(status, int) and status not in _BUSY):
                raise UnreachableError(
                    f"{url} can't be reached: {_reason(error)}. Check the address and the network."
                ) from None
            time.sleep(wait)
    raise AssertionError


def _cause_of(error: Exception) -> Exception:
    """Return the cause of a FileNotFoundError, which fsspec raises for errors of any kind."""
    cause = error.__cause__
    return cause if isinstance(error, FileNotFoundError) and isinstance(cause, Exception) else error


def _with_status(error: Exception) -> str:
    status = getattr(error, "status", None)
    return "" if status is None else f" ({_reason(error)})"


def _reason(error: Exception) -> str:
    """Return the type and the message of an error in one line, which is shortened if needed."""
    status, said = getattr(error, "status", None), f"{type(error).__name__}: {error}"
    if isinstance(status, int):
        said = f"HTTP status {status} {getattr(error, 'message', '')}"
    # A message may quote the server's answer, which can be of any length.
    said = said if len(said) <= _LONGEST_REASON else f"{said[:_LONGEST_REASON]}..."
    return " ".join(said.split()).removesuffix(":").removesuffix(".")


@dataclass(frozen=True)
class RemoteFile:
    """A remote file, with its properties when it was found."""

    url: str
    size: int | None  # None: unknown, the file ends where the server ends it
    version: str | None  # changes when the file does; None: the store reports no version
    ranges: bool = True  # True if the store can send parts of the file
    encoding: str = ""  # content encoding, "" for none
    head: bytes = b""  # the first bytes, if they are known
    found_at: int = field(default_factory=time.time_ns, compare=False)

    @classmethod
    def find(cls, url: str) -> RemoteFile:
        """Look up a file. An OSError says that it does not exist or can't be reached."""
        store, path = _store_of(url)
        if _is_http(store):
            http = _http()
            return cls(url, *_tried(url, lambda: http.find(store, path)))
        info = _tried(url, lambda: store.info(path))
        if info["type"] == "directory":
            raise IsADirectoryError(f"{url} is a directory. Name the files in it: '{url}/*'")
        if info.get("size") is None:
            raise ValueError(
                f"{url}: the store does not state its length. Download it, and name the copy."
            )
        known = [f"{name}={info[name]}" for name in _VERSIONS if info.get(name) is not None]
        return cls(url, int(info["size"]), known[0] if known else None)

    def identity(self) -> dict[str, Any]:
        """Return values that change with the file. A file without a version counts as changed each
        time it is found."""
        version = self.version or f"unknown, found at {self.found_at}"
        return {"size": self.size, "version": version}

    def first(self, n_bytes: int) -> bytes:
        """Return the first bytes, at most as many as `head` has for a file on an HTTP server."""
        if self.head or not self.size:
            return self.head[:n_bytes]
        return self.read(0, min(n_bytes, self.size))

    def open(self) -> io.RawIOBase:
        """Open the file for reading, in parts that are fetched ahead or as one stream."""
        return RemoteReader(self) if self.ranges else RemoteStream(self)

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start` to before `stop`."""
        store, path = _store_of(self.url)
        # At the end, one more byte is requested. If it exists, the file is longer than stated.
        beyond = stop + (stop == self.size)

        def call() -> bytes:
            if _is_http(store):
                data, version = _http().read_part(store, path, start, beyond)
                if version != self.version:
                    raise self._changed()
            else:
                data = store.cat_file(path, start=start, end=beyond)
                # A server that ignores ranges sends the whole file.
                if len(data) == self.size:
                    data = data[start:stop]
            if len(data) < stop - start:
                self.check_unchanged()
                raise ConnectionError(self._broken(start + len(data)))
            if len(data) > stop - start:
                raise self._too_long()
            return data

        return _tried(self.url, call) if stop > start else b""

    def check_unchanged(self) -> None:
        """Raise a ValueError if the file has changed since it was found."""
        if RemoteFile.find(self.url) != self:
            raise self._changed()

    def _changed(self) -> ValueError:
        return ValueError(
            f"{self.url} changed while it was read. Read it again when nothing writes to it."
        )

    def _broken(self, position: int) -> str:
        return f"it broke off after {position:,} bytes of {self.size or 0:,}"

    def _too_long(self) -> ValueError:
        return ValueError(
            f"{self.url} is longer than the {self.size or 0:,} bytes that the server states. "
            "Download it, and name the copy."
        )


class RemoteStream(io.RawIOBase):
    """A remote file on a server that sends no parts, read as one stream. If the connection breaks,
    the file is requested again, and the bytes that have been read are skipped."""

    def __init__(self, file: RemoteFile) -> None:
        self._file, self._position, self._crc = file, 0, 0
        self._answer: http.Answer | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        """Fill the beginning of `room`. Return the number of bytes, 0 at the end."""
        room = memoryview(room).cast("B")
        data = _tried(self._file.url, lambda: self._next(len(room))) if len(room) else b""
        room[: len(data)] = data
        self._position += len(data)
        self._crc = zlib.crc32(data, self._crc)
        return len(data)

    def _next(self, most: int) -> bytes:
        file = self._file
        try:
            if self._answer is None:
                self._answer = self._begun()
            data = self._answer.read(min(most, _BLOCK_BYTES))
            end = self._position + len(data)
            known = file.head[self._position : end]
            if data[: len(known)] != known:
                raise file._changed()
            if not data and self._answer.has_more():
                raise file._too_long()
            if not data and end < (file.size or 0):
                raise ConnectionError(file._broken(end))
            return data
        except BaseException:
            self._let_go()
            raise

    def _begun(self) -> http.Answer:
        """Request the file, and skip the bytes that have been read. Raise a ValueError if they
        changed."""
        store, path = _store_of(self._file.url)
        answer = _http().Answer(store, path)
        try:
            answer.check()
            same = (answer.version, answer.span[1]) == (self._file.version, self._file.size)
            left, crc = self._position, 0
            while same and left and (data := answer.read(min(left, _BLOCK_BYTES))):
                left, crc = left - len(data), zlib.crc32(data, crc)
            if left and same:
                raise ConnectionError(self._file._broken(self._position - left))
            if not same or crc != self._crc:
                raise self._file._changed()
        except BaseException:
            answer.close()
            raise
        return answer

    def _let_go(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def close(self) -> None:
        self._let_go()
        super().close()


class RemoteReader(io.RawIOBase):
    """A remote file that is read in blocks; the next blocks are fetched in threads."""

    def __init__(self, file: RemoteFile) -> None:
        self._file, self._size, self._position = file, file.size or 0, 0
        self._coming: dict[int, Future[bytes]] = {}
        self._pool = ThreadPoolExecutor(_BLOCKS_AHEAD)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begins = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}
        self._position = begins[whence] + offset
        return self._position

    def readinto(self, room: Any) -> int:
        """Fill the beginning of `room`. Return the number of bytes, 0 at the end."""
        room = memoryview(room).cast("B")
        which, offset = divmod(self._position, _BLOCK_BYTES)
        if not len(room) or self._position >= self._size:
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
            start, stop = i * _BLOCK_BYTES, min((i + 1) * _BLOCK_BYTES, self._size)
            if i not in self._coming and start < stop:
                self._coming[i] = self._pool.submit(self._file.read, start, stop)
        return self._coming[which].result()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        super().close()


def matches(url: str) -> list[str]:
    """Return the URLs that match a pattern, sorted."""
    store, path = _store_of(url)
    found = _tried(url, lambda: store.glob(path))
    return sorted(str(store.unstrip_protocol(each)) for each in found)


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether a local or remote file exists."""
    if not is_url(path):
        return os.path.exists(path)
    try:
        return bool(RemoteFile.find(str(path)))
    except FileNotFoundError:
        return False


def size_of(path: str) -> int:
    """Return the size of a local or remote file in bytes. It is 0 for a remote file of unknown
    size."""
    return RemoteFile.find(path).size or 0 if is_url(path) else os.path.getsize(path)


def delete(path: str) -> None:
    """Delete a local or remote file."""
    if not is_url(path):
        os.unlink(path)
        return
    store, at = _store_of(path)
    _tried(path, lambda: store.rm_file(at))


@contextmanager
def uploading(url: str) -> Iterator[BinaryIO]:
    """Open a temporary local file, which is uploaded to `url` when the block ends without an
    error."""
    store, path = _store_of(url)
    with tempfile.NamedTemporaryFile() as file:
        yield file  # type: ignore[misc]
        file.flush()
        _tried(url, lambda: store.put_file(file.name, path))


def downloaded(remote: RemoteFile | str) -> BinaryIO:
    """Download a remote file, and return the open local copy. It is deleted when it is closed."""
    remote = RemoteFile.find(remote) if isinstance(remote, str) else remote
    file = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        with remote.open() as raw:
            reader = CountingReader(raw, remote.url)
            codec = codec_of(reader.head) if remote.encoding else None
            content = DecompressedReader(reader, codec, remote.url) if codec else reader
            shutil.copyfileobj(content, file, _BLOCK_BYTES)
        remote.check_unchanged()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file  # type: ignore[return-value]


def cache_folder() -> Path:
    """Return the folder on this machine in which row caches of remote files are kept.

    A FileNotFoundError is raised if the user has no home folder.
    """
    base = os.path.expanduser(os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache")
    if base.startswith("~"):
        raise FileNotFoundError(
            "There is no home folder for row caches of remote files. Set XDG_CACHE_HOME, or give "
            "the cache a path."
        )
    return Path(base, "sparsemargin", "rows")
