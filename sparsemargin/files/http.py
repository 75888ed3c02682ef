"""Files on HTTP servers, read through the session that fsspec has for them.

fsspec's own reader is not used for three reasons. It asks for the length by HEAD, which some
servers answer wrongly. It downloads the whole file for every block if a server ignores ranges. It
reports every failure as a missing file. The requests are therefore made here, and only answers to
GET are used.
"""

from __future__ import annotations

import re
from asyncio import sleep
from contextlib import closing
from time import monotonic
from typing import Any, NamedTuple

from aiohttp import ClientTimeout
from aiohttp.http_exceptions import HttpProcessingError
from fsspec.asyn import sync

#: Bytes at the beginning of a file that are requested when it is looked up.
HEAD_BYTES = 1024

_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")
_NOT_SATISFIABLE, _PARTIAL = 416, 206
# Content encodings without compression, and encodings that are decompressed like compressed files.
_UNPACKED = {"", "identity"}
_PACKED = {"gzip", "x-gzip", "zstd"}
# Seconds to wait for a connection, or for the next byte.
_TIMEOUT = 60
# Seconds to wait for bytes after the end of the body, and between two checks for such bytes. A
# packet may need a few tenths of a second.
_SURPLUS_WAIT, _LOOK = 0.5, 0.01


class Answer:
    """The answer to a GET, whose body is read piece by piece."""

    def __init__(self, store: Any, url: str, start: int | None = None, stop: int | None = None):
        headers = {**store.kwargs.get("headers", {}), "Accept-Encoding": "identity"}
        if start is not None and stop is not None:
            headers["Range"] = f"bytes={start}-{stop - 1}"
        timeout = ClientTimeout(total=None, sock_connect=_TIMEOUT, sock_read=_TIMEOUT)
        # A compressed body is not decompressed by aiohttp, so that its end can be checked here.
        how = {"timeout": timeout, **store.kwargs, "headers": headers, "auto_decompress": False}

        async def ask() -> Any:
            session = await store.set_session()
            response = await session.get(store.encode_url(url), **how)
            # The connection is read here, because the response drops it when the body has arrived.
            connection = response.connection
            return response, None if connection is None else connection.protocol

        self.loop = store.loop
        self._response, self._protocol = sync(store.loop, ask)
        self.status, self.headers = self._response.status, self._response.headers

    def check(self) -> None:
        """Raise an error of aiohttp for a status of 400 or more, and a ValueError for a redirection
        without an address."""
        self._response.raise_for_status()
        if self.status >= 300:
            raise ValueError(
                f"the server answers with HTTP status {self.status}, without a file or another "
                "address. Check the address."
            )

    def read(self, most: int) -> bytes:
        """Return some of the next bytes, at most `most`; none at the end. A body that breaks off
        raises an error."""
        return sync(self.loop, self._response.content.read, most)

    def read_all(self, most: int) -> bytes:
        """Return the next `most` bytes, or fewer if the body ends before."""
        parts, left = list[bytes](), most
        while left and (data := self.read(left)):
            parts.append(data)
            left -= len(data)
        return b"".join(parts)

    def has_more(self) -> bool:
        """Return whether the server has sent more bytes than the length that it stated. Call it at
        the end of the body. Surplus bytes are detected only if they arrive within `_SURPLUS_WAIT`
        seconds."""
        until = monotonic() + _SURPLUS_WAIT
        # There is no protocol if the body has arrived together with the headers.
        while self._protocol is not None and monotonic() < until:
            if isinstance(self._protocol.exception(), HttpProcessingError):
                return True
            sync(self.loop, sleep, _LOOK)
        return False

    def close(self) -> None:
        """Close the connection without reading the rest of the body."""
        self.loop.call_soon_threadsafe(self._response.close)

    @property
    def encoding(self) -> str:
        """The content encoding of the body, "" if it is not compressed."""
        named = self.headers.get("Content-Encoding", "").strip().lower()
        return "" if named in _UNPACKED else named

    @property
    def span(self) -> tuple[int | None, int | None]:
        """The position in the file of the body's first byte, and the length of the file. Either is
        None if the server does not state it."""
        span = _RANGE.fullmatch(self.headers.get("Content-Range", "").strip())
        if self.status not in (_PARTIAL, _NOT_SATISFIABLE):
            length = self.headers.get("Content-Length")
            return 0, None if length is None else int(length)
        if span is None:
            return None, None
        first, total = span[1], span[3]
        return None if first is None else int(first), None if total == "*" else int(total)

    @property
    def version(self) -> str | None:
        """A text that changes when the file does, or None if the server states no ETag or
        modification time."""
        if etag := self.headers.get("ETag"):
            return f"ETag={etag}"
        if modified := self.headers.get("Last-Modified"):
            return f"Last-Modified={modified}"
        return None


class Found(NamedTuple):
    """The properties of a file on a server: its length (None if unknown), its version, whether the
    server sends parts of it, its content encoding, and its first bytes."""

    size: int | None
    version: str | None
    ranges: bool
    encoding: str
    head: bytes


def find(store: Any, url: str) -> Found:
    """Request the beginning of a file, and return its properties. An error of aiohttp says what
    failed."""
    with closing(Answer(store, url, 0, HEAD_BYTES)) as answer:
        first, size = answer.span
        if answer.status == _NOT_SATISFIABLE and size == 0:
            return Found(0, answer.version, True, "", b"")
        answer.check()
        if answer.status != _PARTIAL or (first == 0 and size is not None):
            return _found(url, answer)
    # The server sent a part without its position, or without the length of the file.
    with closing(Answer(store, url)) as answer:
        answer.check()
        return _found(url, answer)


def _found(url: str, answer: Answer) -> Found:
    _, size = answer.span
    if answer.encoding and answer.encoding not in _PACKED:
        raise ValueError(
            f"{url}: the server sends it compressed as {answer.encoding}, which is not supported. "
            "Download it, and name the copy."
        )
    if size is None and "chunked" not in answer.headers.get("Transfer-Encoding", ""):
        raise ValueError(
            f"{url}: the server does not state its length, so a broken connection could not be "
            "distinguished from the end. Download it, and name the copy."
        )
    head = answer.read_all(HEAD_BYTES + 1)
    if size is not None and len(head[:HEAD_BYTES]) != min(size, HEAD_BYTES):
        raise ConnectionError(
            f"the server states {size:,} bytes, and sent {len(head):,} of the first {HEAD_BYTES}"
        )
    ranges = answer.status == _PARTIAL
    return Found(size, answer.version, ranges, answer.encoding, head[:HEAD_BYTES])


def read_part(store: Any, url: str, start: int, stop: int) -> tuple[bytes, str | None]:
    """Return the bytes of a file from `start` to before `stop`, or to its end, and its version."""
    with closing(Answer(store, url, start, stop)) as answer:
        if answer.status == _NOT_SATISFIABLE:
            return b"", answer.version
        answer.check()
        first, _ = answer.span
        skipped = start - (start if first is None else first)
        if skipped < 0:
            raise ConnectionError(f"the server sent bytes from {first:,} on, not from {start:,}")
        while skipped and (data := answer.read(min(skipped, 1 << 20))):
            skipped -= len(data)
        return answer.read_all(stop - start), answer.version
