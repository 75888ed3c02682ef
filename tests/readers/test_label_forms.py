"""Labels from memory and from files of every form give the same result, or one clear refusal."""

import json
import math
import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

from problems.command_line import run
from problems.label_forms import (
    CONTAINERS,
    KINDS,
    MISSING,
    REFUSED,
    TYPED,
    WRITERS,
    vectorizer,
)
from sparsemargin import TextClassifier, fit_text, load_model, save_model
from sparsemargin.models.inputs.label_table import word_of
from sparsemargin.models.inputs.label_values import DROP_ROWS, NotALabelError, plain_label
from sparsemargin.models.inputs.labels import label_text

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

N_ROWS = 24
TEXTS = ["waves and salt", "hills and forest"] * (N_ROWS // 2)
# Messages of Python, numpy or pyarrow about input that should have been checked before.
UNCLEAR = re.compile("object is not|unhashable|has no attribute|Unsupported|cannot convert|invalid")


def outcome(texts, y=None, **params):
    """Return the classes that `fit_text` finds, or the kind of refusal."""
    try:
        model = fit_text(texts, y, random_state=0, **params)
    except ValueError as error:
        told = error
    else:
        return sorted(word_of(label_text(label)) for label in model.classes_.tolist())
    assert type(told) is ValueError, told
    assert not UNCLEAR.search(str(told)), told
    return MISSING if "no label" in str(told) else REFUSED


def written(path, labels):
    """Write a file, and return whether its form can hold the labels."""
    return held(lambda labels: WRITERS[path.name](path, TEXTS, labels) or path, labels) is not None


def held(make, values):
    """Return the values in a container or a file, or None if it can't hold them."""
    try:
        return make(values)
    except Exception:  # pandas, polars and pyarrow raise many types of errors
        return None


def in_memory(values):
    """Yield each container that can hold the values, with the outcome of training."""
    for name, container in CONTAINERS.items():
        if name == "polars":
            pytest.importorskip("polars")
        given = held(container, values)
        if given is not None:
            yield name, given, outcome(TEXTS, given)


def in_files(values, folder, **params):
    """Yield each form that can hold the values, with the outcome of training."""
    for name in WRITERS:
        if written(folder / name, values):
            yield name, outcome(folder / name, features=vectorizer(), **params)


# The only type of values that these containers hold without conversion.
HELD = {
    "string": str, "string[pyarrow]": str, "boolean": bool, "Int64": int, "UInt64": int,
    "int64[pyarrow]": int, "Float64": float,
}  # fmt: skip


def changed_by(name, values):
    """Return whether a container or a form converts these values. numpy turns mixed types into text
    and cuts NULs and members of ``(str, Enum)``. Text has no types."""
    kinds = {type(value) for value in values}
    if name in ("numpy", "pandas", "polars", "categories"):
        return len(kinds) > 1 or not kinds <= {str, bool, int, float} or "a\0" in values
    if name in HELD:
        return kinds != {HELD[name]}
    return name.endswith((".csv", ".tsv", ".ft"))


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_equal_in_every_container_and_file_format(kind, tmp_path):
    values, expected = KINDS[kind]
    values = values * (N_ROWS // 2)
    found = {name: got for name, _, got in in_memory(values)}
    found |= dict(in_files(values, tmp_path))
    assert {"list", "objects of numpy"} <= set(found)
    wrong = {name: got for name, got in found.items()
             if got != expected and not changed_by(name, values)}  # fmt: skip
    assert not wrong
    if expected != REFUSED and not any(set("\n\r") & set(each) for each in expected):
        texts = [name for name in ("a.csv", "b.csv", "a.tsv") if name in found]
        if kind not in ("bytes", "(str, Enum)", "StrEnum", "IntEnum"):  # written as repr or name
            assert {tuple(found[name]) for name in texts} <= {tuple(expected)}


@pytest.mark.parametrize("kind", ["figures", "integers", "whole floats"])
def test_whole_numbers_of_files_are_integer_classes(kind, tmp_path):
    values, expected = KINDS[kind]
    for name, writer in WRITERS.items():
        writer(tmp_path / name, TEXTS, values * (N_ROWS // 2))
        classes = fit_text(tmp_path / name, features=vectorizer(), random_state=0).classes_
        assert classes.dtype == np.int64, name
        assert list(map(str, classes.tolist())) == expected, name


def test_integers_stay_integers_beside_missing_ones(tmp_path):
    import pandas

    column = pandas.Series([3, 7] * (N_ROWS // 2)).astype(float)
    texts = pandas.Series(TEXTS, dtype=object)
    texts[4], column[4] = None, None
    kinds = [column, column.astype("Int64"), column.astype("category")]
    for each in kinds:
        frame = pandas.DataFrame({"text": texts, "label": each})
        model = TextClassifier(text="text", missing="drop", random_state=0).fit(frame, "label")
        assert model.classes_.tolist() == [3, 7]
        assert model.classes_.dtype == np.int64
        frame.to_csv(tmp_path / "a.csv", index=False)
        from_file = fit_text(tmp_path / "a.csv", missing="drop", random_state=0)
        assert from_file.classes_.dtype == np.int64
        assert from_file.classes_.tolist() == [3, 7]
        with pytest.raises(ValueError, match="Row 4 of column 'text'"):
            TextClassifier(text="text").fit(frame, "label")
        frame.loc[4, "text"] = "a text"
        with pytest.raises(ValueError, match="Row 4 of column 'label' has no label"):
            TextClassifier(text="text", missing="drop").fit(frame, "label")


@pytest.mark.parametrize("missing", [None, math.nan, "NA", "NaT"])
@pytest.mark.parametrize("kind", ["words", "integers", "truths", "whole floats", "times"])
def test_missing_labels_are_reported_with_a_remedy(kind, missing, tmp_path):
    import pandas

    gap = {"NA": pandas.NA, "NaT": pandas.NaT}.get(missing, missing)
    values = KINDS[kind][0] * (N_ROWS // 2)
    values[3] = gap
    found = list(in_memory(values))
    for name, _, got in found:
        if name == "numpy" and missing is None and kind == "words":
            continue  # numpy makes an array of objects from it
        assert got == MISSING or changed_by(name, values), name
    assert "y = numpy.array(y, dtype=object).ravel(), keep = pandas.notna(y), " in DROP_ROWS
    if kind != "times":
        for _, y, got in found:
            if got != MISSING:
                continue
            y = np.array(y, dtype=object).ravel()
            keep = pandas.notna(y)
            model = fit_text(np.asarray(TEXTS)[keep].tolist(), y[keep], random_state=0)
            assert len(model.classes_) == 2
    for name, got in in_files(values, tmp_path):
        if name.endswith((".csv", ".jsonl", ".parquet")) and kind != "times":
            assert got == MISSING, name


def test_masked_labels_are_rejected_with_a_remedy():
    y = np.ma.array(["sea", "land"] * (N_ROWS // 2), mask=np.arange(N_ROWS) == 3)
    with pytest.raises(ValueError, match=r"y\[3\] is masked.*keep = ~numpy.ma.getmaskarray\(y\)"):
        fit_text(TEXTS, y)
    keep = ~np.ma.getmaskarray(y)
    model = fit_text(np.asarray(TEXTS)[keep].tolist(), y[keep], random_state=0)
    assert model.classes_.tolist() == ["land", "sea"]


def test_missing_labels_in_lists_are_rejected_with_a_remedy():
    import pandas

    for gap in None, math.nan, pandas.NA:
        y = [["sea", gap], ["land"]] * (N_ROWS // 2)
        with pytest.raises(ValueError, match=r"y\[0\]\[1\] is .*Leave it out of its list"):
            fit_text(TEXTS, y)
        kept = [[label for label in row if pandas.notna(label)] for row in y]
        assert fit_text(TEXTS, kept, random_state=0).classes_.tolist() == ["land", "sea"]
    with pytest.raises(ValueError, match=r"y\[0\]\[1\] is ''.* if label not in \(''"):
        fit_text(TEXTS, [["sea", ""], ["land"]] * (N_ROWS // 2))
    for row in ["land"], ["land", "sea"]:
        y = [None, ["sea", "land"], row, ["sky"]] * (N_ROWS // 4)
        with pytest.raises(ValueError, match=f"is None.* {re.escape(DROP_ROWS)}"):
            fit_text(TEXTS[: len(y)], y)
        y = np.array(y, dtype=object).ravel()
        keep = pandas.notna(y)
        model = fit_text(np.asarray(TEXTS[: len(y)])[keep], y[keep], random_state=0)
        assert model.classes_.tolist() == ["land", "sea", "sky"]


def test_categorical_labels_are_read_without_deprecation_warning():
    import pandas
    import pyarrow

    values = ["sea", "land"] * (N_ROWS // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit_text(TEXTS, pandas.Categorical(values), random_state=0)
    assert model.classes_.tolist() == ["land", "sea"]
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = fit_text(TEXTS, pyarrow.table({"label": values}), random_state=0)
    assert model.classes_.tolist() == ["land", "sea"]


@pytest.mark.parametrize("kind", ["truths", "whole floats", "integers", "words", "figures"])
def test_model_knows_labels_in_every_file_format(kind, tmp_path):
    values = KINDS[kind][0] * (N_ROWS // 2)
    paths = [tmp_path / name for name in WRITERS]
    for path in paths:
        WRITERS[path.name](path, TEXTS, values)
    together = fit_text(paths, features=vectorizer(), random_state=0)
    assert len(together.classes_) == 2
    for first in paths:
        save_model(fit_text(first, features=vectorizer(), random_state=0), tmp_path / "m")
        for path in paths:
            told = json.loads(run("evaluate", tmp_path / "m", path, "--json").stdout)
            assert (told["rows"], told["unknown_labels"]) == (N_ROWS, [])


def test_signs_and_decimal_points_do_not_change_a_number_label(tmp_path):
    """1, +1 and 1.0 are one label. Vowpal Wabbit's form has numbers as labels, the other forms
    words."""
    (tmp_path / "a.vw").write_text("+1 | waves\n-1 | hills\n1.0 | waves\n" * 9)
    (tmp_path / "a.tsv").write_text("1\twaves\n-1.0\thills\n+1\twaves\n" * 9)
    for names in ["a.vw", "a.tsv"], ["a.tsv", "a.vw"], ["a.tsv"], ["a.vw"]:
        paths = [tmp_path / name for name in names]
        model = fit_text(paths, features=vectorizer(), random_state=0)
        assert len(model.classes_) == 2
        for path in paths:
            counted = json.loads(run("info", path, "--json").stdout)["files"][0]["labels"]
            assert [each["rows"] for each in counted] == [18, 9]


def test_info_and_train_agree_on_labels(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("sea, salt\twaves\nland\thills\n" * 9)
    counted = json.loads(run("info", path, "--json").stdout)["files"][0]["labels"]
    learned = fit_text(path, features=vectorizer(), random_state=0).classes_.tolist()
    assert sorted(each["label"] for each in counted) == learned == ["land", "sea, salt"]


@pytest.mark.parametrize("words", [["a\nb", "c\rd"], ["inf", "Infinity"], ["nan", "naan"],
                                   ['"', "\\n"], ["a\tb", "a\\tb"]])  # fmt: skip
def test_unusual_labels_are_kept_by_caches_and_models(words, tmp_path):
    path = tmp_path / "a.jsonl"
    WRITERS["a.jsonl"](path, TEXTS, words * (N_ROWS // 2))
    for cache in False, True, True:
        model = fit_text(path, features=vectorizer(), max_iter=3, cache=cache, random_state=0)
        assert model.classes_.tolist() == sorted(words)
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m").predict(TEXTS[:2]).tolist() == words
    lines = run("predict", tmp_path / "m", path).stdout.splitlines()
    assert (len(lines), len(set(lines))) == (N_ROWS, 2)


LISTS = {
    "words": ([["sea", "x"], ["land"]], ["land", "sea", "x"]),
    "integers": ([[0, 2], [1]], ["0", "1", "2"]),
    "floats": ([[0.0, 2.0], [1.0]], ["0", "1", "2"]),
    "truths": ([[True], [False]], ["False", "True"]),
    "one length": ([["sea", "x"], ["land", "x"]], ["land", "sea", "x"]),
    "none of a row": ([["sea", "land"], []], ["land", "sea"]),
    "a null": ([["sea", None], ["land"]], MISSING),
    "nothing": ([["sea", ""], ["land"]], MISSING),
    "NaN": ([[1.0, math.nan], [2.0]], MISSING),
    "fractions": ([[0.5], [1.5]], REFUSED),
    "lists": ([[["sea"]], [["land"]]], REFUSED),
    "spans": ([[{"start": 0}], [{"start": 5}]], REFUSED),
    "an indicator": ([[1, 0], [0, 1]], REFUSED),
    "a wide indicator": ([[1, 0, 0], [0, 1, 1]], REFUSED),
    "an indicator of floats": ([[1.0, 0.0], [0.0, 1.0]], REFUSED),
}


@pytest.mark.parametrize("kind", LISTS)
def test_label_lists_are_read_or_rejected(kind, tmp_path):
    import pyarrow
    from pyarrow.parquet import write_table

    values, expected = LISTS[kind]
    values = values * (N_ROWS // 2)
    for name in TYPED[:2]:
        path = tmp_path / name
        WRITERS[name](path, TEXTS, values)
        got = outcome(path, multilabel=True, features=vectorizer())
        assert got == expected, name
    if len({len(each) for each in values}) == 1 and kind != "lists":
        column = pyarrow.array(values)
        fixed = column.cast(pyarrow.list_(column.type.value_type, len(values[0])))
        write_table(pyarrow.table({"text": TEXTS, "label": fixed}), tmp_path / "c.parquet")
        path = tmp_path / "c.parquet"
        assert outcome(path, multilabel=True, features=vectorizer()) == expected


def test_rejected_labels_are_reported_with_file_and_row(tmp_path):
    import pyarrow
    from pyarrow.parquet import write_table

    labels = ["sea", "land"] * (N_ROWS // 2)
    for name, text, label in (
        ("a list of words", pyarrow.array([text.split() for text in TEXTS]), labels),
        ("an object", pyarrow.array([{"title": text} for text in TEXTS]), labels),
        ("a map", TEXTS, pyarrow.array([[("a", 1)]] * N_ROWS, pyarrow.map_("string", "int64"))),
        ("a struct", TEXTS, pyarrow.array([{"a": label} for label in labels])),
        ("a time", TEXTS, pyarrow.array(range(N_ROWS), pyarrow.timestamp("ns"))),
        ("a duration", TEXTS, pyarrow.array(range(N_ROWS), pyarrow.duration("ns"))),
    ):
        path = tmp_path / "a.parquet"
        write_table(pyarrow.table({"text": text, "label": label}), path)
        with pytest.raises(ValueError, match=r"a\.parquet, row 1: '(text|label)'"):
            fit_text(path, features=vectorizer())
        assert name
    raw = bytearray(path.read_bytes())
    raw[4:60] = bytes(56)
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=r"a\.parquet"):
        fit_text(path, features=vectorizer())


def test_large_decimals_and_fractions_are_read_fast():
    from decimal import Decimal

    with pytest.raises(NotALabelError, match="too large a number"):
        plain_label(Decimal("1E+999999"))
    assert plain_label(Decimal("1E+3")) == 1000


def test_single_column_frames_and_masked_arrays_are_labels(tmp_path):
    """Single-column tables, masked arrays, scalars of pyarrow, and arrays of other byte orders."""
    import pandas
    import pyarrow

    words, whole = ["sea", "land"] * 12, [3, 4] * 12
    for given, classes in (
        (pandas.DataFrame({"a": words}), ["land", "sea"]),
        (pandas.DataFrame({"a": pandas.Series(whole, dtype="Int64")}), [3, 4]),
        (np.ma.masked_array(whole), [3, 4]),
        ([pyarrow.scalar(each) for each in words], ["land", "sea"]),
        (np.array(whole, dtype=">i4"), [3, 4]),
        (np.array(words, dtype=">U4"), ["land", "sea"]),
        (np.array(whole, dtype=np.longdouble), [3, 4]),
        (np.array([b"sea", b"land"] * 12), ["land", "sea"]),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit_text(TEXTS, given, random_state=0)
            assert model.score(TEXTS, given) == 1
        assert model.classes_.tolist() == classes
        assert model.classes_.dtype.isnative
    masked = np.ma.masked_array(whole, mask=np.arange(24) == 5)
    with pytest.raises(ValueError, match=r"y\[5\] is masked: this row has no label"):
        fit_text(TEXTS, masked)
