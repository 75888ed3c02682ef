"""Analyses that the engine supports, and the preparation and scanning of texts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from numbers import Integral
from threading import Event
from time import monotonic
from typing import Any

import numpy as np

from sparsemargin._engine.text.counting import SPECIAL, Lexicon, Scanner
from sparsemargin._engine.text.weighing import renumber

#: Token patterns that the engine supports. For each: whether tokens are separated by whitespace,
#: whether they have at least two characters, and whether each punctuation character is a token.
PATTERNS = {
    r"(?u)\b\w\w+\b": (False, True, False),
    r"\b\w\w+\b": (False, True, False),
    r"\w\w+": (False, True, False),
    r"(?u)\b\w+\b": (False, False, False),
    r"\b\w+\b": (False, False, False),
    r"(?u)\w+": (False, False, False),
    r"\w+": (False, False, False),
    r"(?u)\S+": (True, False, False),
    r"\S+": (True, False, False),
    r"(?u)\w+|[^\w\s]": (False, False, True),
    r"\w+|[^\w\s]": (False, False, True),
}

#: Methods of scikit-learn's vectorizers. If a subclass overrides one, scikit-learn's code is used.
STEPS = (
    "build_analyzer", "build_preprocessor", "build_tokenizer", "get_stop_words", "_word_ngrams",
    "_char_ngrams", "_char_wb_ngrams", "_white_spaces", "_get_hasher",
)  # fmt: skip

#: Least and largest number of characters of a block of texts. Ctrl-C takes effect between blocks.
MIN_BLOCK_CHARACTERS, MAX_BLOCK_CHARACTERS = 250_000, 2_000_000

#: Number of nonzero values that are processed at once, so that they stay in the CPU cache.
ENTRIES = 1 << 18

#: Seconds between two progress messages.
SECONDS = 5.0


def is_own(vectorizer: Any, theirs: type, name: str) -> bool:
    """Return whether a vectorizer overrides an attribute of scikit-learn's class."""
    return name in vars(vectorizer) or getattr(type(vectorizer), name, None) is not getattr(
        theirs, name, None
    )


def settings_of(vectorizer: Any, theirs: type) -> dict[str, Any] | None:
    """Return the arguments of `Scanner`, or None for an analysis that it does not support."""
    v = vectorizer
    if v.preprocessor is not None or v.tokenizer is not None or callable(v.strip_accents):
        return None
    if not isinstance(v.analyzer, str) or v.analyzer not in ("word", "char", "char_wb"):
        return None
    if any(is_own(v, theirs, name) for name in STEPS):
        return None
    lengths = v.ngram_range
    if not all(isinstance(n, Integral) for n in lengths) or not 1 <= lengths[0] <= lengths[1]:
        return None
    settings: dict[str, Any] = {
        "analyzer": v.analyzer, "ngram_range": tuple(map(int, lengths)), "once": bool(v.binary)
    }  # fmt: skip
    if v.analyzer == "word":
        if v.token_pattern not in PATTERNS:
            return None
        by_spaces, from_two, singles = PATTERNS[v.token_pattern]
        if by_spaces and lengths[1] > 1:
            # scikit-learn sorts n-grams. Such words may have characters that sort before the space
            # between words, which the engine does not support.
            return None
        settings |= {"by_spaces": by_spaces, "from_two": from_two, "singles": singles}
        stop_words = v.get_stop_words()
        if stop_words:
            settings["stop_words"] = Lexicon()
            for word in stop_words:
                if isinstance(word, str):
                    settings["stop_words"].add(str(word), False)
    return settings


class Preparation:
    """Decode texts as a vectorizer's analyzer does, and mark those that must be lowercased."""

    def __init__(self, vectorizer: Any, theirs: type) -> None:
        # This call also warns about inconsistent stop words and raises errors for wrong settings.
        self.analyze = vectorizer.build_analyzer()
        self.preprocess = vectorizer.build_preprocessor()
        self.decode = vectorizer.decode
        self.name = type(vectorizer).__name__
        self.seconds = SECONDS if vectorizer.verbose else float("inf")
        self.lower = bool(vectorizer.lowercase)
        self.strips = bool(vectorizer.strip_accents)
        self.as_they_come = vectorizer.input == "content" and not is_own(
            vectorizer, theirs, "decode"
        )

    def takes(self, text: bytes) -> bool:
        """Return whether the scanner can read this UTF-8 without decoding it first."""
        if not self.as_they_come or self.strips:
            return False
        if not self.lower or text.isascii():
            return True
        return not any(each.encode() in text for each in SPECIAL)

    def blocks(
        self, raw_documents: Iterable[Any], first: int = 0
    ) -> Iterator[tuple[list[str], bytes]]:
        """Yield blocks of texts, with one flag per text: whether it has to be lowercased.

        `first` is the number of the first text, for error messages.
        """
        documents, size, last_report = iter(raw_documents), 64, monotonic()
        while block := list(islice(documents, size)):
            if self.as_they_come and not self.strips and set(map(type, block)) <= {str, np.str_}:
                flags = bytes([self.lower]) * len(block)
            else:
                pairs = [self._prepare(each, first + i) for i, each in enumerate(block)]
                block, flags = [text for text, _ in pairs], bytes(flag for _, flag in pairs)
            yield block, flags
            first += len(block)
            if monotonic() - last_report > self.seconds:
                last_report = monotonic()
                print(f"[{self.name}] texts read: {first:,}", flush=True)
            n_characters = sum(map(len, block))
            size = size * 2 if n_characters < MIN_BLOCK_CHARACTERS else size
            size = max(size // 2, 1) if n_characters > MAX_BLOCK_CHARACTERS else size

    def scan(self, scanner: Scanner, texts: list[str], lower: bytes) -> None:
        """Add the texts to a scanner's rows.

        A term that cannot be hashed because it is not valid UTF-8 raises a UnicodeEncodeError.
        """
        if scanner.scan(texts, lower) and scanner.hashes:
            for text in texts:
                for feature in self.analyze(text):
                    feature.encode("utf-8")

    def _prepare(self, document: Any, i: int) -> tuple[str, bool]:
        try:
            plain = self.as_they_come and type(document) is str
            text = document if plain else self.decode(document)
            if type(text) in (str, np.str_) and (not self.strips or text.isascii()):
                return text, self.lower
            text = self.preprocess(text)
            if not isinstance(text, str):
                self.analyze(document)
                raise TypeError(f"a document must be text, got {type(text).__name__}")
            return text, False
        except Exception as error:
            if type(error) in (AttributeError, TypeError, ValueError):
                raise type(error)(f"{error} ({what_it_is(document, i)})") from None
            error.add_note(f"It is texts[{i}].")
            raise


def what_it_is(document: Any, i: int) -> str:
    """Return the part of an error message about an element that is not a text."""
    if document is None or type(document).__name__ in ("float", "NAType"):
        return f"texts[{i}] is {document!r}: leave it out, or '' in its place"
    return f"texts[{i}] is {type(document).__name__}: give it as a str"


def without_arrow(texts: Any) -> Any:
    """Return an Arrow column as a list. Iterating over it would give Arrow scalars, not str."""
    return texts.to_pylist() if hasattr(texts, "to_pylist") else texts


@contextmanager
def naming_no_texts(raw_documents: Any) -> Iterator[Iterator[Any]]:
    """Give an iterator over the texts for scikit-learn's code.

    If that code raises an error for an element that is not a text, the message names the element.
    """
    raw_documents = without_arrow(raw_documents)
    i, document = 0, ""

    def texts() -> Iterator[Any]:
        nonlocal i, document
        for i, document in enumerate(raw_documents):  # noqa: B007
            yield document

    try:
        yield texts()
    except (AttributeError, TypeError, ValueError) as error:
        if isinstance(document, str | bytes):
            raise
        raise type(error)(f"{error} ({what_it_is(document, i)})") from None


class Parts(Sequence[str]):
    """Sequence of texts in one UTF-8 buffer. A str is made only when an item is accessed.

    Text i is ``buffer[starts[i]:ends[i]]``. A buffer that is not valid UTF-8 raises a
    UnicodeDecodeError.
    """

    def __init__(self, buffer: bytes, starts: np.ndarray, ends: np.ndarray) -> None:
        if not buffer.isascii():
            buffer.decode("utf-8")
        self.buffer, self.starts, self.ends = buffer, starts, ends

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return Parts(self.buffer, self.starts[i], self.ends[i])
        return self.buffer[self.starts[i] : self.ends[i]].decode("utf-8")


class ScanPlan:
    """How the texts of a vectorizer are scanned. It is valid until one of `parameters` changes.

    `settings` are arguments of `Scanner`. `known` are the terms to count; None: scanners collect
    new terms, unless columns are hashes.
    """

    def __init__(
        self, parameters: tuple[Any, ...], preparation: Preparation, settings: dict[str, Any],
        known: Any = None,
    ) -> None:  # fmt: skip
        self.parameters = parameters
        self.preparation = preparation
        self.settings = settings
        self.known = known
        self.learns = known is None and "n_hashed" not in settings
        self._idle: list[Scanner] = []

    def scanner(self, dtype: np.dtype) -> Scanner:
        if self.known is None:
            return Scanner(dtype, **self.settings)
        return Scanner(
            dtype, lexicon=self.known.lexicon, columns=self.known.columns,
            n_columns=len(self.known), **self.settings,
        )  # fmt: skip

    def n_entries(self, texts: list[Any]) -> int:
        """Return a high estimate of the number of nonzeros in the rows of these texts."""
        every, sizes = sizes_of(texts)
        shortest, longest = self.settings["ngram_range"]
        characters = sum(sizes) * every * (longest - shortest + 1)
        return characters // (8 if self.settings["analyzer"] == "word" else 2)

    def rows(self, texts: Iterable[Any], dtype: np.dtype) -> tuple[Scanner, tuple[Any, ...]]:
        """Count the features of all texts in one thread. See `scan`.

        Scanners that do not collect terms are used again for later texts, with their memory.
        """
        try:
            scanner = self._idle.pop()
        except IndexError:  # another thread may have taken the last one
            scanner = self.scanner(dtype)
        if isinstance(texts, Parts) and self.preparation.takes(texts.buffer):
            scanner.scan_parts(texts.buffer, texts.starts, texts.ends, self.preparation.lower)
        else:
            if isinstance(texts, list):
                scanner.reserve(self.n_entries(texts))
            for block in self.preparation.blocks(texts):
                self.preparation.scan(scanner, *block)
        rows = scanner.take_rows()
        if not self.learns:
            self._idle.append(scanner)
        return scanner, rows


def parameters_of(vectorizer: Any) -> tuple[Any, ...]:
    """Return the parameters and overridden methods that determine how texts are scanned."""
    state = vars(vectorizer)
    kind: Any = type(vectorizer)
    given = [state[name] for name in names_of_parameters(kind)]
    kept = [tuple(each) if isinstance(each, list | set) else each for each in given]
    return (*kept, *(name for name in STEPS if name in state))


@cache
def names_of_parameters(kind: Any) -> list[str]:
    """Return the names of the parameters of a vectorizer class, without "vocabulary"."""
    return [name for name in kind._get_param_names() if name != "vocabulary"]


def scan(
    plan: ScanPlan, dtype: np.dtype, raw_documents: Iterable[Any], n_jobs: int
) -> tuple[Scanner, tuple[np.ndarray, ...]]:
    """Count the features of all texts. Return a scanner whose lexicon has all terms, and the
    values, columns and row pointers of a CSR matrix.

    Each thread counts a contiguous part of the texts with a separate scanner. If the scanners
    collect terms, the terms of each further scanner are added to the lexicon of the first in the
    order of the texts. So terms get the same numbers as with one thread.
    """
    raw_documents = without_arrow(raw_documents)
    if n_jobs == 1:
        return plan.rows(raw_documents, dtype)
    texts = list(raw_documents)
    n_jobs = min(n_jobs, len(texts)) or 1
    bounds = split_bounds(texts, n_jobs)
    types = [dtype, *[np.dtype(np.int32)] * (n_jobs - 1)]
    scanners = [plan.scanner(each) for each in types]
    # The first scanner needs room for all rows, because it receives the rows of the others.
    n_entries = plan.n_entries(texts)
    for i, scanner in enumerate(scanners):
        scanner.reserve(n_entries // n_jobs if i else n_entries)
    stop = Event()

    def scan_part(i: int) -> None:
        for block in plan.preparation.blocks(texts[bounds[i] : bounds[i + 1]], bounds[i]):
            if stop.is_set():
                return
            plan.preparation.scan(scanners[i], *block)

    with ThreadPoolExecutor(n_jobs) as threads:
        try:
            list(threads.map(scan_part, range(n_jobs)))
            return scanners[0], merge_rows(scanners, plan.learns, threads)
        finally:
            stop.set()


def frequent_terms(plan: ScanPlan, texts: Iterable[Any], n_jobs: int, most: int) -> list[str]:
    """Return the most frequent terms of texts, at most `most`, by increasing frequency. Terms of
    equal frequency are sorted."""
    scanner, (values, columns, _) = scan(plan, np.dtype(np.int32), texts, n_jobs)
    counts = np.bincount(columns, values, len(scanner.lexicon))
    # A lexicon of word pairs also has their single words, which need not be counted.
    numbers = scanner.lexicon.order()
    numbers = numbers[counts[numbers] > 0]
    if not len(numbers):
        raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
    frequent = np.argsort(counts[numbers], kind="stable")[-most:]
    terms: list[str] = scanner.lexicon.terms(numbers[frequent].astype(np.int32))
    return terms


def split_bounds(texts: list[Any], n_parts: int) -> list[int]:
    """Return bounds that split the texts into parts of about equal numbers of characters."""
    every, sizes = sizes_of(texts)
    ends = np.cumsum([0, *sizes])
    starts = np.searchsorted(ends, ends[-1] * np.arange(1, n_parts) / n_parts) * every
    return [0, *np.minimum(starts, len(texts)).tolist(), len(texts)]


def sizes_of(texts: list[Any]) -> tuple[int, list[int]]:
    """Return a step width, and the lengths of about 1,000 texts taken at this step."""
    every = len(texts) // 1000 + 1
    return every, [len(each) if isinstance(each, str | bytes) else 1 for each in texts[::every]]


def shares(n: int, size: int) -> list[slice]:
    """Return slices of length `size` that cover ``range(n)``. The last one may be shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def for_shares(work: Callable[[slice], None], n: int, n_jobs: int) -> None:
    """Call `work` with slices that cover `n` entries, each small enough for the cache."""
    parts = shares(n, ENTRIES)
    if len(parts) > 1 and n_jobs > 1:
        with ThreadPoolExecutor(n_jobs) as threads:
            list(threads.map(work, parts))
    else:
        list(map(work, parts))


def merge_rows(scanners: list[Scanner], learn: bool, threads: Executor) -> tuple[np.ndarray, ...]:
    """Concatenate the rows of all scanners.

    If the scanners collect terms (`learn`), all terms are added to the lexicon of the first one,
    and the rows use its numbers.
    """
    first = scanners[0].lexicon
    numbers = [first.absorb(each.lexicon) for each in scanners[1:]] if learn else []
    sorting = threads.submit(first.order)  # cached for `Vocabulary.sort`
    parts = [each.take_rows() for each in scanners[1:]]
    all_values, all_columns, ends = scanners[0].take_rows(sum(len(each[1]) for each in parts))
    starts = np.cumsum([ends[-1], *(len(columns) for _, columns, _ in parts)])

    def write(i: int, rows: slice) -> None:
        """Copy some rows of part i to their place in the result."""
        values, columns, ends = parts[i]
        ends = ends[rows.start : rows.stop + 1]
        own, to = slice(ends[0], ends[-1]), slice(starts[i] + ends[0], starts[i] + ends[-1])
        if learn:
            renumber(
                values[own], columns[own], ends - ends[0], numbers[i], len(first),
                all_columns[to], all_values[to],
            )  # fmt: skip
        else:
            all_columns[to], all_values[to] = columns[own], values[own]

    for i, (_, _, part_ends) in enumerate(parts):
        n_rows = len(part_ends) - 1
        list(threads.map(partial(write, i), shares(n_rows, n_rows // (4 * len(scanners)) + 1)))
    sorting.result()
    all_ends = [part[2][1:] + start for part, start in zip(parts, starts, strict=False)]
    return all_values, all_columns, np.concatenate([ends, *all_ends])
