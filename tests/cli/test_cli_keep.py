"""``sparsemargin predict --keep``: columns of a table beside the predictions."""

import csv
import datetime
import gzip
import io
import json
import subprocess
import tracemalloc
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from depth import some
from problems.command_line import process, run

TRAINING = "spam\tcheap pills\nham\tlunch at noon\nspam\tcheap watches\nham\tsee you at noon\n" * 20


@pytest.fixture
def model():
    Path("texts.tsv").write_text(TRAINING)
    run("train", "texts.tsv", "-o", "texts.model", "-q")
    return "texts.model"


def written(name, table):
    """Write a DataFrame of texts, without missing values, in the form of the file's name."""
    end = name.removesuffix(".gz").rpartition(".")[2]
    if end == "parquet":
        table.to_parquet(name)
    elif end == "jsonl":
        table.to_json(name, orient="records", lines=True, force_ascii=False)
    else:
        table.to_csv(name, sep="," if end == "csv" else "\t", index=False)
    return name


def objects(*args):
    return [json.loads(line) for line in run("predict", *args, "--json").stdout.splitlines()]


def rows_of(text):
    return list(csv.reader(io.StringIO(text, newline=""), delimiter="\t"))


def table_of(n):
    texts = ["cheap pills", "lunch, at noon", 'the "cheap" one', "see you\nat noon"]
    return pd.DataFrame(
        {
            "id": [f"{i:04}" for i in range(n)],
            "text": [texts[i % 4] for i in range(n)],
            "label": ["spam", "ham"] * (n // 2),
            "note": [f'é "{i}", \t x\\' for i in range(n)],
        }
    )


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.jsonl", "t.parquet"])
def test_kept_columns_are_those_of_the_table(name, model):
    # The table has several blocks.
    table = table_of(600)
    path = written(name, table)
    labels = run("predict", model, path).stdout.split()
    assert len(labels) == 600
    header, *rows = rows_of(run("predict", model, path, "--keep", "note", "--keep", "id").stdout)
    assert header == ["note", "id", "label"]
    assert [row[1:] for row in rows] == [list(pair) for pair in zip(table.id, labels, strict=True)]
    notes = [row[0].replace("\\t", "\t").replace("\\\\", "\\") for row in rows]
    assert notes == table.note.tolist()
    expected = [
        {"id": each, "text": text, "label": label}
        for each, text, label in zip(table.id, table.text, labels, strict=True)
    ]
    assert objects(model, path, "--keep", "id", "--keep", "text") == expected


@pytest.mark.parametrize("options", [("--keep", "note"), ("--proba",), ("--explain", "3")])
def test_tables_with_a_name_of_csv_have_commas(options, model):
    path = written("t.csv", table_of(40))
    run("predict", model, path, *options, "-o", "out.csv")
    expected = rows_of(run("predict", model, path, *options).stdout)
    run("predict", model, path, *options, "-o", "OUT.CSV")
    assert Path("out.csv").read_bytes() == Path("OUT.CSV").read_bytes()
    text = Path("out.csv").read_bytes().decode()
    assert list(csv.reader(io.StringIO(text, newline=""))) == expected


def test_labels_in_a_csv_are_quoted():
    table = pd.DataFrame({"label": ["a,b", "c"] * 20, "text": ["cheap pills", "lunch"] * 20})
    table.to_csv("t.csv", index=False)
    run("train", "t.csv", "-o", "t.model", "-q")
    run("predict", "t.model", "t.csv", "-o", "out.csv")
    rows = list(csv.reader(Path("out.csv").read_text().splitlines()))
    assert rows == [[label] for label in table.label]
    assert run("predict", "t.model", "t.csv").stdout.splitlines() == table.label.tolist()


def test_kept_columns_stand_beside_all_kinds_of_output(model):
    path = written("t.csv", table_of(40))
    for option in ["--scores"], ["--proba"], ["--top-k", 2], ["--explain", 2]:
        plain = run("predict", model, path, *option).stdout
        header, *rows = rows_of(run("predict", model, path, *option, "--keep", "id").stdout)
        header_before, *rows_before = rows_of(
            plain if option[0] != "--top-k" else "label\n" + plain
        )
        assert header == ["id", *header_before]
        assert [row[1:] for row in rows] == rows_before
        if option[0] == "--explain":
            assert all(int(row[0]) == int(row[1]) - 1 for row in rows)
        else:
            assert [row[0] for row in rows] == [f"{i:04}" for i in range(40)]
        found = objects(model, path, *option, "--keep", "id")
        assert [each.pop("id") for each in found] == [f"{i:04}" for i in range(40)]
        assert found == objects(model, path, *option)


def test_parts_of_a_block_keep_their_rows(model, monkeypatch):
    # The outputs of a block are computed in parts if they would take too much memory.
    path = written("t.csv", table_of(100))
    expected = objects(model, path, "--keep", "id", "--keep", "note")
    monkeypatch.setattr("sparsemargin.streaming.predict._OUTPUTS_PER_PART", 7)
    assert objects(model, path, "--keep", "id", "--keep", "note") == expected
    assert [each["id"] for each in expected] == [f"{i:04}" for i in range(100)]


def test_standard_input_has_columns(model):
    path = written("t.csv", table_of(40))
    given = Path(path).read_bytes()
    command = process(
        "predict", model, "-", "--format", "csv", "--keep", "id", stdin=subprocess.PIPE
    )
    printed = command.communicate(given)[0]
    assert printed == run("predict", model, path, "--keep", "id").stdout_bytes


def test_names_that_predictions_have_get_a_prefix(model):
    table = table_of(40).assign(spam="x", kept_label="y", row="z")
    path = written("t.csv", table)
    args = [model, path, "--keep", "label", "--keep", "kept_label", "--keep", "spam"]
    header, first, *_ = rows_of(run("predict", *args, "--scores").stdout)
    assert header == ["kept_label", "kept_kept_label", "kept_spam", "label", "spam"]
    assert first[:4] == ["spam", "y", "x", "spam"]
    # There is no column for the class without scores.
    assert rows_of(run("predict", *args).stdout)[0][2] == "spam"
    first, *_ = objects(*args)
    assert first == {"kept_label": "spam", "kept_kept_label": "y", "spam": "x", "label": "spam"}
    header, *_ = rows_of(run("predict", model, path, "--keep", "row", "--explain", 1).stdout)
    assert header[:2] == ["kept_row", "row"]


def test_values_keep_their_types():
    lines = '{"text": "cheap pills", "label": "spam"}\n{"text": "noon", "label": "ham"}\n'
    Path("texts.jsonl").write_text(lines * 20)
    run("train", "texts.jsonl", "-o", "texts.model", "-q")
    values = [7, 2**70, -1.5, True, None, [1, [None]], {"a": {"b": "é\n"}}, "7", ""]
    lines = [json.dumps({"text": "cheap", "v": value}) for value in values]
    lines += ['{"text": "", "v": NaN}\n\n{"text": "", "v": [Infinity]}']
    Path("new.jsonl").write_text("\n".join(lines))
    kept = [each["v"] for each in objects("texts.model", "new.jsonl", "--keep", "v")]
    assert kept == [*values, None, [None]]
    assert [type(each) for each in kept[:4]] == [int, int, float, bool]
    _, *rows = rows_of(run("predict", "texts.model", "new.jsonl", "--keep", "v").stdout)
    told = ["7", str(2**70), "-1.5", "true", "", "[1, [null]]"]
    assert [row[0] for row in rows][: len(told)] == told
    assert [row[0] for row in rows][-4:] == ["7", "", "", "[null]"]
    columns = {
        "number": pa.array([3, None], pa.int64()),
        "real": pa.array([0.5, float("nan")]),
        "day": pa.array([datetime.date(2024, 2, 29), None]),
        "price": pa.array([Decimal("1.10"), None]),
        "tags": pa.array([["a", "b"], []]),
        "raw": pa.array([b"ab", b"\xff"]),
        "sort": pa.array(["x", "x"]).dictionary_encode(),
    }
    pq.write_table(pa.table({"text": ["cheap", "noon"], **columns}), "new.parquet")
    keep = [each for name in columns for each in ("--keep", name)]
    first, second = objects("texts.model", "new.parquet", *keep)
    assert list(first.values()) == [
        3, 0.5, "2024-02-29", "1.10", ["a", "b"], "ab", "x", "spam"
    ]  # fmt: skip
    assert list(second.values())[:-2] == [None, None, None, None, [], "\udcff"]


def test_several_files_and_partitions(model):
    table = table_of(40)
    for day, rows in ("mon", table[:20]), ("tue", table[20:]):
        Path(f"days/day={day}").mkdir(parents=True)
        rows.to_parquet(f"days/day={day}/part.parquet")
    found = objects(model, "days", "--keep", "day", "--keep", "id")
    assert [each["day"] for each in found] == ["mon"] * 20 + ["tue"] * 20
    assert [each["id"] for each in found] == table.id.tolist()
    written("a.csv", table[:20])
    Path("b.jsonl.gz").write_bytes(
        gzip.compress(b'{"id": 7, "text": "cheap"}\n{"id": 8, "text": "noon"}\n')
    )
    ids = [each["id"] for each in objects(model, "a.csv", "b.jsonl.gz", "--keep", "id")]
    assert ids == [*table.id[:20], 7, 8]


def test_missing_values(model):
    Path("t.csv").write_text('id,text\n,cheap\n"",noon\n5,\n')
    args = model, "t.csv", "--keep", "id", "--keep", "text", "--missing", "empty"
    found = objects(*args)
    assert [(each["id"], each["text"]) for each in found] == [
        (None, "cheap"), ("", "noon"), ("5", None)
    ]  # fmt: skip
    assert [row[:2] for row in rows_of(run("predict", *args).stdout)[1:]] == [
        ["", "cheap"], ["", "noon"], ["5", ""]
    ]  # fmt: skip
    Path("t.jsonl").write_text('{"id": 1, "text": "cheap"}\n{"text": "noon"}\n')
    error = run("predict", model, "t.jsonl", "--keep", "id", code=1).stderr
    assert "t.jsonl, line 2: no column 'id', but text" in error
    found = objects(model, "t.jsonl", "--keep", "id", "--missing", "empty")
    assert [each["id"] for each in found] == [1, None]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet"])
def test_missing_columns_are_errors_that_list_the_columns(name, model):
    path = written(name, table_of(4))
    for keep in "ID", "":
        error = run("predict", model, path, "--keep", keep, code=1).stderr
        listed = " ".join(error.split())
        assert f"no column '{keep}', but id, text, label, note. Name the right column by" in listed
    assert "--keep id names a column twice" in run(
        "predict", model, path, "--keep", "id", "--keep", "id", code=1
    ).stderr  # fmt: skip


def test_a_header_of_unusual_names_lists_them(model):
    Path("t.tsv").write_text("nr\ttext\tfoo\n1\tcheap\tx\n")
    error = run("predict", model, "t.tsv", "--keep", "bar", code=1).stderr
    assert "no column 'bar', but nr, text, foo." in error


def test_files_without_columns_are_refused(model):
    lines = {
        "t.txt": "__label__spam cheap pills", "t.vw": "spam | cheap pills",
        "t.tsv": "spam\tcheap pills", "u.tsv": "cheap pills",
    }  # fmt: skip
    for name, line in lines.items():
        Path(name).write_text(line + "\n")
        error = " ".join(run("predict", model, name, "--keep", "id", code=1).stderr.split())
        assert f"{name}: a " in error
        assert "file without column names has no column 'id'. Leave --keep id out, or" in error
    error = run("predict", "a.model", "test.svm", "--keep", "id", code=2).stderr
    assert (
        "--keep needs files of texts, and test.svm is read as svmlight text. Leave it out" in error
    )


def test_memory_does_not_depend_on_the_length_of_the_file(model):
    peaks = []
    # Rows on their way from one thread to another take about 1 MB, more or less from run to run.
    for n in some((5_000, 20_000), (10_000, 40_000)):
        Path("long.jsonl").write_text(
            "".join(f'{{"id": {i}, "text": "cheap pills"}}\n' for i in range(n))
        )
        tracemalloc.start()
        run("predict", model, "long.jsonl", "-o", "out.tsv", "--keep", "id")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert pd.read_csv("out.tsv", sep="\t").id.tolist() == list(range(n))
    assert peaks[1] < 1.5 * peaks[0]
