"""Random files of labels and texts in all forms, and what every command has to read from them."""

import csv
import io
import json
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from sparsemargin.files.sources import open_sources
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.readers.texts import pieces

LABELS = ["a", "b", "c d", "\u00e9", "7"]
WORDS = ["bee", "sea", "dee eff", "", " ", "'", "x" * 50, "\u00fc", "\u2028", "\x85", "1.5", "NA"]
MARKS = ['"', '""', ",", ";", "|", "\t"]
LINE_ENDS = ["\n", "\r\n", "\r"]
SPOILT = ['"', ",", ";", "\t", "\n", "\r", "\r\n", "\0", " ", "|", "x", '"x"']


class Table(NamedTuple):
    """The end of a file's name; its content; its rows of label and text; the texts for which
    `predict` prints a line; the columns of text and label."""

    end: str
    content: bytes
    rows: list
    texts: list
    columns: dict


def any_of(random, choices):
    return choices[random.randint(len(choices))]


def text_of(random, marks):
    return "".join(any_of(random, WORDS + marks) for _ in range(random.randint(5)))


def make_table(random):
    """A table of a random form; parquet only where pyarrow writes it."""
    form = any_of(random, [delimited, delimited, tsv, fasttext, vw, jsonl, parquet])
    labels = [any_of(random, LABELS) for _ in range(random.randint(1, 9))]
    return form(random, labels)


def with_blank_lines(random, lines):
    """The lines, with empty ones among them."""
    return list(
        chain.from_iterable(["", line] if random.rand() < 0.1 else [line] for line in lines)
    )


def delimited(random, labels):
    """A .csv, or a .tsv with names of columns, as Python's csv module writes and reads it."""
    names = any_of(random, [("text", "label"), ("body", "kind"), ("the text", "la,b;e\tl")])
    texts = [text_of(random, [*MARKS, "\n", "\r\n", "\r"]) for _ in labels]
    others = [[text_of(random, MARKS) for _ in labels] for _ in range(random.randint(3))]
    columns = [(names[0], texts), (names[1], labels), *(("other", each) for each in others)]
    columns = [columns[i] for i in random.permutation(len(columns))]
    end = any_of(random, [".csv", ".tsv"])
    how = {
        "delimiter": "\t" if end == ".tsv" else any_of(random, [",", ";", "\t", "|"]),
        "lineterminator": any_of(random, LINE_ENDS),
        "quoting": any_of(random, [csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    }
    if how["lineterminator"] != "\r\n" and how["quoting"] == csv.QUOTE_MINIMAL:
        # Python's writer does not quote other line ends within texts then.
        how["quoting"] = csv.QUOTE_ALL
    file = io.StringIO(newline="")
    writer = csv.writer(file, **how)
    writer.writerow([name for name, _ in columns])
    for row in zip(*(values for _, values in columns), strict=True):
        writer.writerow(row)
        if random.rand() < 0.1:
            file.write(how["lineterminator"])
    mark = "\ufeff" if random.rand() < 0.2 else ""
    header, *rows = csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=how["delimiter"])
    places = [header.index(name) for name in names]
    read = [(row[places[1]], row[places[0]]) for row in rows if row]
    content = (mark + file.getvalue()).encode()
    given = dict(zip(("text", "label"), names, strict=True))
    return Table(end, content, read, [text for _, text in read], given)


def tsv(random, labels):
    """Lines of a label and a text, or these in quotes."""
    texts = [text_of(random, [",", ";", "|", "\t"]).strip("\r\n") for _ in labels]
    rows = list(zip(labels, texts, strict=True))
    end = any_of(random, LINE_ENDS)
    if random.rand() < 0.3:
        file = io.StringIO(newline="")
        csv.writer(file, "excel-tab", quoting=csv.QUOTE_ALL, lineterminator=end).writerows(rows)
        return Table(".tsv", file.getvalue().encode(), rows, texts, {})
    lines = with_blank_lines(random, [f"{label}\t{text}" for label, text in rows])
    new = [line.partition("\t")[2] for line in lines]
    return Table(".tsv", "".join(line + end for line in lines).encode(), rows, new, {})


def fasttext(random, labels):
    """Lines of a label, without blanks, and a text."""
    labels = [label.replace(" ", "_") for label in labels]
    texts = [text_of(random, [*MARKS]).strip() for _ in labels]
    pairs = zip(labels, texts, strict=True)
    lines = with_blank_lines(random, [f"__label__{label} {text}" for label, text in pairs])
    new = [line.partition(" ")[2] for line in lines]
    rows = list(zip(labels, texts, strict=True))
    return Table(".txt", "\n".join([*lines, ""]).encode(), rows, new, {})


def vw(random, labels):
    """Lines of a label and words, without what the form gives a meaning."""
    labels = [label.replace(" ", "_") for label in labels]
    words = [text_of(random, ['"', ","]).split() for _ in labels]
    pairs = zip(labels, words, strict=True)
    lines = with_blank_lines(random, [f"{label} | {' '.join(each)}" for label, each in pairs])
    new = [line.partition("| ")[2] for line in lines]
    rows = list(zip(labels, map(" ".join, words), strict=True))
    return Table(".vw", "\n".join([*lines, ""]).encode(), rows, new, {})


def jsonl(random, labels):
    """Lines of JSON, nested values among them."""
    rows = [(label, text_of(random, [*MARKS, "\n", "\r", "\0"])) for label in labels]
    lines = [
        json.dumps(
            {"text": text, "label": label, "more": any_of(random, [1, None, {"text": []}])},
            ensure_ascii=random.rand() < 0.5,
        )
        for label, text in rows
    ]
    content = any_of(random, ["\n", "\r\n"]).join([*with_blank_lines(random, lines), ""])
    return Table(".jsonl", content.encode(), rows, [text for _, text in rows], {})


@lru_cache
def _kinds_of_text():
    """The types of text that pyarrow writes to parquet: early versions write no views."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    def is_written(kind):
        try:
            write_table(pa.table({"text": pa.array(["a"]).cast(kind)}), io.BytesIO())
        except (pa.ArrowException, NotImplementedError):
            return False
        return True

    return list(filter(is_written, [pa.string(), pa.large_string(), pa.binary(), pa.string_view()]))


def parquet(random, labels):
    """A table of pyarrow, with columns of several types, in row groups of any size."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    texts = [text_of(random, [*MARKS, "\n", "\r", "\0"]) for _ in labels]
    kind = any_of(random, _kinds_of_text())
    column = pa.array([text.encode() for text in texts], pa.binary()).cast(kind)
    of_labels = any_of(random, [
        lambda: pa.array(labels), lambda: pa.array(labels).dictionary_encode(),
        lambda: pa.array([[label] for label in labels]),
        lambda: pa.array([[label] for label in labels], pa.list_(pa.string(), 1)),
    ])()  # fmt: skip
    others = {"nested": pa.array([{"text": [i]} for i in range(len(labels))])}
    file = io.BytesIO()
    table = pa.table({**others, "label": of_labels, "text": column})
    write_table(table, file, row_group_size=int(random.randint(1, 9)))
    return Table(".parquet", file.getvalue(), list(zip(labels, texts, strict=True)), texts, {})


def spoil(random, content):
    """The content, with something put in, left out or cut off."""
    place = random.randint(len(content) + 1)
    way = random.randint(4)
    if way == 0:
        return content[:place]
    if way == 1:
        return content[:place] + content[place + 1 :]
    return content[:place] + any_of(random, SPOILT).encode() + content[place:]


def read(path, **how):
    """The labels, one a row, and texts of a file; None if it is refused by an error that names it.
    Any other error is raised."""
    labels, texts = [], []
    try:
        (source,) = open_sources(path)
        for piece in pieces(source, DocumentForm(missing="empty", **how)):
            parsed = piece().parsed
            texts += [each.strip(" ") for each in parsed.texts]
            labels += parsed.labels
    except ValueError as error:
        assert str(error).startswith(str(path)), error  # noqa: PT017
        return None
    return labels, texts


def check_table(path, table, *, sound):
    """Check that train, evaluate and info read the same texts of a file as predict, those of the
    table if it is `sound`; or that all refuse it, except predict, which needs no labels."""
    path.write_bytes(table.content)
    columns = table.columns
    train = read(path, **columns)
    assert (read(path, multilabel=True, counted=False, **columns) is None) <= (train is None)
    classes = frozenset(LABELS) | frozenset([] if train is None else train[0])
    predicted = read(path, labelled=False, classes=classes, **columns)
    if sound:
        assert train is not None
        expected = [(label, text.strip(" ")) for label, text in table.rows]
        assert list(zip(*train, strict=True)) == expected
        assert predicted == ([], [text.strip(" ") for text in table.texts])
    if train is not None:
        assert predicted is not None
        assert [text for text in predicted[1] if text] == [text for text in train[1] if text]
    return "read" if train is not None else "refused"
