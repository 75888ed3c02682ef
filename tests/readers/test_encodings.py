"""Files of texts in other encodings than UTF-8."""

import gzip
import io
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from problems.command_line import run
from sparsemargin import TextClassifier, fit_text
from sparsemargin.files import sources
from sparsemargin.files.compression import Utf8Reader, encoding_named
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.streaming.learn_texts import learn_documents
from sparsemargin.streaming.report import Interruption
from sparsemargin.text.defaults import default_hashing

TEXTS = ["das schöne Mädchen", "l'été à la plage", "größer als süß", "déjà vu, ça va"]
LABELS = ["de", "fr", "de", "fr"]
# Texts of many lengths, so that characters lie across the ends of the pieces that are decoded.
MANY = [f"{text} {'ß' * (i % 23)}" for i, text in enumerate(TEXTS * 100)]
RUSSIAN = ["привет мир", "добрый день"] * 50
JAPANESE = ["今日は晴れ", "明日は雨です、たぶん"] * 50


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4096)


def lines_of(form, texts, labels):
    """The content of a file of a form, as other programs write it."""
    table = pd.DataFrame({"text": texts, "label": labels})
    if form == "csv":
        return table.to_csv(index=False)
    if form == "jsonl":
        return table.to_json(orient="records", lines=True, force_ascii=False)
    pattern = {"tsv": "{}\t{}\n", "txt": "__label__{} {}\n", "vw": "{} | {}\n"}[form]
    return "".join(
        pattern.format(label, text.replace(":", " "))
        for text, label in zip(texts, labels, strict=True)
    )


def written(form, encoding, texts=MANY, labels=None, name=""):
    path = Path(f"{name or encoding}.{form}")
    path.write_bytes(lines_of(form, texts, labels or LABELS * 100).encode(encoding))
    return str(path)


def same(model, other):
    np.testing.assert_array_equal(model.classifier_.coef_, other.classifier_.coef_)
    assert model.classes_.tolist() == other.classes_.tolist()


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "txt", "vw"])
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-be", "utf-8-sig"])
def test_models_are_those_of_the_same_texts_in_utf_8(form, encoding):
    expected = fit_text(written(form, "utf-8"), random_state=0)
    same(fit_text(written(form, encoding), encoding=encoding, random_state=0), expected)
    other = TextClassifier(random_state=0)
    same(other.fit_files(f"{encoding}.{form}", encoding=encoding.upper()), expected)


@pytest.mark.parametrize(
    ("encoding", "texts"),
    [("koi8-r", RUSSIAN), ("shift_jis", JAPANESE), ("iso2022_jp", JAPANESE), ("utf-32", RUSSIAN)],
)
def test_encodings_of_several_bytes_and_of_states(encoding, texts, monkeypatch):
    expected = fit_text(written("csv", "utf-8", texts, ["a", "b"] * 50), random_state=0)
    for n_bytes in 7, 1000:
        monkeypatch.setattr("sparsemargin.files.compression._DECODED_BYTES", n_bytes)
        path = written("csv", encoding, texts, ["a", "b"] * 50)
        same(fit_text(path, encoding=encoding, random_state=0), expected)


@pytest.mark.parametrize("n_bytes", [1, 3, 10, 1000])
@pytest.mark.parametrize(
    ("encoding", "wrong"),
    [
        ("cp1252", b"\x81"), ("ascii", b"\xe9"), ("shift_jis", b"\x81\xff"), ("utf-8", b"\xff"),
        ("utf-16-le", b"\x00\xdc"), ("utf-16-be", b"\xdc\x00"), ("utf-32-le", b"\xff\xff\xff\xff"),
        ("iso2022_jp", b"\x1b$B\xff\xff"),
    ],
)  # fmt: skip
def test_invalid_bytes_are_named_with_their_line(n_bytes, encoding, wrong, monkeypatch):
    monkeypatch.setattr("sparsemargin.files.compression._DECODED_BYTES", n_bytes)
    before = "one\ntwo\nthree\nfo".encode(encoding)
    reader = Utf8Reader(io.BytesIO(before + wrong + "ur\nfive\n".encode(encoding)), encoding, "x")
    with pytest.raises(ValueError, match=r"^x, line 4: byte 0x\w\w is not valid .* encoding=NAME"):
        io.BufferedReader(reader).read()


def test_files_that_are_cut_off_and_halves_of_pairs_are_errors():
    Path("a.tsv").write_bytes("de\tx\nfr\ty\n".encode("utf-16-le") + b"a")
    with pytest.raises(ValueError, match=r"a.tsv, line 3: byte 0x61 is not valid utf-16-le"):
        fit_text("a.tsv", encoding="utf-16-le")
    Path("a.tsv").write_bytes(b"de\tx\nfr\t\\ud800\n")
    with pytest.raises(ValueError, match=r"a.tsv, line 2: byte 0xed is not UTF-8"):
        fit_text("a.tsv", encoding="unicode_escape")


@pytest.mark.parametrize(
    "name", ["latin-99", "base64_codec", "zlib", "rot13", "hex", "undefined", "", "a\0b", 8, None]
)
def test_names_that_are_no_encodings_of_text_are_refused(name):
    written("tsv", "utf-8")
    with pytest.raises(ValueError, match=r"^encoding=.* is not an encoding of text"):
        fit_text("utf-8.tsv", encoding=name)


def test_names_of_an_encoding_are_equal():
    assert encoding_named("latin-1") == encoding_named("ISO-8859-1") == "iso8859-1"
    assert encoding_named("U8") == encoding_named("utf-8") == "utf-8"


def test_the_remedies_work():
    path = written("csv", "latin-1")
    with pytest.raises(ValueError, match=r"line 2: byte 0xf6 is not UTF-8.*encoding='latin-1'"):
        fit_text(path)
    fit_text(path, encoding="latin-1")
    path = written("csv", "utf-16")
    with pytest.raises(ValueError, match=r"is UTF-16 text\. Pass encoding='utf-16' if it holds"):
        fit_text(path)
    fit_text(path, encoding="utf-16")
    with pytest.raises(ValueError, match=r"encoding is for files\. Leave it out"):
        fit_text(TEXTS, LABELS, encoding="latin-1")


def test_parquet_files_are_utf_8():
    pd.DataFrame({"text": MANY, "label": LABELS * 100}).to_parquet("a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet: encoding='latin-1' is not for parquet"):
        fit_text("a.parquet", encoding="latin-1")
    same(
        fit_text("a.parquet", encoding="UTF8", random_state=0),
        fit_text("a.parquet", random_state=0),
    )


def test_row_caches_do_not_mix_encodings():
    path = written("tsv", "latin-1")
    how = {"cache": "rows.smcache", "max_iter": 2, "random_state": 0}
    first = fit_text(path, encoding="latin-1", **how)
    size = Path("rows.smcache").stat().st_mtime_ns
    same(fit_text(path, encoding="latin-1", **how), first)
    assert Path("rows.smcache").stat().st_mtime_ns == size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = fit_text(path, encoding="cp437", **how)
    assert Path("rows.smcache").stat().st_mtime_ns != size
    assert (other.classifier_.coef_ != first.classifier_.coef_).any()


def test_commands_read_files_of_an_encoding():
    test = written("csv", "cp1252", TEXTS, LABELS, "test")
    zipped = Path("zipped.csv.gz")
    zipped.write_bytes(gzip.compress(Path(test).read_bytes()))
    given = "--encoding", "cp1252"
    run("train", written("txt", "cp1252"), "-o", "a.model", "-q", *given)
    run("train", written("txt", "utf-8"), "-o", "b.model", "-q")
    plain = written("csv", "utf-8", TEXTS, LABELS, "plain")
    expected = run("predict", "b.model", plain, "--scores", "--keep", "text").stdout
    assert "größer" in expected
    for path in test, zipped:
        told = run("predict", "a.model", path, "--scores", "--keep", "text", *given).stdout
        assert told == expected
    figures = json.loads(run("evaluate", "a.model", test, "--json", *given).stdout)
    assert figures["accuracy"] == 1.0
    for path in "cp1252.txt", test:
        (entry,) = json.loads(run("info", path, "--json", *given).stdout)["files"]
        assert {each["label"] for each in entry["labels"]} == {"de", "fr"}
    # The model predicts UTF-8 without the option.
    assert run("predict", "a.model", plain, "--scores", "--keep", "text").stdout == expected


def test_commands_refuse_encodings_that_do_not_fit():
    path = written("csv", "latin-1")
    error = " ".join(run("train", path, "-o", "a.model", code=1).stderr.split())
    assert "is not UTF-8. Pass the encoding of the file, such as --encoding latin-1" in error
    error = run("train", path, "-o", "a.model", "--encoding", "latin-99", code=1).stderr
    assert "--encoding latin-99 is not an encoding of text" in error
    Path("a.svm").write_text("1 1:1\n-1 2:1\n" * 20)
    error = run("train", "a.svm", "-o", "a.model", "--encoding", "latin-1", code=2).stderr
    assert "--encoding needs files of texts, and a.svm is read as svmlight text." in error
    run("train", "a.svm", "-o", "a.model", "-q", "--encoding", "utf-8")
    error = run("predict", "a.model", "a.svm", "--encoding", "latin-1", code=2).stderr
    assert "--encoding needs files of texts" in error
    pd.DataFrame({"text": TEXTS, "label": LABELS}).to_parquet("a.parquet")
    error = run("train", "a.parquet", "-o", "a.model", "--encoding", "latin-1", code=1).stderr
    assert "--encoding latin-1 is not for parquet files" in error


def test_resumed_runs_do_not_mix_encodings():
    path = written("tsv", "latin-1")

    def interrupt(_):
        raise KeyboardInterrupt

    def learn(encoding, **how):
        form = DocumentForm(encoding=encoding)
        settings = {"max_iter": 2, "random_state": 0, "checkpoint": "run", **how}
        return learn_documents(path, default_hashing(1e4), form, **settings)

    with pytest.warns(Interruption, match="resume=True to continue"):
        learn("latin-1", report=interrupt)
    with pytest.raises(ValueError, match="belongs to a run with other files"):
        learn("cp437", resume=True)
    resumed = learn("latin-1", resume=True)
    expected = fit_text(path, encoding="latin-1", max_iter=2, random_state=0)
    assert resumed.classes_.tolist() == expected.classes_.tolist()
