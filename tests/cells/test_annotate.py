"""Tests of `annotate`: missing genes, cells without counts, output tables, advice in errors."""

import csv
import io
import re
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, hstack

from problems.cells import adata_of, anndata, counts_of, h5py, pd, write_10x, write_plain
from problems.command_line import run
from problems.published_files import data_folder
from sparsemargin import CellClassifier, annotate, fit_anndata, marker_genes, save_model
from sparsemargin.files.tsv import tsv_row

COUNTS, TYPES = counts_of(300, 200)


def cells(X=COUNTS, **obs):
    return adata_of(X.copy(), TYPES[: X.shape[0]], **obs)


@pytest.fixture(scope="module")
def model():
    return fit_anndata(cells(), "cell_type", random_state=0, max_iter=3)


def renamed(shares_of_genes, name):
    """Return cells in which only a share of the genes keep their names."""
    adata = cells()
    keep = np.arange(adata.n_vars) < shares_of_genes * adata.n_vars
    adata.var["symbol"] = adata.var_names.to_numpy()
    adata.var_names = [gene if kept else name(gene)
                       for gene, kept in zip(adata.var_names, keep, strict=True)]  # fmt: skip
    return adata


@pytest.mark.parametrize(("name", "remedy"), [
    (str.lower, "match='case'"), (lambda gene: f"ENSG{int(gene[4:]):011d}", "var='symbol'"),
])  # fmt: skip
@pytest.mark.parametrize("share", [0, 0.01, 0.1, 0.6])
def test_annotate_rejects_too_few_genes_and_warns_of_few(model, tmp_path, name, remedy, share):
    adata = renamed(share, name)
    if remedy == "match='case'":
        del adata.var["symbol"]
    adata.write_h5ad(tmp_path / "other.h5ad")
    expected = annotate(model, cells())
    for what in adata, tmp_path / "other.h5ad":
        if share < 0.5:
            with pytest.raises(ValueError, match=f"[Pp]ass {remedy}. Then 200 genes are found"):
                annotate(model, what)
        else:
            with pytest.warns(UserWarning, match=f"lowered by .*[Pp]ass {remedy}. Then 200 genes"):
                types = annotate(model, what)
            assert types.confidence.mean() < expected.confidence.mean() - 0.1
        given = dict([re.fullmatch(r"(\w+)='(\w+)'", remedy).groups()])
        types = annotate(model, what, **given)
        assert np.array_equal(types.predicted, expected.predicted)
        assert np.array_equal(types.confidence, expected.confidence)


def test_error_of_a_small_panel_suggests_training_on_its_genes(model):
    panel = cells()[:, :10].copy()
    with pytest.raises(ValueError, match=r"genes=list\(adata.var_names\)"):
        annotate(model, panel)
    trained = fit_anndata(cells(), "cell_type", genes=list(panel.var_names), max_iter=3)
    assert len(annotate(trained, panel).predicted) == 300
    unknown = renamed(0, lambda gene: f"x{gene}")
    del unknown.var["symbol"]
    with pytest.raises(ValueError, match=r"has none of the 200 genes.*Name the genes"):
        annotate(model, unknown)
    with pytest.raises(ValueError, match=r"Leave out var='ensembl'\. Then 200 genes"):
        annotate(model, cells(), var="ensembl")


def test_rarely_expressed_genes_may_be_missing(model):
    rare = np.argsort(model.normalizer_.deviations_)[:40]
    adata = cells()[:, np.setdiff1d(np.arange(200), rare)].copy()
    expected = model.pipeline_.predict_proba(
        csr_matrix(np.where(np.isin(np.arange(200), rare), 0, COUNTS.toarray()))
    )
    with pytest.warns(UserWarning, match="lacks 40 of the 200 genes of the model, which count as 0"
                      ) as found:  # fmt: skip
        types = annotate(model, adata)
    assert "lowered" not in str(found[0].message)
    # Totals differ a little, because those of the cells lack the genes that are 0 here.
    np.testing.assert_allclose(types.confidence, expected.max(axis=1), atol=1e-6)


def test_missing_genes_are_counted_per_file(model, tmp_path):
    cells().write_h5ad(tmp_path / "1.h5ad")
    renamed(0.6, str.lower).write_h5ad(tmp_path / "2.h5ad")
    paths = [tmp_path / "1.h5ad", tmp_path / "2.h5ad", tmp_path / "1.h5ad"]
    with pytest.warns(UserWarning, match="2.h5ad lacks 80 of the 200 genes"):
        types = annotate(model, paths)
    confidence = types.confidence.reshape(3, 300)
    assert np.array_equal(confidence[0], confidence[2])
    assert confidence[1].mean() < confidence[0].mean() - 0.1


@pytest.mark.parametrize("name", ["baron", "paul"])
def test_one_percent_of_the_genes_is_rejected(name):
    path = data_folder(f"cells/{name}.h5ad") / "cells" / f"{name}.h5ad"
    adata = anndata.read_h5ad(path)
    adata.obs["cell_type"] = adata.obs["cell_type"].astype(str)
    types = fit_anndata(adata, "cell_type", max_iter=1, random_state=0)
    some = np.random.RandomState(0).permutation(adata.n_vars)[: adata.n_vars // 100]
    with pytest.raises(ValueError, match="is needed to recognise types"):
        annotate(types, adata[:, some].copy())


@pytest.mark.parametrize("threshold", [0, 0.5])
def test_empty_cells_are_unassigned(model, tmp_path, threshold):
    X = COUNTS.toarray()
    X[[3, 250]] = 0
    other = hstack([csr_matrix(X), csr_matrix(np.ones((300, 1), np.float32))]).tocsr()
    adata = cells(other)  # all cells have a count of one gene that the model does not know
    adata.write_h5ad(tmp_path / "cells.h5ad")
    for what in adata, tmp_path / "cells.h5ad":
        with pytest.warns(UserWarning, match="2 of 300 cells have no counts of the genes of the"):
            types = annotate(model, what, threshold=threshold)
        assert np.flatnonzero(types.predicted == "unassigned").tolist() == [3, 250]
        assert types.confidence[[3, 250]] == pytest.approx([1 / 3, 1 / 3])
    with pytest.warns(UserWarning, match="2 of 300"):
        annotate(model, tmp_path / "cells.h5ad", output=tmp_path / "types.tsv")
    table = pd.read_csv(tmp_path / "types.tsv", sep="\t")
    assert (table["predicted"] == "unassigned").sum() == 2


def test_case_insensitive_match_prefers_the_exact_name(model):
    expected = annotate(model, cells()).predicted
    names = [f"Gene{j}" for j in range(200)]
    for more, gene in (("GENE3", 3), ("gENE3", None)):
        X = hstack([COUNTS, COUNTS[:, 3] if gene else COUNTS[:, 7] * 9]).tocsr()
        adata = cells(X)
        adata.var_names = [*names, more]
        with pytest.warns(UserWarning, match="has 1 genes whose names compare equal") as found:
            types = annotate(model, adata, match="case")
        assert ("'Gene3'" if gene else "'gENE3'") in str(found[0].message)
        assert (types.predicted == expected).mean() > 0.95
    adata = cells()
    adata.var_names = ["GENE0", "Gene0", *adata.var_names[2:]]
    both = fit_anndata(adata, "cell_type", max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        types = annotate(both, adata, match="case")
    assert np.array_equal(types.predicted, both.predict(COUNTS))
    with pytest.warns(UserWarning, match="compare equal"):
        one = fit_anndata(adata, "cell_type", match="case", max_iter=2)
    assert one.feature_names_in_.tolist() == ["GENE0", *adata.var_names[2:]]


def test_remedies_for_duplicate_gene_names_work(model):
    twice = cells()
    twice.var_names = ["GENE0", "GENE0", *twice.var_names[2:]]
    twice.var["symbol"] = ["GENE0", "GENE0", *twice.var_names[2:]]
    with pytest.raises(ValueError, match=r"Call adata.var_names_make_unique\(\)\."):
        annotate(model, twice)
    other = twice.copy()
    other.var_names_make_unique()
    annotate(model, other)
    other.var_names = [f"ENSG{j}" for j in range(200)]
    with pytest.raises(ValueError, match="several genes with the name 'GENE0'") as error:
        annotate(model, other, var="symbol")
    follow(error, other)
    annotate(model, other)


@pytest.mark.parametrize("var", [None, "symbol"])
def test_remedy_for_missing_gene_names_works(model, var):
    adata = cells()
    missing = [None if i in (3, 5) else name for i, name in enumerate(adata.var_names)]
    if var is None:
        adata.var_names = pd.Index(missing)
    else:
        adata.var["symbol"] = missing
    with pytest.raises(ValueError, match="several genes with the name 'nan'") as error:
        annotate(model, adata, var=var)
    follow(error, adata)
    with pytest.warns(UserWarning, match="lacks 2 of the 200 genes"):
        annotate(model, adata)


def follow(error, adata):
    """Execute the calls that the error about gene names advises."""
    remedy = str(error.value).partition("Call ")[2].removesuffix(".").partition(",")[0]
    for call in remedy.split(" and "):
        exec(call, {"adata": adata})


@pytest.mark.parametrize("kind", [object, "string", "category"])
def test_missing_names_of_cells_are_nan(model, tmp_path, kind):
    adata = cells()
    names = [None if i == 7 else name for i, name in enumerate(adata.obs_names)]
    adata.obs_names = pd.Index(names, dtype=kind)
    assert annotate(model, adata, output=tmp_path / "types.tsv") is None
    rows = (tmp_path / "types.tsv").read_text().splitlines()
    assert [row.split("\t")[0] for row in rows[7:10]] == ["cell6", "nan", "cell8"]


def test_error_of_10x_files_suggests_another_var_column(model, tmp_path):
    genes, barcodes = [f"GENE{j}" for j in range(200)], [f"cell{i}" for i in range(300)]
    write_10x(tmp_path / "cells.h5", COUNTS, genes, barcodes)
    with pytest.raises(ValueError, match=r"(Pass var='name'|Leave out var='id'). Then"):
        annotate(model, tmp_path / "cells.h5", var="id")
    annotate(model, tmp_path / "cells.h5", var="name")


def test_tables_of_several_files_name_the_file_of_each_cell(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells().write_h5ad("1.h5ad")
    cells()[:7].copy().write_h5ad("2.h5ad")
    annotate(model, ["1.h5ad", "2.h5ad"], output="types.csv")
    table = pd.read_csv("types.csv")
    assert list(table) == ["file", "cells", "predicted", "confidence"]
    assert table["file"].tolist() == ["1.h5ad"] * 300 + ["2.h5ad"] * 7
    assert table["cells"][300:].tolist() == [f"cell{i}" for i in range(7)]
    with pytest.raises(ValueError, match=r"types\.csv has the cells of several files"):
        fit_anndata("1.h5ad", "types.csv:predicted")
    annotate(model, "1.h5ad", output="one.csv")
    assert fit_anndata("1.h5ad", "one.csv:predicted").classes_.tolist() == ["A", "B", "C"]
    with pytest.raises(ValueError, match=r"Name the column of labels after .*one\.csv:predicted"):
        fit_anndata("1.h5ad", "one.csv")
    annotate(model, [cells(), cells()], output="both.tsv")
    files = pd.read_csv("both.tsv", sep="\t")["file"]
    assert files.unique().tolist() == ["The AnnData (1)", "The AnnData (2)"]


def test_names_of_other_files_are_refused_for_tables(model, tmp_path):
    for name in "types.h5ad", "types.zarr", "types.h5", "types.tsv.gz", "types.parquet":
        with pytest.raises(ValueError, match=r"Name it \.tsv or \.csv"):
            annotate(model, cells(), output=tmp_path / name)
    adata = cells()
    adata.obs_names = [f"a,{i}" for i in range(300)]
    annotate(model, adata, output=tmp_path / "types.csv")
    assert pd.read_csv(tmp_path / "types.csv")["cells"].tolist() == adata.obs_names.tolist()


NAMES = ["plain", "a\tb", "c0\tT9\t1\nc1\tFORGED\t1", "x\ry", '"quoted', 'in "side"', "back\\slash",
         "\u2028", "\x85", "\x00nul", "é", "'"]  # fmt: skip


def read_back(content):
    """Return the fields of a table, read with `csv`, without escapes."""

    def restored(field):
        return re.sub(r"\\(\\|[tnr]|x..|u....)",
                      lambda found: found[0].encode().decode("unicode_escape"), field)  # fmt: skip

    rows = csv.reader(io.StringIO(content.decode(), newline=""), delimiter="\t")
    return [[restored(field) for field in row] for row in rows]


@given(st.lists(st.lists(st.text(max_size=8) | st.sampled_from(NAMES), min_size=2, max_size=3)))
def test_annotation_table_is_read_back(rows):
    content = b"".join(map(tsv_row, rows))
    assert len(content.decode("utf-8", "replace").splitlines()) == len(rows)
    if all(text.isascii() or text.isprintable() for row in rows for text in row):
        assert read_back(content) == rows


def test_special_characters_in_names_are_escaped_in_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    adata = cells()
    types = np.array(NAMES[:3])[np.searchsorted(["A", "B", "C"], TYPES)]
    adata.obs["cell_type"] = types
    barcodes = [NAMES[i] if i < len(NAMES) - 3 else f"cell{i}" for i in range(300)]
    adata.obs_names = barcodes
    model = fit_anndata(adata, "cell_type", random_state=0, max_iter=1)
    save_model(model.pipeline_, "types.model")
    expected = annotate(model, adata)
    annotate(model, adata, output="types.tsv")
    found = read_back((tmp_path / "types.tsv").read_bytes())
    assert found[0] == ["cells", "predicted", "confidence"]
    assert [row[0] for row in found[1:]] == barcodes
    assert [row[1] for row in found[1:]] == expected.predicted.tolist()
    adata.obs_names = [f"cell{i}" for i in range(300)]
    write_plain(adata, "cells.h5ad")
    with h5py.File("cells.h5ad", "a") as file:
        names = [b"a\tb\nc\td\t1", *file["obs/_index"][1:]]
        about = dict(file["obs/_index"].attrs)
        del file["obs/_index"]
        file["obs"]["_index"] = np.array(names)
        file["obs/_index"].attrs.update(about)
    table = run("annotate", "types.model", "cells.h5ad").stdout.encode()
    assert len(table.splitlines()) == 301
    assert read_back(table)[1][0] == "a\tb\nc\td\t1"
    for how in ["--proba"], ["--scores"], ["--explain", "2"]:
        rows = read_back(run("predict", "types.model", "cells.h5ad", *how).stdout.encode())
        assert len({len(row) for row in rows}) == 1
        place = 1 if how[0] == "--explain" else 0
        assert {row[place] for row in rows[1:]} == set(types)


def weights_of(model, kind):
    return model.classifier_.coef_[model.classes_.tolist().index(kind)]


def markers_by_type(*args, **how):
    table = marker_genes(*args, **how)
    assert list(table) == ["type", "gene", "score", "rank"]
    return {kind: of_type["gene"].tolist() for kind, of_type in table.groupby("type")}


@pytest.mark.parametrize("logarithms", [False, True])
def test_markers_are_limited_to_genes_of_the_given_cells(model, logarithms, tmp_path):
    adata = cells()[:, 50:].copy()
    values = COUNTS.toarray()[:, 50:] / COUNTS.toarray()[:, 50:].sum(axis=1, keepdims=True)
    if logarithms:
        values = np.log1p(values * 1e4)
        adata.X = csr_matrix(values)
    with pytest.warns(UserWarning, match="lacks 50 of the 200 genes of the model. The others have"):
        markers = markers_by_type(model, adata, top=5, groupby="cell_type")
    totals = model.normalizer_.total_ if not logarithms else 1e4
    normalised = values if logarithms else np.log1p(values * totals)
    for kind in "ABC":
        own, weights = np.isin(TYPES, kind), weights_of(model, kind)[50:]
        higher = normalised[own].mean(axis=0) - normalised[~own].mean(axis=0)
        scores = np.where((weights > 0) & (higher > 0), weights * higher, 0)
        assert markers[kind] == adata.var_names[np.argsort(-scores)[:5]].tolist()
        assert adata.uns["rank_genes_groups"]["names"][kind].tolist() == markers[kind]
    assert adata.uns["rank_genes_groups"]["params"]["groupby"] == "cell_type"
    with pytest.warns(UserWarning, match="of the variance"):
        few = marker_genes(model, adata, top=150, key_added="markers", groupby="cell_type")
    assert len(adata.uns["markers"]["names"]) == 150
    assert len(few) < 3 * 150
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.warns(UserWarning, match="of the variance"):
        found = markers_by_type(model, backed, top=5, groupby="cell_type")
    assert found == markers
    adata.obs["one"], adata.obs["two"] = "A", "x"
    with pytest.warns(UserWarning, match="of the variance"):
        other = markers_by_type(model, adata, top=5, groupby="one")
    assert set(other) == {"A"}
    with pytest.raises(ValueError, match=r"No cell has one of the types .* obs\['two'\].*'x'"):
        marker_genes(model, adata[:, :].copy(), groupby="two")


def test_markers_of_raw_genes_and_of_types_without_cells(model):
    adata = cells()
    expected = markers_by_type(model, adata, top=5, groupby="cell_type")
    adata.raw = adata
    adata = adata[np.isin(TYPES, ["A", "B"]), :120].copy()
    with pytest.warns(UserWarning, match=r"lacks 80 .*raw.*layer='raw'"):
        assert set(markers_by_type(model, adata, groupby="cell_type")) == {"A", "B"}
    found = markers_by_type(model, adata, top=5, groupby="cell_type", layer="raw")
    assert len(set(found["A"]) & set(expected["A"])) >= 3
    assert set(found["A"]) - set(adata.var_names)
    assert adata.uns["rank_genes_groups"]["params"]["use_raw"] is True
    assert adata.uns["rank_genes_groups"]["names"].dtype.names == ("A", "B")


def test_markers_do_not_depend_on_features_that_are_not_genes_of_the_model(model):
    adata = cells()
    expected = markers_by_type(model, adata, top=5, groupby="cell_type")
    more = np.zeros((300, 2), np.float32)
    more[TYPES == "A", 0], more[:, 1] = 3000, 7
    both = anndata.AnnData(hstack([COUNTS, more], format="csr"), obs=adata.obs.copy())
    both.var_names = [*adata.var_names, "CD3", "another"]
    both.var["feature_types"] = ["Gene Expression"] * 200 + ["Antibody Capture", "Gene Expression"]
    assert markers_by_type(model, both, top=5, groupby="cell_type") == expected
    both.X.data[0] = np.nan
    with pytest.raises(ValueError, match="cell 1: a value is NaN"):
        marker_genes(model, both, groupby="cell_type")


def test_markers_read_the_layer_of_the_model(model):
    adata = cells()
    adata.raw, adata.layers["counts"] = adata.copy(), adata.X.copy()
    for layer in "counts", "raw":
        own = CellClassifier(layer=layer, random_state=0, max_iter=3).fit(adata)
        expected = markers_by_type(own, adata, top=5, groupby="cell_type", layer=layer)
        found = markers_by_type(own, adata, top=5, groupby="cell_type", layer="as model")
        assert found == expected


def test_estimated_counts_are_normalised_for_markers():
    found, how = [], {"normalize": "counts", "target_sum": 100, "random_state": 0}
    for X in COUNTS, COUNTS * np.float32(0.9):
        model = CellClassifier(**how).fit(cells(X))
        found.append(marker_genes(model, cells(X), groupby="cell_type"))
    assert found[1]["gene"].tolist() == found[0]["gene"].tolist()
    np.testing.assert_allclose(found[1]["score"], found[0]["score"], rtol=1e-3)


def test_markers_of_normalised_counts_are_those_of_counts(model):
    expected = marker_genes(model, cells(), groupby="cell_type")
    shares = csr_matrix(COUNTS / COUNTS.sum(axis=1).reshape(-1, 1) * 1e4, dtype=np.float32)
    found = marker_genes(model, cells(shares), groupby="cell_type")
    assert found["gene"].tolist() == expected["gene"].tolist()
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-4)


def test_markers_of_a_rare_type_are_its_own_genes():
    random = np.random.RandomState(0)
    X, types = random.poisson(1.0, (400, 60)), np.array(["common"] * 392 + ["rare"] * 8)
    X[types == "rare", :5] += random.poisson(4.0, (8, 5))
    X[:, 30:] *= random.poisson(1.0, (400, 1)) * 6  # genes that vary in all cells
    adata = anndata.AnnData(csr_matrix(X.astype(np.float32)))
    adata.obs["cell_type"] = types
    model = fit_anndata(adata, "cell_type", random_state=0)
    markers = markers_by_type(model, adata, top=5, groupby="cell_type")
    assert set(markers["rare"]) == set(adata.var_names[:5])


def test_markers_of_genes_with_other_names(model):
    named = renamed(0, lambda gene: f"ENSG{int(gene[4:]):011d}")
    how = {"top": 5, "groupby": "cell_type"}
    expected = markers_by_type(model, cells(), **how)
    by_symbol = markers_by_type(model, named, var="symbol", **how)
    for kind in "ABC":
        assert named.var.loc[by_symbol[kind], "symbol"].tolist() == expected[kind]
    named.var_names = [gene.lower() for gene in named.var["symbol"]]
    lower = {kind: [gene.lower() for gene in genes] for kind, genes in expected.items()}
    assert markers_by_type(model, named, match="case", **how) == lower
    own = fit_anndata(cells(), "cell_type", random_state=0, max_iter=3, match="case")
    assert markers_by_type(own, named, **how) == lower
    with pytest.raises(ValueError, match=r"has none of the 200 genes.*match='case'"):
        marker_genes(model, named, var=None, groupby="cell_type")


def test_bad_arguments_of_marker_genes_are_refused(model):
    with pytest.raises(ValueError, match=r"groupby='sparsemargin' is not a column of obs "
                       r"\(cell_type\)\. Call annotate\(model, adata\) first"):  # fmt: skip
        marker_genes(model, cells())
    for top in 5.0, 0, "5":
        with pytest.raises(ValueError, match="top must be an integer of at least 1"):
            marker_genes(model, top=top)
    with pytest.raises(ValueError, match="adata must be an AnnData, got a str"):
        marker_genes(model, "cells.h5ad")
    adata = cells()
    adata.X.data[adata.X.indptr[7]] = np.nan
    for act in annotate, partial(marker_genes, groupby="cell_type"):
        with pytest.raises(ValueError, match="The AnnData, cell 8: a value is NaN"):
            act(model, adata)


def test_advice_for_missing_genes_names_raw(model):
    adata = cells()
    adata.raw = adata
    adata = adata[:, :120].copy()
    with pytest.warns(UserWarning, match=r"If adata\.raw has the other genes.*layer='raw'"):
        annotate(model, adata)
    expected = annotate(model, cells())
    assert np.array_equal(annotate(model, adata, layer="raw").confidence, expected.confidence)


@pytest.mark.filterwarnings("ignore")
def test_dotplots_of_filtered_genes_and_of_ids(model):
    sc = pytest.importorskip("scanpy", reason="scanpy is not installed")
    pytest.importorskip("matplotlib").use("Agg")
    filtered = cells()
    filtered.X[:, :30] = 0
    sc.pp.filter_genes(filtered, min_cells=3)
    named = renamed(0, lambda gene: f"ENSG{int(gene[4:]):011d}")
    for adata, how, plot in (
        (filtered, {}, {}), (named, {"var": "symbol"}, {}),
        (named, {"var": "symbol"}, {"gene_symbols": "symbol"}),
    ):  # fmt: skip
        annotate(model, adata, **how)
        sc.pp.normalize_total(adata, target_sum=1e4)
        sc.pp.log1p(adata)
        marker_genes(model, adata, top=5, **how)
        assert sc.pl.rank_genes_groups_dotplot(adata, show=False, **plot)


def remedied(message, adata, how):
    """Yield the calls that an error message advises, as cells and arguments."""
    for name, value in re.findall(r"\b(layer|var|match|normalize)=('[^']*'|None)", message):
        given = None if value == "None" else value.strip("'")
        if f"eave out {name}={value}" in message:
            yield adata, {key: each for key, each in how.items() if key != name}
        else:
            yield adata, {**how, name: given}
    if "Call adata.var_names_make_unique()" in message:
        other = adata.copy()
        other.var_names_make_unique()
        yield other, how
    if "Call sum_duplicates()" in message:
        other = adata.copy()
        other.X.sum_duplicates()
        yield other, how
    if "Drop the cell" in message:
        yield adata[np.isfinite(adata.X.toarray()).all(axis=1)].copy(), how


def doubled(X):
    X = X.copy()
    X.indices[1] = X.indices[0]
    return X


def changed(X, value):
    X = X.copy()
    X.data[3] = value
    return X


SCALED = csr_matrix(COUNTS.toarray() - 0.5)
LOGS = csr_matrix(np.log1p(COUNTS.toarray()) / np.log(7))
WRONG = {
    "negative": (lambda adata: SCALED, {}), "one negative": (lambda adata: changed(COUNTS, -1), {}),
    "other": (lambda adata: csr_matrix(np.sqrt(COUNTS.toarray())) / 3, {}),
    "estimated": (lambda adata: COUNTS * 1.1, {}),
    "not whole": (lambda adata: changed(COUNTS, 1.5), {}),
    "large": (lambda adata: COUNTS * 30.7, {}), "NaN": (lambda x: changed(COUNTS, np.nan), {}),
    "twice": (lambda adata: doubled(COUNTS), {}), "ids": (None, {"var": "ensembl"}),
    "no name": (None, {"var": "lower"}), "lower": (None, {"match": "exact", "var": "lower"}),
    "logs for counts": (lambda adata: csr_matrix(np.log1p(COUNTS.toarray())),
                        {"normalize": "counts"}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fitting", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_remedies_in_error_messages_work(model, name, fitting):
    adata, (make, how) = cells(), WRONG[name]
    adata.var["lower"] = adata.var_names.str.lower()
    adata.obs["cell_type"] = adata.obs["cell_type"].astype(str)
    adata.layers["counts"], adata.raw = COUNTS.copy(), adata.copy()
    if make is not None:
        adata.X = make(adata)

    def act(adata, how):
        if fitting:
            return fit_anndata(adata, "cell_type", max_iter=1, **how)
        return annotate(model, adata, **how)

    try:
        act(adata, how)
    except ValueError as error:
        message = str(error)
    else:
        assert fitting or name in ("logs for counts", "estimated", "large")
        return
    calls = list(remedied(message, adata, how))
    assert calls, message
    for other, how in calls:
        act(other, how)
