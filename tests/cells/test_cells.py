"""`fit_anndata` gives the same model as `fit_csr`, for cells in memory and in files."""

import gzip
import os
import warnings

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_matrix

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
from sparsemargin import annotate, fit_anndata, fit_csr, load_model, marker_genes, save_model
from sparsemargin.cells import source as stream
from sparsemargin.cells.genes import CellForm, genes_of
from sparsemargin.cells.source import CellCorpus, labels_of
from sparsemargin.files.sources import open_sources
from sparsemargin.genomes import CellNormalizer
from sparsemargin.models.inputs.label_table import LabelTable

IN_ORDER = {"algo": "alma", "multi_class": "joint", "max_iter": 3, "shuffle": False}


def logs_of(X, target=1e4):
    """Return log1p of normalised counts, computed directly on a dense array."""
    dense = np.asarray(X.todense(), dtype=np.float64)
    totals = dense.sum(axis=1, keepdims=True)
    return np.log1p(np.divide(dense * target, totals, out=np.zeros_like(dense), where=totals > 0))


@pytest.fixture
def adata():
    return adata_of(*counts_of())


@pytest.fixture
def path(adata, tmp_path):
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def weights(model):
    return model.classifier_.coef_


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint16])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("dense", [False, True])
def test_h5ad_file_gives_the_model_of_its_matrix(tmp_path, dtype, index_type, dense):
    X, types = counts_of(dtype=dtype)
    adata = adata_of(X.toarray() if dense else X, types)
    path = tmp_path / "cells.h5ad"
    adata.write_h5ad(path)
    if not dense:
        with h5py.File(path, "a") as file:
            for name in ("indices", "indptr"):
                values = file["X"][name][:]
                del file["X"][name]
                file["X"][name] = values.astype(index_type)
    rows = CellNormalizer().fit_transform(X)
    assert rows.dtype == (np.float64 if dtype == np.float64 else np.float32)
    expected = fit_csr(rows, types, **IN_ORDER)
    for what in path, adata:
        model = fit_anndata(what, "cell_type", **IN_ORDER)
        assert np.array_equal(weights(model), expected.coef_)
        assert np.array_equal(model.predict(X), expected.predict(rows))
        assert model.feature_names_in_.tolist() == adata.var_names.tolist()


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_normalization_agrees_with_scanpy(dtype, tolerance):
    sc = pytest.importorskip("scanpy", reason="scanpy is not installed")
    X, types = counts_of(dtype=dtype)
    made = CellNormalizer(target_sum=3000).fit_transform(X)
    adata = adata_of(X.copy(), types)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.pp.normalize_total(adata, target_sum=3000)
        sc.pp.log1p(adata)
    assert np.allclose(made.toarray(), adata.X.toarray(), rtol=tolerance, atol=0)
    assert np.allclose(made.toarray(), logs_of(X, 3000), rtol=tolerance, atol=0)


def test_logarithms_are_detected_with_a_warning_and_unchanged(adata):
    logs = adata.copy()
    logs.X = CellNormalizer().fit_transform(adata.X)
    assert np.array_equal(CellNormalizer().fit_transform(logs.X).data, logs.X.data)
    with pytest.warns(UserWarning, match="assumed to be log1p of counts normalised to a total"):
        model = fit_anndata(logs, "cell_type", **IN_ORDER)
    assert np.array_equal(weights(model), weights(fit_anndata(adata, "cell_type", **IN_ORDER)))
    estimated = adata.X.multiply(np.random.RandomState(0).uniform(0.5, 1, adata.shape)).tocsr()
    made = CellNormalizer(normalize="counts", target_sum=1e4).fit_transform(estimated)
    assert np.allclose(made.toarray(), logs_of(estimated), rtol=1e-6)
    with pytest.raises(ValueError, match="Leave out normalize='counts'"):
        CellNormalizer(normalize="counts").fit(logs.X)


def spread(monkeypatch, buffered=2000, span=4):
    monkeypatch.setattr(stream, "_BUFFERED", buffered)
    monkeypatch.setattr(stream, "_SPAN", span)


def rows_of(path, seed):
    form = CellForm()
    with form.open(path) as cells:
        return rows_in(cells, seed, form)


def rows_in(cells, seed, form):
    codes, classes = labels_of(cells, "cell_type")
    genes = genes_of(cells, None, form)
    corpus = CellCorpus(cells, genes, CellNormalizer(normalize=None), form, codes, classes, seed)
    table = LabelTable()
    blocks = list(corpus.scan(table))
    rows = [
        (block.location_of(i), table.texts[block.labels[i]], block.part(i, i + 1).data.tolist())
        for block in blocks for i in range(block.n_rows)
    ]  # fmt: skip
    return rows, blocks


def test_shuffling_covers_all_cells_of_a_file(adata, path, monkeypatch):
    spread(monkeypatch)
    lying, _ = rows_of(path, None)
    mixed, blocks = rows_of(path, 5)
    assert [row[0] for row in lying] == [f"{path}, cell {i + 1}: " for i in range(300)]
    assert [row[2] for row in lying] == [adata.X[i].data.tolist() for i in range(300)]
    assert sorted(mixed) == sorted(lying)
    assert mixed != lying
    assert mixed == rows_of(path, 5)[0]
    spans = {int(name.split()[-1].strip(": ")) // 4 for name, *_ in mixed[: blocks[0].n_rows]}
    assert len(spans) > blocks[0].n_rows / 8


@pytest.mark.parametrize("order", ["type", "batch"])
def test_sorted_cells_give_the_error_of_shuffled_cells(tmp_path, monkeypatch, order):
    X, types = counts_of(1200, 100, 6)
    batch = np.arange(1200) % 4
    by = np.argsort(types if order == "type" else batch, kind="stable")
    adata_of(X[by], types[by]).write_h5ad(tmp_path / "sorted.h5ad")
    spread(monkeypatch, buffered=8000)
    test, expected = counts_of(1000, 100, 6, seed=1)
    told = [
        fit_anndata(what, "cell_type", max_iter=1).score(test, expected)
        for what in (tmp_path / "sorted.h5ad", adata_of(X, types))
    ]
    assert told[0] > told[1] - 0.03
    if order == "type":
        with pytest.warns(UserWarning, match="sorted by their labels"):
            fit_anndata(tmp_path / "sorted.h5ad", "cell_type", max_iter=1, shuffle=False)


def test_backed_layers_raw_and_subsets_are_read(adata, path):
    expected = weights(fit_anndata(adata, "cell_type", **IN_ORDER))
    backed = anndata.read_h5ad(path, backed="r")
    assert np.array_equal(weights(fit_anndata(backed, "cell_type", **IN_ORDER)), expected)
    with pytest.raises(ValueError, match="to_memory"):
        fit_anndata(backed[:10], "cell_type")
    backed.file.close()
    other = adata.copy()
    other.layers["counts"], other.raw = adata.X.copy(), adata
    other.X = csr_matrix(-adata.X)
    other.write_h5ad(path)
    for layer in "counts", "raw":
        for what in other, path:
            model = fit_anndata(what, "cell_type", layer=layer, **IN_ORDER)
            assert np.array_equal(weights(model), expected)
    fit_anndata(other, "cell_type", normalize=None)


def test_backed_cells_have_the_names_and_layers_in_memory(adata, path):
    adata.var_names = [f"gene{j}" for j in [0, 0, *range(2, adata.n_vars)]]
    adata.raw = adata
    adata.write_h5ad(path)
    backed = anndata.read_h5ad(path, backed="r")
    with pytest.raises(ValueError, match=r"'gene0'.* Call adata\.var_names_make_unique\(\)"):
        fit_anndata(backed, "cell_type", **IN_ORDER)
    backed.var_names_make_unique()
    backed.obs_names = [f"other_{name}" for name in backed.obs_names]
    backed.var["symbol"] = [name.upper() for name in backed.var_names]
    backed.layers["counts"] = adata.X.copy()
    labels = dict(zip(backed.obs_names, backed.obs["cell_type"], strict=True))
    expected = fit_anndata(backed.to_memory(), labels, **IN_ORDER)
    for how in {}, {"layer": "counts"}, {"var": "symbol"}:
        model = fit_anndata(backed, labels, **IN_ORDER, **how)
        assert np.array_equal(weights(model), weights(expected))
        names = model.feature_names_in_.tolist()
        assert names == list(backed.var["symbol"] if "var" in how else backed.var_names)
        assert annotate(model, backed, **how).cells.tolist() == list(backed.obs_names)
    with pytest.raises(ValueError, match="several genes"):
        fit_anndata(backed, labels, layer="raw")
    backed.raw.var.index = backed.var_names
    raw = fit_anndata(backed, labels, layer="raw", **IN_ORDER)
    assert np.array_equal(weights(raw), weights(expected))
    backed.file.close()


def test_cells_without_x_are_refused_with_the_other_matrices(adata, path):
    adata.layers["counts"], adata.raw = adata.X.copy(), adata
    del adata.X
    for layers in ["counts", "raw"], ["raw"], []:
        adata.write_h5ad(path)
        for what in adata, path:
            named = " or ".join(f"layer='{each}'" for each in layers) or "cells with a matrix"
            with pytest.raises(ValueError, match=f"has no X. Pass {named}"):
                fit_anndata(what, "cell_type")
            for layer in layers:
                fit_anndata(what, "cell_type", layer=layer, **IN_ORDER)
        adata = anndata.AnnData(None, adata.obs, adata.var) if layers == ["raw"] else adata
        adata.layers.pop("counts", None)


def test_10x_h5_files_are_read(adata, tmp_path):
    X, types = counts_of()
    genes, barcodes = adata.var_names.tolist(), adata.obs_names.tolist()
    genes[5] = genes[4]
    write_10x(tmp_path / "cells.h5", X, genes, barcodes)
    lines = [f"{name}\t{kind}\n" for name, kind in zip(barcodes[:200], types, strict=False)]
    (tmp_path / "types.tsv").write_text("barcode\ttype\n" + "".join(lines))
    rows = X[:200, :-1]  # the last feature is not a gene
    expected = fit_csr(CellNormalizer().fit_transform(rows), types[:200], **IN_ORDER)
    model = fit_anndata(tmp_path / "cells.h5", tmp_path / "types.tsv", **IN_ORDER)
    known = model.feature_names_in_.tolist()
    assert known[3:7] == ["GENE3", "ENSG4", "ENSG5", "GENE6"]
    assert np.array_equal(weights(model), expected.coef_)
    told = dict(zip(barcodes, types, strict=True))
    by_id = fit_anndata(tmp_path / "cells.h5", told, var="id", **IN_ORDER)
    assert by_id.feature_names_in_[1] == "ENSG1"
    told = annotate(model, tmp_path / "cells.h5")
    assert told.cells.tolist() == barcodes
    assert np.array_equal(
        told.predicted[:200], expected.predict(CellNormalizer().fit_transform(rows))
    )


@pytest.mark.parametrize("kinds", [True, False])
@pytest.mark.filterwarnings("error::DeprecationWarning:sparsemargin")
def test_10x_matrix_folders_are_read(adata, tmp_path, kinds):
    X, types = counts_of()
    genes, barcodes = adata.var_names.tolist(), adata.obs_names.tolist()
    told = dict(zip(barcodes[:200], types, strict=False))
    for begin, what in ((f"{tmp_path}/", tmp_path), (f"{tmp_path}/run1_", None)):
        write_matrix(begin, X, genes, barcodes, kinds)
        rows = X[:200, :-1] if kinds else X[:200]  # the last feature is not a gene
        expected = fit_csr(CellNormalizer().fit_transform(rows), types[:200], **IN_ORDER)
        what = what or f"{begin}matrix.mtx{'.gz' if kinds else ''}"
        model = fit_anndata(what, told, **IN_ORDER)
        assert np.array_equal(weights(model), expected.coef_)
        assert annotate(model, what).cells.tolist() == barcodes
        assert fit_anndata(what, told, var="id", max_iter=1).feature_names_in_[1] == "ENSG1"


@pytest.mark.parametrize("how", [
    {"compression": "gzip"}, {"compression": "gzip", "shuffle": True}, {"compression": "lzf"},
    {"compression": "gzip", "fletcher32": True}, {"chunks": (100,)},
])  # fmt: skip
def test_compressed_values_agree_with_h5py(adata, path, how):
    expected = weights(fit_anndata(adata, "cell_type", **IN_ORDER))
    with h5py.File(path, "a") as file:
        for name in "data", "indices":
            values = file["X"][name][:]
            del file["X"][name]
            file["X"].create_dataset(name, data=values, **{"chunks": (1000,), **how})
    assert np.array_equal(weights(fit_anndata(path, "cell_type", **IN_ORDER)), expected)
    if how == {"compression": "gzip"}:
        with h5py.File(path, "a") as file:
            dataset = file["X"]["data"]
            _, packed = dataset.id.read_direct_chunk((0,))
            dataset.id.write_direct_chunk((0,), packed[: len(packed) // 2])
        error = broken(path, lambda each: fit_anndata(each, "cell_type"))
        assert "cells.h5ad: /X/data has a chunk whose size differs from its shape" in error


def test_invalid_10x_matrices_are_reported(adata, tmp_path):
    X, types = counts_of()
    genes, barcodes = adata.var_names.tolist(), adata.obs_names.tolist()
    told = dict(zip(barcodes, types, strict=True))
    write_matrix(f"{tmp_path}/", X, genes, barcodes[:-1], kinds=False)

    def error(**how):
        return broken(tmp_path, lambda path: fit_anndata(path, told, **how))

    assert "its shape is (80, 300), but the tables name 80 features and 299 barcodes" in error()
    (tmp_path / "barcodes.tsv").unlink()
    assert "there is no barcodes.tsv or .gz in its folder" in error()
    write_matrix(f"{tmp_path}/", X, genes, barcodes, kinds=False)
    assert "has no layer 'counts'. There are: none. layer=None" in error(layer="counts")
    text = (tmp_path / "matrix.mtx").read_text()
    (tmp_path / "matrix.mtx").write_text(text[: len(text) // 2])
    assert "can't be read" in error()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.filterwarnings("ignore:.*zarr.*", "ignore::UserWarning:zarr")
def test_zarr_stores_are_read(adata, tmp_path, version):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    if version == 3 and zarr.__version__.startswith("2"):
        pytest.skip("zarr 2 writes version 2 only")
    adata.layers["logs"] = CellNormalizer().fit_transform(adata.X)
    with anndata.settings.override(zarr_write_format=version):
        adata.write_zarr(tmp_path / "cells.zarr")
    expected = fit_anndata(adata, "cell_type", **IN_ORDER)
    model = fit_anndata(tmp_path / "cells.zarr", "cell_type", **IN_ORDER)
    assert np.array_equal(weights(model), weights(expected))
    told, of_all = annotate(model, tmp_path / "cells.zarr"), annotate(expected, adata)
    assert told.cells.tolist() == adata.obs_names.tolist()
    assert np.array_equal(told.predicted, of_all.predicted)
    with pytest.raises(ValueError, match=r"has no column 'x' in obs. There are: cell_type"):
        fit_anndata(tmp_path / "cells.zarr", "x")
    with pytest.warns(UserWarning, match="assumed to be log1p of counts"):
        fit_anndata(tmp_path / "cells.zarr", "cell_type", layer="logs", max_iter=1)


def test_confidence_is_low_for_unseen_batches(adata):
    """Features that distinguish the types differ between batches, so confidence must be low."""
    batch, types = np.arange(600) % 4, np.arange(600) // 4 % 2
    X = np.random.RandomState(0).poisson(1, (600, 12))
    X[np.arange(600), 4 + 2 * batch + types] += 60
    cells = adata_of(csr_matrix(X.astype(np.float32)), np.array(["A", "B"])[types])
    cells.obs["donor"] = [f"donor {i}" for i in batch]
    how = {"algo": "arow", "target_sum": 1e4}
    sure = annotate(fit_anndata(cells, "cell_type", **how), cells).confidence
    less = annotate(fit_anndata(cells, "cell_type", **how, batch="donor"), cells).confidence
    assert sure.mean() > 0.7
    assert less.mean() < 0.6
    cells.obs["donor"] = "one"
    for label, words in (("donor", "batch='donor' has one value"), ("no", "no column 'no' in obs")):
        with pytest.raises(ValueError, match=words):
            fit_anndata(cells, "cell_type", batch=label)
    cells.obs["donor"] = [None, "a", "b"] * 200
    with pytest.raises(ValueError, match="'donor' is missing for 200 of 600 cells"):
        fit_anndata(cells, "cell_type", batch="donor")
    with pytest.raises(ValueError, match="batch: 299 cells are not in the table"):
        fit_anndata(adata, "cell_type", batch={"cell0": "x"})


def test_genes_are_matched_by_name(adata, path):
    model = fit_anndata(path, "cell_type", **IN_ORDER)
    expected = model.predict(adata.X)
    order = np.random.RandomState(0).permutation(adata.n_vars)
    other = adata[:, order].copy()
    told = annotate(model, other)
    assert np.array_equal(told.predicted, expected)
    assert np.array_equal(other.obs["sparsemargin"], expected)
    less = other[:, other.var_names != "GENE7"].copy()
    with pytest.warns(UserWarning, match="lacks 1 of the 80 genes of the model.*'GENE7'"):
        annotate(model, less)
    other.var_names = other.var_names.str.lower()
    with pytest.raises(ValueError, match=r"has none of the 80 genes.*Pass match='case'"):
        annotate(model, other)
    assert np.array_equal(annotate(model, other, match="case").predicted, expected)
    by_id = fit_anndata(adata, "cell_type", var="ensembl", **IN_ORDER)
    other.var["later"] = [name[: name.index(".")] + ".99" for name in other.var["ensembl"]]
    with pytest.raises(ValueError, match="Pass match='version'"):
        annotate(by_id, other, var="later")
    assert np.array_equal(annotate(by_id, other, var="later", match="version").predicted, expected)


def test_several_files_use_their_common_genes(adata, tmp_path):
    first, second = adata[:150, :70].copy(), adata[150:, 10:][:, ::-1].copy()
    paths = tmp_path / "1.h5ad", tmp_path / "2.h5ad"
    for each, path in zip((first, second), paths, strict=True):
        each.write_h5ad(path)
    with pytest.warns(UserWarning, match="60 of 80 genes are in all of the files"):
        model = fit_anndata(list(paths), "cell_type", **IN_ORDER, target_sum=1e4)
    assert model.feature_names_in_.tolist() == adata.var_names[10:70].tolist()
    shared = adata.X.toarray()[:, 10:70].astype(np.float64)
    shared *= 1e4 / shared.sum(axis=1, keepdims=True)
    logs = csr_matrix(np.log1p(shared).astype(np.float32))
    expected = fit_csr(logs, adata.obs["cell_type"].to_numpy().astype(str), **IN_ORDER)
    assert np.allclose(weights(model), expected.coef_, rtol=1e-4, atol=1e-6)
    with pytest.warns(UserWarning, match="60 of 80"):
        union = fit_anndata(list(paths), "cell_type", genes="union", max_iter=1)
    assert len(union.feature_names_in_) == 80
    with pytest.warns(UserWarning, match="1 of 3 genes are in no file"):
        few = fit_anndata(list(paths), "cell_type", genes=["GENE20", "none", "GENE5"])
    assert few.feature_names_in_.tolist() == ["GENE20", "none", "GENE5"]
    assert not weights(few)[:, 1].any()


def test_cell_models_are_saved_resumed_and_give_markers(adata, path, tmp_path):
    model = fit_anndata(path, "cell_type", max_iter=2, target_sum=1e4)
    save_model(model, tmp_path / "types.model")
    loaded = load_model(tmp_path / "types.model")
    assert np.array_equal(loaded.predict(adata.X), model.predict(adata.X))
    assert np.array_equal(loaded.normalizer_.deviations_, model.normalizer_.deviations_)
    assert np.array_equal(annotate(loaded, path).predicted, model.predict(adata.X))
    further = fit_anndata(path, "cell_type", init_model=loaded, max_iter=1)
    assert further.classifier_.fitted.space.trials == 900
    logs = logs_of(adata.X)
    assert np.allclose(model.normalizer_.deviations_, logs.std(axis=0), rtol=1e-4)
    markers = marker_genes(model, top=5).query("type == 'B'")
    scores = weights(model)[1]
    best = np.argsort(-scores, kind="stable")[:5]
    assert markers["gene"].tolist() == adata.var_names[best].tolist()
    assert np.allclose(markers["score"], scores[best])
    assert markers["rank"].tolist() == [1, 2, 3, 4, 5]


def test_default_cell_model_is_joint_alma_with_balanced_classes(adata):
    model = fit_anndata(adata, "cell_type").classifier_
    rows = CellNormalizer().fit_transform(adata.X)
    same = fit_csr(
        rows, adata.obs["cell_type"].to_numpy().astype(str), "alma", multi_class="joint",
        max_iter=10, class_weight="balanced",
    )  # fmt: skip
    assert model.get_params() == {**same.get_params()}
    told = fit_anndata(adata, "cell_type", shuffle=False).classifier_
    same.set_params(shuffle=False).fit(rows, adata.obs["cell_type"])
    assert np.allclose(told.coef_, same.coef_, rtol=1e-4)
    assert fit_anndata(adata, "cell_type", positive="B", max_iter=1).classes_.tolist() == [-1, 1]


def test_labels_keep_their_type(adata):
    adata.obs["leiden"] = pd.Categorical(["0", "1", "10"] * 100)
    assert fit_anndata(adata, "leiden", max_iter=1).classes_.tolist() == ["0", "1", "10"]
    adata.obs["number"] = [3, 1, 20] * 100
    assert fit_anndata(adata, "number", max_iter=1).classes_.tolist() == [1, 3, 20]
    adata.obs["sick"] = [True, False, True] * 100
    assert fit_anndata(adata, "sick", max_iter=1).classes_.tolist() == [False, True]
    adata.obs["text"] = adata.obs["cell_type"].astype(str)
    assert fit_anndata(adata, "text", max_iter=1).classes_.tolist() == ["A", "B", "C"]


def test_annotate_writes_tables_of_types(adata, path, tmp_path, monkeypatch):
    model = fit_anndata(path, "cell_type", max_iter=2)
    spread(monkeypatch, buffered=1000)
    types = annotate(model, path)
    sure = float(np.median(types.confidence))
    assert annotate(model, path, threshold=sure, output=tmp_path / "told.tsv") is None
    table = pd.read_csv(tmp_path / "told.tsv", sep="\t")
    assert table["cells"].tolist() == adata.obs_names.tolist()
    unsure = types.confidence < sure
    assert 100 < unsure.sum() < 200
    assert (table["predicted"][unsure] == "unassigned").all()
    assert np.array_equal(table["predicted"][~unsure], types.predicted[~unsure])
    assert np.allclose(types.confidence, model.predict_proba(adata.X).max(axis=1))


def broken(adata, change):
    """Return the message of the ValueError that `change` raises, which must be one line."""
    with pytest.raises(ValueError) as error:  # noqa: PT011
        change(adata)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_invalid_input_is_reported_in_one_line(adata, path, tmp_path):
    def told(changed, label="cell_type", **how):
        return broken(changed, lambda each: fit_anndata(each, label, **how))

    assert "no column 'celltype' in obs. There are: cell_type" in told(path, "celltype")
    assert "no column 'celltype' in obs. There are: cell_type" in told(adata, "celltype")
    gone = adata.copy()
    gone.obs["cell_type"] = gone.obs["cell_type"].cat.remove_categories("B")
    assert "missing for" in told(gone)
    gone.write_h5ad(tmp_path / "gone.h5ad")
    assert "notna()" in told(tmp_path / "gone.h5ad")
    columns = adata.copy()
    columns.X = csc_matrix(adata.X)
    columns.write_h5ad(tmp_path / "csc.h5ad")
    assert "adata.X = adata.X.tocsr()" in told(tmp_path / "csc.h5ad")
    fit_anndata(columns, "cell_type", max_iter=1)
    for value, words in ((np.nan, "cell 4: a value is NaN"), (-1, "cell 4: Negative values"),
                         (50.5, "cell 4: values are not whole")):  # fmt: skip
        for dense in False, True:
            odd = adata.copy()
            odd.X = odd.X.toarray()
            odd.X[3, 2] = value
            odd.X = odd.X if dense else csr_matrix(odd.X)
            odd.write_h5ad(tmp_path / "odd.h5ad")
            assert words in told(tmp_path / "odd.h5ad")
            assert words in told(odd)
    twice = adata.copy()
    twice.var_names = ["GENE0", "GENE0", *twice.var_names[2:]]
    assert "several genes with the name 'GENE0'" in told(twice)
    assert "has no cells" in told(adata[:0].copy())
    assert "has no genes" in told(adata[:, :0].copy())
    other = adata.copy()
    other.var_names = [f"other{j}" for j in range(80)]
    assert "0 of 160 genes are in all of the files" in told([adata, other])
    assert "1 of 1 genes are in no file" in told(adata, genes=["x"])
    assert "has no layer 'x'" in told(path, layer="x")
    assert "has no column 'x' in var" in told(path, var="x")
    one = adata[adata.obs["cell_type"] == "A"].copy()
    assert "one class only" in told(one)
    assert "target_sum" in told(path, target_sum=0)
    assert "normalize" in told(path, normalize="log")
    assert "multilabel does not apply to cells" in told(path, multilabel=True)
    with pytest.raises(FileNotFoundError, match="no such file"):
        fit_anndata(tmp_path / "none.h5ad", "cell_type")


def test_damaged_files_are_named(path, tmp_path):
    whole = path.read_bytes()
    for size in len(whole) // 2, 600:
        path.write_bytes(whole[:size])
        assert "can't be read" in broken(path, lambda each: fit_anndata(each, "cell_type"))
    with h5py.File(path, "w") as file:
        file["x"] = 1
    assert "is neither a file of AnnData nor of Cell Ranger 3" in broken(
        path, lambda x: fit_anndata(x, "cell_type")
    )
    for name, change in (
        ("indices", lambda values: np.append(values[:-1], 80)),
        ("indptr", lambda values: values[::-1]),
        ("indptr", lambda values: values + 1),
    ):
        path.write_bytes(whole)
        with h5py.File(path, "a") as file:
            values = change(file["X"][name][:])
            del file["X"][name]
            file["X"][name] = values
        assert "damaged" in broken(path, lambda each: fit_anndata(each, "cell_type"))


def test_unsorted_columns_are_sorted_and_duplicates_rejected(adata):
    X = adata.X.copy()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[start:stop], X.data[start:stop] = (
            X.indices[start:stop][::-1],
            X.data[start:stop][::-1],
        )
    X.has_sorted_indices = False
    unsorted = adata.copy()
    unsorted.X = X
    assert np.array_equal(
        weights(fit_anndata(unsorted, "cell_type", **IN_ORDER)),
        weights(fit_anndata(adata, "cell_type", **IN_ORDER)),
    )
    X.indices[1] = X.indices[0]
    with pytest.raises(ValueError, match=r"cell .*: a gene has two values"):
        fit_anndata(unsorted, "cell_type")


def test_confidence_is_near_the_accuracy():
    X, types = counts_of(1500, 5, 4)
    model = fit_anndata(adata_of(X[:1000], types[:1000]), "cell_type")
    told = annotate(model, adata_of(X[1000:], types[1000:]))
    right = told.predicted == types[1000:]
    assert 0.5 < right.mean() < 0.95
    assert abs(told.confidence.mean() - right.mean()) < 0.12
    sure = told.confidence > np.median(told.confidence)
    assert right[sure].mean() > right[~sure].mean() + 0.1


@pytest.mark.filterwarnings("ignore:.*zarr.*", "ignore::UserWarning:zarr")
def test_zarr_identity_covers_all_of_its_files(adata, tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    store = tmp_path / "cells.zarr"
    adata.write_zarr(store)
    before = fit_anndata(store, "cell_type", cache=True, **IN_ORDER)
    [source] = open_sources(store)
    assert source.size == sum(each.stat().st_size for each in store.rglob("*") if each.is_file())
    assert source.identity == open_sources(store)[0].identity
    source.check_unchanged()
    values = zarr.open_group(store)["X/data"]
    values[:] = values[:][::-1]
    assert source.identity != open_sources(store)[0].identity
    assert "changed while it was read" in broken(source, type(source).check_unchanged)
    after = fit_anndata(store, "cell_type", cache=True, **IN_ORDER)
    assert not np.array_equal(weights(after), weights(before))
    assert np.array_equal(
        weights(after), weights(fit_anndata(store, "cell_type", cache=False, **IN_ORDER))
    )


def test_10x_identity_covers_the_matrix_and_its_tables(adata, tmp_path):
    X, _ = counts_of()
    write_matrix(f"{tmp_path}/", X, adata.var_names.tolist(), adata.obs_names.tolist())
    for what in tmp_path, tmp_path / "matrix.mtx.gz":
        [source] = open_sources(what)
        assert source.size == (tmp_path / "matrix.mtx.gz").stat().st_size
        (tmp_path / "later.txt").write_text("of no table")
        source.check_unchanged()
        os.utime(tmp_path / "features.tsv.gz", ns=(0, len(str(what))))
        assert source.identity != open_sources(what)[0].identity
        assert "changed while it was read" in broken(source, type(source).check_unchanged)


@pytest.mark.parametrize("name", ["matrix.mtx.gz", "features.tsv.gz", "barcodes.tsv.gz"])
def test_truncated_and_odd_tables_are_named(adata, tmp_path, name):
    X, types = counts_of()
    barcodes = adata.obs_names.tolist()
    write_matrix(f"{tmp_path}/", X, adata.var_names.tolist(), barcodes)
    told = dict(zip(barcodes, types, strict=True))
    whole = (tmp_path / name).read_bytes()
    cases = [(whole[: len(whole) // 2], "damaged")]
    if name.startswith("features"):
        cases += [
            (gzip.compress(b""), "features.tsv.gz has no features"),
            (gzip.compress(b"A\nB\n"), "features.tsv.gz has fewer than 2 columns"),
            (gzip.compress(b"A\ta\nB\n"), "line 2 of features.tsv.gz has 1 columns"),
        ]
    if name.startswith("barcodes"):
        cases.append((gzip.compress(b""), "barcodes.tsv.gz has no barcodes"))
    for content, words in cases:
        (tmp_path / name).write_bytes(content)
        error = broken(tmp_path, lambda each: fit_anndata(each, told))
        assert error.startswith(str(tmp_path))
        assert words in error


def test_inconsistent_pointers_and_names_are_reported(adata, path):
    write_plain(adata, path)
    whole = path.read_bytes()
    for node, change, words in (
        ("X/indptr", lambda values: values[:, np.newaxis], "/X/indptr has type int32 and shape"),
        ("X/indptr", lambda values: values[np.newaxis], "/X/indptr has type int32 and shape"),
        ("X/indptr", lambda values: values.astype(float), "/X/indptr has type float64 and shape"),
        ("X/indptr", lambda values: values[:-1], "has 299 rows, but it names 300 cells"),
        ("X/indices", lambda values: values[:, np.newaxis], "/X/indices has type int32 and shape"),
        ("X/indices", lambda values: values[:-1], "values and"),
        ("X/data", lambda values: values.astype("S9"), "/X/data has text and shape"),
        ("obs/_index", lambda values: np.append(values, b"x"), "the file has 301 and 80"),
        ("obs/_index", lambda values: values[:-1], "the file has 299 and 80"),
        ("obs/_index/values", lambda values: values[:-1], "/obs/_index has a mask whose length"),
        ("obs/_index/mask", lambda values: values[:-1], "/obs/_index has a mask whose length"),
        ("obs/_index/mask", lambda values: values.astype(int), "has type int64 and shape"),
    ):
        path.write_bytes(whole)
        with h5py.File(path, "a") as file:
            if node.startswith("obs/_index/"):
                make_names_nullable(file)
            values, about = change(file[node][:]), dict(file[node].attrs)
            del file[node]
            file[node] = values
            file[node].attrs.update(about)
        error = broken(path, lambda each: fit_anndata(each, "cell_type"))
        assert error.startswith(str(path))
        assert words in error


def test_dask_arrays_are_rejected_by_fit_anndata(adata):
    array = pytest.importorskip("dask.array", reason="dask is not installed")
    model = fit_anndata(adata, "cell_type", max_iter=1)
    lazy = adata.copy()
    lazy.X = array.from_array(adata.X.toarray(), chunks=(100, -1))
    for act in (
        lambda each: fit_anndata(each, "cell_type"),
        lambda each: fit_anndata(each, "cell_type", **IN_ORDER),
        lambda each: annotate(model, each),
    ):
        error = broken(lazy, act)
        assert error.startswith(
            "The AnnData has a Dask array. Call adata.to_memory() first, or use fit_dist"
        )
    fit_anndata(lazy.to_memory(), "cell_type", max_iter=1)


def test_csc_matrices_are_rejected_with_their_location(adata, path):
    adata.layers["counts"], adata.raw = csc_matrix(adata.X), adata
    columns = adata.raw.to_adata()
    columns.X = csc_matrix(columns.X)
    adata.raw = columns
    adata.write_h5ad(path)
    for layer, words in (
        ("counts", "adata.layers['counts'] = adata.layers['counts'].tocsr()."),
        ("raw", "raw = adata.raw.to_adata(); raw.X = raw.X.tocsr(); adata.raw = raw."),
    ):
        error = broken(path, lambda each, layer=layer: fit_anndata(each, "cell_type", layer=layer))
        assert error.endswith(words)


@pytest.mark.parametrize("n_written", [0, 1000])
def test_missing_chunks_have_the_fill_value(adata, path, n_written):
    with h5py.File(path, "a") as file:
        values = file["X"]["data"][:]
        del file["X"]["data"]
        made = file["X"].create_dataset(
            "data", values.shape, values.dtype, chunks=(500,), compression="gzip", fillvalue=3
        )
        made[:n_written] = values[:n_written]
    adata.X.data[n_written:] = 3
    assert np.array_equal(
        weights(fit_anndata(path, "cell_type", **IN_ORDER)),
        weights(fit_anndata(adata, "cell_type", **IN_ORDER)),
    )


def test_unlabelled_cells_are_not_read(tmp_path):
    X, types = counts_of()
    adata = adata_of(X, types)
    told = dict(zip(adata.obs_names, types, strict=True))
    few = {name: kind for i, (name, kind) in enumerate(told.items()) if i % 9 == 0}
    holes = {name: few.get(name, np.nan if i % 2 else None) for i, name in enumerate(told)}
    model = fit_anndata(adata, few, random_state=0)
    series = fit_anndata(adata, pd.Series(holes), random_state=0)
    assert (annotate(model, adata).confidence == annotate(series, adata).confidence).all()
    assert np.isfinite(fit_anndata(adata, dict([*told.items()][:3])).normalizer_.deviations_).all()


def test_confidence_exists_for_algorithms_without_sample_weights():
    adata = adata_of(*counts_of())
    told = annotate(fit_anndata(adata, "cell_type", "romma", max_iter=3), adata)
    assert 0 < told.confidence.mean() < 1


def test_contradictory_arguments_are_rejected(tmp_path):
    X, types = counts_of()
    adata = adata_of(X, types, donor=["a"] * 299 + ["b"])
    with pytest.raises(ValueError, match="genes has 'GENE1' several times"):
        fit_anndata(adata, "cell_type", genes=["GENE1", "GENE2", "GENE1"])
    adata.write_h5ad(path := tmp_path / "cells.h5ad")
    model, before = fit_anndata(path, "cell_type"), path.read_bytes()
    with pytest.raises(ValueError, match="is that of a file of cells"):
        annotate(model, path, output=path)
    path.rename(other := tmp_path / "cells")
    with pytest.raises(ValueError, match="are one file"):
        annotate(model, other, output=other)
    assert other.read_bytes() == before


def test_row_cache_depends_on_the_order_of_genes(tmp_path):
    X, types = counts_of()
    how = {"random_state": 0, "cache": tmp_path / "rows.smcache", "max_iter": 2}
    names = [f"GENE{j}" for j in range(80)]
    barcodes = [f"cell{i}" for i in range(300)]
    table = dict(zip(barcodes, types, strict=True))
    for genes in names, names[::-1]:
        write_matrix(f"{tmp_path}/", X, genes, barcodes)
        model = fit_anndata(tmp_path, table, genes=names, **how)
        fresh = fit_anndata(tmp_path, table, genes=names, random_state=0, max_iter=2)
        assert (model.classifier_.coef_ == fresh.classifier_.coef_).all()
