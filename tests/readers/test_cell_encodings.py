"""Columns and names of cells, in the encodings that anndata and Cell Ranger write."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack

from depth import some
from problems.cells import (
    adata_of,
    anndata,
    counts_of,
    h5py,
    make_names_nullable,
    pd,
    write_10x,
    write_matrix,
    write_plain,
)
from sparsemargin import annotate, fit_anndata
from sparsemargin.cells.source import CellForm, labels_of
from sparsemargin.models.inputs.label_values import label_text
from sparsemargin.readers.hdf5_files import open_hdf5

pytestmark = pytest.mark.filterwarnings("ignore:.*zarr.*", "ignore::UserWarning:zarr")

MISSING = "'column' is missing for 100 of 300 cells"


def written(adata, to):
    """Write the same cells to a .h5ad file and to zarr stores of both versions."""
    adata.write_h5ad(to / "cells.h5ad")
    paths = [to / "cells.h5ad"]
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    for version in (2,) if zarr.__version__.startswith("2") else (2, 3):
        with anndata.settings.override(zarr_write_format=version):
            adata.write_zarr(to / f"cells{version}.zarr")
        paths.append(to / f"cells{version}.zarr")
    return paths


COLUMNS = {
    "text": ([["a", "b", "c"]], ["a", "b", "c"]),
    "categories": ([pd.Categorical(["c", "b", "a"])], ["a", "b", "c"]),
    "numbers as categories": ([pd.Categorical([2, 1, 3])], [1, 2, 3]),
    "booleans as categories": ([pd.Categorical([True, False, True])], [False, True]),
    "integers": ([[3, 1, 2]], [1, 2, 3]),
    "floats": ([[2.0, 5.0, 3.0]], [2.0, 3.0, 5.0]),
    "booleans": ([[True, False, True]], [False, True]),
    "nullable integers": ([pd.array([3, 1, 2], dtype="Int64")], [1, 2, 3]),
    "nullable booleans": ([pd.array([True, False, True], dtype="boolean")], [False, True]),
    "nullable text": ([pd.array(["b", "a", "c"], dtype="string")], ["a", "b", "c"]),
    "categories of nullable text": (
        [pd.Categorical(pd.array(["b", "a", "c"], dtype="string"))], ["a", "b", "c"]),
    "categories of nullable integers": (
        [pd.Categorical(pd.array([2, 1, 3], dtype="Int64"))], [1, 2, 3]),
    "missing category": ([pd.Categorical(["a", None, "b"])], None),
    "missing integer": ([pd.array([3, None, 2], dtype="Int64")], None),
    "missing boolean": ([pd.array([True, None, False], dtype="boolean")], None),
    "missing text": ([pd.array(["b", None, "c"], dtype="string")], None),
    "missing text of the usual type": ([["b", None, "c"]], None),
    "missing category of text of the usual type": (
        [pd.Series(["b", None, "c"]).astype("category")], None),
    "missing number": ([[0.5, np.nan, 1.5]], None),
}  # fmt: skip


@pytest.mark.parametrize("name", some([*COLUMNS][::2], COLUMNS))
def test_columns_in_memory_and_in_files_are_equal(tmp_path, name):
    [[values], expected] = COLUMNS[name]
    adata = adata_of(*counts_of())
    column = pd.Series(values)
    adata.obs["column"] = pd.concat([column] * 100).astype(column.dtype).array
    with anndata.settings.override(allow_write_nullable_strings=True):
        paths = written(adata, tmp_path)
    for what in adata, anndata.read_h5ad(paths[0], backed="r"), *paths:
        with CellForm().open(what) as cells:
            if expected is None:
                with pytest.raises(ValueError, match=MISSING):
                    labels_of(cells, "column")
                continue
            (codes,), classes = labels_of(cells, "column")
            assert classes.tolist() == expected
            assert classes.dtype.kind in "ibU"
            assert list(map(str, classes[codes[:3]].tolist())) == list(map(label_text, values))


def test_index_may_also_be_a_column(tmp_path):
    adata = adata_of(*counts_of())
    adata.var["symbol"], adata.obs["barcode"] = adata.var_names, adata.obs_names
    adata.var_names, adata.obs_names = adata.var["ensembl"], adata.obs["barcode"]
    for what in adata, *written(adata, tmp_path):
        model = fit_anndata(what, "cell_type", var="ensembl", random_state=0)
        assert model.feature_names_in_.tolist() == adata.var["ensembl"].tolist()
        with CellForm().open(what) as [cells]:
            assert sorted(cells.obs.columns) == ["barcode", "cell_type"]
            assert sorted(cells.var.columns) == ["ensembl", "symbol"]


def test_nullable_string_names_are_read(tmp_path):
    adata = adata_of(*counts_of())
    expected = fit_anndata(adata, "cell_type", shuffle=False, max_iter=1)
    path = tmp_path / "cells.h5ad"
    adata.write_h5ad(path)
    with h5py.File(path, "a") as file:
        make_names_nullable(file, "obs", [7])
        make_names_nullable(file, "var", [9])
        assert sorted(file["obs/_index"]) == ["mask", "values"]
    model = fit_anndata(path, "cell_type", shuffle=False, max_iter=1)
    assert np.array_equal(model.classifier_.coef_, expected.classifier_.coef_)
    assert model.feature_names_in_[8:11].tolist() == ["GENE8", "nan", "GENE10"]
    told = annotate(model, path)
    assert told.cells[6:9].tolist() == ["cell6", "nan", "cell8"]


@pytest.mark.parametrize("what", ["codes", "mask", "values"])
def test_invalid_codes_and_masks_are_rejected(tmp_path, what):
    adata = adata_of(*counts_of())
    adata.obs["column"] = pd.array([1, 2, 3] * 100, dtype="Int64")
    adata.write_h5ad(path := tmp_path / "cells.h5ad")
    name = "cell_type" if what == "codes" else "column"
    with h5py.File(path) as file:
        values = file[f"obs/{name}/{what}"][:]
    wrong = [values[:-1], np.append(values, values[:1]), values[np.newaxis]]
    if what == "codes":
        wrong += [np.full(300, 3, np.int8), np.full(300, -2, np.int8), np.zeros(300)]
    if what == "mask":
        wrong.append(np.zeros(300))
    for each in wrong:
        with h5py.File(path, "a") as file:
            del file[f"obs/{name}/{what}"]
            file[f"obs/{name}/{what}"] = each
        with pytest.raises(ValueError, match=rf"cells.h5ad: /obs.*{name}"):
            fit_anndata(path, name, max_iter=1)


def target_sets(features):
    features.create_group("target_sets")["Probe Set v1"] = np.arange(20)


EXTRA = {
    "a group, as of Flex": target_sets,
    "numbers": lambda features: features.create_dataset("n_probes", data=np.arange(80)),
    "booleans": lambda features: features.create_dataset("filtered", data=np.ones(80, bool)),
    "another length": lambda features: features.create_dataset("x", data=np.array([b"x"])),
}


@pytest.mark.parametrize("extra", EXTRA)
def test_other_10x_feature_columns_are_ignored(tmp_path, extra):
    X, types = counts_of()
    barcodes = [f"c{i}" for i in range(300)]
    write_10x(tmp_path / "cells.h5", X, [f"G{i}" for i in range(80)], barcodes)
    with h5py.File(tmp_path / "cells.h5", "a") as file:
        EXTRA[extra](file["matrix/features"])
    table = dict(zip(barcodes, types, strict=True))
    with pytest.warns(UserWarning, match="1 of 80 features are left out"):
        fit_anndata(tmp_path / "cells.h5", table, max_iter=1)


@pytest.mark.parametrize("packing", [{}, {"compression": "gzip"}, {"compression": "lzf"},
                                     {"compression": "gzip", "shuffle": True},
                                     {"fletcher32": True}], ids=str)  # fmt: skip
@pytest.mark.parametrize("dtype", ["S9", h5py.string_dtype(), h5py.string_dtype("utf-8", 9)],
                         ids=["bytes", "of any length", "utf-8"])  # fmt: skip
def test_compressed_names_are_text(tmp_path, dtype, packing):
    if np.dtype(dtype).kind == "O" and "fletcher32" in packing:
        pytest.skip("HDF5 has no checksums of texts of any length")
    names = ["a", "bc", "d" * 9] * 100
    with h5py.File(tmp_path / "names.h5", "w") as file:
        values = np.array([name.encode() for name in names]).astype(dtype)
        file.create_dataset("names", data=values, dtype=dtype, chunks=(7,), **packing)
    root, close = open_hdf5("names.h5", str(tmp_path / "names.h5"), 1 << 20)
    array = root.array("names", "T")
    assert array.whole().tolist() == names
    assert array[5:20].tolist() == names[5:20]
    close()


def test_files_can_be_read_after_a_stored_error(tmp_path):
    """Jupyter keeps the last error. An unfinished iterator in its traceback would keep h5py's
    lock."""
    adata = adata_of(*counts_of())
    adata.write_h5ad(tmp_path / "sound.h5ad")
    for name, of in ("X", "obs/_index"), ("var/_index", "X/data"), ("obs/cell_type", "X/indptr"):
        write_plain(adata, tmp_path / f"odd{len(of)}.h5ad")
        with h5py.File(tmp_path / f"odd{len(of)}.h5ad", "a") as file:
            values = file[of][:]
            del file[name]
            file[name] = values
    child = """
import sys, glob, sparsemargin
for path in sorted(glob.glob(sys.argv[1] + "/*.h5ad")):
    try:
        sparsemargin.fit_anndata(path, "cell_type", max_iter=1)
    except ValueError as error:
        sys.last_exc = sys.last_value = error
print("read", sys.last_exc)
"""
    done = subprocess.run(
        [sys.executable, "-c", child, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith("read "), done.stderr


GENES = ["CD4", "CD14", *(f"G{i}" for i in range(78))]
PROTEINS = ["CD4", "CD14", "CD19"]


def with_proteins(X, types):
    """Return cells with 80 genes and three antibodies, two of which have the names of genes."""
    both = csr_matrix(hstack([X, np.random.RandomState(0).poisson(200, (X.shape[0], 3))]))
    return adata_of(both.astype(np.float32), types)


def multi_modal(kind, adata, types, to):
    """Return the same cells in one of the forms, and their labels."""
    features = ["Gene Expression"] * 80 + ["Antibody Capture"] * 3
    barcodes = adata.obs_names.tolist()
    table = dict(zip(barcodes, types, strict=True))
    if kind == "10x":
        write_10x(to / "cells.h5", adata.X, GENES + PROTEINS, barcodes)
        with h5py.File(to / "cells.h5", "a") as file:
            del file["matrix/features/feature_type"]
            file["matrix/features/feature_type"] = np.array(features, "S")
        return to / "cells.h5", table
    if kind == "matrix":
        write_matrix(f"{to}/", adata.X, GENES + PROTEINS, barcodes, kinds=False)
        lines = [f"E{j}\t{name}\t{kind}\n" for j, (name, kind) in
                 enumerate(zip(GENES + PROTEINS, features, strict=True))]  # fmt: skip
        (to / "genes.tsv").unlink()
        (to / "features.tsv").write_text("".join(lines))
        return to, table
    adata.var["feature_types"] = features if kind == "text" else pd.Categorical(features)
    adata.var_names = [*GENES, "CD4-1", "CD14-1", "CD19"]
    if kind == "raw":
        adata.raw = adata
    return adata, "cell_type"


@pytest.mark.parametrize("kind", ["10x", "matrix", "text", "memory", "files", "raw"])
def test_features_that_are_not_genes_are_left_out(tmp_path, kind):
    X, types = counts_of()
    alone = adata_of(X, types)
    alone.var_names = GENES
    expected = fit_anndata(alone, "cell_type", shuffle=False, max_iter=2)
    what, label = multi_modal(kind, with_proteins(X, types), types, tmp_path)
    layer = "raw" if kind == "raw" else None
    for each in written(what, tmp_path) if kind == "files" else [what]:
        with pytest.warns(UserWarning, match="3 of 83 features are left out") as told:
            model = fit_anndata(each, label, shuffle=False, max_iter=2, layer=layer)
        assert sum("left out" in str(one.message) for one in told) == 1
        assert model.feature_names_in_.tolist() == GENES
        assert np.array_equal(model.classifier_.coef_, expected.classifier_.coef_)
        with pytest.warns(UserWarning, match="3 of 83 features are left out"):
            types_told = annotate(expected, each, layer=layer)
        assert np.array_equal(types_told.confidence, annotate(expected, alone).confidence)


def test_features_of_a_single_type_are_all_used():
    adata = adata_of(*counts_of())
    for kinds in ["Gene Expression"] * 80, ["Antibody Capture"] * 80, ["gene"] * 79 + ["x"]:
        adata.var["feature_types"] = kinds
        assert len(fit_anndata(adata, "cell_type", max_iter=1).feature_names_in_) == 80


def test_feature_type_names_ignore_case():
    adata = adata_of(*counts_of())
    adata.var["feature_types"] = ["gene_expression"] * 79 + ["Antibody Capture"]
    with pytest.warns(UserWarning, match="1 of 80 features are left out"):
        assert len(fit_anndata(adata, "cell_type", max_iter=1).feature_names_in_) == 79


def test_threads_read_a_file_at_once(tmp_path):
    """HDF5 allows one call at a time. Without h5py's lock, it fails or ends the process."""
    values = {
        "text": np.array([f"cell {i}" for i in range(2_000)], object),
        "lzf": np.arange(20_000),
        "gzip": np.arange(20_000.0),
        "plain": np.arange(20_000, dtype=np.int32),
    }
    with h5py.File(path := tmp_path / "cells.h5", "w") as file:
        for name, each in values.items():
            packed = {"text": "gzip", "plain": None}.get(name, name)
            file.create_dataset(name, data=each, compression=packed)
    root, close = open_hdf5("cells.h5", str(path), path.stat().st_size)
    names = list(values) * 10
    with ThreadPoolExecutor(6) as pool:
        read = list(pool.map(lambda name: root.get(name).whole(), names))
    close()
    for name, each in zip(names, read, strict=True):
        assert np.array_equal(each, values[name]), name
