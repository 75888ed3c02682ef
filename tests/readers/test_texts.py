"""Training from text files gives the same model as training from memory, to the bit."""

import bz2
import csv
import errno
import gzip
import json
import os
import re
import threading

import numpy as np
import pytest

from problems.command_line import run
from problems.sources import standard_input
from sparsemargin import AROWClassifier, fit_csr, fit_text, load_model, save_model
from sparsemargin.evaluation import explain_row, top_features
from sparsemargin.files.sources import open_sources
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.readers.text_lines import BlockLines, LineError, parse_fasttext
from sparsemargin.streaming import learn_texts, stream
from sparsemargin.streaming.learn_texts import learn_documents, vectorizer_for
from sparsemargin.text import HashingVectorizer, WordCharVectorizer
from sparsemargin.text import defaults as text_defaults

TEXTS = [
    "cheap pills, cheap",
    "lunch at noon?",
    "see you\tat noon",
    "Gew\u00fcrz \u00abbillig\u00bb",
] * 30
LABELS = ["spam", "ham", "ham", "spam"] * 30
SETTINGS = {"algo": "arow", "shuffle": False}


def fasttext(path, texts, labels):
    lines = (f"__label__{label} {text}\n" for text, label in zip(texts, labels, strict=True))
    path.write_text("".join(lines), encoding="utf-8")


def tsv(path, texts, labels):
    lines = (f"{label}\t{text}\n" for text, label in zip(texts, labels, strict=True))
    path.write_text("".join(lines), encoding="utf-8")


def vw(path, texts, labels):
    lines = (f"{label} | {text}\n" for text, label in zip(texts, labels, strict=True))
    path.write_text("".join(lines), encoding="utf-8")


def table(path, texts, labels):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("label", "other", "text")])
        csv.writer(file).writerows((b, 1, a) for a, b in zip(texts, labels, strict=True))


def jsonl(path, texts, labels):
    pairs = zip(texts, labels, strict=True)
    lines = (json.dumps({"text": text, "label": label}) + "\n" for text, label in pairs)
    path.write_text("".join(lines), encoding="utf-8")


def parquet(path, texts, labels):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        pa.table({"text": texts, "label": labels}), path, row_group_size=50
    )


FORMS = {".txt": fasttext, ".tsv": tsv, ".vw": vw, ".csv": table, ".jsonl": jsonl,
         ".parquet": parquet}  # fmt: skip


def words():
    return HashingVectorizer(n_features=1 << 12)


def same(pipeline, model):
    np.testing.assert_array_equal(pipeline.classifier_.coef_, model.coef_)
    np.testing.assert_array_equal(pipeline.classifier_.intercept_, model.intercept_)
    np.testing.assert_array_equal(pipeline.classes_, model.classes_)
    return True


def test_larger_files_get_more_hashed_columns(tmp_path):
    def bits(*sizes, write=open):
        for i, size in enumerate(sizes):
            with write(tmp_path / f"{i}.tsv", "wb") as file:
                file.write(os.urandom(size))
        sources = open_sources([tmp_path / f"{i}.tsv" for i in range(len(sizes))])
        return vectorizer_for(sources).n_features.bit_length() - 1

    assert [bits(size) for size in (0, 1 << 10, 1 << 17, 1 << 20, 1 << 24)] == [16, 16, 18, 21, 22]
    assert bits(1 << 19, 1 << 19) == 21
    assert bits(1 << 18, write=gzip.open) == 21  # a compressed file counts as four times its size
    assert vectorizer_for([]).n_features == vectorizer_for(open_sources("-")).n_features == 1 << 22
    assert vectorizer_for(open_sources(tmp_path / "0.tsv"), 12).n_features == 1 << 12


def test_larger_files_have_fewer_character_ngrams(tmp_path):
    path = tmp_path / "texts.tsv"
    for size, lengths in (20_000_000, (2, 5)), (20_000_001, (4, 4)), (1 << 28, (4, 4)):
        with open(path, "wb") as file:
            file.truncate(size)
        assert vectorizer_for(open_sources(path)).char_ngram_range == lengths
    with open(path, "wb") as file:
        file.truncate((1 << 28) + 1)
    assert type(vectorizer_for(open_sources(path))) is HashingVectorizer


@pytest.mark.filterwarnings("ignore:.*sorted by their labels", "ignore:The model predicts class a")
def test_files_are_learned_in_several_epochs_by_default(tmp_path, monkeypatch):
    path, model = tmp_path / "texts.tsv", tmp_path / "texts.model"

    def epochs(texts, labels, **how):
        tsv(path, texts, labels)
        fitted = fit_text(path, features=words(), random_state=0, **how)
        assert fitted.classifier_.n_iter_ == fitted.classifier_.max_iter
        assert hasattr(fitted, "predict_proba")
        again = fit_text(path, features=words(), random_state=0, **how,
                         max_iter=fitted.classifier_.max_iter)  # fmt: skip
        return (
            fitted.classifier_.max_iter
            if "max_iter" in how or same(fitted, again.classifier_)
            else None
        )

    # 1,000 trials for few rows; two epochs otherwise, and three if a class has fewer than 100 rows.
    assert epochs(TEXTS, LABELS) == 9
    assert epochs(TEXTS * 20, LABELS * 20) == 2
    assert epochs(TEXTS * 20, ["a"] * 2340 + ["b"] * 60) == 3
    assert epochs(TEXTS * 20, LABELS * 20, algo="arow") == 1
    assert epochs(TEXTS * 20, LABELS * 20, r=0.2) == 2
    assert epochs(TEXTS * 20, [f"{label},x" for label in LABELS * 20], multilabel=True) == 2
    run("train", path, "-o", model, "--hash-bits", "12", "--multilabel")
    assert load_model(model).classifier_.n_iter_ == 2
    run("train", path, "-o", model, "--epochs", "1", "--multilabel")
    assert load_model(model).classifier_.n_iter_ == 1
    with standard_input(path.read_bytes()):
        assert fit_text("-", format="tsv", features=words()).classifier_.n_iter_ == 1
    monkeypatch.setattr(learn_texts, "_MOST_BYTES", 100)
    tsv(path, TEXTS * 20, LABELS * 20)
    assert fit_text(path, features=words()).classifier_.n_iter_ == 1


@pytest.mark.filterwarnings("ignore:The model predicts class a")
def test_rare_classes_are_estimated_from_the_first_texts(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "MOST_ROWS", 1000)
    labels = np.where(np.arange(60_000) % 50, "a", "b")
    tsv(tmp_path / "texts.tsv", TEXTS * 500, labels)
    # About 1,200 rows have the rare class, but few of the first texts.
    assert (
        fit_text(tmp_path / "texts.tsv", features=words(), shuffle=False).classifier_.max_iter == 2
    )


@pytest.mark.parametrize("end", FORMS)
def test_text_file_gives_the_model_of_its_texts(tmp_path, end):
    if end == ".csv":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"texts{end}"
    FORMS[end](path, TEXTS, LABELS)
    pipeline = fit_text(path, features=words(), **SETTINGS)
    model = fit_csr(words().transform(TEXTS), LABELS, **SETTINGS, max_iter=1)
    assert same(pipeline, model)
    assert pipeline.predict(["cheap pills"]).tolist() == ["spam"]


@pytest.mark.parametrize(("end", "opened"), [(".gz", gzip.open), (".bz2", bz2.open)])
def test_compressed_files_are_read(tmp_path, end, opened):
    tsv(tmp_path / "texts.tsv", TEXTS, LABELS)
    path = tmp_path / f"texts.tsv{end}"
    with opened(path, "wb") as file:
        file.write((tmp_path / "texts.tsv").read_bytes())
    plain = fit_text(tmp_path / "texts.tsv", features=words(), **SETTINGS)
    assert same(fit_text(path, features=words(), **SETTINGS), plain.classifier_)


def test_any_line_end_is_accepted(tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_bytes(b"\xef\xbb\xbfham\ta bee\r\n\r\n\nspam\tsea \xc2\x85 dee")
    pipeline = fit_text(path, features=words(), **SETTINGS)
    assert pipeline.classes_.tolist() == ["ham", "spam"]
    X = words().transform(["a bee", "sea \x85 dee"])
    assert same(pipeline, fit_csr(X, ["ham", "spam"], **SETTINGS, max_iter=1))


@pytest.mark.parametrize("line", ["{}\t{}", "{}  {}", "{}\x0b{}", " {} {}", "\t{} {}", "{1} {0}"])
def test_fasttext_labels_may_stand_anywhere_in_a_line(tmp_path, line):
    path = tmp_path / "texts.txt"
    pairs = zip(TEXTS, LABELS, strict=True)
    lines = (line.format(f"__label__{label}", text) + "\n" for text, label in pairs)
    path.write_text("".join(lines), encoding="utf-8")
    plain = tmp_path / "plain.txt"
    fasttext(plain, TEXTS, LABELS)
    learned = fit_text(plain, features=words(), **SETTINGS)
    assert same(fit_text(path, features=words(), **SETTINGS), learned.classifier_)


@pytest.mark.parametrize("line", ["{} {}", "{}  {}", "{}\t{}"])
def test_fasttext_lines_may_have_several_labels(tmp_path, line):
    path = tmp_path / "texts.txt"
    both = line.format("__label__a", "__label__b")
    path.write_text(f"{both} bee\n__label__a sea __label__c\n" * 9)
    pipeline = fit_text(path, multilabel=True, features=words(), **SETTINGS)
    assert pipeline.classes_.tolist() == ["a", "b", "c"]
    assert pipeline.predict(["bee", "sea"]) == [("a", "b"), ("a", "c")]


def test_threads_and_cached_epochs_give_the_same_model(tmp_path, monkeypatch):
    monkeypatch.setattr("sparsemargin.files.sources.BLOCK_BYTES", 200)
    path = tmp_path / "texts.txt"
    fasttext(path, TEXTS, LABELS)
    models = [
        fit_text(path, features=words(), n_jobs=n, max_iter=3, random_state=0) for n in (1, 2, 3)
    ]
    assert same(models[0], models[1].classifier_)
    assert same(models[0], models[2].classifier_)


def test_one_epoch_with_a_given_algorithm_needs_no_row_cache(tmp_path, monkeypatch):
    path = tmp_path / "texts.tsv"
    tsv(path, TEXTS, LABELS)
    monkeypatch.setattr("sparsemargin.streaming.passes.write_cache", None)
    model = fit_text(path, features=words(), **SETTINGS)
    assert model.classifier_.n_iter_ == 1


def test_columns_are_named_while_the_model_is_trained(tmp_path, monkeypatch):
    path = tmp_path / "texts.tsv"
    tsv(path, TEXTS, LABELS)
    expected = fit_text(path, features=words(), **SETTINGS)
    trained, remember = threading.Event(), HashingVectorizer.remember_terms

    def remember_terms(vectorizer, texts):
        assert trained.wait(30)
        return remember(vectorizer, texts)

    def report(progress):
        assert progress.rows
        trained.set()

    monkeypatch.setattr(HashingVectorizer, "remember_terms", remember_terms)
    monkeypatch.setattr("sparsemargin.readers.texts.ENOUGH_CHARACTERS", 1)
    vectorizer = words()
    learn_documents(path, vectorizer, DocumentForm(), report=report, **SETTINGS)
    assert vectorizer.terms_ == expected.vectorizer_.terms_


def test_row_cache_of_texts_is_reused(tmp_path):
    path = tmp_path / "texts.tsv"
    tsv(path, TEXTS, LABELS)
    first = fit_text(path, features=words(), cache=True, max_iter=2, random_state=0)
    kept = path.with_name("texts.tsv.smcache")
    before = kept.stat().st_mtime_ns
    again = fit_text(path, features=words(), cache=True, max_iter=2, random_state=0)
    assert same(first, again.classifier_)
    assert kept.stat().st_mtime_ns == before


def test_multilabel_texts_are_learned(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("__label__a __label__b one two\n__label__b two\nthree\n" * 9)
    model = fit_text(path, multilabel=True, features=words(), **SETTINGS)
    assert model.predict(["one two", "two"]) == [("a", "b"), ("b",)]
    one = fit_text(path, positive="a", features=words(), **SETTINGS)
    assert one.predict(["one", "three"]).tolist() == [1, -1]


def test_late_class_is_learned(tmp_path, monkeypatch):
    monkeypatch.setattr("sparsemargin.files.sources.BLOCK_BYTES", 200)
    path = tmp_path / "texts.tsv"
    labels = [*LABELS[:-1], "late"]
    tsv(path, TEXTS, labels)
    model = fit_text(path, features=words(), **SETTINGS)
    assert model.classes_.tolist() == ["ham", "late", "spam"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"ham\tx\nspam y\n", "a.tsv, line 2: 'spam y' has no label. Write 'LABEL<"),
        ("a.txt", b"__label__a x\n\nspam y\n", "a.txt, line 3: 'spam y' has no label. Write '"),
        ("a.txt", b"__label__a __label__b y\n", "a.txt, line 1: several labels, a, b. Pass multi"),
        ("a.vw", b"1 | x\n1 y\n", "a.vw, line 2: '1 y' has no label. Write 'LABEL | word"),
        ("a.vw", b"1 | x:0.5\n", "a.vw, line 1: the weight 0.5 is not a count from 0 to 1,000."),
        ("a.vw", b"1 | 12:x\n", "a.vw, line 1: 'x' is not a weight. Replace colons within words."),
        ("a.vw", b"1 0.5 | x\n", "a.vw, line 1: the weight 0.5 is not a count from 0 to 1,000."),
        ("a.vw", b"1 | x\n1|x\n", "a.vw, line 2: '1|x' has no label. Write 'LABEL | word"),
        ("a.vw", b"1 1 2 | x\n", "a.vw, line 1: '1 1 2 | x' has no label. Write 'LABEL |"),
        ("a.jsonl", b"{}\n", "line 1: no column 'text', but none. Name the right column by text="),
        ("a.jsonl", b'[{"a": 1},\n', "line 1: the line is not JSON (Expecting"),
        ("a.jsonl", b'{"text": "\\ud800"}\n', "line 1: the line is not JSON ('utf-8' codec"),
        ("a.jsonl", b"[" * 100_000, "line 1: the line is not JSON (maximum recursion"),
        ("a.jsonl", b"[{}]\n", "line 1: the line is not a JSON object. jq -c '.[]' writes"),
        ("a.tsv", b"ham\tx\nspam\t\xff\n", "a.tsv, line 2: byte 0xff is not UTF-8. Pass"),
        ("a.tsv", b"ham\tx\n\ty\n", "a.tsv, line 2: '\\ty' has no label. Write"),
        ("a.doc", b"", "a.doc: the format can't be recognised, .*format="),
        ("a.tsv", b"", "a.tsv has no rows"),
    ],
)  # fmt: skip
def test_errors_report_the_line_and_a_remedy(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message).replace(r"\.\*", ".*")):
        fit_text(path, features=words(), **SETTINGS)


@pytest.mark.parametrize(
    ("rows", "given", "message"),
    [
        (
            [("label", "words"), ("a", "x")],
            {},
            r"line 1: no column 'text', but label, words.*text=",
        ),
        ([("text", "kind"), ("a", "x")], {}, r"line 1: no column 'label', but text, kind.*label="),
        (
            [("text", "Label"), ("a", "x")],
            {},
            r"no column 'label'.* Did you mean 'Label'\?.*label=",
        ),
        ([("text", "label"), ("", "x")], {"label": "no"}, r"line 1: no column 'no'"),
    ],
)
def test_missing_columns_are_named(tmp_path, rows, given, message):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(ValueError, match=message):
        fit_text(path, features=words(), **given, **SETTINGS)


def test_text_column_is_not_interpreted(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "17,1\nseventeen,2\n" * 9)
    model = fit_text(path, features=words(), **SETTINGS)
    assert model.classes_.tolist() == [1, 2]
    assert model.predict(["17", "seventeen"]).tolist() == [1, 2]


def test_table_labels_are_lists_or_separated_by_commas(tmp_path):
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(
        '{"text": "one two", "label": ["a", "b"]}\n{"text": "two", "label": ["b"]}\n' * 9
    )
    second.write_text('{"text": "one two", "label": "a,b"}\n{"text": "two", "label": "b"}\n' * 9)
    models = [fit_text(path, multilabel=True, features=words(), **SETTINGS)
              for path in (first, second)]  # fmt: skip
    assert same(models[0], models[1].classifier_)


@pytest.mark.parametrize("end", [".tsv", ".csv"])
def test_white_space_is_not_a_label(tmp_path, end):
    path = tmp_path / f"texts{end}"
    if end == ".csv":
        pytest.importorskip("pyarrow")
    FORMS[end](path, ["x y", "a bee", "a sea", "dee"] * 9, ["", "a, b", "a", "b,"] * 9)
    pipeline = fit_text(path, multilabel=True, features=words(), **SETTINGS)
    assert pipeline.classes_.tolist() == ["a", "b"]


def test_missing_and_several_labels_are_rejected_by_default(tmp_path):
    path = tmp_path / "a.jsonl"
    jsonl(path, ["bee", "sea", "dee"], ["a", "b", " "])
    with pytest.raises(ValueError, match=r"a\.jsonl, line 3: .label. is empty: this row has"):
        fit_text(path, features=words(), **SETTINGS)
    jsonl(path, ["bee", "sea"], [["a"], ["a", "b"]])
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: several labels, a, b\. .*multilabel="):
        fit_text(path, features=words(), **SETTINGS)


def test_empty_cell_is_reported(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x", "label": "a"}\n{"text": null, "label": "b"}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: 'text' is empty"):
        fit_text(path, features=words(), **SETTINGS)


def test_options_that_files_do_not_support_are_rejected(tmp_path):
    path = tmp_path / "a.tsv"
    tsv(path, TEXTS, LABELS)
    from sparsemargin.text import TfidfVectorizer

    with pytest.raises(ValueError, match="has to read all texts first"):
        fit_text(path, features=TfidfVectorizer())
    with pytest.raises(ValueError, match="hash_bits belongs to the vectorizer"):
        fit_text(path, hash_bits=10)
    with pytest.raises(ValueError, match="sample_weight is for texts in memory"):
        fit_text(path, sample_weight=[1.0])
    with pytest.raises(FileNotFoundError, match="Texts in memory need y, their labels"):
        fit_text(["a text", "another"])
    with pytest.raises(ValueError, match="format must be one of"):
        fit_text(path, format="doc")


def test_texts_in_memory_use_words_pairs_and_character_ngrams(monkeypatch):
    from sklearn.feature_extraction.text import TfidfVectorizer

    X = WordCharVectorizer().fit_transform(TEXTS)
    model = fit_text(TEXTS, LABELS, "alma", random_state=0)
    assert same(model, fit_csr(X, LABELS, "alma", random_state=0))
    assert list(model.pipeline_.named_steps) == ["vectorizer", "classifier"]
    monkeypatch.setattr(text_defaults, "_MANY_CHARACTERS", sum(map(len, TEXTS)) - 1)
    assert fit_text(TEXTS, LABELS, random_state=0).vectorizer_.char_ngram_range == (4, 4)
    monkeypatch.setattr(text_defaults, "_MOST_CHARACTERS", sum(map(len, TEXTS)) - 1)
    model = fit_text(TEXTS, LABELS, "alma", random_state=0)
    X = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32)
    assert same(model, fit_csr(X.fit_transform(TEXTS), LABELS, "alma", random_state=0))


def test_texts_use_a_prior_by_default_with_one_label_per_text(tmp_path):
    path = tmp_path / "a.tsv"
    tsv(path, TEXTS * 20, LABELS * 20)
    for model in fit_text(TEXTS, LABELS, random_state=0), fit_text(path, random_state=0):
        assert type(model.classifier_) is AROWClassifier
        assert model.classifier_.prior == "naive_bayes"
        assert model.classifier_.max_iter >= 2
        assert model.predict(TEXTS).tolist() == LABELS
        assert model.predict_proba(TEXTS).argmax(axis=1).tolist() == [
            model.classes_.tolist().index(label) for label in LABELS
        ]
    assert fit_text(TEXTS, LABELS, prior=None, random_state=0).classifier_.prior is None
    assert fit_text(TEXTS, LABELS, r=2.0, random_state=0).classifier_.prior == "naive_bayes"
    once = fit_text(path, max_iter=1, random_state=0).classifier_
    assert (once.prior, once.max_iter) == ("naive_bayes", 1)
    several = fit_text(TEXTS, [[label, "any"] for label in LABELS], random_state=0)
    assert several.classifier_.prior is None


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_arrow_columns_are_accepted_as_texts(n_jobs):
    pa = pytest.importorskip("pyarrow")
    from sparsemargin.text import TfidfVectorizer

    for column in pa.array(TEXTS), pa.chunked_array([TEXTS[:7], TEXTS[7:]]):
        model = fit_text(column, LABELS, features=TfidfVectorizer(n_jobs=n_jobs), **SETTINGS)
        assert model.predict(column).tolist() == LABELS
        assert (words().transform(column) != words().transform(TEXTS)).nnz == 0
    with pytest.raises(AttributeError, match=r"texts\[1\] is None"):
        words().transform(pa.array(["bee", None]))


def test_hashed_features_are_named_after_frequent_words(tmp_path):
    path = tmp_path / "texts.tsv"
    tsv(path, TEXTS, LABELS)
    model = fit_text(path, **SETTINGS)
    (why,) = explain_row(model, "cheap lunch never seen")
    assert {"cheap", "lunch"} <= set(why.names)
    save_model(model, tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model")
    assert top_features(loaded, 3) == top_features(model, 3)
    told = run("inspect", tmp_path / "a.model", "--top", "5").stdout
    assert "cheap" in told
    assert "noon" in told
    (tmp_path / "new.tsv").write_text("at noon\n")
    told = run("predict", tmp_path / "a.model", tmp_path / "new.tsv", "--explain").stdout
    assert "at noon" in told


def test_readable_weights_list_their_words(tmp_path):
    path = tmp_path / "texts.tsv"
    tsv(path, TEXTS, LABELS)
    run("train", path, "-o", tmp_path / "a.model", "--readable", tmp_path / "a.txt")
    written = (tmp_path / "a.txt").read_text(encoding="utf-8")
    assert "\ncheap\t" in written
    assert "\nat noon\t" in written


def test_txt_files_with_svmlight_text_are_detected(tmp_path):
    text = b"1 3:1 4:2\n-1 1:1 2:1\n" * 9
    (tmp_path / "a.txt").write_bytes(text)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text))
    for name in "a.txt", "a.txt.gz":
        run("train", tmp_path / name, "-o", tmp_path / "a.model")
        assert load_model(tmp_path / "a.model").n_features_in_ == 4


def test_txt_files_with_unlabelled_texts_are_detected(tmp_path):
    tsv(tmp_path / "texts.tsv", TEXTS, LABELS)
    run("train", tmp_path / "texts.tsv", "-o", tmp_path / "a.model")
    (tmp_path / "new.txt").write_text("cheap pills\nlunch at noon\n")
    told = run("predict", tmp_path / "a.model", tmp_path / "new.txt").stdout
    assert told.split() == ["spam", "ham"]


def test_text_pipeline_continues_with_further_files(tmp_path):
    path = tmp_path / "texts.tsv"
    tsv(path, TEXTS, LABELS)
    first = fit_text(path, features=words(), **SETTINGS)
    more = fit_text(path, init_model=first)
    assert more.vectorizer_.n_features == 1 << 12
    assert same(more, fit_text(path, features=words(), init_model=first.classifier_).classifier_)
    with pytest.raises(ValueError, match="training on files needs hashed features"):
        fit_text(path, init_model=fit_text(TEXTS, LABELS))


@pytest.mark.parametrize("end", [".csv", ".jsonl"])
def test_long_text_of_a_table_is_read(tmp_path, end):
    pytest.importorskip("pyarrow")
    path = tmp_path / f"texts{end}"
    FORMS[end](path, ["bee", "sea\n" * 700_000, "dee"] * 2, ["a", "b", "a"] * 2)
    assert fit_text(path, features=words(), **SETTINGS).predict(["sea"]).tolist() == ["b"]
    FORMS[end](path, ["bee", "sea\n" * 7_000_000], ["a", "b"])
    if end == ".csv":
        with pytest.raises(ValueError, match="a row is longer than"):
            fit_text(path, features=words(), **SETTINGS)
    else:
        assert fit_text(path, features=words(), **SETTINGS).predict(["sea"]).tolist() == ["b"]


@pytest.mark.parametrize("vectorizer", ["auto", words()])
def test_text_pipeline_continues_with_further_texts(vectorizer):
    first = fit_text(TEXTS, LABELS, features=vectorizer, **SETTINGS)
    before = first.classifier_.coef_.copy()
    more = fit_text(TEXTS[1:], LABELS[1:], init_model=first)
    np.testing.assert_array_equal(first.classifier_.coef_, before)
    again = first.classifier_.partial_fit(first.vectorizer_.transform(TEXTS[1:]), LABELS[1:])
    assert same(more, again)
    with pytest.raises(ValueError, match="must be a fitted TextClassifier"):
        fit_text(TEXTS, LABELS, init_model=first.classifier_)
    with pytest.raises(ValueError, match="parameters of init_model"):
        fit_text(TEXTS, LABELS, init_model=first, max_iter=2)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1", "-1"], [-1, 1]),
        (["01", "1"], ["01", "1"]),
        (["1.1", "1.10"], ["1.1", "1.10"]),
        (["+1", "-1"], ["+1", "-1"]),
        (["1", "one"], ["1", "one"]),
        (["12345678901234567", "12345678901234568"], ["12345678901234567", "12345678901234568"]),
    ],
)
def test_labels_are_words_unless_all_are_integers(tmp_path, labels, classes):
    path, model = tmp_path / "texts.tsv", tmp_path / "a.model"
    tsv(path, ["bee", "sea"] * 9, labels * 9)
    pipeline = fit_text(path, **SETTINGS)
    assert pipeline.classes_.tolist() == classes
    save_model(pipeline, model)
    assert run("predict", model, path).stdout.split() == labels * 9
    assert json.loads(run("evaluate", model, path, "--json").stdout)["mistakes"] == 0
    one = fit_text(path, positive=labels[0], **SETTINGS)
    assert one.predict(["bee", "sea"]).tolist() == [1, -1]
    assert same(fit_text(path, classes=classes, **SETTINGS), pipeline.classifier_)
    assert same(
        fit_text(path, init_model=pipeline), fit_text(path, init_model=pipeline).classifier_
    )


def test_vw_number_labels_may_be_written_in_any_way(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 | bee\n+1.0 | bee\n-1 | sea\n" * 9)
    assert fit_text(path, **SETTINGS).classes_.tolist() == [-1, 1]


def test_vw_lines_may_have_tags_importance_and_namespaces(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text(
        "1 2 'id |ns:2 bee:2 |other dee\n-1 1 tag|a sea\n-1 |a:0 bee |b sea\n1 3.0 | bee\n" * 9
    )
    texts = [*["bee bee bee bee dee"] * 2, "sea", "sea", *["bee"] * 3] * 9
    X, y = words().transform(texts), [1, 1, -1, -1, 1, 1, 1] * 9
    assert same(fit_text(path, features=words(), **SETTINGS), fit_csr(X, y, **SETTINGS))


def test_vw_feature_values_count_as_presence(tmp_path):
    first, second = tmp_path / "a.vw", tmp_path / "b.vw"
    first.write_text("1 |ns:0.5 bee:1.5 dee:-2 sea:0\n-1 | sea\n" * 9)
    second.write_text("1 | bee dee\n-1 | sea\n" * 9)
    assert same(fit_text(first, **SETTINGS), fit_text(second, **SETTINGS).classifier_)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_delimiter_is_taken_from_the_header(tmp_path, delimiter):
    pytest.importorskip("pyarrow")
    path, model = tmp_path / "a.csv", tmp_path / "a.model"
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        texts = [f"{text}\n;,|" for text in TEXTS]
        csv.writer(file, delimiter=delimiter).writerows(
            [("kind", "body"), *zip(LABELS, texts, strict=True)]
        )
    pipeline = fit_text(path, text="body", label="kind", **SETTINGS)
    assert same(
        pipeline,
        fit_text(texts, LABELS, features=pipeline.vectorizer_, max_iter=1, **SETTINGS).classifier_,
    )
    columns = "--text", "body", "--label", "kind"
    with standard_input(gzip.compress(path.read_bytes())):
        run("train", "-", "--format", "csv", *columns, "-o", model, "--algo", "arow",
            "--hash-bits", "16")  # fmt: skip
    # The size of standard input is unknown, so it has no character n-grams.
    words = fit_text(path, text="body", label="kind", features=vectorizer_for([], 16), **SETTINGS)
    assert same(load_model(model), words.classifier_)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"label,text\nspam,x\nham,\xfc\n", "line 3: byte 0xfc is not UTF-8. Pass the encoding"),
        (b"label,text\nspam,x\nham,y, z\n", "row 2: Expected 2 columns, got 3.*Quote texts that"),
        (
            b"spam,x\nham,y\n",
            "line 1: no column 'text', but spam, x. Name the right column by --text COLUMN",
        ),
        (b"", "has no rows"),
    ],
)
def test_invalid_csv_is_reported_with_row_and_option(tmp_path, content, message):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    told = run("train", path, "-o", tmp_path / "a.model", code=1).stderr
    assert re.search(message, told), told


@pytest.mark.parametrize("end", [".tsv", ".csv"])
def test_lines_may_end_with_a_carriage_return(tmp_path, end):
    if end == ".csv":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"a{end}"
    FORMS[end](path, TEXTS, LABELS)
    plain = fit_text(path, **SETTINGS)
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r"))
    assert same(fit_text(path, **SETTINGS), plain.classifier_)


def test_carriage_return_within_a_long_line_is_white_space(tmp_path, monkeypatch):
    monkeypatch.setattr("sparsemargin.files.sources.BLOCK_BYTES", 20)
    path = tmp_path / "a.tsv"
    tsv(path, ["a long line of words\rand more of them"] * 4, ["a", "b"] * 2)
    assert fit_text(path, multilabel=True, **SETTINGS).classifier_.n_iter_ == 1
    assert json.loads(run("info", path, "--json").stdout)["files"][0]["rows"] == 4


@pytest.mark.parametrize("form", ["fasttext", "tsv", "vw", "csv", "jsonl"])
def test_format_of_standard_input_is_detected(tmp_path, form):
    path = tmp_path / "a"
    {"fasttext": fasttext, "tsv": tsv, "vw": vw, "csv": table, "jsonl": jsonl}[form](
        path, ["bee sea", "dee eff"] * 9, ["a", "b"] * 9
    )
    with standard_input(path.read_bytes()):
        told = run("train", "-", "-o", tmp_path / "m", code=1).stderr
    assert f"with --format {form}." in told


def test_info_describes_text_files(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("__label__a __label__b one two\n\n__label__b two\nthree\n" * 9)
    (figures,) = json.loads(run("info", path, "--json").stdout)["files"]
    assert figures["kind"] == "texts"
    assert (figures["form"], figures["rows"]) == ("fasttext", 27)
    assert (figures["rows_without_label"], figures["rows_of_several_labels"]) == (9, 9)
    assert figures["labels"] == [{"label": "b", "rows": 18}, {"label": "a", "rows": 9}]
    with standard_input(b"a\tx\nb\ty\na\tz\n"):
        told = run("info", "-", "--format", "tsv").stdout
    assert "texts, tsv" in told
    assert "a (2), b (1)" in told


def test_fasttext_lines_are_split_by_its_rules():
    """Long runs of spaces, long labels, and labels between words are split as by a simple
    parser."""
    rng = np.random.default_rng(0)
    pieces = ["__label__a", "__label__" + "b" * 200, " ", " " * 150, "\t", "\0", "bee", "__label",
              "x__label__y", "__label__", "\u00e9", "_", "\r"]  # fmt: skip
    lines = ["".join(rng.choice(pieces, rng.integers(1, 9))) for _ in range(300)]
    lines = [line for line in lines if line.strip(" \t\0\r")]
    for how in {"labelled": True, "multilabel": True}, {"labelled": False}:
        for text in lines:
            content = f"{text}\n".encode()
            words_ = re.split("[ \t\r\v\f\0]+", text)
            labels = [each[9:] for each in words_ if each.startswith("__label__")]
            others = [each for each in words_ if each and not each.startswith("__label__")]
            made = BlockLines(content, "fasttext")
            if how["labelled"] and "" in labels:
                with pytest.raises(LineError, match="has no label"):
                    parse_fasttext(made, DocumentForm(**how))
                continue
            parsed = parse_fasttext(made, DocumentForm(**how))
            assert re.findall("[^ \t\r\v\f\0]+", parsed.texts[0]) == others
            assert parsed.labels == (labels if how["labelled"] else [])


@pytest.mark.filterwarnings("ignore::sparsemargin.streaming.report.Interruption")
@pytest.mark.parametrize("end", [".txt", ".csv"])
@pytest.mark.parametrize("max_iter", [1, 3])
def test_interrupted_run_over_texts_is_resumed(tmp_path, monkeypatch, end, max_iter):
    """After Ctrl-C, the run is resumed, and so is the search for the words of columns."""
    if end == ".csv":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr("sparsemargin.files.sources.BLOCK_BYTES", 200)
    monkeypatch.setattr("sparsemargin.readers.tables._CSV_BYTES", 200)
    path, checkpoint = tmp_path / f"texts{end}", tmp_path / "checkpoint"
    FORMS[end](path, TEXTS, LABELS)

    def learn(report=None, **how):
        vectorizer = HashingVectorizer(n_features=1 << 12, ngram_range=(1, 2), binary=True)
        given = {"algo": "arow", "max_iter": max_iter, "random_state": 0, "report": report}
        learner = learn_documents(path, vectorizer, DocumentForm(), **given, **how)
        return learner, vectorizer.terms_

    told = []

    def interrupt(moment):
        told.append(moment)
        if len(told) == 9 * max_iter:
            raise KeyboardInterrupt

    whole, terms = learn()
    part, _ = learn(interrupt, checkpoint=checkpoint)
    assert part.space.trials < whole.space.trials
    resumed, terms_again = learn(checkpoint=checkpoint, resume=True)
    assert terms == terms_again
    for model in whole, resumed:
        save_model(model, tmp_path / "bits")
        told.append((tmp_path / "bits").read_bytes())
    assert told[-1] == told[-2]


def test_full_disk_keeps_the_old_text_model(tmp_path, monkeypatch):
    path = tmp_path / "texts.tsv"
    tsv(path, TEXTS, LABELS)
    run("train", path, "-o", tmp_path / "a.model")
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for options in [], ["--epochs", "2", "--cache", tmp_path / "rows"]:
        told = run("train", path, "-o", tmp_path / "a.model", *options, code=1).stderr
        assert "No space left on device. Free some space, or name another folder" in told
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "settings",
    [{"class_weight": "balanced"}, {"class_weight": {"ham": 3.0}}, {"early_stopping": True}],
)
def test_weights_and_early_stopping_of_texts_equal_those_of_rows(tmp_path, settings):
    path = tmp_path / "texts.tsv"
    tsv(path, TEXTS, LABELS)
    how = {"algo": "arow", "shuffle": False, "max_iter": 4, **settings}
    model = fit_csr(words().transform(TEXTS), LABELS, **how)
    pipeline = fit_text(path, features=words(), **how)
    assert same(pipeline, model)
    assert pipeline.classifier_.n_iter_ == model.n_iter_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", ["fasttext", "tsv", "vw", "csv", "jsonl"])
def test_random_bytes_are_learned_or_reported(tmp_path, form):
    if form == "csv":
        pytest.importorskip("pyarrow")
    rng, path = np.random.default_rng(0), tmp_path / "a"
    heads = {"fasttext": b"__label__%d ", "tsv": b"%d\t", "vw": b"%d | ", "csv": b"%d,",
             "jsonl": b'{"label": %d, "text": "'}  # fmt: skip
    for kind in range(30):
        # All byte values, few byte values, or UTF-8 with some bytes changed.
        content = rng.integers(0, 256 if kind % 3 else 14, rng.integers(0, 4000), np.uint8)
        if kind % 3 == 2:
            points = rng.integers(0, 0x3000, 500).tolist()
            content = np.frombuffer("".join(map(chr, points)).encode(), np.uint8).copy()
            content[rng.integers(0, len(content), kind // 3)] = rng.integers(0, 256)
        lines = content.tobytes().split(b"\n")
        text = b"\n".join(heads[form] % (i % 3) + line for i, line in enumerate(lines))
        path.write_bytes((b"label,text\n" if form == "csv" else b"") + text)
        try:
            fit_text(path, format=form, features=words(), **SETTINGS)
        except ValueError as error:
            assert str(error).startswith(str(path)), error  # noqa: PT017


@pytest.mark.filterwarnings("ignore::sparsemargin.streaming.report.Interruption")
def test_columns_have_equal_names_in_resumed_and_cached_runs(tmp_path, monkeypatch):
    """A resumed run reads the first texts twice: to select the classifier, and to train it. A run
    with a row cache reads none."""
    texts = [f"{text} only{i}" for i, text in enumerate(TEXTS)]
    monkeypatch.setattr("sparsemargin.files.sources.BLOCK_BYTES", 200)
    monkeypatch.setattr("sparsemargin.streaming.stream.MOST_ROWS", 10)
    monkeypatch.setattr("sparsemargin.readers.texts.ENOUGH_CHARACTERS", len("".join(texts)) // 2)
    path, checkpoint, told = tmp_path / "texts.tsv", tmp_path / "checkpoint", []
    tsv(path, texts, LABELS)

    def names(report=None, **how):
        vectorizer = words()
        learn_documents(path, vectorizer, DocumentForm(), random_state=0, report=report, **how)
        return vectorizer.terms_

    def interrupt(moment):
        told.append(moment)
        if len(told) == 9:
            raise KeyboardInterrupt

    expected = names()
    names(interrupt, checkpoint=checkpoint)
    assert names(checkpoint=checkpoint, resume=True) == expected
    for _ in range(2):
        assert names(cache=tmp_path / "cache") == expected
