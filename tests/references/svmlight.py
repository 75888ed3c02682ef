"""A slow and simple reader of svmlight text, against which the scanner is checked.

It is written from the grammar alone. A line is `label index:value ...`; whitespace is that of
bytes.split(); "#" starts a comment; numbers have the syntax of int() and float(). Hashed indices
may be names.
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
    hash_bits: int = 0


class Refused(Exception):
    """Code, offset and length of the rejected text."""


def refuse_if(wrong, code, offset, token):
    if wrong:
        raise Refused(code, offset, len(token))


@dataclass
class Text:
    """Rows as lists of (column, value), and the labels of each row as written."""

    rows: list = field(default_factory=list)
    labels: list = field(default_factory=list)
    written: list = field(default_factory=list)  # all indices
    n_lines: int = 0


def read_text(text, options):
    """Read bytes; raises Refused at the first syntax error."""
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
        if tokens and tokens[0][0].startswith(b"qid:" if options.hash_bits else b"qid"):
            split(*tokens.pop(0))
        entries = [read_entry(*token, options, result) for token in tokens]
        result.rows.append(canonical(entries, options))
    check_no_nul(comment, offset + len(content) + len(mark))


def read_labels(tokens, options):
    """Remove and return the labels at the start of the tokens."""
    token, offset = tokens[0]
    if options.multilabel and b":" in token:
        return []
    del tokens[0]
    labels = token.split(b",") if options.multilabel else [token]
    at = offset
    for label in labels:
        refuse_if(not label, "bad_label", offset, token)
        check_label(label, at)
        at += len(label) + 1
    return labels


def check_label(label, offset):
    check_no_nul(label, offset)
    refuse_if(b":" in label, "no_label", offset, label)
    refuse_if(b"," in label, "several_labels", offset, label)
    refuse_if(len(label) > LONGEST_NUMBER, "overlong", offset, label)
    number = label_number(label)
    refuse_if(number is not None and not math.isfinite(number), "not_finite", offset, label)
    hidden = any(mark.encode() in label for mark in "\ufeff\xa0")
    refuse_if(number is None and hidden, "invisible", offset, label)


def label_number(label, kind=float):
    try:
        return kind(label)
    except ValueError:
        return None


def check_no_nul(token, offset):
    refuse_if(b"\0" in token, "nul", offset + token.find(b"\0"), b"\0")


def split(token, offset):
    check_no_nul(token, offset)
    before, colon, after = token.partition(b":")
    refuse_if(max(len(before), len(after)) > LONGEST_NUMBER, "overlong", offset, token)
    refuse_if(not colon, "missing_colon", offset, token)
    return before, after


def read_entry(token, offset, options, result):
    """Return column, value and place."""
    before, after = split(token, offset)
    index, value = label_number(before, int), label_number(after)
    if index is None and before and options.hash_bits:
        index = number_of_name(before)
    refuse_if(index is None, "bad_index", offset, token)
    refuse_if(index < 0, "negative_index", offset, token)
    refuse_if(index > LARGEST_INT64, "index_too_large", offset, token)
    refuse_if(value is None, "bad_value", offset, token)
    refuse_if(not is_finite(value, options), "not_finite", offset, token)
    refuse_if(index > options.max_index, "index_too_large", offset, token)
    refuse_if(index < options.least and not options.hash_bits, "zero_index", offset, token)
    result.written.append(index)
    hashed = mixed(index) >> (64 - options.hash_bits)
    return hashed if options.hash_bits else index - options.base, value, (offset, token)


def is_finite(value, options):
    with np.errstate(over="ignore"):
        return np.isfinite(options.dtype(value))


def number_of_name(name):
    """Return the lower 63 bits of the 64-bit FNV-1a hash."""
    number = 0xCBF29CE484222325
    for byte in name:
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return number % 2**63


def mixed(z):
    """Return the result of the finalizer of splitmix64."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def canonical(entries, options):
    """Sort by column and sum duplicates, in the order of the text."""
    sums, last = {}, {}
    for column, value, place in entries:
        sums[column] = sums[column] + value if column in sums else value
        last[column] = place
    for column in sorted(sums):
        refuse_if(not is_finite(sums[column], options), "not_finite", *last[column])
    return [(column, options.dtype(sums[column])) for column in sorted(sums)]
