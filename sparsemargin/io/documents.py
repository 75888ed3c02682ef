"""Texts with their labels, from files of several forms, as a source of rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import nan
from typing import Any, Literal

import numpy as np

from sparsemargin._engine.rows.parts import pointers_of
from sparsemargin.io.forms import FORMS, DocumentForm
from sparsemargin.io.lines import CUT, Cut, LineError, Lines, content_of, not_utf8, numbered
from sparsemargin.io.options import StreamOptions
from sparsemargin.io.reading import Corpus, Reading, SettingsError, threads_for
from sparsemargin.io.rows import LabelledRows
from sparsemargin.io.sources import File, Source, TextBlock, open_sources
from sparsemargin.io.stream import going_on, learn_rows, with_cache_path
from sparsemargin.io.tables import batches, cut_batch
from sparsemargin.models import Learner
from sparsemargin.models.labels import LabelTable, number_of

#: Features of files of texts, unless told: 4 million.
HASHED_BITS = 22

# Of texts whose words columns are called by.
_ENOUGH_CHARACTERS = 1 << 22


@dataclass(frozen=True)
class Numbered:
    """Lines of a file, or rows of a table, by their numbers."""

    name: str
    unit: Literal["line", "row"]
    numbers: Any

    def place_of(self, row: int) -> str:
        return f"{self.name}, {self.unit} {self.numbers[row]}"

    def copied(self) -> Numbered:
        return self


@dataclass(frozen=True)
class Documents:
    """A block of texts and labels, and where they come from; bytes of the source so far, None where
    not known; whether labels are told apart as numbers."""

    cut: Cut
    origin: Numbered
    consumed: int | None = None
    numeric: bool = False


#: What gives a block of texts.
Piece = Callable[[], Documents]


def pieces(source: Source, how: DocumentForm) -> Iterator[Piece]:
    """What gives the texts of a file, block by block, when it is called."""
    form = how.of(source)
    if form in CUT:
        free = list[bytearray]()
        for block in numbered(source.blocks(free)):
            yield partial(_of_lines, block, form, how, free)
        return
    first = 1
    for batch in batches(source, how):
        origin = Numbered(source.name, "row", range(first, first := first + len(batch)))
        yield partial(_documents, partial(cut_batch, batch, how), origin)


def _of_lines(block: TextBlock, form: str, how: DocumentForm, free: list[bytearray]) -> Documents:
    lines = Lines(content_of(block), form)
    origin = Numbered(block.source.name, "line", lines.numbers + block.n_lines_before + 1)
    try:
        made = _documents(partial(CUT[form], lines, how), origin)
    except UnicodeDecodeError as error:
        raise not_utf8(block, error) from None
    free.append(block.buffer)
    return replace(made, consumed=block.consumed, numeric=form == "vw")


def _documents(cut: Callable[[], Cut], origin: Numbered) -> Documents:
    try:
        made = cut()
    except LineError as error:
        raise ValueError(f"{origin.place_of(error.row)}: {error}") from None
    return Documents(made, replace(origin, numbers=origin.numbers[made.rows]))


def take_labels(table: LabelTable, labels: list[str], numeric: bool) -> np.ndarray:
    """The ids of labels of texts, which are taken into the table as numbers, where they can be, or
    as words."""
    return table.take(labels, [number_of(label) if numeric else nan for label in labels])


class DocumentCorpus(Corpus):
    """Files of texts, whose rows the `transform` of a vectorizer, or of a pipeline's steps, makes:
    so many features. `n_threads` make rows, while the consumer is at work on those before."""

    form = "Each text has a label, and words of two letters or more unless the vectorizer says else"

    def __init__(
        self, sources: list[Source], how: DocumentForm, vectorizer: Any, n_features: int,
        n_threads: int,
    ) -> None:  # fmt: skip
        dtype = np.dtype(getattr(vectorizer, "dtype", np.float64))
        dtype = dtype if dtype.kind == "f" else np.dtype(np.float64)
        reading = Reading(dtype, zero_based=True, multilabel=how.multilabel, n_features=n_features)
        super().__init__(sources, reading, n_threads, "learning")
        first = vectorizer.steps[0][1] if hasattr(vectorizer, "steps") else vectorizer
        self.how = replace(how, counted=not getattr(first, "binary", False))
        self.vectorizer = vectorizer
        # The first texts, until there are enough for the vectorizer to know its columns' words by.
        self.first_texts: list[str] | None = None
        for source in sources:
            how.of(source)

    def identity(self) -> dict[str, Any]:
        words = {name: str(value) for name, value in self.vectorizer.get_params().items()}
        return {**super().identity(), "words": words, "how": str(self.how)}

    def scan(
        self, table: LabelTable, max_index: int | None = None, base: int | None = None
    ) -> Generator[LabelledRows]:
        ids: dict[Any, int] = {}
        under_way: deque[tuple[Source, Future]] = deque()
        blocks = ((source, piece) for source in self.sources for piece in pieces(source, self.how))
        with ThreadPoolExecutor(self.n_threads) as pool:
            try:
                for source, piece in blocks:
                    under_way.append((source, pool.submit(self._made, piece)))
                    if len(under_way) > self.n_threads:
                        yield self._rows(*under_way.popleft(), table, ids)
                while under_way:
                    yield self._rows(*under_way.popleft(), table, ids)
            finally:
                for _, future in under_way:
                    future.cancel()
        for each in self.sources:
            each.check_unchanged()

    def _made(self, piece: Piece) -> tuple[Documents, Any]:
        """The texts of a piece, and their rows."""
        documents = piece()
        X = self.vectorizer.transform(documents.cut.texts).astype(self.reading.dtype, copy=False)
        X.sort_indices()
        return documents, X

    def _remember(self, texts: Sequence[str]) -> None:
        assert self.first_texts is not None
        self.first_texts += texts
        if sum(map(len, self.first_texts)) >= _ENOUGH_CHARACTERS:
            self.name_columns()

    def name_columns(self) -> None:
        """Let the vectorizer keep words of the first texts."""
        if self.first_texts:
            with suppress(ValueError):  # there are no words
                self.vectorizer.remember_terms(self.first_texts)
        self.first_texts = None

    def _rows(
        self, source: Source, made: Future, table: LabelTable, ids: dict[Any, int]
    ) -> LabelledRows:  # fmt: skip
        """The rows of texts, their labels taken into the table; `ids` are of those met so far."""
        documents, X = made.result()
        (texts, labels, counts, _), start = documents.cut, None
        if self.first_texts is not None:
            self._remember(texts)
        consumed = documents.consumed
        if consumed is not None:
            consumed += self._bytes_before(source)
        if self.reading.multilabel:
            start = pointers_of(counts, np.dtype(np.int64))
        new = [label for label in dict.fromkeys(labels) if label not in ids]
        taken = take_labels(table, new, documents.numeric)
        ids.update(zip(new, taken.tolist(), strict=True))
        codes = np.fromiter(map(ids.__getitem__, labels), np.int32, len(labels))
        return LabelledRows(
            X.data, X.indices, X.indptr, codes, start,
            lowest=int(X.indices.min(initial=0)), highest=int(X.indices.max(initial=-1)),
            consumed=consumed, origin=documents.origin,
        )  # fmt: skip


def hashed_pairs(bits: int) -> Any:
    """The vectorizer of files: words and pairs of neighbours, present or not, hashed to so many
    features as a number of `bits` bits can tell apart."""
    from sparsemargin.text import HashingVectorizer

    return HashingVectorizer(
        n_features=1 << bits, ngram_range=(1, 2), binary=True, dtype=np.float32
    )


def learn_documents(
    path: File | Iterable[File], vectorizer: Any, how: DocumentForm, **given: Any
) -> Learner:
    """`sparsemargin.fit_text` of files: gives a learner of the rows that the vectorizer makes.
    `StreamOptions` are what it takes; all else is the estimator's."""
    options = StreamOptions.of(given)
    for name in "n_features", "hash_bits", "zero_based":
        if name in given:
            raise SettingsError(f"{name} is the vectorizer's. Pass vectorizer=.")
    if how.form is not None and how.form not in FORMS:
        raise SettingsError(f"format must be one of {', '.join(FORMS)}, got {how.form!r}.")
    if options.init_model is not None:
        options = going_on(options)
    how = replace(how, multilabel=options.multilabel or options.positive is not None)
    # Texts take several times as long to be made rows as these to be learned from.
    n_threads = threads_for(options.n_jobs)
    sources = open_sources(path)
    n_features = getattr(vectorizer, "n_columns", vectorizer.n_features)
    options = with_cache_path(options, sources)
    corpus = DocumentCorpus(sources, how, vectorizer, n_features, n_threads)
    if hasattr(vectorizer, "remember_terms") and not hasattr(vectorizer, "terms_"):
        corpus.first_texts = []
    learner = learn_rows(corpus, options)
    corpus.name_columns()
    return learner
