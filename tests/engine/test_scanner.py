"""The svmlight scanner against a plain reference, scikit-learn and float()."""

import random
import re
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from long.scanner_equality import RCV1, compare_random_texts, compare_rcv1
from problems.first_order import examples
from problems.published_files import data_folder
from problems.svmlight_checks import (
    bits,
    check_against_reference,
    make_scanner,
    padded,
    scan,
    try_to_scan,
)
from problems.svmlight_texts import ODD_NUMBERS, random_number, random_options, random_text
from references.svmlight import Options, mixed
from sparsemargin._engine.svmlight.scan import PADDING, ScanError, Scanner

randoms = st.randoms(use_true_random=False)
LABELS = Options(multilabel=True)


def values_of(text, options=None):
    return scan(text, options or Options())[1]["data"]


# -- against other readers -----------------------------------------------------------------------


@given(randoms)
@examples(300)
def test_drawn_texts_against_reference(source):
    options = random_options(source)
    check_against_reference(random_text(source, options), options)


def test_random_texts_against_reference():
    taken = 0
    for seed in range(2000):
        source = random.Random(seed)
        options = random_options(source)
        taken += check_against_reference(random_text(source, options), options)
    assert 500 < taken < 1500


def test_random_texts_against_sklearn():
    counts = compare_random_texts(2000, 2000)
    assert 500 < counts["equal to scikit-learn"] < 1500


def test_rcv1_against_sklearn():
    assert compare_rcv1(data_folder(RCV1)) == (27695, 2150688)


# -- numbers -------------------------------------------------------------------------------------


def check_numbers(numbers):
    """Compare values and labels with float(), to the bit."""
    text = "".join(f"{number} 1:{number}\n" for number in numbers).encode()
    scanner, rows = scan(text, Options())
    expected = np.array([float(number) for number in numbers])
    assert_array_equal(bits(rows["data"]), bits(expected))
    assert_array_equal(np.array(scanner.label_numbers)[rows["labels"]], expected)
    finite = np.abs(expected) <= np.finfo(np.float32).max
    text = b"".join(line for line, ok in zip(text.splitlines(True), finite, strict=True) if ok)
    narrow = values_of(text, Options(dtype=np.float32))
    assert_array_equal(bits(narrow), bits(expected[finite].astype(np.float32)))


def test_odd_numbers():
    check_numbers(ODD_NUMBERS)


def test_random_numbers():
    source = random.Random(0)
    check_numbers([random_number(source) for _ in range(20000)])


@given(st.floats(allow_nan=False, allow_infinity=False))
@examples(500)
def test_every_double_survives_being_written(number):
    check_numbers([repr(number), f"{number:.17e}", f"{number:.25g}", f"{number:g}"])


@pytest.mark.parametrize("whole", range(10))
@pytest.mark.parametrize("fraction", range(24))
def test_numbers_of_every_length(whole, fraction):
    source = random.Random(24 * whole + fraction)
    digits = "".join(source.choice("0123456789") for _ in range(whole + fraction))
    number = digits[:whole] + "." + digits[whole:]
    if whole + fraction:
        check_numbers([number, "-" + number, "+" + number, number + "e-3"])
    if whole:
        check_numbers([digits[:whole], "-" + digits[:whole]])


def test_the_longest_number_allowed():
    check_numbers(["0." + "3" * 4298, "0" * 4299 + "7", "1" + "0" * 4293 + "e-4290"])


@pytest.mark.parametrize("number", ["1e39", "-3.4028236e38", "3.40282357e38"])
def test_beyond_float32_is_refused_for_float32_alone(number):
    text = f"1 1:{number}".encode()
    assert_array_equal(values_of(text), [float(number)])
    place = ("not_finite", 2, len(text) - 2)
    assert try_to_scan(text, Options(dtype=np.float32))[0] == place


def test_float32_is_the_double_rounded():
    """Rounding the decimal at once would give the other neighbour."""
    number = "1.00000005960464477540"  # just above the middle of two floats, the double is on it
    assert values_of(f"1 1:{number}".encode(), Options(dtype=np.float32)) == np.float32(1)


# -- what is refused, and where ------------------------------------------------------------------

LONG = b"1" * 4301
REFUSED = [
    (b"1 1:1\n2:3 4:5\n", "no_label", 6, 3),
    (b"a:b\n", "no_label", 0, 3),
    (b"1 1:1\n 3,5 1:1", "several_labels", 7, 3),
    (b"5.1,3.5,setosa\n", "several_labels", 0, 14),
    (b"1 1:1 3,5\n", "missing_colon", 6, 3),
    (b"1 qid\n", "missing_colon", 2, 3),
    (b"1 a:1", "bad_index", 2, 3),
    (b"1 :1", "bad_index", 2, 2),
    (b"1 1.5:1", "bad_index", 2, 5),
    (b"1 1:1 qid:3", "bad_index", 6, 5),
    (b"1 1__0:1", "bad_index", 2, 6),
    (b"1 -1:1", "negative_index", 2, 4),
    (b"1 -99999999999999999999:1", "negative_index", 2, 23),
    (b"1 9223372036854775808:1", "index_too_large", 2, 21),
    (b"1 1:", "bad_value", 2, 2),
    (b"1 1:2:3", "bad_value", 2, 5),
    (b"1 1:1e", "bad_value", 2, 4),
    (b"1 1:0x1p3", "bad_value", 2, 7),
    (b"1 1:nan", "not_finite", 2, 5),
    (b"1 1:-Infinity", "not_finite", 2, 11),
    (b"1 1:1e400", "not_finite", 2, 7),
    (b"NaN 1:1", "not_finite", 0, 3),
    (b"1 2:1e308 1:1 2:1e308", "not_finite", 14, 7),
    (b"1 1:1\0", "nul", 5, 1),
    (b"1 1:1 # \0\n", "nul", 8, 1),
    (b"#\0", "nul", 1, 1),
    (b"\0 1:1", "nul", 0, 1),
    (b"\0001", "nul", 0, 1),
    (b"1 " + LONG + b":1", "overlong", 2, 4303),
    (b"1 1:" + LONG, "overlong", 2, 4303),
    (b"1 " + LONG, "overlong", 2, 4301),
    (LONG + b" 1:1", "overlong", 0, 4301),
]


@pytest.mark.parametrize(
    ("text", "code", "offset", "length"), REFUSED, ids=[repr(case[0][:20]) for case in REFUSED]
)
def test_refused(text, code, offset, length):
    assert try_to_scan(text, Options())[0] == (code, offset, length)
    before = b"1 1:1\n# 3\n\n"
    assert try_to_scan(before + text, Options())[0] == (code, len(before) + offset, length)


@pytest.mark.parametrize(
    ("text", "options", "code", "offset", "length"),
    [
        (b"1 0:1", Options(base=1, least=1), "zero_index", 2, 3),
        (b"1 2:1 0:1", Options(least=1), "zero_index", 6, 3),
        (b"1 7:1 8:1", Options(max_index=7), "index_too_large", 6, 3),
        (b"1 8:1 7:1", Options(max_index=7, hash_bits=5), "index_too_large", 2, 3),
        (b"1,,2 1:1", LABELS, "bad_label", 0, 4),
        (b"1, 1:1", LABELS, "bad_label", 0, 2),
        (b"1,inf 1:1", LABELS, "not_finite", 2, 3),
        (b"1,x\0 1:1", LABELS, "nul", 3, 1),
        (b"1,2:3", LABELS, "bad_index", 0, 5),
        (b"1 qid:x 1:1", Options(query_id=True), "bad_query_id", 2, 5),
        (b"1 qid:9223372036854775808", Options(query_id=True), "bad_query_id", 2, 23),
    ],
)
def test_refused_with_options(text, options, code, offset, length):
    assert try_to_scan(text, options)[0] == (code, offset, length)


def test_the_error_says_what_and_where():
    with pytest.raises(ScanError, match="missing_colon at byte 2"):
        scan(b"1 5", Options())


# -- labels --------------------------------------------------------------------------------------


def test_labels_equal_as_numbers_are_one():
    scanner, rows = scan(b"+1\n1\n1.0\n-1\nspam\nSpam\nspam\n0\n-0\n", Options())
    assert rows["labels"].tolist() == [0, 0, 0, 1, 2, 3, 2, 4, 4]
    assert scanner.label_texts == ["+1", "-1", "spam", "Spam", "0"]
    assert_array_equal(scanner.label_numbers, [1, -1, np.nan, np.nan, 0])


def test_labels_keep_their_numbers_from_text_to_text():
    scanner = make_scanner(Options())
    for text in b"b\na\n", b"a\nc\n", b"c\nb\n":
        ids = scanner.scan(padded(text), len(text)).labels
        assert "".join(scanner.label_texts[i] for i in ids) == text.decode().replace("\n", "")
    assert scanner.label_texts == ["b", "a", "c"]


def test_a_great_many_labels():
    numbers = np.arange(200000) / 8
    text = "".join(f"{number}\nword-{number}\n" for number in numbers).encode()
    scanner, rows = scan(text + text, Options())
    assert_array_equal(rows["labels"], np.tile(np.arange(400000), 2))
    assert_array_equal(scanner.label_numbers[::2], numbers)


def test_several_labels():
    scanner, rows = scan(b"a,2,b 1:1\n\n1:1\n2.0 qid:1\nb,b", LABELS)
    assert rows["labels"].tolist() == [0, 1, 2, 1, 2, 2]
    assert rows["label_start"].tolist() == [0, 3, 3, 4, 6]
    assert scanner.label_texts == ["a", "2", "b"]


# -- rows ----------------------------------------------------------------------------------------


def test_lines_of_every_kind():
    text = b"\r\n 1  3:1 \t5:2 # 7:1\n#\n\n-1\n\v1 qid:9 2:1\f\r\n2"
    _, rows = scan(text, Options(base=1, least=1, query_id=True))
    assert rows["indptr"].tolist() == [0, 2, 2, 3, 3]
    assert rows["indices"].tolist() == [2, 4, 1]
    assert (rows["n_rows"], rows["n_lines"]) == (4, 7)
    assert (rows["lowest"], rows["highest"]) == (2, 5)
    assert rows["query_ids"].tolist() == [9]


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing\n\n"])
def test_no_rows(text):
    _, rows = scan(text, Options())
    assert (rows["n_rows"], rows["n_lines"]) == (0, text.count(b"\n"))
    assert rows["indptr"].tolist() == [0]
    assert (rows["lowest"], rows["highest"]) == (2**63 - 1, -1)


def test_unsorted_and_repeated_indices():
    _, rows = scan(b"1 5:1 2:1e16 5:2 2:1 2:-1e16\n1 3:0.5 3:-0.5\n1 1:1", Options())
    assert rows["indices"].tolist() == [2, 5, 3, 1]
    assert rows["data"].tolist() == [0, 3, 0, 1]  # 1e16 + 1 rounds to 1e16
    assert rows["indptr"].tolist() == [0, 2, 3, 4]


def test_float32_sums_are_taken_in_float64():
    text = b"1 1:16777216 1:1 1:1"
    assert values_of(text, Options(dtype=np.float32)).tolist() == [16777218]


@pytest.mark.parametrize("base", [0, 1])
def test_wide_columns_only_where_they_are_needed(base):
    options = Options(base=base, least=base)
    for index, kind in (2**31 - 1 + base, np.int32), (2**31 + base, np.int64):
        _, rows = scan(f"1 7:1\n1 {index}:1 8:2".encode(), options)
        assert rows["indices"].tolist() == [7 - base, 8 - base, index - base]
        assert rows["indices"].dtype == rows["indptr"].dtype == kind


def test_index_zero_in_a_file_that_counts_from_one():
    _, rows = scan(b"1 0:1 1:2 3:4", Options(base=1, least=0))
    assert rows["indices"].tolist() == [-1, 0, 2]
    assert (rows["lowest"], rows["highest"]) == (0, 3)


@pytest.mark.parametrize("hash_bits", [1, 5, 18, 31])
def test_hashed_columns(hash_bits):
    indices = [0, 1, 2, 12345678901, 2**63 - 1]
    text = ("1 " + " ".join(f"{index}:1" for index in indices)).encode()
    _, rows = scan(text, Options(base=1, least=1, hash_bits=hash_bits))
    columns, counts = np.unique([mixed(i) >> (64 - hash_bits) for i in indices], return_counts=True)
    assert_array_equal(rows["indices"], columns)
    assert_array_equal(rows["data"], counts)
    assert rows["indices"].dtype == np.int32


# -- independence of how the text is handed over -------------------------------------------------


@given(randoms, st.binary(min_size=1, max_size=3))
@examples(200)
def test_padding_does_not_matter(source, padding):
    options = random_options(source)
    text = random_text(source, options)
    (refusal, _, rows), (refusal_before_ends, _, rows_before_ends) = (
        try_to_scan(text, options, after) for after in (padding, b"\n")
    )
    assert refusal == refusal_before_ends
    assert repr(rows) == repr(rows_before_ends)


@given(randoms)
@examples(200)
def test_cuts_between_lines_do_not_matter(source):
    options = random_options(source)
    text = random_text(source, options)
    refusal, whole, rows = try_to_scan(text, options)
    if refusal:
        return
    scanner, parts = make_scanner(options), []
    for line in re.findall(rb"[^\n]*\n|[^\n]+", text):
        part = scanner.scan(padded(line), len(line))
        parts.append((part.data.tolist(), part.indices.tolist(), part.labels.tolist()))
    for name, taken in zip(("data", "indices", "labels"), zip(*parts, strict=True), strict=False):
        assert list(chain(*taken)) == rows[name].tolist()
    assert scanner.label_texts == whole.label_texts


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.frombuffer])
def test_any_buffer_of_bytes(kind):
    text = bytes(padded(b"1 1:2\n"))
    buffer = np.frombuffer(text, np.uint8) if kind is np.frombuffer else kind(text)
    assert make_scanner(Options()).scan(buffer, 6).data.tolist() == [2]


def test_arrays_of_an_earlier_scan_stay_readable():
    """Their contents change, but not the memory behind them."""
    scanner = make_scanner(Options())
    short, long = b"1 1:1\n", b"1 1:1 2:2 3:3\n" * 10000
    rows = scanner.scan(padded(short), len(short))
    scanner.scan(padded(long), len(long))
    assert rows.data.tolist() == [1]


# -- misuse --------------------------------------------------------------------------------------


def test_padding_is_required():
    scan_text = make_scanner(Options()).scan
    for n_bytes, stop in (5, 6), (0, -1), (0, 2**63 - 1):
        with pytest.raises(ValueError, match="must be 64 longer"):
            scan_text(bytearray(n_bytes + PADDING), stop)


@pytest.mark.parametrize(
    "settings",
    [{"dtype": np.int32}, {"base": 2}, {"least": -1}, {"hash_bits": 32}, {"max_index": -1}],
)
def test_settings_out_of_range(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        Scanner(**{"dtype": np.float64, "max_index": 5, **settings})
