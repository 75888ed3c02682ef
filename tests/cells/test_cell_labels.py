"""Labels of cells from tables of barcodes."""

import csv
import gzip
import os

import numpy as np
import pytest

from problems.cells import adata_of, counts_of, pd, write_10x
from problems.command_line import run
from sparsemargin import CellClassifier, annotate, fit_anndata
from sparsemargin.cells.source import CellForm, labels_of
from sparsemargin.distributed import fit_distributed

BARCODES = [f"ACGTACGT{i:04d}-1".replace("0", "A").replace("2", "C") for i in range(300)]


@pytest.fixture
def path(tmp_path):
    write_10x(tmp_path / "cells.h5", counts_of()[0], [f"G{i}" for i in range(80)], BARCODES)
    return tmp_path / "cells.h5"


@pytest.fixture
def obs():
    types = counts_of()[1]
    frame = pd.DataFrame({"n_genes": np.arange(300) % 7, "cell_type": types}, index=BARCODES)
    frame["note"] = [f"a, {i}" for i in range(300)]
    return frame


def labels(path, label):
    """Return the label of each cell, or None for a cell without a label."""
    with CellForm().open(path) as cells:
        (codes,), classes = labels_of(cells, label)
        return [None if code < 0 else classes[code] for code in codes]


def refused(path, label):
    with pytest.raises(ValueError, match=r"\w") as error:
        labels(path, label)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_column_of_a_table_is_named_after_its_path(path, obs, tmp_path):
    obs.to_csv(table := tmp_path / "obs.csv")
    text = refused(path, str(table))
    assert "has several columns: 'n_genes', 'cell_type', 'note'" in text
    remedy = text.rsplit(" ", 1)[1].strip("'.")
    assert remedy == f"{table}:cell_type"
    assert labels(path, remedy) == obs["cell_type"].tolist()
    assert labels(path, f"{table}:note") == obs["note"].tolist()
    obs[["n_genes", "note"]].to_csv(other := tmp_path / "other.csv")
    assert refused(path, str(other)).endswith(":COLUMN'.")
    assert "has no column 'x'" in refused(path, f"{table}:x")
    obs.to_csv(tmp_path / "obs.tsv.gz", sep="\t", index_label="barcode")
    assert labels(path, f"{tmp_path}/obs.tsv.gz:cell_type") == obs["cell_type"].tolist()
    model = tmp_path / "model"
    command = "train", path, "--label", f"{table}:cell_type", "-o"
    run(*command, model, "-q")
    assert "are one file" in run(*command, table, code=2).stderr


def test_r_tables_may_omit_the_first_column_name(path, obs, tmp_path):
    table = tmp_path / "obs.tsv"
    lines = [f'"{name}"\t"{row.n_genes}"\t"{row.cell_type}"\n' for name, row in obs.iterrows()]
    table.write_text('"n_genes"\t"cell_type"\n' + "".join(lines))
    assert labels(path, f"{table}:cell_type") == obs["cell_type"].tolist()


def test_tables_with_bom_crlf_and_gzip_are_read(path, obs, tmp_path):
    table, text = tmp_path / "types.csv", obs["cell_type"].to_csv(header=False)
    for name, raw in (
        ("types.csv", b"\xef\xbb\xbf" + text.encode()),
        ("types.csv", text.replace("\n", "\r\n").encode()),
        ("types.csv.gz", gzip.compress(text.encode())),
        ("types.csv", gzip.compress(text.encode())),
    ):
        (tmp_path / name).write_bytes(raw)
        assert labels(path, tmp_path / name) == obs["cell_type"].tolist()
    for raw, words in (
        (f"{BARCODES[0]},T\xe9\n{text}".encode("latin1"), "line 1 is not UTF-8 text"),
        (text.encode("utf-16"), "is UTF-16 text"),
        (f"{BARCODES[0]},{'x' * 200_000}\n{text}".encode(), "line 1: field larger"),
        (f"{text}x\n".encode(), "line 301: there are 1 columns"),
        (text.replace(",", ";").encode(), "has only one column"),
        (b"", "is empty"),
        (f"{text}{BARCODES[0]},other\n".encode(), "line 301: 'ACGTACGTAAAA-1' has two labels"),
        (gzip.compress(text.encode())[:-9], "damaged or cut off"),
    ):
        table.write_bytes(raw)
        error = refused(path, table)
        assert error.startswith(str(table))
        assert words in error
    latin = f"{text}x,T\xe9\n"
    table.write_bytes(latin.encode("latin1").decode("latin1").encode())  # UTF-8, as iconv writes
    labels(path, table)


def test_field_length_limit_ignores_the_csv_module_setting(path, obs, tmp_path):
    table, text = tmp_path / "types.csv", obs["cell_type"].to_csv(header=False)
    table.write_text(f"{BARCODES[0]},{'x' * 200_000}\n{text}")
    before = csv.field_size_limit(1 << 30)
    try:
        error = refused(path, table)
    finally:
        csv.field_size_limit(before)
    assert "line 1: field larger" in error


def test_names_of_cells_must_be_unique_for_a_table(path, obs, tmp_path):
    X, types = counts_of()
    adata = adata_of(X, types)
    table = adata.obs["cell_type"].to_dict()
    adata.write_h5ad(tmp_path / "other.h5ad")
    adata.write_h5ad(tmp_path / "again.h5ad")
    with pytest.raises(ValueError, match=r"other\.h5ad and .*again\.h5ad both have a cell with the "
                       r"name 'cell0'.*label='cell_type'"):  # fmt: skip
        fit_anndata([tmp_path / "other.h5ad", tmp_path / "again.h5ad"], table)
    fit_anndata([adata, adata], "cell_type", max_iter=1)
    with pytest.raises(ValueError, match=r"The AnnData \(1\) and The AnnData \(2\) both"):
        fit_anndata([adata, adata], table)
    adata.obs_names = ["cell1", *adata.obs_names[1:]]
    with pytest.raises(ValueError, match="The AnnData has several cells with the name 'cell1'"):
        fit_anndata(adata, table)
    fit_anndata(adata, {name: kind for name, kind in table.items() if name != "cell1"}, max_iter=1)


def test_file_of_cells_is_no_table(path):
    with pytest.raises(ValueError, match="is a file of cells, not a column of obs"):
        fit_anndata(path, str(path))


def test_measurements_and_missing_texts_are_no_labels(path):
    X, types = counts_of()
    numbers = {"total": np.linspace(0, 9, 300), "number": np.minimum(np.arange(300.0), 200)}
    adata = adata_of(X, types, **numbers)
    for label in "total", adata.obs["total"].to_dict():
        with pytest.raises(
            ValueError, match=r"label has values such as 0\.\d+, which are measurem"
        ):
            fit_anndata(adata, label)
    with pytest.warns(UserWarning, match="201 different labels in 300 rows"):
        fit_anndata(adata, "number", max_iter=1)
    for missing in "", "nan":
        adata.obs["kind"] = pd.Categorical(np.where(np.arange(300) > 9, types, missing))
        with pytest.raises(ValueError, match="'kind' is missing for 10 of 300 cells") as error:
            fit_anndata(adata, "kind")
        remedy = str(error.value).partition("leave them out: ")[2].removesuffix(".")
        kept = eval(remedy, {"adata": adata}).copy()
        assert fit_anndata(kept, "kind", max_iter=1).classes_.tolist() == ["A", "B", "C"]
        y = adata.obs["kind"].to_numpy()
        with pytest.raises(ValueError, match=f"y\\[0\\] is {missing!r}: this (cell|row) has no"):
            CellClassifier().fit(adata, y)
        keep = ~np.isin(y, ["", "nan"])
        CellClassifier(max_iter=1).fit(adata[keep], y[keep])


def test_cells_without_label_are_left_out(path, obs):
    expected = [None if i < 10 else each for i, each in enumerate(obs["cell_type"])]
    for missing in None, np.nan, "", "nan", pd.NA:
        holes = [missing if i < 10 else each for i, each in enumerate(obs["cell_type"])]
        assert labels(path, dict(zip(BARCODES, holes, strict=True))) == expected
        assert labels(path, pd.Series(holes, index=BARCODES, dtype=object)) == expected


@pytest.mark.parametrize(("label", "words"), [
    ({key: [1] for key in BARCODES}, "label has a list for a cell"),
    (dict(zip(BARCODES, [1, "z"] * 150, strict=True)), "texts and numbers"),
    (["A"] * 300, "got list"),
    (np.array(["A"] * 300), "pandas.Series(labels, index=adata.obs_names)"),
    (pd.DataFrame({"a": [1]}), "one column of a table"),
    (pd.Series(["A", "B"], index=["x", "x"]), "'x' has two labels"),
    (7, "got int"),
    (None, "got NoneType"),
])  # fmt: skip
def test_invalid_label_tables_are_rejected(path, label, words):
    assert words in refused(path, label)


def test_remedies_for_label_arrays_and_frames_work(path, obs):
    X, types = counts_of()
    adata = adata_of(X, types)
    assert labels(path, obs["cell_type"]) == types.tolist()
    del adata.obs["cell_type"]
    assert labels(adata, pd.Series(types, index=adata.obs_names)) == types.tolist()


RENAMED = {
    "the number at the end": lambda name: name.removesuffix("-1"),
    "what stands before": lambda name: f"run1_{name}",
    "what stands behind": lambda name: f"{name}_run1",
    "all but the bases": lambda name: f"run1#{name[:-2]}-7",
}


@pytest.mark.parametrize("how", RENAMED)
def test_barcodes_that_differ_by_a_suffix_are_reported(path, obs, how):
    renamed = obs["cell_type"].rename(RENAMED[how])
    text = refused(path, renamed)
    assert "0 of 300 cells are among the 300 barcodes with labels" in text
    assert f"Without {how}" in text
    assert f"{BARCODES[0]!r} for {renamed.index[0]!r}" in text
    assert labels(path, renamed.set_axis(BARCODES)) == obs["cell_type"].tolist()


def test_few_matching_barcodes_warn(path, obs):
    half = obs["cell_type"].rename(lambda name: name if name in BARCODES[:100] else f"x{name}")
    with pytest.warns(UserWarning, match="100 of 300 cells are among the 300 barcodes"):
        assert labels(path, half)[:100] == obs["cell_type"].tolist()[:100]
    most = obs["cell_type"].rename(lambda name: name if name in BARCODES[:5] else f"x{name}")
    assert "5 of 300 cells are among the 300 barcodes" in refused(path, most)


@pytest.mark.filterwarnings("error:.*barcodes.*:UserWarning")
def test_small_and_large_tables_do_not_warn(path, obs):
    labels(path, obs["cell_type"][:9])
    others = pd.Series("A", index=[f"other{i}" for i in range(9000)])
    labels(path, pd.concat([obs["cell_type"], others]))


def test_infinite_labels_are_rejected(path):
    table = dict.fromkeys(BARCODES, 1.0)
    table[BARCODES[0]] = np.inf
    with pytest.raises(ValueError, match="inf is infinite"):
        fit_anndata(path, table)


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_label_tables_are_kept_and_make_caches_private(path, obs, tmp_path):
    table, cache = tmp_path / "obs.csv", tmp_path / "cache"
    obs.to_csv(table)
    before = table.read_bytes()
    for option in "cache", "checkpoint":
        with pytest.raises(ValueError, match=r"obs\.csv are one file"):
            fit_anndata(path, f"{table}:cell_type", max_iter=1, **{option: table})
        assert table.read_bytes() == before
    table.chmod(0o600)
    fit_anndata(path, f"{table}:cell_type", max_iter=2, cache=cache)
    assert cache.stat().st_mode & 0o777 == 0o600


NO_LABELS = {
    "times": (pd.to_datetime(["2020-01-01", "2021-01-01"]), "is a date, a time or an interval"),
    "periods": (pd.period_range("2020", periods=2, freq="Y"), "is a date, a time or an interval"),
    "tuples": ([(1, 2), (1, 3)], "is a tuple, neither a number nor text"),
    "complex numbers": ([1j, 2j], "neither a number nor text"),
    "characters that NumPy cuts": (["A\0", "B\0"], "has a NUL character"),
    "numbers and their texts": (np.array([1, "1"], dtype=object), "label has texts and numbers"),
    "numbers that a double merges": ([2**53, 2**53 + 1], "label has 9007199254740993"),
}


@pytest.mark.parametrize("name", NO_LABELS)
def test_invalid_labels_are_rejected_in_columns_and_tables(path, name):
    values, words = NO_LABELS[name]
    column = pd.Series(values).repeat(150).set_axis(BARCODES)
    adata = adata_of(*counts_of(), column=column.array)
    assert words in refused(adata, "column")
    assert words in refused(path, column)
    if "astype('string')" in refused(path, column):
        texts = column.astype("string")
        assert labels(path, texts) == texts.tolist()
        texts.iloc[0] = None
        assert (
            column.where(texts.notna()).astype("string").isna().tolist() == [True] + [False] * 299
        )


WHOLE = {
    "integers": np.array([3, 12]),
    "unsigned integers": np.array([3, 12], dtype=np.uint64),
    "floats": np.array([3.0, 12.0]),
    "nullable integers": pd.array([3, 12], dtype="Int64"),
    "categories of integers": pd.Categorical([3, 12]),
    "categories of nullable integers": pd.Categorical(pd.array([3, 12], dtype="Int64")),
}


@pytest.mark.parametrize("form", WHOLE)
def test_whole_numbers_are_integer_classes_in_every_form(form, tmp_path):
    pytest.importorskip("zarr")
    X, types = counts_of()
    adata = adata_of(X, types)
    column = pd.Series(WHOLE[form]).take((types == "A").astype(int)).set_axis(adata.obs_names)
    adata.obs["number"] = column
    adata.write_h5ad(tmp_path / "cells.h5ad")
    adata.write_zarr(tmp_path / "cells.zarr")
    column.to_csv(tmp_path / "types.csv", index_label="barcode")
    column.to_csv(tmp_path / "bare.tsv", sep="\t", header=False)
    holes = column.astype(object).where(np.arange(300) > 9, None)
    holes.to_csv(tmp_path / "holes.csv")
    h5ad = tmp_path / "cells.h5ad"
    for what, label in (
        (adata, "number"), (h5ad, "number"), (tmp_path / "cells.zarr", "number"),
        (h5ad, column), (h5ad, column.to_dict()), (h5ad, holes.astype(float)),
        *((h5ad, tmp_path / name) for name in ("types.csv", "bare.tsv", "holes.csv")),
    ):  # fmt: skip
        with CellForm().open(what) as cells:
            _, classes = labels_of(cells, label)
        assert classes.tolist() == [3, 12]
        assert classes.dtype == np.int64
    model = CellClassifier("number", max_iter=1).fit(h5ad)
    assert set(map(str, model.predict(adata).tolist())) == {"3", "12"}


def test_words_of_a_table_that_are_no_numbers_stay_text(path, tmp_path):
    for words, expected in ((["3", "x"], ["3", "x"]), (["01", "1"], ["01", "1"])):
        table = pd.Series(words * 150, index=BARCODES)
        table.to_csv(tmp_path / "types.csv")
        assert labels(path, tmp_path / "types.csv") == expected * 150


def test_numbers_as_names_of_cells_are_text():
    adata = adata_of(*counts_of())
    adata.obs.index = range(adata.n_obs)  # unlike adata.obs_names = ..., it keeps the numbers
    labels = dict(enumerate(adata.obs["cell_type"]))
    model = fit_anndata(adata, labels, random_state=0, max_iter=1)
    assert annotate(model, adata).cells.tolist() == list(map(str, range(adata.n_obs)))


def test_byte_labels_are_text(path):
    column = pd.Series([b"A", b"B"] * 150, index=BARCODES)
    adata = adata_of(*counts_of(), column=column.array)
    expected = ["A", "B"] * 150
    assert labels(adata, "column") == labels(path, column) == expected


@pytest.mark.filterwarnings("ignore")
def test_labels_of_all_files_are_of_one_kind(tmp_path):
    adata = adata_of(*counts_of())
    numbers = adata.copy()
    numbers.obs["cell_type"] = np.arange(adata.n_obs) % 3
    adata.write_h5ad(tmp_path / "a.h5ad")
    numbers.write_h5ad(tmp_path / "b.h5ad")
    files = [tmp_path / "a.h5ad", tmp_path / "b.h5ad"]
    words = "'cell_type' has numbers or truth values, but"
    with pytest.raises(ValueError, match=f"b.h5ad: {words} .*a.h5ad"):
        fit_distributed(list(map(str, files)), label="cell_type")
    for given in files, files[::-1], [adata, numbers]:
        with pytest.raises(ValueError, match=words) as told:
            fit_anndata(given, "cell_type")
    remedy = str(told.value).partition("Make text of them: ")[2].removesuffix(".")
    exec(remedy, {"adata": numbers})
    model = fit_anndata([adata, numbers], "cell_type", max_iter=1)
    assert model.classes_.tolist() == ["0", "1", "2", "A", "B", "C"]
