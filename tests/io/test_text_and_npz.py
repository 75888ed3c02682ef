"""svmlight text and npz files: what goes from one to the other comes back, or is refused."""

import json
import warnings
import zipfile
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import sparse as sp

from problems.command_line import evaluated, run
from problems.first_order import examples
from references.svmlight import Options, Refused, label_number, read_text
from sparsemargin import PNormPerceptron, fit_svmlight, load_svmlight, save_model
from sparsemargin._engine.svmlight.scan import PADDING, ScanError, Scanner
from sparsemargin.cli import convert
from sparsemargin.io.reading import Reading
from sparsemargin.io.row_cache import RowCache
from sparsemargin.io.shown import shown
from sparsemargin.io.sources import open_sources
from sparsemargin.models.labels import number_of

# What looks like a number, a mark, or another kind of file, and all that stands between tokens.
TRICKY = [
    "", "01", "1", "1.0", "1e0", "+1", "-1", " 1", "1 ", "-", "+", ".", "nan", "NaN", "inf", "-Inf",
    "1_000", "1e400", "1e-400", "-0", "0", "0x1", "\uff11", "\u0661", "1\x1c", "9007199254740993",
    "a b", "a\tb", "c\nd", "a\rb", "a\x0bb", "#x", "x#", "1:2", "qid:1", "qid", "a,b", ",", ",a",
    "a,", "a\0b", "\x85", "\u2028", "\u3000", "\x1b[31m", "\x7f", "\ufeff", "\ufeffa", "\ufffea",
    "\udcff\udcfex", "\udcfe\udcffx", "\udcc3\udca9", "\xe9", "e\u0301", "\ud800", "\udfff",
    "\x1f\udc8b", "BZh91AY&SY", "(\udcb5/\udcfd", "PK\x03\x04", "\udc93smrows", "x" * 4301,
]  # fmt: skip
WORDS = st.one_of(
    st.sampled_from(TRICKY),
    st.text(max_size=4),
    st.text(st.characters(categories=["Cs", "Cc", "Nd", "Zs", "Zl"]), max_size=3),
    st.binary(max_size=4).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
)
NUMBERS = {
    "f8": st.floats() | st.sampled_from([-0.0, 1e16, 2.0**63, 1.7976931348623157e308]),
    "f4": st.floats(width=32), "f2": st.floats(width=16), "?": st.booleans(),
    "i8": st.integers(-(2**63), 2**63 - 1) | st.integers(2**53 - 3, 2**53 + 3),
    "u8": st.integers(0, 2**64 - 1), "i1": st.integers(-128, 127), "S3": st.binary(max_size=3),
}  # fmt: skip


@st.composite
def label_arrays(draw, n):
    """An array of n labels of any type, of few different ones."""
    dtype = draw(st.sampled_from(["U", "U", "U", *NUMBERS]))
    pool = draw(st.lists(WORDS if dtype == "U" else NUMBERS[dtype], min_size=1, max_size=4))
    chosen = draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n))
    return np.array(chosen, dtype=dtype) if chosen else np.zeros(0, "U1" if dtype == "U" else dtype)


VALUES = {
    "f8": st.floats(allow_nan=False, allow_infinity=False),
    "f4": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "i8": st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9),
    "u1": st.integers(0, 255),
}


@st.composite
def npz_files(draw):
    """The arrays of a file; columns of a row may repeat."""
    n_rows, dtype = draw(st.integers(1, 4)), draw(st.sampled_from(list(VALUES)))
    entries = st.lists(st.tuples(st.integers(0, 3), VALUES[dtype]), max_size=4)
    rows = draw(st.lists(entries, min_size=n_rows, max_size=n_rows))
    arrays = {
        "data": np.array([value for row in rows for _, value in row], dtype=dtype),
        "indices": np.array([column for row in rows for column, _ in row], dtype="i4"),
        "indptr": np.cumsum([0, *map(len, rows)], dtype="i4"),
        "shape": np.array([n_rows, 4]), "format": np.array(b"csr"),
    }  # fmt: skip
    counts = draw(st.none() | st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
    if counts is not None:
        arrays["label_start"] = np.cumsum([0, *counts], dtype="i8")
    arrays["labels"] = draw(label_arrays(n_rows if counts is None else sum(counts)))
    if draw(st.booleans()):
        queries = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n_rows, max_size=n_rows)
        arrays["query_ids"] = np.array(draw(queries), dtype="i8")
    return arrays


def reference_labels(labels, many):
    """The labels as text has them and as they are read back; None: that can't be."""
    if labels.dtype.kind == "S":
        return None
    texts, values = [], []
    for label in labels.tolist():
        text = label if isinstance(label, str) else repr(float(label))
        try:
            line = text.encode("utf-8", "surrogateescape")
            read = read_text(line, Options(multilabel=many)).labels
        except (UnicodeEncodeError, Refused):
            return None
        lost = not isinstance(label, str) and float(label) != label
        if lost or read != [[line]] or line.decode("utf-8", "surrogateescape") != text:
            return None
        texts.append(text)
        values.append(label_number(line))
    named = dict(zip(texts, values, strict=True))
    known = [number for number in named.values() if number is not None]
    if len(set(known)) < len(known) and labels.dtype.kind == "U":
        return None
    return texts if None in values else values


def reference_rows(arrays):
    """Sums of each row by column, in the order of the entries; None: no double holds one."""
    rows = []
    entries = list(zip(arrays["indices"].tolist(), arrays["data"].tolist(), strict=True))
    for first, last in pairwise(arrays["indptr"]):
        row = {}
        for column, value in entries[first:last]:
            if float(value) != value:
                return None
            row[column] = row[column] + float(value) if column in row else float(value)
        if not np.isfinite(list(row.values())).all():
            return None
        rows.append(sorted(row.items()))
    return rows


def in_rows(labels, start):
    if start is None:
        return list(labels)
    return [tuple(sorted(labels[a:b])) for a, b in pairwise(start)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convert, "_ROWS_AT_ONCE", 3)
        yield tmp_path_factory.mktemp("files")


def to_text(path, target):
    """Convert an npz file; the error, or None once there is text."""
    target.unlink(missing_ok=True)
    try:
        convert._npz_to_text(str(path), str(target), "auto")
    except ValueError as refused:
        error = str(refused)
    else:
        return None
    assert error.startswith(str(path))
    assert not target.exists()
    return error


@examples(600)
@given(arrays=npz_files())
def test_npz_comes_back_from_text_or_is_refused(folder, arrays):
    np.savez(folder / "rows.npz", **arrays)
    with np.load(folder / "rows.npz") as stored:
        arrays = dict(stored)  # text without trailing NULs, which NumPy does not keep
    start, queries = arrays.get("label_start"), arrays.get("query_ids")
    labels = reference_labels(arrays["labels"], start is not None)
    rows = reference_rows(arrays)
    blank = start is not None and queries is None
    blank = blank and any((np.diff(start) == 0) & (np.diff(arrays["indptr"]) == 0))
    error = to_text(folder / "rows.npz", folder / "rows.svm")
    assert (error is None) == (labels is not None and rows is not None and not blank), error
    if error is not None:
        assert "row" in error or "labels of type" in error
        return
    settings = {"multilabel": start is not None, "query_id": True, "zero_based": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sources, reading = open_sources(folder / "rows.svm"), Reading(n_features=4, **settings)
        convert._text_to_npz(sources, str(folder / "again.npz"), reading, None)
    with np.load(folder / "again.npz") as stored:
        again = dict(stored)
    back = in_rows(again["labels"].tolist(), again.get("label_start"))
    assert back == in_rows(labels, start)
    assert np.array_equal(again.get("query_ids", []), [] if queries is None else queries)
    data = [value for row in rows for _, value in row]
    assert again["data"].tobytes() == np.array(data).tobytes()
    assert again["indices"].tolist() == [column for row in rows for column, _ in row]
    assert again["indptr"].tolist() == np.cumsum([0, *map(len, rows)]).tolist()
    assert again["shape"].tolist() == arrays["shape"].tolist()


@examples(400)
@given(
    labels=st.lists(st.lists(WORDS, max_size=3), min_size=1, max_size=5),
    before=st.sampled_from(["", " ", "#\n", "\ufeff"]),
    many=st.booleans(),
)
@example(labels=[["\ufeffa"], ["b"]], before=" ", many=False)
@example(labels=[["BZh91AY&SY"]], before=" ", many=False)
@example(labels=[["\udc93smrows"]], before=" ", many=False)
@example(labels=[["01"], ["1"], ["a"]], before="", many=False)
def test_text_comes_back_from_npz_and_from_tidy_text(folder, labels, before, many):
    first, lines = folder / "first.svm", [",".join(row) for row in labels]
    text = before + "\n".join(f"{line} 1:0.5" if i else line for i, line in enumerate(lines))
    assume("qid:" not in text)  # which every row of an npz file has, or none
    try:
        first.write_bytes(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return
    settings = {"multilabel": many, "zero_based": False}
    options = ["-q", "--zero-based", "no", *["--multilabel"] * many]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            X, y = load_svmlight(first, **settings)
        except ValueError:
            return
        run("convert", first, folder / "it.npz", *options)
        run("convert", first, folder / "tidy.svm", *options)
        assert to_text(folder / "it.npz", folder / "second.svm") is None
        for name in ("second.svm", "tidy.svm"):
            X_again, y_again = load_svmlight(folder / name, n_features=X.shape[1], **settings)
            for part in "data", "indices", "indptr":
                assert getattr(X, part).tobytes() == getattr(X_again, part).tobytes()
            # Tidy text has numbers in the fewest digits, among words as well.
            how = tidied if name == "tidy.svm" else list
            if many:
                assert [set(how(row)) for row in y] == [set(how(row)) for row in y_again]
            else:
                assert how(y) == how(y_again)
                assert y.dtype.kind == y_again.dtype.kind


def tidied(labels):
    if not all(isinstance(label, str) for label in labels):
        return list(labels)
    numbers = [label_number(label.encode("utf-8", "surrogateescape")) for label in labels]
    return [word if n is None else n for word, n in zip(labels, numbers, strict=True)]


def write_npz(path, **changed):
    arrays = {
        "data": np.ones(3), "indices": np.array([0, 1, 2]), "indptr": np.array([0, 1, 2, 3]),
        "shape": np.array([3, 3]), "format": np.array(b"csr"), "labels": np.arange(3),
    }  # fmt: skip
    np.savez(path, **{**arrays, **changed})
    return path


# As a double, where that is what a long double is.
LONG = np.array([1, 1 + np.finfo(np.longdouble).eps, 2], dtype=np.longdouble)
REFUSED = [
    ({"labels": np.arange(4)}, "has labels of shape (4,) for 3 rows"),
    ({"indptr": [0, 5, 2, 3]}, "corrupted"),
    ({"indices": [0, 1, 9]}, "outside"),
    ({"data": [1.0, np.nan, 1.0]}, "NaN"),
    ({"label_start": [0, 2, 1, 3]}, "label_start does not divide"),
    ({"label_start": [0, 2**63 - 1, -(2**63) + 7, 3]}, "label_start does not divide"),
    *(({key: values}, f"has {key} of type ") for key, values in [
        ("indices", [0.5, 1.5, 2.5]), ("indices", ["0", "1", "2"]), ("shape", [3.5, 3.0]),
        ("indptr", [0.0, 1.0, 2.0, 3.0]), ("indptr", np.array([0, 1, 2, 3], "u8")),
    ]),
    ({"query_ids": [1.5, 2, 3]}, "query_ids are not one integer a row"),
    ({"format": b"csc"}, "no CSR matrix"),
    ({"data": [{}, 1, 2]}, "can't be read as an npz file"),
    ({"labels": ["a", "c\nd", "c\nd"]}, r"row 1: label 'c\nd' would not be read back"),
    ({"labels": ["b", "\ud800", "c"]}, r"row 1: label '\ud800'"),
    ({"labels": ["b", "c", "x" * 5000]}, f"row 2: label '{'x' * 40}...'"),
    ({"labels": ["b", "01", "1"]}, "rows 1 and 2: labels '01' and '1' are one number"),
    ({"labels": [1, 2, 2**53 + 1]}, "row 2: label 9007199254740993 is no double"),
    ({"labels": [b"a", b"b", b"c"]}, "labels of type |S1"),
    ({"labels": ["a", "b", "a,b"], "label_start": [0, 2, 2, 3]}, "row 2: label 'a,b' would not"),
    (
        {"labels": ["a"], "label_start": [0, 1, 1, 1], "indptr": [0, 2, 3, 3]},
        "row 2 has neither label nor feature",
    ),
    ({"data": [1, 1j, 1]}, "values of type complex128; rows have real numbers"),
    ({"data": [1, 2**53 + 1, 1]}, "row 1, column 1: 9007199254740993 is no double"),
    *([({"data": LONG}, "row 1, column 1: "), ({"labels": LONG}, "row 1: label ")]
      if np.finfo(np.longdouble).nmant > 52 else []),
    (
        {"data": [1.0, 1e308, 1e308], "indices": [0, 2, 2], "indptr": [0, 1, 3, 3]},
        "row 1, column 2: the sum of what is stored there exceeds a double",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "words"), REFUSED)
def test_what_text_can_not_hold_is_refused_by_row(tmp_path, changed, words):
    arrays = {name: np.array(values) for name, values in changed.items()}
    path = write_npz(tmp_path / "rows.npz", **arrays)
    for to in (tmp_path / "rows.svm", "-"):
        result = run("convert", path, to, "--to", "svmlight", code=1)
        assert result.stderr.startswith(f"Error: {path}")
        assert words in result.stderr
        assert result.stdout == ""
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows.npz"]


@pytest.mark.parametrize("header", ["(" * 5000, "{'descr': '<f8', 'fortran_order': False, "
                                    "'shape': (1000000000000000,)}", "-" * 5000 + "1"])  # fmt: skip
def test_an_npz_that_states_what_can_not_be_is_named(tmp_path, header):
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as file:
        length = len(header).to_bytes(2, "little")
        file.writestr("data.npy", b"\x93NUMPY\x01\x00" + length + header.encode())
    told = run("convert", tmp_path / "rows.npz", "-", "--to", "svmlight", code=1).stderr
    assert told.startswith(f"Error: {tmp_path / 'rows.npz'} can't be read as an npz file")
    assert len(told) < 1000


@examples(800)
@given(word=WORDS | st.text(st.characters(categories=["Nd", "Zs"]), max_size=3))
def test_a_label_is_the_number_that_the_scanner_makes_of_it(word):
    scanner = Scanner(np.float64, max_index=0)
    try:
        line = word.encode("utf-8", "surrogateescape")
        scanner.scan(bytearray(line) + bytes(PADDING), len(line))
    except (UnicodeEncodeError, ScanError):
        return
    if scanner.label_texts == [word]:
        np.testing.assert_equal(number_of(word), scanner.label_numbers[0])


def model_of(labels):
    """A model that tells these labels apart, one a feature."""
    return PNormPerceptron(max_iter=9).fit(sp.csr_matrix(np.eye(len(labels))), labels)


@pytest.mark.parametrize("classes", [["01", "1", "a"], [2**53, 2**53 + 1, 5]])
def test_classes_that_are_one_label_to_files_are_refused(tmp_path, classes):
    model, path = model_of(np.array(classes)), tmp_path / "rows.svm"
    path.write_text("1 1:1\n5 2:1\n")
    save_model(model, tmp_path / "a.model")
    with pytest.raises(ValueError, match=f"{classes[0]!r} and {classes[1]!r} are equal as numbers"):
        fit_svmlight(path, init_model=model)
    assert "are equal as numbers" in run("evaluate", tmp_path / "a.model", path, code=1).stderr


def test_words_and_figures_in_any_form_are_the_classes_of_a_model(tmp_path):
    """Words that only Python takes for numbers, too; True and False are 1 and 0 as well."""
    (tmp_path / "digits.svm").write_text("\uff11 1:1\n1 2:1\na 3:1\n", encoding="utf-8")
    path = write_npz(tmp_path / "rows.npz", labels=np.array([True, False, True]))
    run("convert", path, tmp_path / "rows.svm", "-q")
    assert load_svmlight(tmp_path / "rows.svm")[1].tolist() == [1.0, 0.0, 1.0]
    (tmp_path / "words.svm").write_text("True 1:1\nFalse 2:1\nTrue 3:1\n")
    for classes, name in (
        (["\uff11", "1", "a"], "digits.svm"),
        ([True, False, True], "rows.svm"),
        ([True, False, True], "words.svm"),
    ):
        save_model(model_of(np.array(classes)), tmp_path / "a.model")
        figures = evaluated(tmp_path / "a.model", tmp_path / name)
        assert (figures["rows"], figures["mistakes"]) == (3, 0)


def test_caches_of_labels_that_are_not_utf_8_have_checksums(tmp_path):
    sums = set()
    for word in (b"\xe9", b"\xe8"):
        (tmp_path / "rows.svm").write_bytes(word + b" 1:1\na 2:1\n")
        run("convert", tmp_path / "rows.svm", tmp_path / "rows.smcache", "-q")
        with RowCache.open(tmp_path / "rows.smcache") as cache:
            sums.add(cache.checksum)
    assert len(sums) == 2


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("word", ["c\nd", "x\ry", "t\tb", "k,m", "", "\udcc3\udca9", "a b"])
def test_a_line_is_a_prediction(tmp_path, word, many):
    labels = [["p"], ["q"], [word]] if many else np.array(["p", "q", word])
    save_model(model_of(labels), tmp_path / "a.model")
    (tmp_path / "rows.svm").write_text("3:1\n1:1\n")
    refused = ["c\nd", "x\ry", "\udcc3\udca9", *["k,m", ""] * many]
    how = ["predict", tmp_path / "a.model", tmp_path / "rows.svm"]
    for scores in [], ["--scores"]:
        target = tmp_path / f"out{len(scores)}"
        if word in [*refused, *["t\tb"] * len(scores)]:
            for more in scores, [*scores, "-o", target]:
                result = run(*how, *more, code=1)
                assert f"class {word!r} can't be told in lines" in result.stderr
                assert result.stdout == ""
            assert not target.exists()
            continue
        run(*how, *scores, "-o", target)
        lines = target.read_bytes().decode().split("\n")[len(scores) : -1]
        assert [line.split("\t")[0] if scores else line for line in lines] == [word, "p"]
        assert not scores or {line.count("\t") for line in lines} == {3}


@examples(200)
@given(text=st.text(max_size=6) | WORDS)
def test_what_is_shown_moves_no_cursor(text):
    def harmless(text):
        return all(c.isprintable() or "\udca0" <= c <= "\udcff" for c in text)

    assert harmless(shown(text))
    assert (shown(text) == text) == harmless(text)


def test_control_characters_of_labels_are_escaped(tmp_path):
    classes = ["c\nd", "\x1b[31mred", "\u202eabc", "\x9b2J", "\ud800", "plain"]
    names = "a.model", "rows.svm", "unknown.svm"
    model, path, unknown = (tmp_path / name for name in names)
    save_model(model_of(np.array(classes)), model)
    npz = write_npz(tmp_path / "rows.npz", labels=np.array(classes[:3]))
    path.write_text("plain 6:1\n\x1b[31mred 2:1\n\x9b5n 1:1\n", encoding="utf-8")
    unknown.write_text("\x1b[32mgreen 1:1\n", encoding="utf-8")
    for code, *command in (
        (0, "info", model), (0, "info", npz), (0, "info", path), (0, "inspect", model),
        (0, "evaluate", model, path), (1, "evaluate", model, unknown),
        (1, "train", unknown, "-o", tmp_path / "b.model", "--init", model),
    ):  # fmt: skip
        result = run(*command, code=code)
        told = result.stdout + result.stderr
        assert "\\x1b[3" in told
        assert all(c.isprintable() or c == "\n" for c in told)
    figures = json.loads(run("inspect", model, "--json").stdout)
    assert figures["classes"] == sorted(classes)
