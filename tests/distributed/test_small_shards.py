"""Shards of few rows are joined before training."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from problems.shards import assert_same, cut, make_data, write_each
from sparsemargin import fit_csr
from sparsemargin.distributed import fit, fit_distributed
from sparsemargin.distributed.small_shards import runs_of

HOW = {"random_state": 3, "algo": "arow", "max_iter": 2}


def test_runs_are_as_short_as_possible():
    runs = [range(2), range(2, 3), range(3, 7)]
    assert runs_of([5, 5, 20, 4, 4, 4, 9], 10) == runs
    assert runs_of([6, 4, 5, 5, 3], 10) == [range(2), range(2, 5)]
    assert runs_of([1, 50, 1], 10) == [range(1), range(1, 2), range(2, 3)]


@given(n_rows=st.lists(st.integers(1, 30), max_size=12), least=st.integers(1, 40))
def test_runs_have_enough_rows_and_leave_large_shards_alone(n_rows, least):
    runs = runs_of(n_rows, least)
    assert [s for run in runs for s in run] == [*range(len(n_rows))]
    for i, run in enumerate(runs):
        if len(run) > 1:
            assert all(n_rows[s] < least for s in run)
        if sum(n_rows[s] for s in run) < least:
            # The neighbours of the run are large.
            beside = [*runs[max(i - 1, 0) : i], *runs[i + 1 : i + 2]]
            assert all(n_rows[other[0]] >= least for other in beside)


def labels_in_form(form, y):
    indicator = np.eye(3, dtype=int)[y] | np.eye(3, dtype=int)[(y * 2) % 3]
    return {
        "numbers": y, "text": np.array(["a", "bb", "ccc"])[y], "indicator": indicator,
        "sparse": csr_matrix(indicator),
        "lists": [np.flatnonzero(row).tolist() for row in indicator],
    }[form]  # fmt: skip


@pytest.mark.parametrize("form", ["numbers", "text", "indicator", "sparse", "lists"])
def test_small_matrices_are_trained_on_as_one(form):
    X, y = make_data(n_classes=3)
    labels = labels_in_form(form, y)
    bounds = [0, 7, 100, 101, 240]
    shards = [(X[a:b], labels[a:b]) for a, b in pairwise(bounds)]
    model = fit_distributed(shards, min_rows=500, max_iter=2, algo="arow", random_state=3)
    assert_same(model, fit_csr(X, labels, **HOW))
    # Three shards, the first two of them joined.
    joined = [(X[:101], labels[:101]), (X[101:], labels[101:])]
    assert_same(
        fit_distributed(shards, min_rows=100, **HOW), fit_distributed(joined, min_rows=100, **HOW)
    )


@pytest.mark.parametrize("names", [np.arange(3), [2**60 + 1, 2**60 + 3, 5], ["a", "bb", "ccc"]])
@pytest.mark.parametrize("least", [1, 500])
def test_a_shard_may_have_no_label_in_any_row(names, least):
    X, y = make_data(n_classes=3)
    labels = [[names[k]] if i > 9 else [] for i, k in enumerate(y)]
    shards = [(X[a:b], labels[a:b]) for a, b in pairwise([0, 4, 10, 240])]
    model = fit_distributed(shards, min_rows=least, **HOW)
    assert model.classes_.tolist() == sorted(names)
    if least > 1:
        assert_same(model, fit_csr(X, labels, **HOW))
    with pytest.raises(ValueError, match="No row of y has a label"):
        fit_distributed(shards[:2], min_rows=least, **HOW)


def test_small_files_are_trained_on_as_one(tmp_path):
    X, y = make_data()
    paths = write_each(tmp_path, cut(X, y, 5))
    model = fit_distributed(paths, min_rows=90, **HOW)
    assert_same(model, fit_distributed([paths[:2], paths[2:]], min_rows=1, **HOW))


def test_row_caches_are_not_joined(tmp_path):
    X, y = make_data()
    paths = write_each(tmp_path, cut(X, y, 3))
    rounds = []
    fit_distributed(paths, cache_dir=tmp_path / "kept", min_rows=1, **HOW)
    caches = sorted(map(str, (tmp_path / "kept").iterdir()))
    fit_distributed(caches, min_rows=500, on_round=rounds.append, **HOW)
    assert [len(each.corrections) for each in rounds] == [3, 3]


def test_files_of_several_forms_are_joined(tmp_path):
    texts, y = [f"word{i % 7} and word{i % 5}" for i in range(90)], np.arange(90) % 7 % 2
    (tmp_path / "a.tsv").write_text("".join(f"{y[i]}\t{texts[i]}\n" for i in range(40)))
    rows = [f'{{"text": "{texts[i]}", "label": "{y[i]}"}}\n' for i in range(40, 90)]
    (tmp_path / "b.jsonl").write_text("".join(rows))
    paths = [str(tmp_path / "a.tsv"), str(tmp_path / "b.jsonl")]
    model = fit_distributed(paths, min_rows=500, random_state=0)
    assert (model.predict(texts) == y).all()


def test_errors_name_the_shards_that_were_joined(tmp_path):
    X, y = make_data()
    *shards, (X_last, y_last) = cut(X, y, 4)
    paths = write_each(tmp_path, [*shards, (X_last, np.append(y_last[:-1], 2))])
    with pytest.raises(ValueError, match=r"Shards 2 to 3 of 4, .*row 119: the label 2"):
        fit_distributed(paths, classes=[0, 1], min_rows=61, **HOW)
    shards = [(X[:10], y[:10]), (X[10:20, :5], y[10:20])]
    with pytest.raises(ValueError, match="Shard 0 has 40 features, shard 1 has 5"):
        fit_distributed(shards, min_rows=500, **HOW)
    with pytest.raises(ValueError, match="min_rows"):
        fit_distributed(shards, min_rows=0, **HOW)


def test_class_names_of_texts_may_be_truth_values(tmp_path):
    lines = "".join(f"{i % 2 == 0}\tword{i % 2} more\n" for i in range(40))
    (tmp_path / "a.tsv").write_text(lines)
    for truths in [True, False], np.array([True, False]), [np.bool_(True), np.bool_(False)]:
        model = fit_distributed([str(tmp_path / "a.tsv")], classes=truths, max_iter=1)
        assert model.classes_.tolist() == ["False", "True"]


def test_shards_of_a_thousand_rows_are_not_joined_by_default(monkeypatch):
    monkeypatch.setattr(fit, "runs_of", runs_of)
    X, y = make_data(n_rows=4200)
    for n_shards, n_joined in (4, 4), (8, 4), (60, 4):
        rounds = []
        fit_distributed(cut(X, y, n_shards), on_round=rounds.append, **HOW)
        assert len(rounds[0].corrections) == n_joined
