"""Lines of a label and a text, which are split with vectorized operations on the bytes of a
block."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from math import isfinite, prod
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._shown import quoted
from sparsemargin.files.kinds import FASTTEXT_LABEL
from sparsemargin.files.sources import TextBlock
from sparsemargin.models.inputs.label_table import number_of, word_of
from sparsemargin.models.inputs.label_values import (
    INDICATOR,
    NO_LABEL,
    NotALabelError,
    file_text,
    is_indicator,
    quoted_value,
    spaced_label,
)
from sparsemargin.readers.label_kinds import LabelKind, kinds_of
from sparsemargin.readers.svmlight import SEVERAL_LABELS
from sparsemargin.readers.text_forms import DocumentForm, fill_missing, is_list
from sparsemargin.text.analysis import Parts

# Largest weight of a word or a line in Vowpal Wabbit's format. Weights are numbers of repetitions.
_MOST_TIMES = 1000

# The form of a line in error messages.
_FORMS = {
    "fasttext": "__label__LABEL text",
    "tsv": "LABEL<tab>text",
    "vw": "LABEL | word word:2",
}

#: How users specify whether lines of a .tsv have labels.
SAY_WHICH = (
    "Pass labelled=True if lines begin with a label and a tab, labelled=False if each line is a "
    "text."
)

EMPTY = (
    "{!r} is empty. Give it a value, or pass missing='empty' for an empty text or missing='drop' "
    "for no row."
)

_NO_LIST = (
    "the label {} is a list written as text. Separate the labels by commas, with pandas by "
    "df['label'].map(','.join). Or write the table to a .jsonl or .parquet file, which can hold "
    "lists."
)

_NO_LABELS: tuple[list[str], Any] = [], None


class Verdict(NamedTuple):
    """The decision whether lines of a .tsv begin with labels, which are then skipped, and a warning
    if it is doubtful ("" if not)."""

    has_labels: bool
    doubt: str = ""


class Parsed(NamedTuple):
    """The texts of a block. `labels` are the labels of all texts, end to end, and `counts` the
    number of labels of each text. `rows` are the lines of the texts, or a slice if each line is one
    text. `verdict` says whether lines begin with labels, if this was unclear. `kept` are the values
    of each kept column, and `kinds` the kinds of the labels, if values have types."""

    texts: Sequence[str]
    labels: list[str]
    counts: Any
    rows: Any = slice(None)
    verdict: Verdict | None = None
    kept: tuple[list[Any], ...] = ()
    kinds: Sequence[LabelKind] = ()


class LineError(Exception):
    """The description of a fault in a line, or in a row of a table."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(what)
        self.row = row


def numbered(blocks: Iterator[TextBlock]) -> Iterator[TextBlock]:
    """Yield the blocks, after setting the number of lines before each."""
    n_lines = 0
    for block in blocks:
        block.n_lines_before = n_lines
        yield block
        # Counting with numpy is several times faster than `bytearray.count`.
        characters = np.frombuffer(block.buffer, np.uint8, block.stop)
        n_lines += int(np.count_nonzero(characters == ord("\n")))


def content_of(block: TextBlock, *, as_lines: bool) -> bytes:
    """Return the content of a block, with a line feed after its last line. If `as_lines` and the
    file has no line feeds, carriage returns are replaced by line feeds. Tables keep quoted ones."""
    text = bytes(memoryview(block.buffer)[: block.stop])
    if as_lines and block.n_lines_before == 0 and b"\n" not in text:
        text = text.replace(b"\r", b"\n")
    return text if text.endswith(b"\n") else text + b"\n"


def not_utf8(block: TextBlock, error: UnicodeDecodeError) -> ValueError:
    return ValueError(
        f"{block.place_at(error.start)}: byte {error.object[error.start]:#04x} is not UTF-8. Pass "
        "the encoding of the file, such as encoding='latin-1', or make it UTF-8: "
        "iconv -f LATIN1 -t UTF-8 FILE > NEW."
    )


class BlockLines:
    """The lines of a block with their positions and numbers, from 0. Empty lines are left out
    unless `keep_empty`. The block must end with a line end. Iteration over lines that are not UTF-8
    raises a UnicodeDecodeError."""

    def __init__(self, text: bytes, form: str, *, keep_empty: bool = False) -> None:
        self.text, self.form, self.characters = text, form, np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(self.characters == ord("\n"))
        starts = np.append(0, ends[:-1] + 1)
        ends -= (ends > starts) & (self.characters[ends - 1] == ord("\r"))
        self.numbers = np.arange(len(ends)) if keep_empty else np.flatnonzero(ends > starts)
        self.starts, self.ends = starts[self.numbers], ends[self.numbers]

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[str]:
        return iter(Parts(self.text, self.starts, self.ends))

    def unlabelled(self, row: int) -> LineError:
        line = Parts(self.text, self.starts, self.ends)[row]
        remedy = f"Write '{_FORMS[self.form]}'."
        if self.form == "tsv" and "\t" in line:
            remedy += " If the first line has the names of the columns, pass label=COLUMN and "
            remedy += "text=COLUMN."
        return LineError(row, f"{quoted(line[:60])} has no label. {remedy}")

    def labels(
        self, starts: np.ndarray, ends: np.ndarray, make: Callable[[str], Any], rows: Any
    ) -> list[Any]:
        """Apply `make` to the labels at these positions, once to each distinct label. `rows` are
        their lines, for errors."""
        found = [self.text[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        known = dict[bytes, Any]()
        for each in dict.fromkeys(found):
            try:
                known[each] = make(each.decode())
            except NotALabelError as error:
                label = quoted_value(each.decode())
                raise LineError(int(rows[found.index(each)]), f"label {label} {error}.") from None
        return list(map(known.__getitem__, found))


def check_labels(
    parsed: Parsed, how: DocumentForm, unlabelled: Callable[[int], LineError]
) -> Parsed:
    """Return `parsed` unchanged, after a check that each text has exactly one label, if required. A
    label that is a list written as text is refused."""
    labels, ends = parsed.labels, np.cumsum(parsed.counts)
    for label in filter(is_list, dict.fromkeys(labels)):
        row = int(np.searchsorted(ends, labels.index(label), side="right"))
        raise LineError(row, _NO_LIST.format(quoted(label)))
    wrong = np.flatnonzero(parsed.counts != 1) if how.labelled and not how.multilabel else ()
    for row in map(int, wrong[:1]):
        if not parsed.counts[row]:
            raise unlabelled(row)
        found = ", ".join(labels[ends[row] - parsed.counts[row] : ends[row]])
        raise LineError(row, f"several labels, {found}. {SEVERAL_LABELS}")
    return parsed


def end_to_end(labels: list[list[str]]) -> tuple[list[str], np.ndarray]:
    """Join lists of labels end to end. Return the joined list and the length of each."""
    return list(chain.from_iterable(labels)), np.array(list(map(len, labels)), int)


def parse_values(columns: list[list[Any]], labels: list[Any], how: DocumentForm) -> Parsed:
    """Return texts and labels from the values of columns. A `LineError` names the row of a value
    that is missing or invalid."""
    kept = None
    if how.missing != "error":
        columns, kept = fill_missing(columns, how.missing)
    columns = [
        values if set(map(type, values)) == {str}
        else list(_converted(values, name, file_text, EMPTY))
        for name, values in zip(how.texts, columns, strict=True)
    ]  # fmt: skip
    texts = columns[0] if len(columns) == 1 else list(map("\n".join, zip(*columns, strict=True)))
    if not how.labelled:
        return Parsed(texts, *_NO_LABELS)
    if kept is None:
        return _with_labels(texts, labels, how)
    rows = np.flatnonzero(kept)
    texts, labels = ([values[i] for i in rows.tolist()] for values in (texts, labels))
    try:
        return _with_labels(texts, labels, how)._replace(rows=rows)
    except LineError as error:
        raise LineError(int(rows[error.row]), str(error)) from None


def _with_labels(texts: list[str], labels: list[Any], how: DocumentForm) -> Parsed:
    """Return texts with the labels in the values of a column."""
    if is_indicator(labels):
        raise LineError(0, f"{how.label!r} {INDICATOR}.")
    found = end_to_end(list(_converted(labels, how.label, how.labels_of, NO_LABEL)))
    parsed = Parsed(texts, *found, kinds=kinds_of(labels, how.label))
    return check_labels(parsed, how, lambda row: LineError(row, NO_LABEL.format(how.label)))


def _converted(
    values: list[Any], name: str, convert: Callable[[Any], Any], missing: str, first: int = 0
) -> Iterator[Any]:
    """Convert the values of a column; `first` is the number of the first row. A `LineError` names
    the row of an invalid value."""
    for row, value in enumerate(values, first):
        try:
            yield convert(value)
        except NotALabelError as error:
            if error.missing:
                raise LineError(row, missing.format(name)) from None
            raise LineError(row, f"{name!r} = {quoted_value(value)} {error}.") from None


def parse_tsv(lines: BlockLines, how: DocumentForm) -> Parsed:
    """Split lines ``LABEL<tab>text`` at the first tab, or return lines without labels as texts."""
    tabs = np.append(np.flatnonzero(lines.characters == ord("\t")), len(lines.text))
    tabs = tabs[np.searchsorted(tabs, lines.starts)]
    verdict, has_labels = None, how.labelled or how.has_labels
    if has_labels is None:
        verdict = _verdict(lines, tabs, how)
        has_labels = verdict is not None and verdict.has_labels
    if not has_labels:
        return Parsed(Parts(lines.text, lines.starts, lines.ends), *_NO_LABELS, verdict=verdict)
    for row in np.flatnonzero((tabs >= lines.ends) & (lines.ends > lines.starts))[:1].tolist():
        raise lines.unlabelled(row)
    texts = Parts(lines.text, np.minimum(tabs + 1, lines.ends), lines.ends)
    if not how.labelled:
        return Parsed(texts, *_NO_LABELS, verdict=verdict)
    labels = end_to_end(lines.labels(lines.starts, tabs, how.labels_of, range(len(lines))))
    return check_labels(Parsed(texts, *labels), how, lines.unlabelled)


def _verdict(lines: BlockLines, tabs: np.ndarray, how: DocumentForm) -> Verdict | None:
    """Decide whether the lines begin with labels. They do if at least half of them begin with a
    class of the model and a tab, and the others have a tab, too. They do not if no line begins with
    a class and a tab. Otherwise, or if the classes do not allow a decision, raise a `LineError`.
    Return None if all lines are blank."""
    classes, texts = how.classes or frozenset(), Parts(lines.text, lines.starts, lines.ends)
    filled, has_tab = lines.ends > lines.starts, tabs < lines.ends

    def is_known(label: str) -> bool:
        try:
            labels = how.labels_of(label)
        except NotALabelError:
            return False
        return classes.issuperset(map(word_of, labels)) and (bool(labels) or how.multilabel)

    known = np.zeros(len(lines), bool)
    rows = np.flatnonzero(has_tab)
    known[rows] = lines.labels(lines.starts[rows], tabs[rows], is_known, rows)
    n_lines, n_known = int(filled.sum()), int(known.sum())
    if not n_lines:
        return None
    odd = int(np.argmax(filled & ~known))
    line = quoted(texts[odd])
    all_have_tabs = bool(has_tab[filled].all())
    if n_known == 0 and all_have_tabs and classes == {"1", "-1"}:
        raise LineError(odd, f"it is unclear whether {line} begins with a label. {SAY_WHICH}")
    if n_known == 0:
        doubt = f"{line} has a tab, but no line begins with a class of the model: each line is "
        return Verdict(False, f"{doubt}read as a text. {SAY_WHICH}" if has_tab.any() else "")
    if n_known == n_lines:
        return Verdict(True)
    if not all_have_tabs or 2 * n_known < n_lines:
        raise LineError(
            odd, f"{line} does not begin with a class of the model and a tab, but other lines do. "
            f"{SAY_WHICH}",
        )  # fmt: skip
    doubt = (
        f"{n_lines - n_known:,} of {n_lines:,} lines, such as {line}, begin with labels that the "
        "model has not learned. These labels are ignored. "
    )
    return Verdict(True, f"{doubt}{SAY_WHICH}")


def parse_fasttext(lines: BlockLines, how: DocumentForm) -> Parsed:
    """Split lines ``__label__a __label__b text``, whose labels may be anywhere in the line."""
    characters = lines.characters
    spaces = np.flatnonzero(characters <= ord(" "))
    starts = np.flatnonzero(characters == FASTTEXT_LABEL[0])
    # If a label is at the first byte, index -1 refers to the end of the last line, which is also
    # white space.
    starts = starts[characters[starts - 1] <= ord(" ")]
    for i, each in enumerate(FASTTEXT_LABEL):
        starts = starts[characters[starts + i] == each]
    names = starts + len(FASTTEXT_LABEL)
    stops = spaces[np.searchsorted(spaces, names)]
    last_spaces = spaces[np.diff(spaces, append=len(characters) + 1) > 1]
    nexts = last_spaces[np.searchsorted(last_spaces, stops)] + 1
    rows = np.searchsorted(lines.ends, starts)
    counts = np.bincount(rows, minlength=len(lines))
    # A label is at the head of its line if only labels precede it. Other labels become blanks.
    # `n_gaps` counts the labels so far that follow neither a line start nor another label.
    follows = (starts == lines.starts[rows]) | (starts == np.roll(nexts, 1))
    n_gaps = np.append(0, np.cumsum(~follows))
    is_inside = n_gaps[1:] > n_gaps[(np.cumsum(counts) - counts)[rows]]
    begins, text = lines.starts.copy(), lines.text
    begins[rows[~is_inside]] = nexts[~is_inside]
    if is_inside.any():
        blanked = bytearray(text)
        for start, stop in zip(starts[is_inside].tolist(), stops[is_inside].tolist(), strict=True):
            blanked[start:stop] = b" " * (stop - start)
        text = bytes(blanked)
    texts = Parts(text, np.minimum(begins, lines.ends), lines.ends)
    if not how.labelled:
        return Parsed(texts, *_NO_LABELS)
    for row in rows[names == stops][:1].tolist():
        raise lines.unlabelled(row)
    return check_labels(
        Parsed(texts, lines.labels(names, stops, spaced_label, rows), counts), how, lines.unlabelled
    )


def parse_jsonl(lines: BlockLines, how: DocumentForm) -> Parsed:
    """Split lines ``{"text": "...", "label": "..."}``, whose labels may be lists. Lines of white
    space are skipped, as usual for JSON lines."""
    texts, labels, rows = [list[Any]() for _ in how.texts], list[Any](), list[int]()
    kept = tuple(list[Any]() for _ in how.keep)
    for row, line in enumerate(lines):
        if not line.strip():
            continue
        rows.append(row)
        try:
            record = json.loads(line)
            if "\\u" in line:
                # An escape may be half of a surrogate pair, which can't be encoded as UTF-8.
                json.dumps(record, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise LineError(
                row, f"the line is not JSON ({error}). Each line must be a JSON object."
            ) from None
        if not isinstance(record, dict):
            raise LineError(
                row,
                "the line is not a JSON object. jq -c '.[]' writes the objects of a list as lines.",
            )
        if any(line.count(f'"{name}"') > 1 for name in how.columns):
            _check_names(line, row, how)
        for name in how.columns:
            is_label = how.labelled and name == how.label
            if name not in record and (is_label or how.missing == "error"):
                raise LineError(row, how.no_column(name, list(record)))
        for values, name in zip([*texts, *kept], [*how.texts, *how.keep], strict=True):
            values.append(record.get(name))
        if how.labelled:
            labels.append(record[how.label])
    try:
        parsed = parse_values(texts, labels, how)
        return parsed._replace(rows=np.array(rows, int)[parsed.rows], kept=kept)
    except LineError as error:
        raise LineError(rows[error.row], str(error)) from None


def _check_names(line: str, row: int, how: DocumentForm) -> None:
    """Raise a LineError if a JSON object has a name several times, of which `json` uses the
    last."""
    objects = list[list[str]]()
    json.loads(line, object_pairs_hook=lambda pairs: objects.append([name for name, _ in pairs]))
    # The outermost object is complete last.
    if found := how.repeated_in(objects[-1]):
        raise LineError(row, found)


def parse_vw(lines: BlockLines, how: DocumentForm) -> Parsed:
    """Split lines ``LABEL IMPORTANCE 'TAG |NAMESPACE word word:2``. A line is repeated as often as
    its importance states, and a word as often as its weight states. If words are not counted, a
    word occurs once if its weight is not 0."""
    texts, labels, rows = list[str](), list[list[str]](), list[int]()
    for row, line in enumerate(lines):
        before, bar, features = line.partition("|")
        head = before.split()
        if head and (head[-1].startswith("'") or not before[-1].isspace()):
            # The last field is a tag, which needs no quote if it touches the bar.
            head.pop()
        if not line and not how.labelled:
            texts.append("")
            rows.append(row)
            continue
        if not bar or len(head) > 2 or (how.labelled and not how.multilabel and not head):
            raise lines.unlabelled(row)
        times = 1
        if how.labelled and head[1:]:
            times = _check_count(_weight(head[1], row), row)
        texts += [" ".join(_words(features, row, how.counted))] * times
        found = list(_converted(head[:1], "label", how.labels_of, NO_LABEL, row))
        labels += [found[0] if found else []] * times
        rows += [row] * times
    joined, counts = end_to_end(labels) if how.labelled else _NO_LABELS
    return Parsed(texts, joined, counts, np.array(rows, int))


def _words(features: str, row: int, counted: bool) -> Iterator[str]:
    """Yield the words of all namespaces."""
    for namespace in features.split("|"):
        # The name of the namespace directly follows the bar.
        name, *words = namespace.split(" ")
        for each in words:
            word, *weights = [*each.split(":", 1), *name.split(":", 1)[1:]]
            times = prod(_weight(weight, row) for weight in weights)
            if counted:
                _check_count(times, row)
            yield from [word] * (int(times) if counted else bool(times))


def _weight(weight: str, row: int) -> float:
    number = number_of(weight)
    if not isfinite(number):
        raise LineError(
            row,
            f"{quoted(weight)} is not a weight. Replace colons within words.",
        )
    return number


def _check_count(weight: float, row: int) -> int:
    if not (weight % 1 == 0 and 0 <= weight <= _MOST_TIMES):
        raise LineError(
            row, f"the weight {weight:g} is not a count from 0 to {_MOST_TIMES:,}. For other "
            "weights of features, use svmlight text.",
        )  # fmt: skip
    return int(weight)


#: The function for each form that splits its lines.
PARSERS: dict[str, Callable[[BlockLines, DocumentForm], Parsed]] = {
    "fasttext": parse_fasttext, "tsv": parse_tsv, "vw": parse_vw, "jsonl": parse_jsonl,
}  # fmt: skip
