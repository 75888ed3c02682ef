"""Whether the scanner reads a text as the plain reference and as scikit-learn do."""

import io

import numpy as np
from numpy.testing import assert_array_equal
from sklearn.datasets import load_svmlight_file

from references.svmlight import Refused, label_number, read_text
from sparsemargin._engine.svmlight.scan import PADDING, ScanError, Scanner

# What scikit-learn takes and the scanner does not.
STRICTER = {"not_finite", "nul", "overlong"}


def padded(text, padding=b"7"):
    return bytearray(text + padding * PADDING)


def make_scanner(options):
    settings = dict(vars(options))
    return Scanner(settings.pop("dtype"), **settings)


def scan(text, options, padding=b"7"):
    """Return the scanner and its rows, the arrays copied."""
    scanner = make_scanner(options)
    rows = scanner.scan(padded(text, padding), len(text))
    return scanner, {name: own(getattr(rows, name)) for name in FIELDS}


FIELDS = (
    *("data", "indices", "indptr", "labels", "label_start", "query_ids"),
    *("n_rows", "n_lines", "lowest", "highest"),
)


def own(value):
    return value.copy() if isinstance(value, np.ndarray) else value


def bits(values):
    """Return floats as integers, so that -0.0 is not 0.0."""
    return values.view(f"i{values.itemsize}")


def try_to_scan(text, options, padding=b"7"):
    """Return code, offset and length of a refusal or None, and scanner and rows or None."""
    try:
        return None, *scan(text, options, padding)
    except ScanError as error:
        return (error.code, error.offset, error.length), None, None


def check_against_reference(text, options):
    """Return whether both take the text, and assert that they agree."""
    refusal, scanner, rows = try_to_scan(text, options)
    try:
        expected = read_text(text, options)
    except Refused as refused:
        expected = refused.place
    if refusal or isinstance(expected, tuple):
        assert refusal == expected
        return False
    check_rows(rows, expected, options)
    check_labels(scanner, rows, expected, options)
    return True


def check_rows(rows, expected, options):
    entries = [entry for row in expected.rows for entry in row]
    columns = [column for column, _ in entries]
    wide = max(columns, default=0) >= 2**31
    assert rows["indices"].dtype == rows["indptr"].dtype == (np.int64 if wide else np.int32)
    assert rows["indices"].tolist() == columns
    assert rows["data"].dtype == options.dtype
    values = np.array([value for _, value in entries], options.dtype)
    assert_array_equal(bits(rows["data"]), bits(values))
    ends = np.cumsum([0] + [len(row) for row in expected.rows])
    assert_array_equal(rows["indptr"], ends)
    assert (rows["n_rows"], rows["n_lines"]) == (len(expected.rows), expected.n_lines)
    assert rows["lowest"] == min(expected.written, default=2**63 - 1)
    assert rows["highest"] == max(expected.written, default=-1)
    if options.query_id:
        assert rows["query_ids"].tolist() == expected.query_ids
    else:
        assert rows["query_ids"] is None


def check_labels(scanner, rows, expected, options):
    written = [label for row in expected.labels for label in row]
    ids, firsts = {}, []
    for label in written:
        number = label_number(label)
        key = label if number is None else number
        if key not in ids:
            ids[key] = len(ids)
            firsts.append(label.decode("utf-8", "surrogateescape"))
    keys = [label if label_number(label) is None else label_number(label) for label in written]
    assert rows["labels"].tolist() == [ids[key] for key in keys]
    assert scanner.n_labels == len(ids)
    assert scanner.label_texts == firsts
    numbers = [np.nan if isinstance(key, bytes) else key for key in ids]
    assert_array_equal(scanner.label_numbers, numbers)
    if options.multilabel:
        starts = np.cumsum([0] + [len(row) for row in expected.labels])
        assert_array_equal(rows["label_start"], starts)
    else:
        assert rows["label_start"] is None


def check_against_sklearn(text, options):
    """Return whether scikit-learn takes the text; if so, assert that the scanner agrees.

    Only options it knows: `base` equals `least`, no limit, no hashing.
    """
    try:
        X, y, *queries = load_svmlight_file(
            io.BytesIO(text),
            dtype=options.dtype,
            multilabel=options.multilabel,
            zero_based=options.least == 0,
            query_id=options.query_id,
        )
    except (ValueError, OverflowError):
        return False
    refusal, scanner, rows = try_to_scan(text, options)
    if refusal:
        assert refusal[0] in STRICTER
        return False
    assert_array_equal(rows["indptr"], X.indptr)
    assert_array_equal(rows["indices"], X.indices)
    assert_array_equal(bits(rows["data"]), bits(X.data))
    assert_same_labels(y, scanner, rows)
    for ids in queries:
        assert_array_equal(rows["query_ids"], ids)
    return True


def assert_same_labels(y, scanner, rows):
    numbers = np.array(scanner.label_numbers)[rows["labels"]]
    if rows["label_start"] is None:
        assert_array_equal(numbers, y)
    else:
        parts = np.split(numbers, rows["label_start"][1:-1]) if rows["n_rows"] else []
        assert [tuple(sorted(part.tolist())) for part in parts] == y
