"""Reads row caches that are damaged or forged: see fuzz/README.md.

Of a cache that is read by itself, every block is refused by a ValueError that names the file, or
its rows are such that the engine may run on them unchecked. A fit of the text it was made from ends
in a model or in such an error; in the very model of the text alone, where a checksum tells of the
damage.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from broken_bytes import cut, flipped, moved
from contents import VALUES, wrapped
from harness import Given, main

from problems.cached_rows import END, HEAD, LABELS, forge, random_block
from sparsemargin import fit_svmlight
from sparsemargin.readers.cache_order import ordered
from sparsemargin.readers.row_cache import RowCache
from sparsemargin.readers.rows import LabelledRows

SIZES = [-1, -(2**63), 0, 1, 2, 4, 2**20, 2**31, 2**32 - 1, 2**60, 2**61, 2**62, 2**63 - 1]


def _labels(texts: list[str], numbers: list[float]) -> dict[str, np.ndarray]:
    """The arrays of labels."""
    raw = np.frombuffer(json.dumps(texts).encode(), np.uint8)
    return {"label_texts": raw, "label_numbers": np.array(numbers)}


class _Contents:
    """What a cache holds, to be changed: blocks, and what the documents tell."""

    def __init__(self, blocks: list[list[np.ndarray]], told: dict[str, Any]):
        self.blocks, self.told = blocks, told

    @classmethod
    def of(cls, path: Path) -> _Contents:
        """What a sound cache holds."""
        with RowCache.open(path) as cache:
            blocks = [[array.copy() for array in rows.arrays] for rows in cache.blocks()]
            told = {
                name: getattr(cache, name)
                for name in {**HEAD, **END, **LABELS}
                if name != "version"
            }
        told |= _labels(told["label_texts"], told["label_numbers"])
        told["rows"] = [len(block[2]) - 1 for block in blocks]
        return cls(blocks, told | {"dtype": told["dtype"].name, "version": HEAD["version"]})

    def write(self, path: Path) -> None:
        """All of it, under checksums that are right."""
        forge(path, self.blocks, self.told)


# -- changes --------------------------------------------------------------------------------------


def _array(random: np.random.RandomState, contents: _Contents) -> tuple[list, int]:
    block = contents.blocks[random.randint(len(contents.blocks))]
    return block, random.randint(len(block))


def other_entry(random: np.random.RandomState, contents: _Contents) -> None:
    block, i = _array(random, contents)
    if len(block[i]):
        block[i][random.randint(len(block[i]))] = wrapped(random, block[i].dtype)


def other_order(random: np.random.RandomState, contents: _Contents) -> None:
    block, i = _array(random, contents)
    if len(block[i]):
        one, other = random.randint(len(block[i]), size=2)
        block[i][[one, other]] = block[i][[other, one]]


def small_step(random: np.random.RandomState, contents: _Contents) -> None:
    block, i = _array(random, contents)
    if len(block[i]):
        block[i][random.randint(len(block[i])) :] += random.choice([-1, 1])


def other_length(random: np.random.RandomState, contents: _Contents) -> None:
    block, i = _array(random, contents)
    n = random.randint(len(block[i]) + 1)
    block[i] = block[i][:n] if random.randint(2) else np.concatenate([block[i], block[i][:n]])


def other_type(random: np.random.RandomState, contents: _Contents) -> None:
    block, i = _array(random, contents)
    with np.errstate(all="ignore"):
        block[i] = block[i].astype(["i4", "i8", "f4", "f8"][random.randint(4)])


def other_size(random: np.random.RandomState, contents: _Contents) -> None:
    rows = contents.told["rows"]
    if isinstance(rows, list) and rows:
        rows[random.randint(len(rows))] = SIZES[random.randint(len(SIZES))]


def other_setting(random: np.random.RandomState, contents: _Contents) -> None:
    names = [name for name in contents.told if name not in LABELS]
    name = names[random.randint(len(names))]
    contents.told[name] = copy.deepcopy(VALUES[random.randint(len(VALUES))])


def other_number(random: np.random.RandomState, contents: _Contents) -> None:
    name = ["lowest", "highest", "n_columns"][random.randint(3)]
    contents.told[name] = [*SIZES, 5, 10, 2**40][random.randint(len(SIZES) + 3)]


def other_labels(random: np.random.RandomState, contents: _Contents) -> None:
    name = ["label_texts", "label_numbers"][random.randint(2)]
    labels = contents.told[name]
    ways = labels[:-1], np.tile(labels, 2), np.repeat(labels[:1], len(labels))
    contents.told[name] = ways[random.randint(3)]


def other_blocks(random: np.random.RandomState, contents: _Contents) -> None:
    place = random.randint(len(contents.blocks))
    contents.blocks.insert(random.randint(len(contents.blocks) + 1), contents.blocks[place])


CHANGES: list[Callable] = [
    other_entry, other_entry, other_order, small_step, other_length, other_type, other_size,
    other_setting, other_number, other_labels, other_blocks,
]  # fmt: skip


# -- the fuzzer -----------------------------------------------------------------------------------


class HostileRowCaches:
    """Caches of all types of rows, by themselves and beside the text they were made from."""

    MOST_CHANGES = 4

    def __init__(self, folder: Path):
        self.folder, self.path = folder, folder / "cache"
        self.text = folder / "rows.svm"
        self.from_text: dict[str, tuple[bytes, bytes]] = {}
        random = np.random.RandomState(0)
        lines = [
            f"{i % 3} " + " ".join(f"{j}:{random.normal():.3g}" for j in range(1, 9, 1 + i % 3))
            for i in range(30)
        ]
        self.text.write_text("\n".join(lines) + "\n")

    def check(self, given: Given) -> None:
        if given.random.randint(4):
            self._check_alone(given)
        else:
            self._check_beside_text(given)

    def _check_alone(self, given: Given) -> None:
        random, multilabel = given.random, bool(given.number % 2)
        dtype = ["f4", "f8"][random.randint(2)]
        blocks = [
            list(random_block(random, random.randint(6), 5, dtype, index, multilabel))
            for index in random.choice(["i4", "i8"], random.randint(1, 4))
        ]
        named = {"dtype": np.dtype(dtype).name, "multilabel": multilabel, "n_columns": 2**41}
        labels = _labels(list("abcde"), [1.0, -1.0, np.nan, 2.5, np.nan])
        _Contents(blocks, {**named, **labels}).write(self.path)
        _change(self.path, given)
        given.outcomes[_read(self.path)] += 1

    def _check_beside_text(self, given: Given) -> None:
        algo = ["alma", "pnorm", "margin", "romma"][given.random.randint(4)]
        expected, sound = self._fitted(algo)
        self.path.write_bytes(sound)
        told_by_checksum = _change(self.path, given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                outputs = self._fit(algo)
            except ValueError as error:
                # A forged cache may have other labels or indices, of which any error may tell.
                assert str(error)
                assert not told_by_checksum or f"{self.path} is" in str(error), error
                given.outcomes["fit refused"] += 1
                return
        if told_by_checksum:
            assert outputs == expected
        given.outcomes["fitted"] += 1

    def _fitted(self, algo: str) -> tuple[bytes, bytes]:
        """What a fit gives, and the cache that it makes."""
        if algo not in self.from_text:
            self.path.unlink(missing_ok=True)
            self.from_text[algo] = self._fit(algo), self.path.read_bytes()
        return self.from_text[algo]

    def _fit(self, algo: str) -> bytes:
        model = fit_svmlight(self.text, algo, max_iter=3, cache=self.path, random_state=0)
        return model.coef_.tobytes()


def _change(path: Path, given: Given) -> bool:
    """Change a sound cache; whether its checksums are then wrong."""
    sound, by_bytes = path.read_bytes(), given.random.uniform() < 0.3
    contents, changed = _Contents.of(path), sound
    for random in given.changes(given.random.randint(1, HostileRowCaches.MOST_CHANGES + 1)):
        change = [flipped, cut, moved][random.randint(3)]
        if not by_bytes:
            change = CHANGES[random.randint(len(CHANGES))]
        given.log.append(change.__name__)
        if by_bytes:
            changed = change(random, changed)
        else:
            change(random, contents)
    if by_bytes:
        path.write_bytes(changed)
        return changed != sound
    contents.write(path)
    return False


def _read(path: Path) -> str:
    """Read all blocks in several ways; how that ended."""
    try:
        with RowCache.open(path) as cache:
            n_refused = 0
            for i in range(cache.n_blocks):
                try:
                    _assert_sound(cache.block(i), cache)
                except ValueError as error:
                    assert str(error).startswith(f"The row cache {path}"), error
                    n_refused += 1
            if n_refused:
                return "block refused"
            for rows in cache.blocks():
                _assert_sound(rows, cache)
            assert sum(len(order) for _, _, order in ordered(cache, 1, 2)) == cache.n_rows
            return "read"
    except ValueError as error:
        assert str(path) in str(error), error
        return "refused"


def _assert_sound(rows: LabelledRows, cache: RowCache) -> None:
    """What the engine takes for granted."""
    data, indices, indptr = rows.data, rows.indices, rows.indptr
    labels, starts = rows.labels, rows.label_start
    assert len(data) == len(indices) == indptr[-1]
    assert indptr[0] == 0
    assert (np.diff(indptr) >= 0).all()
    assert np.isfinite(data).all()
    for start, stop in pairwise(indptr):
        columns = indices[start:stop].astype(object)
        assert all(0 <= column < cache.n_columns for column in columns)
        assert all(one < later for one, later in pairwise(columns))
    assert len(cache.label_texts) == len(cache.label_numbers)
    assert ((labels >= 0) & (labels < len(cache.label_texts))).all()
    if starts is None:
        assert len(labels) == rows.n_rows
    else:
        assert len(starts) == rows.n_rows + 1
        assert starts[0] == 0
        assert starts[-1] == len(labels)
        assert (np.diff(starts) >= 0).all()


if __name__ == "__main__":
    main(HostileRowCaches)
