"""Labels that look like numbers, marks or other formats keep their text through files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse as sp

from problems.command_line import evaluated, run
from problems.first_order import examples
from sparsemargin import PNormPerceptron, fit_svmlight, save_model
from sparsemargin._engine.svmlight.scan import PADDING, ScanError, Scanner
from sparsemargin._shown import shown
from sparsemargin.models.inputs.label_table import number_of
from sparsemargin.readers.row_cache import RowCache

# Labels that look like numbers, like marks of the format or like the start of another kind of file,
# and labels that contain separators.
TRICKY = [
    "01", "1", "1.0", "1e0", "+1", "-1", " 1", "1 ", "-", "+", ".", "nan", "NaN", "inf", "-Inf",
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


@examples(800)
@given(word=WORDS | st.text(st.characters(categories=["Nd", "Zs"]), max_size=3))
def test_labels_are_parsed_as_by_the_scanner(word):
    scanner = Scanner(np.float64, max_index=0)
    try:
        line = word.encode("utf-8", "surrogateescape")
        scanner.scan(bytearray(line) + bytes(PADDING), len(line))
    except (UnicodeEncodeError, ScanError):
        return
    if scanner.labels_from(0)[0] == [word]:
        np.testing.assert_equal(number_of(word), scanner.labels_from(0)[1][0])


def model_of(labels):
    """Return a model with one feature for each label."""
    return PNormPerceptron(max_iter=9).fit(sp.csr_matrix(np.eye(len(labels))), labels)


@pytest.mark.parametrize("classes", [["01", "1", "a"], [2**53, 2**53 + 1, 5]])
def test_classes_that_files_cannot_distinguish_are_rejected(tmp_path, classes):
    model, path = model_of(np.array(classes)), tmp_path / "rows.svm"
    path.write_text(f"{classes[1]} 1:1\n{classes[2]} 2:1\n")
    save_model(model, tmp_path / "a.model")
    with pytest.raises(ValueError, match=f"{classes[0]} and {classes[1]} are equal as numbers"):
        fit_svmlight(path, init_model=model)
    assert "are equal as numbers" in run("evaluate", tmp_path / "a.model", path, code=1).stderr


def test_words_and_numbers_in_any_form_match_the_classes(tmp_path):
    """Non-ASCII digits are words, although Python reads them as numbers. True and 1 are equal."""
    (tmp_path / "digits.svm").write_text("\uff11 1:1\n1 2:1\na 3:1\n", encoding="utf-8")
    (tmp_path / "rows.svm").write_text("1 1:1\n0 2:1\n1 3:1\n")
    (tmp_path / "words.svm").write_text("True 1:1\nFalse 2:1\nTrue 3:1\n")
    for classes, name in (
        (["\uff11", "1", "a"], "digits.svm"),
        ([True, False, True], "rows.svm"),
        ([True, False, True], "words.svm"),
    ):
        save_model(model_of(np.array(classes)), tmp_path / "a.model")
        figures = evaluated(tmp_path / "a.model", tmp_path / name)
        assert (figures["rows"], figures["mistakes"]) == (3, 0)


def test_caches_of_non_utf_8_labels_have_checksums(tmp_path):
    sums = set()
    for word in (b"\xe9", b"\xe8"):
        (tmp_path / "rows.svm").write_bytes(word + b" 1:1\na 2:1\n")
        fit_svmlight(tmp_path / "rows.svm", "perceptron", cache=tmp_path / "rows.smcache")
        with RowCache.open(tmp_path / "rows.smcache") as cache:
            sums.add(cache.checksum)
    assert len(sums) == 2


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("word", ["c\nd", "x\ry", "t\tb", "k,m", "\udcc3\udca9", "a b"])
def test_every_prediction_is_one_line(tmp_path, word, many):
    labels = [["p"], ["q"], [word]] if many else np.array(["p", "q", word])
    save_model(model_of(labels), tmp_path / "a.model")
    (tmp_path / "rows.svm").write_text("3:1\n1:1\n")
    refused = ["\udcc3\udca9", *["k,m"] * many]
    how = ["predict", tmp_path / "a.model", tmp_path / "rows.svm"]
    for scores in [], ["--scores"]:
        target = tmp_path / f"out{len(scores)}"
        if word in refused:
            for more in scores, [*scores, "-o", target]:
                result = run(*how, *more, code=1)
                assert f"class {word!r} can't be printed" in result.stderr
                assert result.stdout == ""
            assert not target.exists()
            continue
        run(*how, *scores, "-o", target)
        lines = target.read_bytes().decode().split("\n")[len(scores) : -1]
        written = word.replace("\n", "\\n").replace("\r", "\\r")
        written = word.encode("unicode_escape").decode() if scores else written
        assert [line.split("\t")[0] if scores else line for line in lines] == [written, "p"]
        assert not scores or {line.count("\t") for line in lines} == {3}


@examples(200)
@given(text=st.text(max_size=6) | WORDS)
def test_control_characters_are_not_printed(text):
    def harmless(text):
        return all(c.isprintable() or "\udca0" <= c <= "\udcff" for c in text)

    assert harmless(shown(text))
    assert (shown(text) == text) == harmless(text)


def test_control_characters_of_labels_are_escaped(tmp_path):
    classes = ["c\nd", "\x1b[31mred", "\u202eabc", "\x9b2J", "\ud800", "plain"]
    names = "a.model", "rows.svm", "unknown.svm"
    model, path, unknown = (tmp_path / name for name in names)
    save_model(model_of(np.array(classes)), model)
    path.write_text("plain 6:1\n\x1b[31mred 2:1\n\x9b5n 1:1\n", encoding="utf-8")
    unknown.write_text("\x1b[32mgreen 1:1\n", encoding="utf-8")
    for code, *command in (
        (0, "info", model), (0, "info", path), (0, "inspect", model),
        (0, "evaluate", model, path), (1, "evaluate", model, unknown),
        (1, "train", unknown, "-o", tmp_path / "b.model", "--init", model),
    ):  # fmt: skip
        result = run(*command, code=code)
        told = result.stdout + result.stderr
        assert "\\x1b[3" in told
        assert all(c.isprintable() or c == "\n" for c in told)
    figures = json.loads(run("inspect", model, "--json").stdout)
    assert figures["classes"] == sorted(classes)
