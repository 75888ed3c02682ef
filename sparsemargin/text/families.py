"""Matrices of two families of terms, words and character n-grams, each with its own weights.

The families are counted in the same pass over the texts. Character n-grams are counted for each
distinct word. Their document frequencies are known before the n-grams of each text are written, so
n-grams that are pruned are never written, and the others are written once, with their weights.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from numbers import Integral
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.text.counting import Scanner
from sparsemargin._engine.text.weighing import Counted, weigh
from sparsemargin.text.analysis import ScanPlan, scan, shares, split_bounds
from sparsemargin.text.vocabulary import Vocabulary

#: Initial length of the table of logarithms. A longer table is computed for larger counts.
N_LOGS = 1 << 16

#: Arguments of `weigh` for a family: rows, columns, inverse document frequencies, and offset.
Family = tuple[Counted, Any, Any, int]


class Fitted(NamedTuple):
    """The terms of one family, and the inverse document frequency of each."""

    vocabulary: Vocabulary
    idf: np.ndarray


def logs_of(dtype: np.dtype, n: int) -> np.ndarray:
    """Return ``1 + log(i)`` for ``i < n``, computed as scikit-learn does for this dtype."""
    logs = np.arange(n, dtype=dtype)
    np.log(logs, logs, where=logs > 0)
    logs += 1.0
    return logs


@lru_cache(2)
def first_logs(dtype: np.dtype) -> np.ndarray:
    """Return the initial table of logarithms, which is long enough for nearly all texts."""
    return logs_of(dtype, N_LOGS)


def in_threads(
    work: Callable[[int], Any], n: int, n_jobs: int, stop: Event | None = None
) -> list[Any]:
    """Return the results of ``work(i)`` for ``i < n``, computed in up to `n_jobs` threads.

    `stop` is set after an error in a thread or Ctrl-C.
    """
    if min(n, n_jobs) == 1:
        return [work(i) for i in range(n)]
    with ThreadPoolExecutor(min(n, n_jobs)) as threads:
        try:
            return list(threads.map(work, range(n)))
        finally:
            if stop is not None:
                stop.set()


def idf_of(frequency: np.ndarray, n_rows: int, dtype: np.dtype) -> np.ndarray:
    """Return the smoothed inverse document frequencies, computed as scikit-learn does."""
    frequency = frequency.astype(dtype)
    frequency += 1.0
    idf = np.full_like(frequency, n_rows + 1)
    idf /= frequency
    np.log(idf, idf)
    idf += 1.0
    return idf


def weighed(
    parts: list[list[Family]], sizes: list[int], dtype: np.dtype, norm: str | None, by_logs: bool
) -> tuple[np.ndarray, ...]:
    """Return the values, columns and row pointers of the rows of all parts, part by part.

    Each part is computed by its own thread. `sizes` are the numbers of entries of the parts.
    """
    starts = np.cumsum([0, *sizes], dtype=np.int64)
    rows = np.cumsum([1, *(part[0][0].n_rows for part in parts)])
    values, columns = np.empty(starts[-1], dtype), np.empty(starts[-1], np.int32)
    ends = np.zeros(rows[-1], np.int64)

    def write(i: int) -> None:
        entries, own_ends = slice(starts[i], starts[i + 1]), ends[rows[i] : rows[i + 1]]
        logs, room = first_logs(dtype) if by_logs else None, (columns[entries], values[entries])
        largest = weigh(parts[i], logs, norm, *room, own_ends)
        if largest:
            weigh(parts[i], logs_of(dtype, largest + 1), norm, *room, own_ends)
        own_ends += starts[i]

    in_threads(write, len(parts), len(parts))
    return values, columns, ends


def scanned(
    plans: list[ScanPlan], raw_documents: Iterable[Any], n_jobs: int
) -> list[tuple[Scanner, Scanner]]:
    """Count the words and the character n-grams of texts. Return a pair of scanners per thread. A
    pair has counted a contiguous part of the texts."""
    preparation, stop = plans[0].preparation, Event()
    texts: Any = raw_documents if n_jobs == 1 else list(raw_documents)
    n_jobs = n_jobs if n_jobs == 1 else min(n_jobs, len(texts)) or 1
    bounds = [0] if n_jobs == 1 else split_bounds(texts, n_jobs)

    def scan_part(i: int) -> tuple[Scanner, Scanner]:
        counts = np.dtype(np.int32)
        words, within = (Scanner(counts, in_order=True, **plan.settings) for plan in plans)
        part = texts if n_jobs == 1 else texts[bounds[i] : bounds[i + 1]]
        if isinstance(part, list):
            words.reserve(plans[0].n_entries(part))
            within.reserve(plans[0].n_entries(part) // 2)
        for block in preparation.blocks(part, bounds[i]):
            if stop.is_set():
                break
            within.scan(*block, words)
        return words, within

    return in_threads(scan_part, n_jobs, n_jobs, stop)


def fit_families(
    plans: list[ScanPlan], raw_documents: Iterable[Any], n_jobs: int, min_df: tuple[Any, Any],
    dtype: np.dtype, norm: str | None, by_logs: bool,
) -> tuple[tuple[np.ndarray, ...], list[Fitted]]:  # fmt: skip
    """Learn the terms of both families, and weight the rows of the texts.

    Returns
    -------
    rows : tuple of arrays
        Values, columns and row pointers, with the columns of words first.
    fitted : list of Fitted
        The terms of words and of character n-grams.
    """
    scanners = scanned(plans, raw_documents, n_jobs)

    def learned(i: int) -> tuple[_Terms, Fitted]:
        terms = _Terms([each[i] for each in scanners], min_df[i], as_words=i == 0)
        return terms, terms.fit(dtype)

    (words, ngrams), fitted = zip(*in_threads(learned, 2, n_jobs), strict=True)
    if not any(len(each.vocabulary) for each in fitted):
        if words.frequency.any() or ngrams.frequency.any():
            raise ValueError(
                "All terms were left out. Pass a vectorizer with a lower minimum: "
                "WordCharVectorizer(word_min_df=1, char_min_df=1)."
            )
        raise ValueError("The texts contain no words: all texts are empty. Leave empty texts out.")
    n_words, n_parts = len(fitted[0].vocabulary), len(scanners)
    parts = in_threads(lambda i: [words.family(i, 0), ngrams.family(i, n_words)], n_parts, n_jobs)
    sizes = in_threads(lambda i: words.size(i) + ngrams.size(i), n_parts, n_jobs)
    return weighed(parts, sizes, dtype, norm, by_logs), list(fitted)


def transform_families(
    plans: list[ScanPlan], texts: Any, n_jobs: int, n_columns: list[int], idf: list[Any],
    dtype: np.dtype, norm: str | None, by_logs: bool,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Weight the rows of texts by the columns of fitted or hashed terms.

    Return values, columns and row pointers. For a family with None in `idf`, counts are not
    multiplied by inverse document frequencies.
    """
    rows = [scan(plan, np.dtype(np.int32), texts, n_jobs)[1] for plan in plans]
    n_rows = len(rows[0][2]) - 1
    offsets = [0, n_columns[0]]
    parts, sizes = [], []
    for share in shares(n_rows, -(-n_rows // n_jobs)):
        size, families = 0, []
        for i, (counts, columns, ends) in enumerate(rows):
            own = ends[share.start : share.stop + 1]
            size += int(own[-1] - own[0])
            counted = Counted(counts, columns, own, n_columns[i])
            families.append((counted, None, idf[i], offsets[i]))
        parts.append(families)
        sizes.append(size)
    return weighed(parts, sizes, dtype, norm, by_logs)


class _Terms:
    """The terms of one family in the rows of all scanners, with their document frequencies."""

    def __init__(self, scanners: list[Scanner], min_df: Any, *, as_words: bool) -> None:
        self.as_words = as_words
        self.lexicon = scanners[0].lexicon
        self.parts = []
        for each in scanners:
            items = () if as_words else each.take_ngrams()
            self.parts.append(Counted(*each.take_rows(), len(each.lexicon), *items))
        # For each part, the numbers of its terms in the first lexicon.
        self.numbers: list[Any] = [slice(self.parts[0].n_terms)]
        self.numbers += [self.lexicon.absorb(each.lexicon).view(np.int32) for each in scanners[1:]]
        self.frequencies = [part.n_rows_with() for part in self.parts]
        self.frequency = np.zeros(len(self.lexicon), np.int64)
        for numbers, frequency in zip(self.numbers, self.frequencies, strict=True):
            self.frequency[numbers] += frequency
        self.n_rows = sum(part.n_rows for part in self.parts)
        least = min_df if isinstance(min_df, Integral) else min_df * self.n_rows
        self.is_kept = (self.frequency >= least) & (self.frequency > 0)

    def fit(self, dtype: np.dtype) -> Fitted:
        """Return the terms that are kept, with their inverse document frequencies."""
        order = self.lexicon.order(self.is_kept.view(np.uint8))
        self.vocabulary = Vocabulary(self.lexicon, order, self.as_words)
        self.idf = idf_of(self.frequency, self.n_rows, dtype)
        return Fitted(self.vocabulary, self.idf[order])

    def size(self, i: int) -> int:
        """Return the number of entries of a part of the matrix."""
        return int(self.frequencies[i].sum(where=self.is_kept[self.numbers[i]], dtype=np.int64))

    def family(self, i: int, offset: int) -> Family:
        """Return the family of a part, with columns from `offset` on."""
        columns, numbers = self.vocabulary.columns[:-1], self.numbers[i]
        return self.parts[i], columns[numbers], self.idf[numbers], offset
