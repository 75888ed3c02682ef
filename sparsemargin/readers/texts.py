"""Texts with their labels, from files of several forms, as a source of rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from math import nan
from typing import Any, Literal

import numpy as np

from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.rows.parts import pointers_of
from sparsemargin._heavy import scipy_sparse
from sparsemargin.files.compression import encoding_named
from sparsemargin.files.sources import Source, TextBlock
from sparsemargin.models.inputs.label_table import LabelTable, number_of
from sparsemargin.readers.label_kinds import TYPED_FORMS, LabelKind, check_kind
from sparsemargin.readers.reading import Reading, run_ahead
from sparsemargin.readers.rows import LabelledRows, Origin
from sparsemargin.readers.svmlight import Corpus
from sparsemargin.readers.text_forms import (
    DocumentForm,
    layout_of_csv,
    layout_of_tsv,
    notes_on_labels,
    notes_on_quotes,
)
from sparsemargin.readers.text_lines import (
    PARSERS,
    SAY_WHICH,
    BlockLines,
    LineError,
    Parsed,
    content_of,
    not_utf8,
    numbered,
)

# Characters of the first texts that are kept to find the words of hashed columns.
ENOUGH_CHARACTERS = 1 << 22


@dataclass(frozen=True)
class Numbered(Origin):
    """The numbers of the lines of a file, or of the rows of a table."""

    name: str
    unit: Literal["line", "row"]
    numbers: Any

    def location_of(self, row: int) -> str:
        return f"{self.name}, {self.unit} {self.numbers[row]}"


@dataclass(frozen=True)
class Documents:
    """A block of texts and labels.

    `origin` has the locations of the texts, `consumed` the bytes read of the source, if known.
    `numeric` specifies whether labels are compared as numbers. `notes` are warnings about the first
    rows.
    """

    parsed: Parsed
    origin: Numbered
    consumed: int | None = None
    numeric: bool = False
    notes: tuple[str, ...] = ()


#: A function that returns a block of texts.
Piece = Callable[[], Documents]


def pieces(source: Source, how: DocumentForm) -> Generator[Piece]:
    """Yield functions that read and split the text of a file, one for each block."""
    form = how.of(source)
    if form == "parquet":
        tables = _tables(source.name, form)
        batches = tables.batches_of_parquet(source, how)
        typed = how.label not in tables.columns_of_path(source.name)
        yield from _pieces_of_table(tables, source.name, batches, how, typed=typed)
        return
    free = list[bytearray]()
    blocks, layout = numbered(source.blocks(free, encoding_named(how.encoding))), None
    if form in ("csv", "tsv"):
        first = next(blocks, None)
        if first is None:
            return
        blocks = chain([first], blocks)
        begin = content_of(first, as_lines=False).lstrip(b" \r\n")
        try:
            layout = (layout_of_csv if form == "csv" else layout_of_tsv)(begin, how)
        except ValueError as error:
            raise ValueError(f"{source.name}, line 1: {error}") from None
    if layout is not None:
        tables = _tables(source.name, form)
        batches = tables.batches_of_csv(source.name, form, blocks, layout, how)
        yield from _pieces_of_table(tables, source.name, batches, how, typed=False)
        return
    if how.keep and form != "jsonl":
        raise ValueError(
            f"{source.name}: a {form} file without column names has no column {how.keep[0]!r}. "
            f"Leave keep={how.keep[0]} out, or write the texts to a table: .csv, .jsonl, .parquet, "
            "or .tsv with the names of the columns in its first line."
        )
    for block in blocks:
        yield partial(_of_lines, block, form, how, free)


def _tables(name: str, form: str) -> Any:
    """Return the module that reads tables. A ModuleNotFoundError says how to install pyarrow."""
    try:
        # pyarrow is an optional dependency.
        from sparsemargin.readers import tables
    except ImportError:
        raise ModuleNotFoundError(
            f"{name}: {form} can only be read with pyarrow. Install it: "
            "pip install 'sparsemargin[text]'"
        ) from None
    return tables


def _pieces_of_table(
    tables: Any, name: str, batches: Iterator[Any], how: DocumentForm, *, typed: bool
) -> Iterator[Piece]:
    first = 1
    for batch in batches:
        origin = Numbered(name, "row", np.arange(first, first := first + len(batch)))
        yield partial(_documents, partial(tables.parse_batch, batch, how, typed=typed), origin)


def _of_lines(block: TextBlock, form: str, how: DocumentForm, free: list[bytearray]) -> Documents:
    # Without labels, blank lines are kept and get predictions, so that output and input lines
    # match.
    lines = BlockLines(
        content_of(block, as_lines=True), form, keep_empty=not how.labelled and form != "jsonl"
    )
    origin = Numbered(block.source.name, "line", lines.numbers + block.n_lines_before + 1)
    try:
        made = _documents(partial(PARSERS[form], lines, how), origin)
    except UnicodeDecodeError as error:
        raise not_utf8(block, error) from None
    if form == "tsv" and block.n_lines_before == 0:
        notes = [f"{origin.name}: {each}" for each in notes_on_quotes(made.parsed.texts)]
        made = replace(made, notes=(*made.notes, *notes))
    free.append(block.buffer)
    return replace(made, consumed=block.consumed, numeric=form == "vw")


def _documents(parse: Callable[[], Parsed], origin: Numbered) -> Documents:
    try:
        made = parse()
    except LineError as error:
        raise ValueError(f"{origin.location_of(error.row)}: {error}") from None
    is_first = len(origin.numbers) > 0 and origin.numbers[0] == 1
    notes = list[str]()
    if is_first and made.counts is not None and (made.counts == 1).all():
        notes = [f"{origin.name}: {each}" for each in notes_on_labels(made.labels)]
    if is_first and made.verdict is not None and made.verdict.doubt:
        notes.append(f"{origin.name}: {made.verdict.doubt}")
    return Documents(made, replace(origin, numbers=origin.numbers[made.rows]), notes=tuple(notes))


def take_labels(table: LabelTable, labels: list[str], numeric: bool) -> np.ndarray:
    """Add labels of texts to the table, as numbers if `numeric` and possible, else as words. Return
    their ids."""
    return table.take(labels, [number_of(label) if numeric else nan for label in labels])


class DocumentCorpus(Corpus):
    """Text files as a source of rows with `n_features` columns. The `transform` of a vectorizer, or
    of the steps of a pipeline, computes the rows in `n_threads` threads while the consumer
    works."""

    form = "Each text has a label, and words of two letters or more unless the vectorizer says else"
    warns_of_labels = True

    def __init__(
        self, sources: list[Source], how: DocumentForm, vectorizer: Any, n_features: int,
        n_threads: int,
    ) -> None:  # fmt: skip
        dtype = np.dtype(getattr(vectorizer, "dtype", np.float64))
        dtype = dtype if dtype.kind == "f" else np.dtype(np.float64)
        reading = Reading(
            dtype, zero_based=True, multilabel=how.multilabel and how.labelled,
            n_features=n_features,
        )  # fmt: skip
        super().__init__(sources, reading, n_threads, "learning")
        first = vectorizer.steps[0][1] if hasattr(vectorizer, "steps") else vectorizer
        self.how = replace(how, counted=not getattr(first, "binary", False))
        self.vectorizer, self.n_features = vectorizer, n_features
        # The first texts, from which the vectorizer finds the words of its columns. None if they
        # are not needed.
        self.first_texts: list[str] | None = None
        self._naming: Future[Any] | None = None  # the storing of these words, once it has begun
        # `_noted` has the warnings that have been shown, `_kind` is the kind of the first label
        # with a type, and `_has_labels` says whether the lines of each source have labels.
        self._noted: set[str] = set()
        self._kind: LabelKind | None = None
        self._has_labels: dict[str, bool] = {}
        for source in sources:
            how.of(source)

    def identity(self) -> dict[str, Any]:
        words = {name: str(value) for name, value in self.vectorizer.get_params().items()}
        return {**super().identity(), "words": words, "how": str(self.how)}

    def scan(
        self, table: LabelTable, max_index: int | None = None, base: int | None = None
    ) -> Generator[LabelledRows]:
        ids: dict[Any, int] = {}
        if self.first_texts:
            self.first_texts = []  # of an earlier scan that was not complete
        calls = (
            (source, partial(self._made, piece))
            for source in self.sources for piece in pieces(source, self.how)
        )  # fmt: skip
        with closing(run_ahead(self.n_threads, calls)) as results:
            for source, made in results:
                yield self._rows(source, made.result(), table, ids)
        for each in self.sources:
            each.check_unchanged()

    def all_labels(self) -> np.ndarray:
        """Return the distinct labels of all texts, which are not vectorized for this."""
        table = LabelTable()
        for source in self.sources:
            for piece in pieces(source, self.how):
                documents = piece()
                take_labels(table, list(dict.fromkeys(documents.parsed.labels)), documents.numeric)
            source.check_unchanged()
        return table.values()

    def label_kind(self) -> LabelKind | None:
        if self._kind is None:
            # The rows may come from a row cache, which does not store kinds.
            for source in self.sources:
                if self._kind is None and self.how.of(source) in TYPED_FORMS:
                    with closing(pieces(source, self.how)) as found:
                        for piece in islice(found, 1):
                            self._check(piece())
        return self._kind

    def _made(self, piece: Piece) -> tuple[Documents, Any]:
        """Return the texts of a piece, and their rows."""
        documents = piece()
        if not len(documents.parsed.texts):
            # There are blank lines only. Some vectorizers can't transform an empty list.
            return documents, scipy_sparse().csr_matrix(
                (0, self.n_features), dtype=self.reading.dtype
            )
        X = self.vectorizer.transform(documents.parsed.texts).astype(self.reading.dtype, copy=False)
        X.sort_indices()
        return documents, X

    def _check(self, documents: Documents) -> None:
        """Show new warnings. Raise an error if a file has lines with labels and lines without, or
        if labels are of different kinds."""
        for note in documents.notes:
            if note not in self._noted:
                self._noted.add(note)
                warn_user(note)
        verdict, origin = documents.parsed.verdict, documents.origin
        for each in documents.parsed.kinds:
            kind = each._replace(where=origin.location_of(each.row))
            self._kind = self._kind or kind
            check_kind(kind, self._kind)
        if verdict is not None and verdict.has_labels != self._has_labels.setdefault(
            origin.name, verdict.has_labels
        ):
            how = "begin" if verdict.has_labels else "do not begin"
            raise ValueError(
                f"{origin.location_of(0)}: lines from here on {how} with classes of the model, "
                f"unlike those before. {SAY_WHICH}"
            )

    def _remember(self, texts: Sequence[str]) -> None:
        assert self.first_texts is not None
        self.first_texts += texts
        if sum(map(len, self.first_texts)) >= ENOUGH_CHARACTERS:
            # A thread does this, because it takes as long as training on tens of megabytes.
            pool = ThreadPoolExecutor(1)
            self._naming = pool.submit(self.vectorizer.remember_terms, self.first_texts)
            pool.shutdown(wait=False)
            self.first_texts = None

    def name_columns(self) -> None:
        """Let the vectorizer store the words of the first texts, and wait until it has."""
        if self.first_texts == [] and self.rereadable:
            # The rows come from a row cache, which does not store texts.
            found = (piece for each in self.sources for piece in pieces(each, self.how))
            with closing(found):
                while self.first_texts is not None and (piece := next(found, None)):
                    self._remember(piece().parsed.texts)
        if self._naming is not None:
            self._naming.result()
        if self.first_texts:
            self.vectorizer.remember_terms(self.first_texts)
        self.first_texts = self._naming = None

    def _rows(
        self, source: Source, made: tuple[Documents, Any], table: LabelTable, ids: dict[Any, int]
    ) -> LabelledRows:
        """Return the rows of texts. New labels are added to the table and to the dict `ids`."""
        documents, X = made
        (texts, labels, counts, *_), start = documents.parsed, None
        self._check(documents)
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
            consumed=consumed, origin=documents.origin, kept=documents.parsed.kept,
            texts=texts,
        )  # fmt: skip
