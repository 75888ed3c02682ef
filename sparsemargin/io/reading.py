"""svmlight text made rows by threads, in the order of the text; what is wrong with it is told with
its place."""

from __future__ import annotations

import math
import os
import re
import time
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np

from sparsemargin._checks import check_count, check_flag, check_float_dtype
from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.svmlight.scan import ScanError, Scanner
from sparsemargin._shown import quoted
from sparsemargin.io.rows import LARGEST_INDEX, LabelledRows, RowSource
from sparsemargin.io.sources import Source, TextBlock
from sparsemargin.models.fitted import MOST_HASH_BITS
from sparsemargin.models.labels import LabelTable, first_labels

FORM = "svmlight lines are 'label index:value index:value ...'"
_PAIR = re.compile(rb"\d:")
# A label may begin with a bracket, too.
_JSON = re.compile(rb'\s*(\{\s*("|$)|\[\s*([\[{"\d-]|$))')


class SettingsError(ValueError):
    """Arguments are wrong, or don't go together, whatever the files hold."""


def threads_for(n_jobs: int | None, *, beside: int = 0) -> int:
    """How many threads read text: as many as asked for, -1 being all cores, -2 all but one; None:
    two, or as many as cores are left `beside` so many threads that are busy too."""
    n_cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    if n_jobs is None:
        return max(1, min(2, n_cores - beside))
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number but 0, or None; got {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else max(1, n_cores + 1 + int(n_jobs))


@dataclass
class Reading:
    """How svmlight text is read; a ValueError names what is wrong. See `load_svmlight`."""

    dtype: Any = np.float64
    zero_based: bool | Literal["auto"] = "auto"
    multilabel: bool = False
    n_features: int | None = None
    hash_bits: int | None = None

    def __post_init__(self) -> None:
        self.dtype = check_float_dtype(self.dtype)
        self.multilabel = check_flag("multilabel", self.multilabel)
        if isinstance(self.zero_based, bool | np.bool_):
            self.zero_based = bool(self.zero_based)
        elif not isinstance(self.zero_based, str) or self.zero_based != "auto":
            raise ValueError(f"zero_based must be True, False or 'auto', got {self.zero_based!r}")
        if self.n_features is not None and self.hash_bits is not None:
            raise SettingsError(
                f"n_features={self.n_features!r} and hash_bits={self.hash_bits!r} exclude each "
                "other: the latter alone tells how many columns there are."
            )
        if self.n_features is not None:
            self.n_features = check_count("n_features", self.n_features, 1, LARGEST_INDEX)
        if self.hash_bits is not None:
            self.hash_bits = check_count("hash_bits", self.hash_bits, 1, MOST_HASH_BITS)

    @property
    def base(self) -> int:
        """What is subtracted from an index: 0 where that is not known beforehand."""
        return 1 if self.zero_based is False else 0

    @property
    def max_index(self) -> int:
        """The largest index, as written, that may be right."""
        if self.hash_bits is not None:
            return LARGEST_INDEX
        if self.n_features is None:
            # One column more must be countable.
            return LARGEST_INDEX - 1
        return self.n_features - 1 if self.zero_based is True else self.n_features

    def scanner(self, *, base: int | None = None, max_index: int | None = None) -> Scanner:
        """A new scanner for text read in this way; `base` instead of the reading's, `max_index` a
        lower limit than the reading's, unless indices are hashed."""
        if max_index is None or self.hash_bits is not None:
            max_index = self.max_index
        return Scanner(
            self.dtype,
            base=self.base if base is None else base,
            least=1 if self.zero_based is False else 0,
            max_index=min(max_index, self.max_index),
            multilabel=self.multilabel,
            hash_bits=self.hash_bits or 0,
        )

    @property
    def n_columns(self) -> int | None:
        """How many a stream begins with; None: as many as turn up."""
        return self.n_features if self.hash_bits is None else 1 << self.hash_bits

    def columns_up_to(self, highest: int) -> int:
        """How many columns indices from the least possible to `highest` have."""
        if self.hash_bits is not None:
            return 1 << self.hash_bits
        return max(highest + 1 - self.base, 0)

    def drops_column_0(self, lowest: int) -> bool:
        """Whether index 0 turned out not to be one, the least having been `lowest`."""
        return self.zero_based == "auto" and self.hash_bits is None and 0 < lowest < LARGEST_INDEX

    def settled(self, lowest: int) -> dict[str, Any]:
        """What later files must be read with for their columns to be those of this one."""
        from_one = self.zero_based is False or self.drops_column_0(lowest)
        return {"zero_based": not from_one, "hash_bits": self.hash_bits}

    def settings(self) -> dict[str, Any]:
        """All of it, for a file to be known by."""
        return {**asdict(self), "dtype": np.dtype(self.dtype).name}


def columns_of(model: Any, zero_based: bool | Literal["auto"] = "auto") -> dict[str, Any]:
    """What `Reading` needs to know for the columns of a file to be the model's features."""
    if model._fitted.reading is not None:
        return model._fitted.reading
    # svmlight's own convention, which most files keep to.
    return {"zero_based": False if zero_based == "auto" else zero_based}


Purpose = Literal["loading", "learning", "predicting", "counting"]


@dataclass
class Corpus(RowSource):
    """Files of svmlight text, how they are read, by how many threads and what for."""

    sources: list[Source]
    reading: Reading
    n_threads: int
    purpose: Purpose = "loading"

    form = FORM

    @property
    def names(self) -> str:
        names = [source.name for source in self.sources]
        return ", ".join(names[:3]) + ", ..." * (len(names) > 3)

    @property
    def files(self) -> list[str]:
        return [name for source in self.sources for name in source.files]

    @property
    def unversioned(self) -> list[str]:
        remote = [source.remote for source in self.sources if source.remote is not None]
        return [each.url for each in remote if each.version is None]

    @property
    def size(self) -> int | None:
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def rereadable(self) -> bool:
        return all(source.rereadable for source in self.sources)

    def _bytes_before(self, source: Source) -> int:
        """Of the files before one of them."""
        # The same file may be named twice.
        index = next(i for i, other in enumerate(self.sources) if other is source)
        return sum(other.size or 0 for other in self.sources[:index])

    def identity(self) -> dict[str, Any]:
        # What can be read only once is never the same again.
        read = None if self.rereadable else time.time_ns()
        return {"sources": [source.identity() for source in self.sources], "read": read}

    def scan(
        self, table: LabelTable, max_index: int | None = None, base: int | None = None
    ) -> Generator[LabelledRows]:
        """As `RowSource.scan`: the same rows for any number of threads, which scan while the
        consumer is at work.

        `base` is as for `Reading.scanner`. A ValueError names the file, the line and the column of
        what can't be read, and what helps; or a file that changes meanwhile.
        """
        reading, n_lines = self.reading, 0
        free: list[bytearray] = []
        scanners = range(self.n_threads + 1)
        idle = [reading.scanner(base=base, max_index=max_index) for _ in scanners]
        table.forget_scanners()
        under_way: deque[tuple[Scanner, TextBlock, Future]] = deque()
        pool = ThreadPoolExecutor(self.n_threads)
        source: Source | None = None
        n_passed_over = 0

        def finish() -> Iterator[LabelledRows]:
            nonlocal source, n_lines, n_passed_over
            scanner, text, future = under_way.popleft()
            if text.source is not source:
                source, n_lines = text.source, 0
            text.n_lines_before = n_lines
            try:
                rows = future.result()
            except ScanError as error:
                raise located(
                    error, text, reading, max_index=max_index, purpose=self.purpose
                ) from None
            n_lines += rows.n_lines
            n_passed_over += rows.n_lines - (len(rows.indptr) - 1)
            yield LabelledRows(
                rows.data, rows.indices, rows.indptr, table.ids_of(scanner, rows.labels),
                rows.label_start, rows.lowest, rows.highest,
                self._bytes_before(text.source) + text.consumed, text,
            )  # fmt: skip
            idle.append(scanner)
            free.append(text.buffer)

        try:
            blocks = (block for each in self.sources for block in each.blocks(free))
            while True:
                try:
                    text = next(blocks, None)
                except Exception:
                    # What is wrong earlier in the text comes first.
                    while under_way:
                        yield from finish()
                    raise
                if text is None:
                    break
                if not idle:
                    yield from finish()
                scanner = idle.pop()
                under_way.append((scanner, text, pool.submit(scanner.scan, text.buffer, text.stop)))
            while under_way:
                yield from finish()
        finally:
            pool.shutdown(cancel_futures=True)
        if n_passed_over and self.purpose == "predicting" and not table.takes_labels:
            warn_user(
                f"{self.names}: {n_passed_over:,} lines are blank or hold only a comment. They are "
                "not rows and have no prediction: the lines of the output are those of the rows."
            )
        for each in self.sources:
            each.check_unchanged()


class Flaw(NamedTuple):
    """What is wrong, {token} being the text in question, and what helps."""

    what: str
    remedy: str


_FLAWS = {
    "no_label": Flaw(
        "{token} is a feature, but the line has no label before it",
        "Put one first, or pass multilabel=True, which lets rows have none.",
    ),
    "several_labels": Flaw("{token} is more than one label", "Pass multilabel=True."),
    "bad_label": Flaw("{token} has an empty label", "Separate labels by one comma each."),
    "missing_colon": Flaw("{token} is not index:value", f"Correct the line: {FORM}."),
    "bad_index": Flaw(
        "{token} has an index that is not a whole number",
        "Pass hash_bits=20, which takes names, too, or give each name a number.",
    ),
    "negative_index": Flaw("{token} has a negative index", "Number the features from 0 or 1."),
    "zero_index": Flaw(
        "{token} has index 0 in text that is read as one-based",
        "Pass zero_based=True or zero_based='auto'. To go on with a model that has learned from "
        "files whose indices count from 1, add 1 to the indices here.",
    ),
    "index_too_large": Flaw(
        "{token} has an index above 2**63 - 2", "Number the features from 0 or 1."
    ),
    "overlong": Flaw("{token} is too long for a number", "Is the file damaged?"),
    "bad_value": Flaw(
        "{token} has a value that is not a number", "Values are decimal: 0.5 or 1e-3."
    ),
    "not_finite": Flaw(
        "{token} is not finite", "Impute what is missing or infinite, or drop its row."
    ),
    "nul": Flaw(
        "a NUL byte",
        "Is it a binary or compressed file? Text is read, plain or packed by gz, bz2, xz or zst.",
    ),
    "invisible": Flaw(
        "label {token} has a byte-order mark or a no-break space",
        "Delete it, or make the space a plain one. Files that begin with a mark are named one by "
        "one, not joined.",
    ),
}


#: What to do about rows of several labels that are learned from.
SEVERAL_LABELS = (
    "Pass multilabel=True, to learn them all, or positive=LABEL, to tell that one from all others."
)

# By what a file is read for.
_REMEDIES = {
    ("several_labels", "learning"): SEVERAL_LABELS,
    ("several_labels", "predicting"): "The model has learned one class a row: give each row one, "
    "or pass positive=LABEL if the model tells that one from all others.",
    ("no_label", "predicting"): "Put one first.",
    ("bad_index", "predicting"): "The model has learned features by their numbers: give each name "
    "its number.",
    ("bad_index", "counting"): "Only features that are numbered are counted; sparsemargin train "
    "takes names, too, with --hash-bits 20.",
}


def located(
    error: ScanError, block: TextBlock, reading: Reading, *, max_index: int | None = None,
    purpose: str = "learning",
) -> ValueError:  # fmt: skip
    """The error for the user of what the scanner raised for a block: file, line, column (in bytes,
    from 1), text and remedy; `max_index` is the largest that memory has room for."""
    start = block.buffer.rfind(b"\n", 0, error.offset) + 1
    end = block.buffer.find(b"\n", error.offset, block.stop)
    line = bytes(block.buffer[start : block.stop if end < 0 else end])
    token = bytes(block.buffer[error.offset : error.offset + error.length])
    flaw = _flaw(error.code, token, line, reading, max_index)
    if flaw.remedy == _FLAWS[error.code].remedy:
        flaw = flaw._replace(remedy=_REMEDIES.get((error.code, purpose), flaw.remedy))
    shown = quoted(token.decode(errors="backslashreplace"))
    return ValueError(
        f"{block.place_at(start)}, column {error.offset - start + 1}: "
        f"{flaw.what.format(token=shown)}. {flaw.remedy}"
    )


def located_label(block: LabelledRows, row: int, label: object, classes: list) -> ValueError:
    """The error for a row of the block whose label is none of the classes."""
    return ValueError(
        f"{block.place_of(row)}label {first_labels([label])} is none of the classes, "
        f"{first_labels(classes)}. Pass classes=[...] with all there are; a model that has learned "
        "its classes can't learn others."
    )


def located_index(block: LabelledRows, most: int) -> ValueError:
    """The error for the largest index of the block, whose weights would take more memory than
    `most` features may."""
    row = np.searchsorted(block.indptr, block.indices.argmax(), side="right") - 1
    flaw = _beyond_memory(most)
    what = flaw.what.format(token=block.highest)
    return ValueError(f"{block.place_of(int(row))}{what}. {flaw.remedy}")


def _beyond_memory(most: int) -> Flaw:
    return Flaw(
        "index {token} asks for more weights than memory_limit has room for",
        f"That is for {most:,} features at the most. Raise it, or pass hash_bits.",
    )


def _flaw(code: str, token: bytes, line: bytes, reading: Reading, max_index: int | None) -> Flaw:
    flaw = _FLAWS[code]
    if code == "bad_index" and reading.hash_bits is not None:
        return Flaw(
            "{token} has nothing before its colon", "Put the feature's number or name there."
        )
    if code == "missing_colon" and token.startswith(b"|"):
        return flaw._replace(remedy=_looks_like("Vowpal Wabbit's format", "vw"))
    if _JSON.match(line):
        return flaw._replace(remedy=_looks_like("JSON", "jsonl"))
    if line.startswith(b"__label__"):
        return flaw._replace(remedy=_looks_like("fastText's format", "fasttext"))
    if code in ("several_labels", "bad_label", "missing_colon") and not _PAIR.search(line):
        if b"\t" in line:
            return flaw._replace(remedy=_looks_like("tab-separated values", "tsv"))
        if b"," in line:
            return flaw._replace(remedy=_looks_like("comma-separated values", "csv"))
        return flaw._replace(remedy=f"This looks like a table; {FORM}.")
    if (
        code == "index_too_large" and reading.hash_bits is None
        and max_index is not None and max_index < reading.max_index
    ):  # fmt: skip
        return _beyond_memory(max_index)
    if code == "index_too_large" and reading.n_features is not None:
        return Flaw(
            f"{{token}} has an index beyond n_features={reading.n_features}",
            f"The largest may be {reading.max_index} here. Raise n_features, or leave it out.",
        )
    if code == "not_finite" and reading.dtype == np.float32 and _fits_float64(token):
        return Flaw("{token} is too large for float32", "Pass dtype=numpy.float64.")
    return flaw


def _looks_like(what: str, form: str) -> str:
    return (
        f"This looks like {what}; {FORM}. Texts are learned from by fit_text, or with --format "
        f"{form}."
    )


def _fits_float64(token: bytes) -> bool:
    try:
        return math.isfinite(float(token.rpartition(b":")[2]))
    except ValueError:
        return False
