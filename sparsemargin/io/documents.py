"""Texts with their labels, from files of several forms, as a source of rows."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np

from sparsemargin._engine.rows.parts import pointers_of
from sparsemargin._shown import quoted
from sparsemargin.io.options import StreamOptions
from sparsemargin.io.reading import (
    SEVERAL_LABELS,
    Corpus,
    Reading,
    SettingsError,
    threads_for,
)
from sparsemargin.io.rows import LabelledRows
from sparsemargin.io.sources import File, Source, TextBlock, open_sources
from sparsemargin.io.stream import going_on, learn_rows, with_cache_path
from sparsemargin.models import Learner
from sparsemargin.models.labels import LabelTable, number_of

#: Forms that files of texts have, which the ends of their names tell.
TextForm = Literal["fasttext", "tsv", "vw", "csv", "jsonl", "parquet"]
FORMS = get_args(TextForm)

_FORM_OF = {
    ".txt": "fasttext", ".ft": "fasttext", ".tsv": "tsv", ".vw": "vw", ".csv": "csv",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip

_TABLES = "csv", "jsonl", "parquet"
_COMPRESSED = ".gz", ".bz2", ".xz", ".zst"

#: What labels begin with in fastText's form.
LABEL = "__label__"

# White space as fastText has it, labels at the beginning of a line, and those anywhere.
_SPACE = r" \t\r\v\f\0"
_FIRST_LABELS = re.compile(rf"[{_SPACE}]*(?:{LABEL}[^{_SPACE}]*(?:[{_SPACE}]+|$))*")
_LABELS = re.compile(rf"(?<![^{_SPACE}]){LABEL}([^{_SPACE}]*)")

#: Features of files of texts, unless told: 4 million.
HASHED_BITS = 22

# Of texts whose words columns are called by.
_ENOUGH_CHARACTERS = 1 << 22

# Rows of a table that are read together.
_ROWS_AT_ONCE = 4096

# Bytes of a table of text that are read together: what a row may take.
_TABLE_BYTES = 1 << 23

# What a line of each form is, for errors.
_LINE = {
    "fasttext": "lines are '__label__LABEL text'",
    "tsv": "lines are 'LABEL<tab>text'",
    "vw": "lines are 'LABEL | word word:2'",
}


def form_of(name: str) -> TextForm | None:
    """The form that the end of a file's name tells, compressed or not; None: it tells of none."""
    root, end = os.path.splitext(name)
    if end in _COMPRESSED:
        end = os.path.splitext(root)[1]
    return _FORM_OF.get(end)  # type: ignore[return-value]


@dataclass(frozen=True)
class DocumentForm:
    """How files of texts are read: their form (None: as their names end), the columns of a table
    that hold the text and the label, whether a text may have several labels, and whether it must
    have one."""

    form: TextForm | None = None
    text: str = "text"
    label: str = "label"
    multilabel: bool = False
    labelled: bool = True

    def of(self, source: Source) -> TextForm:
        """The form of one of the files."""
        form = self.form or form_of(source.name)
        if form is None:
            ends = ", ".join(_FORM_OF)
            raise ValueError(
                f"{source.name}: no form of texts is known by the end of its name ({ends}). Pass "
                f"format= one of {', '.join(FORMS)}."
            )
        return form

    def pieces(self, source: Source) -> Iterator[Piece]:
        """What gives the texts of a file, block by block, when it is called."""
        form = self.of(source)
        if form in _TABLES:
            return (partial(lambda each: each, each) for each in self._of_table(source, form))
        return (partial(self._of_lines, each, form) for each in _numbered(source.blocks([])))

    def _of_lines(self, block: TextBlock, form: str) -> Documents:
        lines = _decoded(block).split("\n")
        if not lines[-1]:
            del lines[-1]
        first = block.n_lines_before + 1
        numbers: Sequence[int] = range(first, first + len(lines))
        if "" in lines:
            numbers = [number for number, line in zip(numbers, lines, strict=True) if line]
            lines = list(filter(None, lines))
        origin = Numbered(block.source.name, "line", numbers)
        texts, labels = _PARTED[form](lines, self, origin)
        return Documents(texts, labels, origin, block.consumed)

    def _of_table(self, source: Source, form: str) -> Iterator[Documents]:
        n_rows = 0
        for batch in _batches(source, form, self._names):
            columns = [self._column(batch, name, source) for name in self._names]
            texts, labels = columns[0], columns[1] if self.labelled else []
            origin = Numbered(source.name, "row", range(n_rows + 1, n_rows + len(texts) + 1))
            n_rows += len(texts)
            for name, column in zip(self._names, columns, strict=True):
                if None in column:
                    raise ValueError(
                        f"{origin.place_of(column.index(None))}: {name!r} is empty. Give it a "
                        "value, or drop the row."
                    )
            if self.labelled:
                labels = self._labels_of(labels, origin)
            yield Documents(texts, labels, origin, None)

    def _labels_of(self, column: list[Any], origin: Numbered) -> list[Any]:
        if self.multilabel:
            return [_listed(each) if isinstance(each, str) else each for each in column]
        for i, each in enumerate(column):
            if isinstance(each, list):
                raise ValueError(
                    f"{origin.place_of(i)}: {self.label!r} holds a list of labels. {SEVERAL_LABELS}"
                )
            if not each.strip():
                raise ValueError(
                    f"{origin.place_of(i)}: {self.label!r} is empty. Give it a value, or drop the "
                    "row."
                )
        return column

    @property
    def _names(self) -> list[str]:
        return [self.text, self.label] if self.labelled else [self.text]

    def _column(self, batch: Any, name: str, source: Source) -> list[Any]:
        if name not in batch.schema.names:
            argument = "text" if name == self.text else "label"
            raise ValueError(
                f"{source.name} has no column {name!r}, but {', '.join(batch.schema.names)}. Name "
                f"the one by {argument}=."
            )
        column = batch.column(name)
        if not str(column.type).startswith(("list", "large_list")):
            column = column.cast("string")
        return column.to_pylist()


@dataclass(frozen=True)
class Numbered:
    """Lines of a file, or rows of a table, by their numbers."""

    name: str
    unit: Literal["line", "row"]
    numbers: Sequence[int]

    def place_of(self, row: int) -> str:
        return f"{self.name}, {self.unit} {self.numbers[row]}"

    def copied(self) -> Numbered:
        return self


@dataclass(frozen=True)
class Documents:
    """A block of texts: the label of each, or a list of each one's labels; where they come from;
    bytes of the source so far, None where not known."""

    texts: list[str]
    labels: list[Any]
    origin: Numbered
    consumed: int | None


#: What gives a block of texts.
Piece = Callable[[], Documents]


def _numbered(blocks: Iterator[TextBlock]) -> Iterator[TextBlock]:
    """The blocks, each with the number of lines before it."""
    n_lines = 0
    for block in blocks:
        block.n_lines_before = n_lines
        yield block
        n_lines += block.buffer.count(b"\n", 0, block.stop)


def _decoded(block: TextBlock) -> str:
    try:
        text = block.buffer[: block.stop].decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{block.place_at(error.start)}: byte {error.object[error.start]:#04x} is not UTF-8. "
            "Make it UTF-8: iconv -f LATIN1 -t UTF-8, or whatever the file is."
        ) from None
    return text.replace("\r\n", "\n") if "\r" in text else text


def _refused(form: str, line: str, place: str) -> ValueError:
    return ValueError(f"{place}: {quoted(line[:60])} has no label; {_LINE[form]}.")


def _listed(labels: str) -> list[str]:
    """Labels that commas part."""
    return [label.strip() for label in labels.split(",") if label.strip()]


Parted = tuple[list[str], list[Any]]


def _of_fasttext(lines: list[str], how: DocumentForm, origin: Numbered) -> Parted:
    texts, labels = list[str](), list[Any]()
    for i, line in enumerate(lines):
        end = _FIRST_LABELS.match(line).end()  # type: ignore[union-attr]
        found, text = _LABELS.findall(line[:end]), line[end:]
        if LABEL in text:
            found += _LABELS.findall(text)
            text = _LABELS.sub("", text)
        texts.append(text)
        if how.labelled and "" in found:
            raise _refused("fasttext", line, origin.place_of(i))
        if how.multilabel:
            labels.append(found)
        elif not how.labelled:
            continue
        elif len(found) == 1:
            labels.append(found[0])
        elif not found:
            raise _refused("fasttext", line, origin.place_of(i))
        else:
            raise ValueError(
                f"{origin.place_of(i)}: several labels, {', '.join(found)}. {SEVERAL_LABELS}"
            )
    return texts, labels


def _of_tsv(lines: list[str], how: DocumentForm, origin: Numbered) -> Parted:
    if not how.labelled:
        return [line.rpartition("\t")[2] for line in lines], []
    parts = [line.partition("\t") for line in lines]
    for i, (label, tab, _) in enumerate(parts):
        if not tab or (not label.strip() and not how.multilabel):
            raise _refused("tsv", lines[i], origin.place_of(i))
    labels: list[Any] = [label.strip() for label, _, _ in parts]
    if how.multilabel:
        labels = list(map(_listed, labels))
    return [text for _, _, text in parts], labels


def _of_vw(lines: list[str], how: DocumentForm, origin: Numbered) -> Parted:
    texts, labels = list[str](), list[Any]()
    for i, line in enumerate(lines):
        before, bar, features = line.partition("|")
        words = before.split()
        if not bar or (how.labelled and not how.multilabel and not words):
            raise _refused("vw", line, origin.place_of(i))
        texts.append(" ".join(_words_of_vw(features, origin, i)))
        if how.labelled:
            labels.append(words[:1] if how.multilabel else words[0])
    return texts, labels


def _words_of_vw(features: str, origin: Numbered, row: int) -> Iterator[str]:
    """The words of all namespaces, as often as their weights say."""
    for namespace in features.split("|"):
        words = namespace.split(" ")
        # What stands at the bar is a namespace's name.
        for word in words[1:]:
            name, colon, weight = word.partition(":")
            if not colon:
                yield word
                continue
            if not weight.isdecimal() or int(weight) > 1000:
                raise ValueError(
                    f"{origin.place_of(row)}: {quoted(word)} has a weight that is no count of a "
                    "word. Weights of other features are read from svmlight text."
                )
            yield from [name] * int(weight)


_PARTED: dict[str, Callable[[list[str], DocumentForm, Numbered], Parted]] = {
    "fasttext": _of_fasttext, "tsv": _of_tsv, "vw": _of_vw,
}  # fmt: skip


def _batches(source: Source, form: str, names: list[str]) -> Iterator[Any]:
    """Record batches of a table that has columns of these names, perhaps."""
    try:
        import pyarrow
    except ImportError:
        raise ModuleNotFoundError(
            f"{source.name}: {form} is read by pyarrow. Install it: "
            "pip install 'sparsemargin[text]'"
        ) from None
    if source.seekable is None:
        raise ValueError(f"{source.name}: {form} is read from files by name. Pass a path.")
    try:
        if form == "parquet":
            from pyarrow.parquet import ParquetFile

            yield from ParquetFile(source.seekable).iter_batches(_ROWS_AT_ONCE)
            return
        if form == "csv":
            from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, open_csv

            # A column is text whatever its first values look like.
            words = ConvertOptions(column_types=dict.fromkeys(names, pyarrow.string()))
            lines = ParseOptions(newlines_in_values=True)
            with pyarrow.input_stream(source.seekable) as stream:
                blocks = ReadOptions(block_size=_TABLE_BYTES)
                yield from open_csv(stream, blocks, lines, words)
            return
        from pyarrow.json import ReadOptions as JsonOptions
        from pyarrow.json import open_json

        with pyarrow.input_stream(source.seekable) as stream:
            yield from open_json(stream, JsonOptions(block_size=_TABLE_BYTES))
    except pyarrow.ArrowInvalid as error:
        if "straddling object" in str(error):
            raise ValueError(
                f"{source.name}: a row is longer than {_TABLE_BYTES:,} bytes. Shorten its text, or "
                "make the file .parquet."
            ) from None
        raise ValueError(f"{source.name} is no sound {form}: {error}") from None


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
        self.how, self.vectorizer = how, vectorizer
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
        pieces = ((source, piece) for source in self.sources for piece in self.how.pieces(source))
        with ThreadPoolExecutor(self.n_threads) as pool:
            try:
                for source, piece in pieces:
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
        X = self.vectorizer.transform(documents.texts).astype(self.reading.dtype, copy=False)
        X.sort_indices()
        return documents, X

    def _remember(self, texts: list[str]) -> None:
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
        if self.first_texts is not None:
            self._remember(documents.texts)
        labels, consumed, start = documents.labels, documents.consumed, None
        if consumed is not None:
            consumed += self._bytes_before(source)
        if self.reading.multilabel:
            start = pointers_of([len(each) for each in labels], np.dtype(np.int64))
            labels = list(chain.from_iterable(labels))
        new = [label for label in dict.fromkeys(labels) if label not in ids]
        taken = table.take(list(map(str, new)), list(map(number_of, new)))
        ids.update(zip(new, taken.tolist(), strict=True))
        codes = np.array([ids[label] for label in labels], dtype=np.int32)
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
    sources, n_features = open_sources(path), vectorizer.n_features
    options = with_cache_path(options, sources)
    corpus = DocumentCorpus(sources, how, vectorizer, n_features, n_threads)
    if hasattr(vectorizer, "remember_terms") and not hasattr(vectorizer, "terms_"):
        corpus.first_texts = []
    learner = learn_rows(corpus, options)
    corpus.name_columns()
    return learner
