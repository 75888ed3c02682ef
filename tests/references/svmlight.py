"""svmlight text read the slow, plain way: what the scanner is checked against.

Written from the grammar alone. A line is `label index:value ...`; whitespace is that of
bytes.split(); "#" starts a comment; numbers are what int() and float() take.
"""

import math
import re
from dataclasses import dataclass, field

import numpy as np

LONGEST_NUMBER = 4300
LARGEST_INT64 = 2**63 - 1
TOKEN = re.compile(rb"[^ \t\n\r\v\f#]+")


@dataclass
class Options:
    dtype: type = np.float64
    base: int = 0
    least: int = 0
    max_index: int = LARGEST_INT64
    multilabel: bool = False
    query_id: bool = False
    hash_bits: int = 0


class Refused(Exception):
    def __init__(self, code, offset, length):
        super().__init__(code, offset, length)
        self.code, self.offset, self.length = code, offset, length

    @property
    def place(self):
        return self.code, self.offset, self.length


@dataclass
class Text:
    """Rows as lists of (column, value), and each row's labels as written."""

    rows: list = field(default_factory=list)
    labels: list = field(default_factory=list)
    query_ids: list = field(default_factory=list)
    written: list = field(default_factory=list)  # all indices
    n_lines: int = 0


def read_text(text, options):
    """Read bytes; raises Refused at the first place that can't be understood."""
    result = Text()
    offset = 0
    for line in text.split(b"\n")[: None if not text.endswith(b"\n") and text else -1]:
        result.n_lines += 1
        read_line(line, offset, options, result)
        offset += len(line) + 1
    return result


def read_line(line, offset, options, result):
    content, mark, comment = line.partition(b"#")
    tokens = [(match[0], offset + match.start()) for match in TOKEN.finditer(content)]
    if tokens:
        result.labels.append(read_labels(tokens, options))
        if tokens and tokens[0][0].startswith(b"qid"):
            read_query_id(*tokens.pop(0), options, result)
        entries = [read_entry(*token, options, result) for token in tokens]
        result.rows.append(canonical(entries, options))
    if b"\0" in comment:
        raise Refused("nul", offset + len(content) + len(mark) + comment.index(b"\0"), 1)


def read_labels(tokens, options):
    """Take the labels off the tokens."""
    token, offset = tokens[0]
    if not options.multilabel:
        del tokens[0]
        check_label(token, offset)
        return [token]
    if b":" in token:
        return []
    del tokens[0]
    labels = token.split(b",")
    at = offset
    for label in labels:
        if not label:
            raise Refused("bad_label", offset, len(token))
        check_label(label, at)
        at += len(label) + 1
    return labels


def check_label(label, offset):
    check_no_nul(label, offset)
    if b":" in label:
        raise Refused("no_label", offset, len(label))
    if b"," in label:
        raise Refused("several_labels", offset, len(label))
    if len(label) > LONGEST_NUMBER:
        raise Refused("overlong", offset, len(label))
    number = label_number(label)
    if number is not None and not math.isfinite(number):
        raise Refused("not_finite", offset, len(label))


def label_number(label):
    try:
        return float(label)
    except ValueError:
        return None


def check_no_nul(token, offset):
    if b"\0" in token:
        raise Refused("nul", offset + token.index(b"\0"), 1)


def split(token, offset):
    check_no_nul(token, offset)
    before, colon, after = token.partition(b":")
    if max(len(before), len(after)) > LONGEST_NUMBER:
        raise Refused("overlong", offset, len(token))
    if not colon:
        raise Refused("missing_colon", offset, len(token))
    return before, after


def read_query_id(token, offset, options, result):
    _, number = split(token, offset)
    if options.query_id:
        try:
            query_id = np.int64(int(number))
        except (ValueError, OverflowError):
            raise Refused("bad_query_id", offset, len(token)) from None
        result.query_ids.append(query_id)


def read_entry(token, offset, options, result):
    """Return column, value, and what to say if a sum at this place is not finite."""
    before, after = split(token, offset)
    try:
        index = int(before)
    except ValueError:
        raise Refused("bad_index", offset, len(token)) from None
    if index < 0:
        raise Refused("negative_index", offset, len(token))
    if index > LARGEST_INT64:
        raise Refused("index_too_large", offset, len(token))
    try:
        value = float(after)
    except ValueError:
        raise Refused("bad_value", offset, len(token)) from None
    not_finite = Refused("not_finite", offset, len(token))
    check_finite(value, options, not_finite)
    if index > options.max_index:
        raise Refused("index_too_large", offset, len(token))
    if index < options.least and not options.hash_bits:
        raise Refused("zero_index", offset, len(token))
    result.written.append(index)
    return column_of(index, options), value, not_finite


def check_finite(value, options, not_finite):
    with np.errstate(over="ignore"):
        if not np.isfinite(options.dtype(value)):
            raise not_finite


def column_of(index, options):
    if not options.hash_bits:
        return index - options.base
    return mixed(index) >> (64 - options.hash_bits)


def mixed(z):
    """Return the finaliser of splitmix64."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def canonical(entries, options):
    """Sort by column and sum what meets, in the order of the text."""
    sums, last = {}, {}
    for column, value, not_finite in entries:
        sums[column] = sums[column] + value if column in sums else value
        last[column] = not_finite
    for column in sorted(sums):
        check_finite(sums[column], options, last[column])
    return [(column, options.dtype(sums[column])) for column in sorted(sums)]
