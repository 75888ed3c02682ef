"""Labels of one fit are of one kind in files whose values have types, and texts are text."""

import json
import re
from pathlib import Path

import pytest

from problems.command_line import run
from problems.label_forms import vectorizer
from sparsemargin import fit_text
from sparsemargin.distributed import fit_distributed

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

TEXTS = ["waves and salt", "hills and forest"] * 20
KINDS = {
    "text": ["sea", "land"], "a number": [3, 4], "a truth value": [True, False],
}  # fmt: skip
PAIRS = [(a, b) for a in KINDS for b in KINDS if a != b]


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name, labels, texts=TEXTS):
    """Write a file of texts with these labels, which are repeated."""
    labels = (labels * len(texts))[: len(texts)]
    return write_frame(name, pandas.DataFrame({"text": texts, "label": labels}))


def write_frame(name, frame):
    Path(name).parent.mkdir(exist_ok=True, parents=True)
    if name.endswith(".parquet"):
        frame.to_parquet(name)
    elif name.endswith(".jsonl"):
        frame.to_json(name, orient="records", lines=True)
    else:
        frame.to_csv(name, index=False)
    return name


def fit(names, **how):
    return fit_text(names, features=vectorizer(), random_state=0, **how)


def fit_shards(names, **how):
    return fit_distributed(names, features=vectorizer(), random_state=0, max_iter=1, **how)


def train(names):
    error = run("train", *names, "-o", "m.model", "-q", "--hash-bits", "8", code=1).stderr
    raise ValueError(" ".join(error.split()))


FITS = {"fit_text": fit, "train": train, "fit_distributed": fit_shards,
        "one shard": lambda names: fit_shards([names])}  # fmt: skip


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
@pytest.mark.parametrize("end", [".jsonl", ".parquet"])
@pytest.mark.parametrize(("first", "other"), PAIRS)
def test_labels_of_two_kinds_are_refused(first, other, end, fit):
    names = [write(f"{i}{end}", KINDS[first]) for i in range(3)]
    names += [write(f"3{end}", KINDS[other])]
    unit = "line" if end == ".jsonl" else "row"
    expected = rf"3{end}, {unit} 1: 'label' is {other}, but {first} in .*0{end}, {unit} 1\. "
    for _ in range(2):  # shards read row caches the second time
        with pytest.raises(ValueError, match=expected):
            fit(names)


def test_labels_of_a_folder_are_of_one_kind():
    for i, labels in enumerate([["distributed", "io"], ["io", "distributed"], [0, 1], ["io"]]):
        write(f"parts/{i}.parquet", labels)
    with pytest.raises(ValueError, match=r"parts/2\.parquet, row 1: 'label' is a number, but text"):
        fit("parts")
    with pytest.raises(ValueError, match=r"parts/2\.parquet, row 1: 'label' is a number, but text"):
        fit_shards("parts")


@pytest.mark.parametrize("in_lists", [False, True])
@pytest.mark.parametrize("end", [".jsonl", ".parquet"])
@pytest.mark.parametrize(("first", "other"), PAIRS)
def test_remedies_for_two_kinds_work(first, other, end, in_lists):
    how = {"multilabel": in_lists}
    frames = {
        kind: pandas.DataFrame(
            {"text": TEXTS, "label": [[each] if in_lists else each for each in KINDS[kind] * 20]}
        )
        for kind in (first, other)
    }
    names = [write_frame(f"{kind}{end}", frame) for kind, frame in frames.items()]
    with pytest.raises(ValueError, match="All labels must be of one kind") as error:
        fit(names, **how)
    converted = re.search(r"(Replace the|numbers of the) (\w+ ?\w+?)s\b.*by (df.*)\.$",
                          str(error.value))  # fmt: skip
    df = frames[f"a {converted[2]}"]
    df["label"] = eval(converted[3], {"df": df})
    write_frame(f"a {converted[2]}{end}", df)
    assert len(fit(names, **how).classes_) == 4


@pytest.mark.parametrize("block_bytes", [200, 1 << 20])
def test_labels_within_a_file_of_json_are_of_one_kind(block_bytes, monkeypatch):
    monkeypatch.setattr("sparsemargin.files.sources.BLOCK_BYTES", block_bytes)
    write("a.jsonl", [*["sea", "land"] * 18, 3, "land", "sea", "land"])
    expected = r"a\.jsonl, line 37: 'label' is a number, but text in .*a\.jsonl, line 1\."
    for each in FITS.values():
        with pytest.raises(ValueError, match=expected):
            each(["a.jsonl"])
    # Rows without a text are left out, but counted.
    write("a.jsonl", [3, "sea", "land", 3], [None, None, *TEXTS])
    with pytest.raises(ValueError, match=r"a\.jsonl, line 4: .* is a number, but text in .* 3\."):
        fit("a.jsonl", missing="drop")


def test_kinds_of_numbers_and_lists_of_any_length_may_be_mixed():
    names = [write("0.parquet", [3, 4]), write("1.parquet", [3.0, 4.0]), write("2.jsonl", [4, 3])]
    for each in fit, fit_shards:
        assert each(names).classes_.tolist() == [3, 4]
    rows = [{"text": TEXTS[i], "label": label} for i, label in
            enumerate([[3], [], "", [3, 4], 4, 3.0])]  # fmt: skip
    Path("a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    assert fit("a.jsonl", multilabel=True).classes_.tolist() == [3, 4]


def test_forms_without_types_go_with_every_kind():
    names = [write("0.parquet", [3, 4]), write("1.csv", ["3", "4"]), write("2.csv", ["sea", "3"])]
    Path("3.tsv").write_text("4\thills\nsea\twaves\n")
    for each in fit, fit_shards:
        for order in names, names[::-1]:
            assert each([*order, "3.tsv"]).classes_.tolist() == ["3", "4", "sea"]
        assert each([write("4.parquet", ["3"]), *names[1:]]).classes_.tolist() == ["3", "4", "sea"]
        with pytest.raises(ValueError, match=r"4\.parquet, row 1: .* is text, but a number in .*0"):
            each([*names, "4.parquet"])
    # Names of folders have no types.
    rest = pandas.DataFrame({"text": TEXTS})
    paths = [write_frame(f"label={label}/0.parquet", rest) for label in (3, 4)]
    for each in fit, fit_shards:
        assert each([*paths, "0.parquet"]).classes_.tolist() == [3, 4]


def test_evaluate_compares_kinds_of_files_but_not_those_of_the_model():
    for name, labels in ("a.parquet", [3, 4]), ("b.parquet", ["3", "4"]), ("c.jsonl", ["sea"]):
        write(name, labels)
    run("train", "a.parquet", "-o", "m.model", "-q", "--hash-bits", "8")
    for name in "a.parquet", "b.parquet":
        assert json.loads(run("evaluate", "m.model", name, "--json").stdout)["accuracy"] == 1
    error = " ".join(run("evaluate", "m.model", "a.parquet", "b.parquet", code=1).stderr.split())
    assert "b.parquet, row 1: 'label' is text, but a number in a.parquet, row 1." in error
    error = " ".join(run("evaluate", "m.model", "c.jsonl", code=1).stderr.split())
    assert "c.jsonl has none of the labels that the model has learned, 3, 4, but others" in error
    assert len(run("predict", "m.model", "a.parquet", "c.jsonl").stdout.splitlines()) == 80


@pytest.mark.parametrize("value", [17, 1.5, True])
@pytest.mark.parametrize("end", [".jsonl", ".parquet"])
def test_columns_of_numbers_are_no_texts(value, end):
    names = [write(f"0{end}", ["sea", "land"]), write(f"1{end}", ["sea", "land"], [value] * 40)]
    expected = rf"1{end}, (line|row) 1: 'text' = {value} is not a text\. Name another column"
    for each in FITS.values():
        with pytest.raises(ValueError, match=expected):
            each(names)
    run("train", names[0], "-o", "m.model", "-q", "--hash-bits", "8")
    for command in "evaluate", "predict":
        error = " ".join(run(command, "m.model", *names, code=1).stderr.split())
        assert re.search(expected, error)
    # The remedy works.
    df = pandas.DataFrame({"text": [value] * 40, "label": ["sea", "land"] * 20})
    df["text"] = df["text"].astype("string")
    write_frame(names[1], df)
    assert fit(names).classes_.tolist() == ["land", "sea"]


def test_text_columns_without_any_text_are_missing_texts():
    df = pandas.DataFrame({"text": TEXTS, "more": float("nan"), "label": ["sea", "land"] * 20})
    for end in ".jsonl", ".parquet":
        write_frame(f"a{end}", df)
        model = fit(f"a{end}", text=["text", "more"], missing="empty")
        assert model.classes_.tolist() == ["land", "sea"]
