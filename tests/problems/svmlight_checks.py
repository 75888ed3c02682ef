"""Comparison of the scanner with the simple reference."""

import numpy as np
from numpy.testing import assert_array_equal

from references.svmlight import Refused, label_number, read_text
from sparsemargin._engine.svmlight.scan import PADDING, ScanError, Scanner

FIELDS = (
    *("data", "indices", "indptr", "labels", "label_start"),
    *("n_rows", "n_lines", "lowest", "highest"),
)


def padded(text, padding=b"7"):
    return bytearray(text + padding * PADDING)


def make_scanner(options):
    settings = dict(vars(options))
    return Scanner(settings.pop("dtype"), **settings)


def scan(text, options, padding=b"7"):
    """Return the scanner and its rows, with copies of the arrays."""
    scanner = make_scanner(options)
    rows = scanner.scan(padded(text, padding), len(text))
    values = {name: getattr(rows, name) for name in FIELDS}
    arrays = {name: each.copy() for name, each in values.items() if isinstance(each, np.ndarray)}
    return scanner, values | arrays


def bits(values):
    """Return floats as integers, so that -0.0 is not 0.0."""
    return values.view(f"i{values.itemsize}")


def try_to_scan(text, options, padding=b"7"):
    """Return (code, offset, length) of an error or None, and (scanner, rows) or None."""
    try:
        return None, *scan(text, options, padding)
    except ScanError as error:
        return (error.code, error.offset, error.length), None, None


def check_against_reference(text, options):
    """Assert that the two agree, and return whether they accept the text."""
    refusal, scanner, rows = try_to_scan(text, options)
    try:
        expected = read_text(text, options)
    except Refused as refused:
        expected = refused.args
    if refusal or isinstance(expected, tuple):
        assert refusal == expected
        return False
    check_rows(rows, expected, options)
    check_labels(scanner, rows, expected, options)
    return True


def starts_of(rows):
    return np.cumsum([0] + [len(row) for row in rows])


def check_rows(rows, expected, options):
    entries = [entry for row in expected.rows for entry in row]
    columns = [column for column, _ in entries]
    wide = max(columns, default=0) >= 2**31
    assert rows["indices"].dtype == rows["indptr"].dtype == (np.int64 if wide else np.int32)
    assert rows["indices"].tolist() == columns
    assert rows["data"].dtype == options.dtype
    values = np.array([value for _, value in entries], options.dtype)
    assert_array_equal(bits(rows["data"]), bits(values))
    assert_array_equal(rows["indptr"], starts_of(expected.rows))
    assert (rows["n_rows"], rows["n_lines"]) == (len(expected.rows), expected.n_lines)
    assert rows["lowest"] == min(expected.written, default=2**63 - 1)
    assert rows["highest"] == max(expected.written, default=-1)


def check_labels(scanner, rows, expected, options):
    written = [label for row in expected.labels for label in row]
    keys = [label if label_number(label) is None else label_number(label) for label in written]
    firsts = {}
    for key, label in zip(keys, written, strict=True):
        firsts.setdefault(key, label.decode("utf-8", "surrogateescape"))
    assert rows["labels"].tolist() == [list(firsts).index(key) for key in keys]
    assert scanner.n_labels == len(firsts)
    assert scanner.labels_from(0)[0] == list(firsts.values())
    numbers = [np.nan if isinstance(key, bytes) else key for key in firsts]
    assert_array_equal(scanner.labels_from(0)[1], numbers)
    if options.multilabel:
        assert_array_equal(rows["label_start"], starts_of(expected.labels))
    else:
        assert rows["label_start"] is None
