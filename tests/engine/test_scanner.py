"""The svmlight scanner against a simple reference and float(), on generated text."""

import random
import re
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from depth import some
from problems.svmlight_checks import (
    bits,
    check_against_reference,
    make_scanner,
    padded,
    scan,
    try_to_scan,
)
from problems.svmlight_texts import (
    ODD_NUMBERS,
    random_double,
    random_number,
    random_options,
    random_text,
)
from references.svmlight import Options
from sparsemargin._engine.svmlight.scan import PADDING, ScanError, Scanner

SINGLE = Options(dtype=np.float32)


def texts_of(seeds):
    """Yield random options and a text for each seed, with the random generator."""
    for seed in seeds:
        source = random.Random(seed)
        options = random_options(source)
        yield options, random_text(source, options), source


def test_random_texts_against_reference():
    seeds = range(some(1500, 100_000))
    taken = sum(check_against_reference(text, options) for options, text, _ in texts_of(seeds))
    assert len(seeds) / 4 < taken < len(seeds) * 3 / 4


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (b"+1\n1\n1.0\n-1\nspam\nSpam\nspam\n0\n-0\n", Options()),
        (b"a,2,b 1:1\n\n1:1\n2.0 qid:1\nb,b", Options(multilabel=True)),
        (b"", Options()),
        (b"# nothing\n\n", Options()),
        (b"1 5:1 2:1e16 5:2 2:1 2:-1e16\n1 3:0.5 3:-0.5\n1 1:1", Options()),
        (b"1 16777216:1 1:16777216 1:1 1:1", SINGLE),  # the sum is computed in double
        (b"1 0:1 1:2 3:4", Options(base=1, least=0)),
        (b"1 7:1\n1 2147483647:1 8:2", Options()),
        (b"1 7:1\n1 2147483648:1 8:2", Options()),
        (b"1 7:1\n1 2147483648:1 8:2", Options(base=1, least=1)),
        (b"1 7:1\n1 2147483649:1 8:2", Options(base=1, least=1)),
        (b"1 0:1 1:1 2:1 12345678901:1 9223372036854775807:1", Options(hash_bits=1)),
        (b"1 0:1 1:1 2:1 12345678901:1", Options(base=1, least=1, hash_bits=31)),
        (b"1 goal:1 7:2 caf\xc3\xa9:0.5 1.0:3 goal:0.25", Options(hash_bits=20)),
        (b"1 qid:7 qid:1 qidle:2\n1 qidle:1", Options(hash_bits=31)),
        (b"2:1 goal:2\na,b goal:1", Options(hash_bits=8, multilabel=True)),
    ],
)  # fmt: skip
def test_texts_of_every_kind_against_reference(text, options):
    assert check_against_reference(text, options)


def check_numbers(numbers):
    """Compare values and labels with float(), bitwise."""
    text = "".join(f"{number} 1:{number}\n" for number in numbers).encode()
    scanner, rows = scan(text, Options())
    expected = np.array([float(number) for number in numbers])
    assert_array_equal(bits(rows["data"]), bits(expected))
    assert_array_equal(np.array(scanner.labels_from(0)[1])[rows["labels"]], expected)
    finite = np.abs(expected) <= np.finfo(np.float32).max
    text = b"".join(line for line, ok in zip(text.splitlines(True), finite, strict=True) if ok)
    singles = scan(text, SINGLE)[1]["data"]
    assert_array_equal(bits(singles), bits(expected[finite].astype(np.float32)))


def numbers_of_every_length():
    source = random.Random(0)
    for whole, fraction in product(range(10), range(24)):
        digits = "".join(source.choice("0123456789") for _ in range(whole + fraction))
        number = digits[:whole] + "." + digits[whole:]
        if whole + fraction:
            yield from (number, "-" + number, "+" + number, number + "e-3")
        if whole:
            yield from (digits[:whole], "-" + digits[:whole])


def test_numbers():
    source = random.Random(0)
    longest = ["0." + "3" * 4298, "0" * 4299 + "7", "1" + "0" * 4293 + "e-4290"]
    check_numbers([*ODD_NUMBERS, *longest, *numbers_of_every_length()])
    check_numbers([random_number(source) for _ in range(20000)])
    doubles = [random_double(source) for _ in range(2000)]
    check_numbers([f"{double:{form}}" for form in (".17e", ".25g", "g") for double in doubles])


def test_float32_is_the_double_rounded_or_refused():
    for number in "1e39", "-3.4028236e38", "3.40282357e38":
        text = f"1 1:{number}".encode()
        assert scan(text, Options())[1]["data"].tolist() == [float(number)]
        assert try_to_scan(text, SINGLE)[0] == ("not_finite", 2, len(text) - 2)
    # The number is just above the middle of two floats, but the double is the middle.
    assert scan(b"1 1:1.00000005960464477540", SINGLE)[1]["data"] == np.float32(1)


@pytest.mark.parametrize(
    ("text", "options", "code", "offset", "length"),
    [
        (b"1 1:1\n2:3 4:5\n", {}, "no_label", 6, 3),
        (b"1 1:1\n 3,5 1:1", {}, "several_labels", 7, 3),
        (b"1, 1:1", {"multilabel": True}, "bad_label", 0, 2),
        (b"1 1:1 3,5\n", {}, "missing_colon", 6, 3),
        (b"1 1:1 qid:3", {}, "bad_index", 6, 5),
        (b"1 -99999999999999999999:1", {}, "negative_index", 2, 23),
        (b"1 2:1 0:1", {"least": 1}, "zero_index", 6, 3),
        (b"1 9223372036854775808:1", {}, "index_too_large", 2, 21),
        (b"1 7:1 8:1", {"max_index": 7}, "index_too_large", 6, 3),
        (b"1 8:1 7:1", {"max_index": 7, "hash_bits": 5}, "index_too_large", 2, 3),
        (b"1 goal:1", {}, "bad_index", 2, 6),
        (b"1 goal:1 :1", {"hash_bits": 5}, "bad_index", 9, 2),
        (b"1 -3:1", {"hash_bits": 5}, "negative_index", 2, 4),
        (b"1 goal:a", {"hash_bits": 5}, "bad_value", 2, 6),
        (b"1 goal\0:1", {"hash_bits": 5}, "nul", 6, 1),
        (b"1 1:2:3", {}, "bad_value", 2, 5),
        (b"1 1:-Infinity", {}, "not_finite", 2, 11),
        (b"1,inf 1:1", {"multilabel": True}, "not_finite", 2, 3),
        (b"1 2:1e308 1:1 2:1e308", {}, "not_finite", 14, 7),
        (b"1 1:1 # \0\n", {}, "nul", 8, 1),
        (b"1,x\0 1:1", {"multilabel": True}, "nul", 3, 1),
        (b"1 1:" + b"1" * 4301, {}, "overlong", 2, 4303),
        (b"1 1:1\n\xef\xbb\xbf1 1:1", {}, "invisible", 6, 4),
        (b"ham\xc2\xa0 1:1", {}, "invisible", 0, 5),
        (b"a,\xef\xbb\xbf 1:1", {"multilabel": True}, "invisible", 2, 3),
    ],
)
def test_invalid_texts_are_rejected(text, options, code, offset, length):
    options = Options(**options)
    assert try_to_scan(text, options)[0] == (code, offset, length)
    before = b"1 qid:1 1:1\n# 3\n\n"
    with pytest.raises(ScanError, match=f"{code} at byte {len(before) + offset}"):
        scan(before + text, options)


def test_neither_padding_nor_cuts_between_lines_matter():
    for options, text, source in texts_of(range(1000)):
        after = source.randbytes(source.randint(1, 3))
        refusal, whole, rows = try_to_scan(text, options, after)
        refusal_before_ends, _, rows_before_ends = try_to_scan(text, options, b"\n")
        assert refusal == refusal_before_ends
        assert repr(rows) == repr(rows_before_ends)
        if refusal:
            continue
        scanner, parts = make_scanner(options), {"data": [], "indices": [], "labels": []}
        for line in re.findall(rb"[^\n]*\n|[^\n]+", text):
            part = scanner.scan(padded(line), len(line))
            for name, values in parts.items():
                values += getattr(part, name).tolist()
        for name, values in parts.items():
            assert values == rows[name].tolist()
        assert scanner.labels_from(0)[0] == whole.labels_from(0)[0]


def test_a_great_many_labels():
    numbers = np.arange(30000) / 8
    text = "".join(f"{number}\nword-{number}\n" for number in numbers).encode()
    scanner, rows = scan(text + text, Options())
    assert_array_equal(rows["labels"], np.tile(np.arange(2 * len(numbers)), 2))
    assert_array_equal(scanner.labels_from(0)[1][::2], numbers)


def test_any_buffer_is_accepted_and_earlier_arrays_stay_valid():
    """Their contents may change, but the memory must stay valid."""
    short, long = b"1 1:1\n", b"1 1:1 2:2 3:3\n" * 10000
    for kind in bytes, memoryview, lambda text: np.frombuffer(text, np.uint8):
        scanner = make_scanner(Options())
        rows = scanner.scan(kind(bytes(padded(short))), len(short))
        assert rows.data.tolist() == [1]
        scanner.scan(padded(long), len(long))
        assert rows.data.tolist() == [1]


def test_misuse_raises_an_error():
    for n_bytes, stop in (5, 6), (0, -1), (0, 2**63 - 1):
        with pytest.raises(ValueError, match="must be 64 longer"):
            make_scanner(Options()).scan(bytearray(n_bytes + PADDING), stop)
    wrong = {"dtype": np.int32, "base": 2, "least": -1, "hash_bits": 32, "max_index": -1}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=name):
            Scanner(**{"dtype": np.float64, "max_index": 5, name: value})
