"""Models of rows that are sorted by their labels are as accurate as those of mixed rows."""

import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from sparsemargin import fit_svmlight, fit_text
from sparsemargin.datasets import make_zipf_text
from sparsemargin.readers import cache_order
from sparsemargin.streaming import stream

LABELS = "abcd"
pytestmark = pytest.mark.filterwarnings("ignore:.*sorted by their labels")


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    """Mix less than the rows of a file at once."""
    monkeypatch.setattr(cache_order, "_MIXED_BYTES", 1 << 19)


@pytest.fixture(scope="module")
def texts():
    """Pairs of a label and a text. Most words occur in the texts of all labels."""
    rng = np.random.RandomState(0)
    words = np.array([f"{a}{b}o" for a in "bdfgklmnprst" for b in "aeiou" * 5])
    weights = {label: rng.permutation(np.r_[np.full(30, 1.6), np.ones(270)]) for label in LABELS}
    return [
        (label, " ".join(rng.choice(words, 40, p=weights[label] / weights[label].sum())))
        for label in rng.choice(list(LABELS), 2000)
    ]


def write_rows(path, rows, form):
    if form == "parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        labels, texts = zip(*rows, strict=True)
        parquet.write_table(pa.table({"label": labels, "text": texts}), path)
        return
    if form == "jsonl":
        made = [json.dumps({"label": label, "text": text}) + "\n" for label, text in rows]
    else:
        between = "," if form == "csv" else "\t"
        made = ["label,text\n"] * (form == "csv") + [between.join(row) + "\n" for row in rows]
    path.write_text("".join(made))


@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl", "parquet"])
def test_texts_in_one_file_per_label_are_learned_as_mixed_texts(form, texts, tmp_path):
    if form in ("csv", "parquet"):
        pytest.importorskip("pyarrow")
    train, test = texts[:1600], texts[1600:]
    write_rows(tmp_path / f"mixed.{form}", train, form)
    write_rows(tmp_path / f"sorted.{form}", sorted(train), form)
    for label in LABELS:
        rows = [row for row in train if row[0] == label]
        write_rows(tmp_path / f"label-{label}.{form}", rows, form)
    how = {"text": "text", "label": "label"} if form != "tsv" else {}
    labels, right = np.array([label for label, _ in test]), []
    for name in f"mixed.{form}", f"sorted.{form}", f"label-*.{form}":
        model = fit_text(str(tmp_path / name), random_state=0, **how)
        right.append(np.mean(model.predict([text for _, text in test]) == labels))
    assert min(right[1:]) > right[0] - 0.03


def test_the_algorithm_is_selected_on_mixed_rows(texts, tmp_path, monkeypatch):
    """The first rows, from which it is selected otherwise, have one label."""
    monkeypatch.setattr(stream, "MOST_ROWS", 100)
    write_rows(tmp_path / "mixed.tsv", texts, "tsv")
    write_rows(tmp_path / "sorted.tsv", sorted(texts), "tsv")
    mixed, in_order = (fit_text(tmp_path / name) for name in ("mixed.tsv", "sorted.tsv"))
    for model in mixed, in_order:
        assert model.classifier_.prior == "naive_bayes"
        assert model.classifier_.n_iter_ >= 2


def test_svmlight_files_of_one_label_each_are_learned_as_mixed_rows(tmp_path):
    X, y = make_zipf_text(4000, 3000, n_classes=4, random_state=0)
    by_label, n = np.argsort(y[:3200], kind="stable"), 3200
    dump_svmlight_file(X[:n], y[:n], str(tmp_path / "mixed"), zero_based=False)
    dump_svmlight_file(X[by_label], y[by_label], str(tmp_path / "sorted"), zero_based=False)
    for label in range(4):
        rows = np.flatnonzero(y[:n] == label)
        name = str(tmp_path / f"label-{label}")
        dump_svmlight_file(X[rows], y[rows], name, zero_based=False)
    right = []
    for name in "mixed", "sorted", "label-*":
        model = fit_svmlight(str(tmp_path / name), "arow", n_features=3000, random_state=0)
        right.append(model.score(X[n:], y[n:]))
    assert min(right[1:]) > right[0] - 0.03
