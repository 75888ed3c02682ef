"""The layout of text files: train, evaluate, predict and info read the same rows of a file.
Doubtful layouts give a warning or an error."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from problems.command_line import run
from problems.tables import Table, check_table, make_table, spoil
from sparsemargin import fit_text, load_model
from sparsemargin.models.inputs.label_table import word_of
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.streaming.learn_texts import learn_documents
from sparsemargin.streaming.report import Interruption
from sparsemargin.text import HashingVectorizer
from sparsemargin.text.defaults import default_hashing

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = [("sea", "waves and salt"), ("land", "hills and forest")] * 20
LABELS, TEXTS = map(list, zip(*ROWS, strict=True))


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model():
    lines("a.tsv", ROWS)
    run("train", "a.tsv", "-o", "m.model", "-q", "--hash-bits", "12")
    return "m.model"


def lines(name, rows):
    Path(name).write_text("".join("\t".join(row) + "\n" for row in rows))


def train(name, **how):
    return fit_text(name, features=HashingVectorizer(n_features=1 << 12), random_state=0, **how)


def predicted(model, name, *options):
    return run("predict", model, name, *options).stdout.splitlines()


# ---------------------------------------------------------------------------- all forms, at random


@pytest.mark.parametrize("seed", range(8))
def test_commands_agree_on_the_rows_of_random_tables(tmp_path, seed):
    outcomes = set()
    for number in range(100):
        random = np.random.RandomState([seed, number])
        table, sound = make_table(random), number % 2 == 0
        if not sound:
            table = table._replace(content=spoil(random, table.content))
        outcomes.add(check_table(tmp_path / f"a{table.end}", table, sound=sound))
    assert outcomes == {"read", "refused"}


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("name", ["label", "mood"])
@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("before", ["", "\n\ufeff"])
def test_commands_agree_on_unusual_headers(tmp_path, before, name, space, quote):
    header = f"{before}{quote}{name}{quote}{space}\t{quote}text{quote}\n"
    content = f'{header}"c d"\t"1.5"\n"7"\t""""\n'.encode()
    table = Table(".tsv", content, [], [], {"text": "text", "label": "label"})
    outcome = check_table(tmp_path / "a.tsv", table, sound=False)
    assert name == "mood" or outcome == ("refused" if space else "read")


def test_commands_agree_on_figures_of_random_tables():
    for number in range(8):
        random = np.random.RandomState([1, number])
        table = make_table(random)
        has_words = any(
            len(word) > 1 for _, text in table.rows for word in re.findall(r"\w+", text)
        )
        if len({label for label, _ in table.rows}) < 2 or not has_words:
            continue
        name = f"a{table.end}"
        Path(name).write_bytes(table.content)
        given = [f"--{key}={value}" for key, value in table.columns.items()]
        trained = run("train", name, "-o", "m", "--json", "--hash-bits", "8", *given).stdout
        evaluated = json.loads(run("evaluate", "m", name, "--json", *given).stdout)
        (info,) = json.loads(run("info", name, "--json", *given).stdout)["files"]
        n_rows = len(table.rows)
        assert json.loads(trained)["rows"] == evaluated["rows"] == info["rows"] == n_rows
        labels = predicted("m", name, *given)
        assert len(labels) == len(table.texts)
        if len(labels) == n_rows:
            right = [a == b for a, (b, _) in zip(labels, table.rows, strict=True)]
            assert np.mean(right) == pytest.approx(evaluated["accuracy"])


@pytest.mark.parametrize("command", ["train", "evaluate", "predict", "info"])
def test_random_tables_cause_no_internal_error(model, command):
    contents = {
        "empty.csv": b"", "blank.csv": b"\n\n", "names.csv": b"text,label\n",
        "names.tsv": b"label\ttext\n", "blank.tsv": b"\n\n",
        "open.csv": b'label,text\nsea,a\nland,"b\nsea,c\n', "no.csv": b"x\n", "nul.csv": b"\0\0\n",
        "long.csv": b"label,text," + b"x" * 140_000 + b"\nsea,a,1\nland,b,1\n",
        "unnamed.csv": b'"' + b"word " * 30_000 + b'",spam\na,b\n',
        "garbage.parquet": b"PAR1garbage", "empty.parquet": b"",
    }  # fmt: skip
    for name, content in contents.items():
        Path(name).write_bytes(content)
        where = [name, "-o", "x"] if command == "train" else [model, name]
        told = run(command, *(where if command != "info" else [name]), code=None)
        assert "inside sparsemargin" not in told.stderr
        assert told.exit_code == 0 or name in told.stderr


# ------------------------------------------------------------------- which part of a line is text


def test_predict_and_evaluate_read_the_same_text(model):
    files = {
        "tabs.tsv": [(label, text, "seen on monday") for label, text in ROWS],
        "trailing.tsv": [(label, text, "") for label, text in ROWS],
        "other.tsv": [(label, "read more", TEXTS[i % 7]) for i, (label, _) in enumerate(ROWS)],
    }
    for name, rows in files.items():
        lines(name, rows)
        accuracy = json.loads(run("evaluate", model, name, "--json").stdout)["accuracy"]
        labels = predicted(model, name)
        assert np.mean([a == b for a, b in zip(labels, LABELS, strict=True)]) == accuracy


@pytest.mark.parametrize(
    ("learned", "asked"), [(("1", "0"), ("1.0", "+0")), (("True", "False"), ("true", "FALSE"))]
)
def test_predict_recognizes_other_spellings_of_classes(learned, asked):
    for name, labels in ("a.tsv", learned), ("b.tsv", asked):
        lines(name, [(labels[label == "land"], text) for label, text in ROWS])
    run("train", "a.tsv", "-o", "m.model", "-q", "--hash-bits", "12")
    for name in "a.tsv", "b.tsv":
        told = run("predict", "m.model", name, "--scores")
        assert told.stderr == ""
        scores = [float(line.split("\t")[1]) for line in told.stdout.splitlines()[1:]]
        expected = load_model("m.model").decision_function([text for _, text in ROWS])
        np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_unlabelled_lines_are_texts_with_a_warning_if_unclear(model):
    texts = ["waves and salt\tseen", "hills\tof forest", "salt\t"]
    Path("new.tsv").write_text("".join(text + "\n" for text in texts))
    told = run("predict", model, "new.tsv", "--scores")
    assert "no line begins with a class of the model" in told.stderr
    scores = [float(line.split("\t")[1]) for line in told.stdout.splitlines()[1:]]
    np.testing.assert_allclose(scores, load_model(model).decision_function(texts), atol=1e-6)
    same = run("predict", model, "new.tsv", "--scores", "--unlabelled")
    assert (same.stdout, same.stderr) == (told.stdout, "")
    Path("plain.tsv").write_text("waves\nhills\n")
    assert run("predict", model, "plain.tsv").stderr == ""


def test_partly_labelled_lines_need_an_option(model):
    Path("new.tsv").write_text("sea\twaves\nland\thills\nhills only\n")
    told = run("predict", model, "new.tsv", code=1).stderr
    assert "new.tsv, line 3: 'hills only' does not begin with a class" in told
    assert "--labelled" in told
    assert len(predicted(model, "new.tsv", "--unlabelled")) == 3
    assert "line 3: 'hills only' has no label" in run(
        "predict", model, "new.tsv", "--labelled", code=1
    ).stderr  # fmt: skip
    Path("new.tsv").write_text("sea\twaves\nriver\thills\nland\tforest\n")
    told = run("predict", model, "new.tsv")
    assert (
        "1 of 3 lines, such as 'river\\thills', begin with labels that the model has" in told.stderr
    )
    assert told.stdout.split() == ["sea", "land", "land"]
    assert run("predict", model, "new.tsv", "--labelled").stderr == ""


def test_labelled_and_unlabelled_blocks_are_rejected(model, monkeypatch):
    monkeypatch.setattr("sparsemargin.files.sources.BLOCK_BYTES", 200)
    Path("new.tsv").write_text("sea\twaves\n" * 60 + "hills only\n" * 60)
    told = run("predict", model, "new.tsv", code=1).stderr
    assert re.search(r"new\.tsv, line \d+: .*begin with", told)


def test_one_versus_rest_model_needs_the_labelled_option():
    lines("a.tsv", ROWS)
    run("train", "a.tsv", "-o", "one.model", "-q", "--positive", "sea", "--hash-bits", "12")
    told = run("predict", "one.model", "a.tsv", code=1).stderr
    assert "it is unclear whether 'sea\\twaves and salt' begins with a label" in told
    assert predicted("one.model", "a.tsv", "--labelled") == ["1", "-1"] * 20


@pytest.mark.parametrize("end", [".tsv", ".txt", ".vw", ".csv", ".jsonl"])
def test_predict_prints_one_line_per_row(model, end):
    texts = ["waves and salt", "", "hills", "   ", "salt", ""]
    made = {
        ".vw": [f"| {text}" if text else "" for text in texts],
        ".csv": ["text", *texts],
        ".jsonl": [json.dumps({"text": text}) for text in texts],
    }.get(end, texts)
    Path(f"new{end}").write_text("".join(line + "\n" for line in made))
    assert predicted(model, f"new{end}") == load_model(model).predict(texts).tolist()


def test_svmlight_lines_without_a_row_are_reported():
    Path("a.svm").write_text("1 1:2\n\n# none\n-1 1:3\n")
    run("train", "a.svm", "-o", "a.model", "-q")
    told = run("predict", "a.model", "a.svm")
    assert len(told.stdout.splitlines()) == 2
    assert "a.svm: 2 lines are blank or hold only a comment" in told.stderr
    assert run("evaluate", "a.model", "a.svm").stderr == ""


# ------------------------------------------------------------------------------- layouts of a .tsv


def numbered_texts():
    return [(label, f"{text} {i}") for i, (label, text) in enumerate(ROWS)]


@pytest.mark.parametrize("names", [("label", "text"), ("text", "label"), ("id", "label", "text")])
def test_header_determines_the_columns(names, model):
    values = {"label": LABELS, "text": TEXTS, "id": [str(i) for i in range(40)]}
    lines("named.tsv", [names, *zip(*(values[name] for name in names), strict=True)])
    learned = train("named.tsv")
    np.testing.assert_array_equal(learned.classifier_.coef_, train("a.tsv").classifier_.coef_)
    assert json.loads(run("evaluate", model, "named.tsv", "--json").stdout)["rows"] == 40
    assert predicted(model, "named.tsv") == LABELS
    assert json.loads(run("info", "named.tsv", "--json").stdout)["files"][0]["rows"] == 40


def test_other_header_names_need_options():
    lines("named.tsv", [("Sentiment", "Review"), *ROWS])
    with pytest.raises(ValueError, match=r"named\.tsv, line 1: no column 'text', but Sentiment, R"):
        train("named.tsv")
    assert train("named.tsv", text="Review", label="Sentiment").classes_.tolist() == ["land", "sea"]
    lines("a.tsv", ROWS)
    with pytest.raises(ValueError, match=r"a\.tsv, line 1: no column 'body', but sea, waves and s"):
        train("a.tsv", text="body")


def test_text_and_label_must_be_different_columns():
    Path("a.csv").write_text("text,label\nwaves,sea\nhills,land\n")
    with pytest.raises(ValueError, match="text and label name the same column 'text'"):
        train("a.csv", label="text")


def test_header_without_a_label_column_is_rejected(model):
    lines("new.tsv", [("id", "text"), ("1", "waves"), ("2", "hills")])
    for arguments in ("train", "new.tsv", "-o", "x"), ("evaluate", model, "new.tsv"):
        told = run(*arguments, code=1).stderr
        assert (
            "new.tsv, line 1: no column 'label', but id, text. Name the right column by --label"
            in told
        )
    assert predicted(model, "new.tsv") == ["sea", "land"]


def test_first_line_that_may_be_a_header_warns():
    lines("named.tsv", [("outcome", "words"), *ROWS])
    with pytest.warns(UserWarning, match="the label 'outcome' of the first row is the only one"):
        train("named.tsv")


@pytest.mark.parametrize("rows", [
    [(text, label) for label, text in numbered_texts()],
    [(str(i), label, text) for i, (label, text) in enumerate(ROWS)],
], ids=["swapped", "numbered"])  # fmt: skip
def test_mostly_unique_labels_warn(rows, model):
    lines("odd.tsv", rows)
    with pytest.warns(UserWarning, match=r"odd\.tsv: the first rows have 40 different labels"):
        train("odd.tsv")
    assert "40 different labels" in run("info", "odd.tsv").stderr
    with pytest.warns(UserWarning, match="y has 40 different labels in 40 rows"):
        fit_text(TEXTS, [text for _, text in numbered_texts()])


@pytest.mark.parametrize("label", ['"{}"', "{}"])
def test_quoted_fields_agree_with_the_csv_module(label, model):
    rows = [(each, f'say "{text}",\n\twell') for each, text in ROWS]
    made = [label.format(each) + '\t"' + text.replace('"', '""') + '"\n' for each, text in rows]
    Path("quoted.tsv").write_text("".join(made))
    learned = train("quoted.tsv")
    with open("plain.csv", "w", newline="") as file:
        csv.writer(file).writerows([("label", "text"), *rows])
    np.testing.assert_array_equal(learned.classifier_.coef_, train("plain.csv").classifier_.coef_)
    assert predicted(model, "quoted.tsv") == LABELS
    Path("some.tsv").write_text('"sea"\twaves\n"land"\t"hills"\n')
    with pytest.raises(ValueError, match=r"some\.tsv, line 1: the fields of .* are quoted, but"):
        train("some.tsv")
    Path("some.tsv").write_text('label\ttext\n"sea"\twaves\n"land"\t"hills"\n')
    assert train("some.tsv").classes_.tolist() == ["land", "sea"]


def test_csv_quotes_in_a_tsv_file_warn():
    rows = [*ROWS, ("sea", '"salt ""and"" water"')]
    lines("quoted.tsv", rows)
    with pytest.warns(UserWarning, match="is quoted as in a csv file"):
        train("quoted.tsv")
    lines("quoted.tsv", [("label", "text"), *rows])
    train("quoted.tsv")


@pytest.mark.parametrize("label", ["['sea', 'all']", '["sea"]', "[1, 2]", "('sea',)", "[]"])
@pytest.mark.parametrize("multilabel", [False, True])
def test_lists_written_as_text_are_rejected(label, multilabel):
    pandas = pytest.importorskip("pandas")
    df = pandas.DataFrame({"text": TEXTS, "label": [label, *LABELS[1:]]})
    df.to_csv("a.csv", index=False)
    with pytest.raises(ValueError, match=r"a\.csv, row 1: the label .* is a list written as text"):
        train("a.csv", multilabel=multilabel)
    # The remedies in the error message work.
    df["label"] = [[each, "all"] for each in LABELS]
    df.to_json("a.jsonl", orient="records", lines=True)
    df["label"] = df["label"].map(",".join)
    df.to_csv("a.csv", index=False)
    for name in "a.csv", "a.jsonl":
        assert train(name, multilabel=True).classes_.tolist() == ["all", "land", "sea"]


# ------------------------------------------------------------------------------- csv and parquet


@pytest.mark.parametrize(("first", "later"), [("7", "A0"), ("4", "4.5"), ("2024-01-01", "n/a")])
def test_unused_columns_may_contain_anything(monkeypatch, first, later):
    monkeypatch.setattr("sparsemargin.readers.tables._CSV_BYTES", 1000)
    rows = [f"{first},{text},{label}\n" for label, text in ROWS]
    Path("a.csv").write_text("id,text,label\n" + "".join(rows) + f"{later},cheap,sea\n")
    assert train("a.csv").classes_.tolist() == ["land", "sea"]


def test_fields_may_exceed_the_csv_module_limit():
    long = "salt " * 60_000
    Path("a.csv").write_text(f'text,label\n"{long}",sea\nhills,land\n')
    assert train("a.csv").predict([long]).tolist() == ["sea"]


def test_mixed_line_ends_of_a_csv_are_reported():
    rows = [f"{text},{label}" for label, text in ROWS]
    Path("a.csv").write_bytes("\r".join(["text,label", *rows, "salt\r\nhills,land\n"]).encode())
    with pytest.raises(ValueError, match=r"a\.csv, row 41: Expected 2 columns, got 1"):
        train("a.csv")
    Path("a.csv").write_bytes(("\r".join(["text,label", *rows]) + "\n").encode())
    assert train("a.csv").classes_.tolist() == ["land", "sea"]


def test_unclosed_quote_is_reported():
    Path("a.csv").write_text('label,text\nsea,waves\nland,"hills\nsea,salt\n')
    with pytest.raises(ValueError, match=r"a\.csv, row 2: a quote is not closed"):
        train("a.csv")
    Path("a.csv").write_text('label,text\nsea,waves\nland,"hills"\nsea,salt\n')
    assert train("a.csv").classes_.tolist() == ["land", "sea"]


@pytest.mark.parametrize(("column", "message"), [
    (lambda: pa.array([text.split() for text in TEXTS]), r"\['waves.* is a list, not a text"),
    (lambda: pa.array([{"a": text} for text in TEXTS]), r"\{'a': .* is an object, not a text\. J"),
    (lambda: pa.array([[("a", 1)]] * 40, pa.map_(pa.string(), pa.int64())), "a list, not a text"),
    (lambda: pa.array([*[b"a"] * 39, b"\xff"]), r"b.* not UTF-8 \(byte 0xff\)\. Decode"),
    (lambda: pa.array([*TEXTS[1:], None]), "is empty"),
])  # fmt: skip
def test_columns_of_other_types_are_reported_with_their_row(column, message):
    parquet.write_table(pa.table({"text": column(), "label": LABELS}), "a.parquet")
    with pytest.raises(ValueError, match=rf"a\.parquet, row \d+: 'text' .*{message}"):
        train("a.parquet")


def test_damaged_parquet_page_is_reported_with_its_file():
    parquet.write_table(pa.table({"text": TEXTS, "label": LABELS}), "a.parquet")
    damaged = bytearray(Path("a.parquet").read_bytes())
    for i in range(60, 120):
        damaged[i] ^= 255
    Path("a.parquet").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"a\.parquet"):
        train("a.parquet")


def test_files_with_different_schemas_or_no_rows_are_combined():
    parquet.write_table(pa.table({"text": TEXTS, "label": LABELS}), "a.parquet")
    empty = pa.array([], pa.string())
    parquet.write_table(pa.table({"label": empty, "id": empty, "text": empty}), "b.parquet")
    large = pa.table(
        {"more": [1] * 40, "label": LABELS, "text": pa.array(TEXTS, pa.large_string())}
    )
    parquet.write_table(large, "c.parquet")
    assert train(["a.parquet", "b.parquet", "c.parquet"]).classes_.tolist() == ["land", "sea"]
    parquet.write_table(pa.table({"text": TEXTS}), "d.parquet")
    with pytest.raises(ValueError, match=r"d\.parquet: no column 'label', but text"):
        train(["a.parquet", "d.parquet"])


REPEATED = [("ww", "xx yy", "zz", "sea"), ("vv", "yy", "uu", "land")] * 20


def write(path, rows):
    Path(path).write_text("".join(f"{row}\n" for row in rows))


def table_of(names, end):
    """Write rows with these names of columns, of which some may be equal, to a file."""
    path = f"repeated.{end}"
    if end == "parquet":
        columns = list(map(pa.array, zip(*REPEATED, strict=True)))
        parquet.write_table(pa.Table.from_arrays(columns, names), path)
    elif end == "jsonl":
        rows = (zip(names, row, strict=True) for row in REPEATED)
        members = (", ".join(f'"{name}": "{value}"' for name, value in row) for row in rows)
        write(path, [f"{{{each}}}" for each in members])
    else:
        write(path, map({"csv": ",", "tsv": "\t"}[end].join, [names, *REPEATED]))
    return path


@pytest.mark.parametrize("end", ["csv", "tsv", "jsonl", "parquet"])
def test_repeated_columns_are_refused_if_they_are_read(end):
    for names in ["text", "a", "text", "label"], ["label", "text", "a", "label"]:
        with pytest.raises(
            ValueError, match=r"several columns '(text|label)'\. Rename all but one"
        ):
            train(table_of(names, end))
    train(table_of(["a", "text", "a", "label"], end))
    with pytest.raises(ValueError, match=r"several columns 'a'\. Rename all but one"):
        train("repeated." + end, text=["text", "a"])


def test_names_in_inner_objects_are_not_columns():
    row = '{"a": {"text": "x", "b": [{"text": "y"}]}, "text": "TEXT", "label": "LABEL"}'
    rows = [row.replace("LABEL", label).replace("TEXT", text) for _, text, _, label in REPEATED]
    write("inner.jsonl", rows)
    assert train("inner.jsonl").classes_.tolist() == ["land", "sea"]


@pytest.mark.parametrize("end", ["csv", "tsv", "jsonl", "parquet"])
def test_only_messages_about_headers_mention_the_first_line(end):
    with pytest.raises(ValueError, match="no column 'label'") as error:
        train(table_of(["a", "text", "b", "Label"], end))
    ends = str(error.value).endswith(" The first line must name the columns.")
    assert ends == (end in ("csv", "tsv"))


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "lines.tsv"])
def test_text_that_looks_like_a_date_is_a_label(form):
    dates = ["2026-01-01 10:00:00", "2026-01-02"]
    rows = [(f"{text} {i}", dates[i % 2]) for i, text in enumerate(["x y", "y z"] * 20)]
    if form == "jsonl":
        made = [f'{{"text": "{text}", "label": "{date}"}}' for text, date in rows]
    elif form == "lines.tsv":
        made = [f"{date}\t{text}" for text, date in rows]
    else:
        made = list(map({"csv": ",", "tsv": "\t"}[form].join, [("text", "label"), *rows]))
    write(f"dates.{form}", made)
    assert train(f"dates.{form}").classes_.tolist() == dates


# ------------------------------------------------------------------------ labels that are named


@pytest.mark.parametrize("labels", [
    ("01", "02"), ("1e3", "1000"), ("1", "x"), ("-1", "+1"), ("1.0", "2.0"), ("true", "FALSE"),
])  # fmt: skip
def test_options_name_labels_as_they_are_in_files(labels):
    lines("a.tsv", list(zip(labels * 20, TEXTS, strict=True)))
    options = "train", "a.tsv", "-o", "m.model", "-q", "--class-weight"
    classes = train("a.tsv").classes_.tolist()
    for label in labels:
        run(*options, f"{label}=4", "--classes", ",".join(labels))
        run(*options, f"{label}=4")
        of_class = {each: 4.0 for each in classes if word_of(str(each)) == word_of(label)}
        expected = fit_text("a.tsv", class_weight=of_class, random_state=0)
        np.testing.assert_array_equal(
            load_model("m.model").classifier_.coef_, expected.classifier_.coef_
        )


def test_resumed_runs_name_labels_as_the_files():
    lines("a.tsv", list(zip(["1", "x"] * 20, TEXTS, strict=True)))

    def interrupt(_):
        raise KeyboardInterrupt

    def learn(**how):
        settings = {"class_weight": {1: 4.0}, "max_iter": 2, "random_state": 0, **how}
        return learn_documents("a.tsv", default_hashing(1e4), DocumentForm(), **settings)

    with pytest.warns(Interruption):
        learn(report=interrupt, checkpoint="run")
    resumed = learn(checkpoint="run", resume=True).fitted.weights()
    np.testing.assert_array_equal(resumed, learn().fitted.weights())
    assert not np.array_equal(resumed, learn(class_weight=None).fitted.weights())


def test_lines_are_read_with_a_model_of_columns():
    lines("a.tsv", ROWS)
    Path("b.csv").write_text("body,topic\n" + "".join(f"{text},{label}\n" for label, text in ROWS))
    run("train", "b.csv", "-o", "m.model", "-q", "--text", "body", "--label", "topic")
    assert "no column 'body'" in run("predict", "m.model", "a.tsv", code=1).stderr
    assert predicted("m.model", "a.tsv", "--labelled") == LABELS


def test_truth_values_may_be_given_as_classes():
    lines("a.tsv", [("TRUE", "waves"), ("false", "hills")] * 20)
    for classes in [True, False], {True, False}, np.array([True, False]):
        assert train("a.tsv", classes=classes).classes_.tolist() == ["False", "True"]


@pytest.mark.parametrize("label", ["01", "1e3"])
def test_labels_that_are_numbers_only_in_value_are_no_classes_of_numbers(label):
    lines("a.tsv", [("1", "waves"), ("2", "hills")] * 20)
    lines("b.tsv", [("1", "waves"), (label, "hills")] * 20)
    with pytest.raises(ValueError, match=f"{label} is none of the classes, 1, 2. The classes are"):
        fit_text("b.tsv", init_model=train("a.tsv"))


def test_lists_of_labels_may_be_bytes():
    labels = pa.array([b"sea, salt", b""] * 20)
    parquet.write_table(pa.table({"text": TEXTS, "label": labels}), "a.parquet")
    assert train("a.parquet", multilabel=True).classes_.tolist() == ["salt", "sea"]


@pytest.mark.parametrize("name", ["b.tsv", "b.csv", "b.jsonl", "b.ft", "b.vw"])
def test_files_of_a_byte_order_mark_alone_are_empty(model, name):
    Path(name).write_bytes(b"\xef\xbb\xbf")
    assert predicted(model, name) == []
    if not name.endswith(".ft"):
        run("train", "a.tsv", name, "-o", "n.model", "-q")


def test_empty_files_are_read_with_others_of_any_kind():
    Path("empty.txt").touch()
    Path("a.txt").write_text("__label__sea waves\n__label__land hills\n" * 10)
    Path("b.txt").write_text("sea 1:1\nland 2:1\n" * 10)
    for name in "a.txt", "b.txt":
        run("train", "empty.txt", name, "-o", "m.model", "-q")
        assert len(predicted("m.model", "empty.txt", name)) == 20
