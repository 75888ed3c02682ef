"""What may be wrong with the members of a model file."""

from __future__ import annotations

import io
import pickle
import re
import struct
import warnings
import zipfile
from collections.abc import Callable

import numpy as np
from broken_bytes import flipped

# As the members of an archive: names and contents.
Members = list[tuple[str, bytes]]

NAMES = ["../../escaped.npy", "/etc/hostname", "model.json", "x/y.npy", "x/", "\\0.npy", "a" * 5000]
NUMBERS = [
    "-1",
    "0",
    "1e999",
    "-1e999",
    "NaN",
    "9" * 400,
    "1e400",
    "true",
    "null",
    '"x"',
    "[]",
    "{}",
]
TYPES = [b"|O", b"<f16", b"<c16", b"<U99999999", b"|V8", b"<f8,", b"=f8", b"<i3", b"<M8[ns]"]
SHAPES = [b"()", b"(0,)", b"(-1,)", b"(99999999999999999,)", b"(2, 0)", b"(3,3,3)", b"4", b"(1L,)"]


class _Touching:
    """Pickled, it runs a command."""

    def __reduce__(self) -> tuple:
        import os

        return os.system, ("touch escaped",)


def members_of(archive: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        return [(name, file.read(name)) for name in file.namelist()]


def archive_of(members: Members, compression: int) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that stand there twice
        with zipfile.ZipFile(buffer, "w", compression) as archive:
            for name, contents in members:
                archive.writestr(name, contents)
    return buffer.getvalue()


def _place(random: np.random.RandomState, members: Members) -> int:
    return random.randint(len(members))


def left_out(random: np.random.RandomState, members: Members) -> None:
    del members[_place(random, members)]


def doubled(random: np.random.RandomState, members: Members) -> None:
    members.append(members[_place(random, members)])


def renamed(random: np.random.RandomState, members: Members) -> None:
    place = _place(random, members)
    members[place] = NAMES[random.randint(len(NAMES))], members[place][1]


def added(random: np.random.RandomState, members: Members) -> None:
    members.append((NAMES[random.randint(len(NAMES))], b"x" * random.randint(100)))


def exchanged(random: np.random.RandomState, members: Members) -> None:
    one, other = _place(random, members), _place(random, members)
    names = members[one][0], members[other][0]
    members[one], members[other] = (names[0], members[other][1]), (names[1], members[one][1])


def pickled(random: np.random.RandomState, members: Members) -> None:
    place = _place(random, members)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([_Touching()], object), allow_pickle=True)
    contents = [buffer.getvalue(), pickle.dumps(_Touching())][random.randint(2)]
    members[place] = members[place][0], contents


def deep(random: np.random.RandomState, members: Members) -> None:
    """The document nested so deep, in its contents or altogether."""
    n = int(10 ** random.uniform(1, 6))
    text = members[0][1].decode("utf-8", "replace")
    kinds = [
        "[" * n + "]" * n,
        '{"tuple": [' * n + "1" + "]}" * n,
        '{"dict": {"a": ' * n + "1" + "}}" * n,
    ]
    numbers = list(re.finditer(r"-?\d+", text))
    if numbers:
        match = numbers[random.randint(len(numbers))]
        text = text[: match.start()] + kinds[random.randint(3)] + text[match.end() :]
    members[0] = members[0][0], text.encode()[: 1 << 24]


def other_number(random: np.random.RandomState, members: Members) -> None:
    text = members[0][1].decode("utf-8", "replace")
    numbers = list(re.finditer(r"-?\d+(\.\d+)?", text))
    if numbers:
        match = numbers[random.randint(len(numbers))]
        number = NUMBERS[random.randint(len(NUMBERS))]
        members[0] = members[0][0], (text[: match.start()] + number + text[match.end() :]).encode()


def other_header(random: np.random.RandomState, members: Members) -> None:
    """An array of another type or shape than its bytes."""
    place = _place(random, members)
    name, contents = members[place]
    if random.randint(2):
        kind = b"'" + TYPES[random.randint(len(TYPES))] + b"'"
        contents = re.sub(rb"'[<|][^']*'", lambda _: kind, contents, count=1)
    else:
        shape = SHAPES[random.randint(len(SHAPES))]
        contents = re.sub(rb"\([\d, ]*\)", lambda _: shape, contents, count=1)
    members[place] = name, contents


def other_version(random: np.random.RandomState, members: Members) -> None:
    place = _place(random, members)
    name, contents = members[place]
    version = bytes([random.randint(4), random.randint(2)])
    members[place] = name, contents[:6] + version + contents[8:]


def other_bytes(random: np.random.RandomState, members: Members) -> None:
    place = _place(random, members)
    name, contents = members[place]
    members[place] = name, flipped(random, contents)


def bomb(random: np.random.RandomState, members: Members) -> None:
    """A member that is little when compressed."""
    place = _place(random, members)
    members[place] = members[place][0], members[place][1] + bytes(1 << random.randint(20, 26))


MEMBER_CHANGES: list[Callable] = [
    left_out, doubled, renamed, added, exchanged, pickled, deep, other_number, other_number,
    other_header, other_header, other_version, other_bytes, bomb,
]  # fmt: skip


# -- the archive around them ----------------------------------------------------------------------


def other_size(random: np.random.RandomState, contents: bytes) -> bytes:
    """A field of a header, or of the directory, that tells of another size or place."""
    marks = [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"]
    places = [match.start() for mark in marks for match in re.finditer(re.escape(mark), contents)]
    if not places:
        return contents
    at = places[random.randint(len(places))] + 4 + random.randint(42)
    sizes = [0, 1, 8, 2**16 - 1, 2**31, 2**32 - 1, len(contents), 2**20]
    field = struct.pack("<I", sizes[random.randint(len(sizes))])[: random.choice([2, 4])]
    return contents[:at] + field + contents[at + len(field) :]
