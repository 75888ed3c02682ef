"""Messages for users of cells: they name the argument, the type, the genes or the file at fault."""

import gzip
import json
import subprocess
import warnings
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from problems.cells import adata_of, anndata, counts_of, h5py, pd, write_matrix
from problems.command_line import run
from problems.published_files import data_folder
from sparsemargin import (
    AROWClassifier,
    CellClassifier,
    Rejector,
    annotate,
    fit_csr,
    fit_svmlight,
    load_model,
    marker_genes,
    save_model,
)
from sparsemargin.distributed import fit_distributed

COUNTS, TYPES = counts_of(300, 60)


def cells(types=TYPES, X=COUNTS):
    return adata_of(X.copy(), types)


def new(*args, **params):
    return CellClassifier(*args, random_state=0, max_iter=2, **params)


def further(model, **params):
    return CellClassifier(params={"init_model": model}, **params)


@pytest.fixture(scope="module")
def model():
    return new().fit(cells())


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells().write_h5ad("cells.h5ad")
    return "cells.h5ad"


def renamed(n_kept, name=str.lower):
    adata = cells()
    adata.var_names = [gene if j < n_kept else name(gene) for j, gene in enumerate(adata.var_names)]
    return adata


def test_training_files_with_few_shared_genes_are_refused(tmp_path):
    few, some = [cells(), renamed(3)], [cells(), renamed(20)]
    remedy = "Pass match='case'. Then 60 genes are found"
    with pytest.raises(ValueError, match=f"^3 of 117 genes .*'GENE0'.*{remedy}"):
        new().fit(few)
    assert new(match="case").fit(few).n_features_in_ == 60
    for genes, files, n_genes in (("intersection", few, 3), ("union", few, 117), (None, some, 20)):
        with pytest.warns(UserWarning, match=remedy):
            assert new(genes=genes).fit(files).n_features_in_ == n_genes
    others = [cells(), renamed(0, "x{}".format)]
    with pytest.raises(ValueError, match=r"Pass var='ensembl'\. Then 60 genes are found"):
        new().fit(others)
    assert new(var="ensembl").fit(others).n_features_in_ == 60
    for each in others:
        del each.var["ensembl"]
    with pytest.raises(ValueError, match=r"^0 of 120 genes.*Name genes alike in all files"):
        new().fit(others)
    with pytest.warns(UserWarning, match=r"^59 of 61 genes are in all of the files\.$"):
        new().fit([cells(), renamed(59)])  # no other way to name them finds far more
    paths = [tmp_path / "1.h5ad", tmp_path / "2.h5ad"]
    for each, file in zip(few, paths, strict=True):
        each.write_h5ad(file)
    with pytest.raises(ValueError, match=remedy):
        new().fit(paths)


def test_shards_with_few_shared_genes_are_refused(tmp_path):
    paths = [tmp_path / "1.h5ad", tmp_path / "2.h5ad"]
    for each, file in zip((cells(), renamed(3)), paths, strict=True):
        each.write_h5ad(file)
    with pytest.raises(ValueError, match=r"3 of 117 genes.*Pass match='case'"):
        fit_distributed([*map(str, paths)], label="cell_type")
    paths[1].unlink()
    cells(np.where(TYPES == "A", "unassigned", TYPES)).write_h5ad(paths[1])
    with pytest.warns(UserWarning, match="have the type 'unassigned'"):
        fit_distributed([*map(str, paths)], label="cell_type", max_iter=1)


def test_highly_variable_genes_with_few_of_the_variance_are_refused():
    path = data_folder("cells/paul.h5ad") / "cells" / "paul.h5ad"
    adata = anndata.read_h5ad(path)
    adata.obs["cell_type"] = adata.obs["cell_type"].astype(str)
    train, test = adata[::2].copy(), adata[1::2].copy()
    types = CellClassifier(random_state=0, max_iter=1).fit(train)
    variances = types.normalizer_.deviations_**2
    order = np.random.RandomState(0).permutation(len(variances))
    shares = np.cumsum(variances[order]) / variances.sum()
    for share, is_enough in ((0.3, False), (0.36, True)):
        some = test[:, np.sort(order[: np.searchsorted(shares, share)])].copy()
        if not is_enough:
            with pytest.raises(ValueError, match="At least 33 % is needed to recognise types"):
                types.predict(some)
            continue
        with pytest.warns(UserWarning, match="confidences are lowered by 40 %"):
            confidence = types.predict_proba(some).max(axis=1)
        assert confidence.mean() < 0.4


@pytest.mark.parametrize(("params", "words"), [
    ({"random_state": 0}, "Leave out random_state"),
    ({"random_state": 0, "class_weight": None}, "Leave out class_weight and random_state"),
    ({"algo": "alma"}, "Leave out algo"), ({"target_sum": 100}, "Leave out target_sum"),
    ({"genes": ["GENE1"], "batch": "donor"}, "Leave out genes and batch"),
])  # fmt: skip
def test_arguments_that_an_initial_model_excludes_are_named(model, params, words):
    with pytest.raises(ValueError, match=rf"{words}\.$"):
        further(model, **params).fit(cells())
    assert further(model).fit(cells()).score(cells()) > 0.9


def test_arguments_of_fits_of_matrices_are_named_too(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n" * 50)
    first = fit_svmlight(tmp_path / "a.svm")
    with pytest.raises(ValueError, match=r"Leave out n_features and p\.$"):
        fit_svmlight(tmp_path / "a.svm", init_model=first, n_features=3, p=4)
    with pytest.raises(ValueError, match="classes has 7, but the classes of the model are -1, 1"):
        fit_svmlight(tmp_path / "a.svm", init_model=first, classes=[-1, 1, 7])


def test_further_training_takes_known_types_only(model):
    types = np.where(np.arange(300) < 3, "Q", TYPES)
    with pytest.raises(ValueError, match=r"no type Q, .*Leave such cells out, or fit a new model"):
        further(model).fit(cells(types))
    for some in (["A"], ["B", "C"]):
        adata = cells()[np.isin(TYPES, some)].copy()
        more = further(model).fit(adata)
        assert more.classes_.tolist() == ["A", "B", "C"]
        assert more.score(cells()) > 0.9
    with pytest.raises(ValueError, match=r"^The AnnData has one class only, A;"):
        new().fit(cells()[TYPES == "A"].copy())


def test_initial_model_excludes_options_of_cells(path):
    run("train", path, "--label", "cell_type", "-o", "a.model", "-q")
    how = "train", path, "--label", "cell_type", "--init", "a.model", "-o", "b.model"
    for given in ("--batch", "cell_type"), ("--target-sum", "100"):
        assert f"{given[0]} can't be changed" in run(*how, *given, code=2).stderr


@pytest.mark.parametrize("files", [["nope.h5ad"], ["nope.svm"], ["no-*.tsv"], ["empty.txt", "x/y"]])
def test_info_describes_files_beside_missing_ones(path, files):
    done = run("info", *files, path, code=1)
    assert "cells    300" in done.stdout
    for name in files:
        assert f"{name}: no" in done.stderr
    figures = json.loads(run("info", *files, path, "--json", code=1).stdout)["files"]
    assert [each["file"] for each in figures] == [*files, path]
    assert "twice" in run("info", "-", "-", code=1).stderr


def test_errors_name_the_argument_with_the_column(model):
    adata = cells()
    for act, argument in (
        (lambda: new(batch="doner").fit(adata), "batch"),
        (lambda: new("doner").fit(adata), "label"), (lambda: new().fit(adata, "doner"), "y"),
        (lambda: model.evaluate(adata, "doner"), "y"),
        (lambda: model.labels_of(adata, "doner"), "y"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"'doner' in obs. There are: .* as {argument}=COLUMN"):
            act()
    adata.obs["part"] = 0.5
    with pytest.raises(ValueError, match=r"batch has values such as 0.5"):
        new(batch="part").fit(adata)
    with pytest.raises(ValueError, match="batch must be a column of obs"):
        new(batch=TYPES).fit(adata)
    with pytest.raises(ValueError, match="batch must be one column of a table"):
        new(batch=adata.obs).fit(adata)
    bare = anndata.AnnData(COUNTS)
    with pytest.raises(ValueError, match=r"There are none. Pass a table .* as label=PATH"):
        new().fit(bare)


def test_tables_that_do_not_exist_are_no_columns(path, tmp_path):
    (tmp_path / "types.csv").write_text("cell0,A\n")
    for label in "typs.csv", tmp_path / "typs.csv", "typs.csv:cell_type":
        with pytest.raises(FileNotFoundError, match=r"typs.csv: no such file. Did you mean types"):
            new(label).fit(path)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        new("tables/types").fit(path)
    told = run("train", path, "--label", "typs.csv", "-o", "a.model", code=1).stderr
    assert "typs.csv: no such file. Did you mean types.csv?" in told
    (tmp_path / "donor").mkdir()
    for label in "leiden_r0.5", "donor", "cell_typ":
        with pytest.raises(ValueError, match=f"no column '{label}'"):
            new(label).fit(path)
    adata = cells()
    adata.obs["score.csv"] = adata.obs["cell_type"]
    assert new("score.csv").fit(adata).score(adata) > 0.9
    with pytest.raises(ValueError, match=r"no column 'score.csv'"):
        new("score.csv").fit([adata, cells()])


@pytest.mark.parametrize("of", [lambda types: np.searchsorted(["A", "B", "C"], types),
                                lambda types: types == "A"])  # fmt: skip
def test_annotations_have_the_type_of_the_classes(tmp_path, of):
    adata = cells(of(TYPES))
    adata.obs["cell_type"] = of(TYPES)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    known = new().fit(adata)
    assert known.classes_.tolist() == new().fit(tmp_path / "cells.h5ad").classes_.tolist()
    assert known.classes_.dtype == of(TYPES).dtype
    types = known.annotate(adata)
    assert types.predicted.dtype == of(TYPES).dtype
    adata.write_h5ad(tmp_path / "annotated.h5ad")
    stored = anndata.read_h5ad(tmp_path / "annotated.h5ad").obs["sparsemargin"]
    assert stored.cat.categories.tolist() == known.classes_.tolist()
    assert (stored.to_numpy() == of(TYPES)).mean() > 0.9
    assert known.score(adata, pd.Series(of(TYPES))) == (known.predict(adata) == of(TYPES)).mean()
    assert known.score(tmp_path / "cells.h5ad") > 0.9
    assert known.annotate(adata, threshold=1).predicted.tolist() == ["unassigned"] * 300
    save_model(known, tmp_path / "a.model")
    assert load_model(tmp_path / "a.model").score(adata) > 0.9
    assert further(known).fit(adata).classes_.tolist() == known.classes_.tolist()


def test_labels_in_another_order_than_the_rows_of_a_table_are_reported(model):
    frame, column = cells().to_df(), cells().obs["cell_type"]
    for act in new().fit, model.score, model.evaluate:
        with pytest.warns(UserWarning, match=r"Pass y.loc\[X.index\] to use them by name"):
            act(frame, column[::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new().fit(frame, column[::-1].loc[frame.index])
        new().fit(frame, pd.Series(TYPES))
        new().fit(frame.to_numpy(), column[::-1])


def test_advice_for_scaled_values_depends_on_training(model):
    for X in COUNTS.toarray() - 0.5, np.sqrt(COUNTS.toarray()) / 3:
        adata = cells(X=X)
        with pytest.raises(ValueError, match=r"values as they are, if the training cells are"):
            model.predict(adata)
        if X.min() < 0:
            with pytest.raises(ValueError, match=r"normalize=None takes values as they are\.$"):
                new().fit(adata)
        scaled = new(normalize=None).fit(adata)
        assert scaled.score(adata) > 0.9


def test_training_on_unassigned_cells_warns():
    adata = cells(np.where(TYPES == "A", "unassigned", TYPES))
    with pytest.warns(UserWarning, match="type 'unassigned', .*Leave these cells out.*or rename"):
        new().fit(adata)
    adata = adata[adata.obs["cell_type"] != "unassigned"].copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new().fit(adata)


def test_cells_that_a_rejector_rejects_are_unassigned(tmp_path):
    train = cells()
    mixed = cells(X=csr_matrix(COUNTS.toarray()[:, np.random.RandomState(0).permutation(60)]))
    rejector = Rejector(new(), max_error=0.0).fit(train)
    is_rejected = rejector.predict(mixed) == rejector.unknown_
    assert is_rejected.sum() > 0
    assert np.array_equal(annotate(rejector, mixed).predicted == "unassigned", is_rejected)
    save_model(rejector, tmp_path / "a.model")
    loaded = annotate(load_model(tmp_path / "a.model"), mixed)
    assert np.array_equal(loaded.predicted == "unassigned", is_rejected)
    with pytest.raises(ValueError, match=r"Fit one: CellClassifier\(COLUMN\)"):
        annotate(Rejector(AROWClassifier()).fit(COUNTS, TYPES), mixed)
    with pytest.raises(ValueError, match=r"Fit one: CellClassifier\(COLUMN\)"):
        annotate(fit_csr(COUNTS, TYPES), mixed)


def test_outputs_of_commands(path):
    run("train", path, "--label", "cell_type", "-o", "a.model", "-q")
    told = run("predict", "a.model", path, "-o", "labels.h5ad", code=1).stderr
    assert "Name it .tsv or .csv" in told
    adata = cells(X=COUNTS.toarray() - 0.5)
    adata.write_h5ad("scaled.h5ad")
    cells(X=np.where(np.arange(60) == 7, np.nan, COUNTS.toarray())).write_h5ad("nan.h5ad")
    for name in "scaled.h5ad", "nan.h5ad":
        assert not run("annotate", "a.model", name, code=1).stdout
    assert len(run("annotate", "a.model", path).stdout.splitlines()) == 301


def test_named_genes_that_are_in_no_file_are_refused_or_reported():
    names = [gene.lower() for gene in cells().var_names]
    few = [*names[:57], *cells().var_names[57:]]
    with pytest.raises(ValueError, match=r"57 of 60 genes are in no file\. Pass match='case'"):
        new(genes=few).fit(cells())
    assert new(genes=few, match="case").fit(cells()).genes_.tolist() == few
    some = [*names[:30], *cells().var_names[30:]]
    with pytest.warns(UserWarning, match=r"30 of 60 genes are in no file\. Pass match='case'"):
        new(genes=some).fit(cells())
    with pytest.warns(
        UserWarning, match=r"compare equal to an earlier one, by match='case', are left out: 1"
    ):
        twice = new(genes=[names[0], *cells().var_names], match="case").fit(cells())
    assert twice.genes_.tolist() == [names[0], *cells().var_names[1:]]
    with pytest.raises(ValueError, match="genes has 'a' several times"):
        new(genes=["a", "b", "a"]).fit(cells())


@pytest.mark.parametrize("genes", [2000, [], np.ones(60, dtype=bool)], ids=["int", "empty", "mask"])
def test_genes_that_are_no_names_are_refused(genes):
    with pytest.raises(ValueError, match=r"genes must be .*names of genes"):
        new(genes=genes).fit(cells())


def test_table_with_names_of_cells_in_a_column_is_refused_with_a_remedy(model):
    frame = cells().to_df().reset_index(names="barcode")
    told = r"'barcode' has values that are no numbers.*X\.set_index\('barcode'\)"
    with pytest.raises(ValueError, match=told):
        model.predict(frame)
    with pytest.raises(ValueError, match="'barcode' has values that are no numbers"):
        model.predict(pytest.importorskip("polars").from_pandas(frame))
    numbers = cells().to_df().astype(object)
    assert model.predict(numbers).tolist() == model.predict(cells()).tolist()
    assert model.predict(frame.set_index("barcode")).tolist() == model.predict(cells()).tolist()
    assert model.predict(frame.drop(columns="barcode")).tolist() == model.predict(cells()).tolist()


def test_csv_file_is_refused_with_a_remedy(model, tmp_path):
    path = tmp_path / "cells.csv"
    cells().to_df().to_csv(path)
    for act in model.predict, new().fit:
        with pytest.raises(ValueError, match=r"cells\.csv is no HDF5 file.*pandas\.read_csv"):
            act(str(path))
    assert model.predict(pd.read_csv(path, index_col=0)).tolist() == model.predict(cells()).tolist()


def test_packed_files_are_refused_with_a_remedy(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells().write_h5ad("cells.h5ad")
    with open("cells.h5ad", "rb") as file, gzip.open("packed.h5ad.gz", "wb") as packed:
        packed.write(file.read())
    with zipfile.ZipFile("cells.zip", "w") as packed:
        packed.write("cells.h5ad")
    with pytest.raises(ValueError, match=r"Unpack it: gunzip -c packed\.h5ad\.gz > NEW\.h5ad$"):
        model.predict("packed.h5ad.gz")
    with pytest.raises(ValueError, match=r"Unpack it: unzip -d FOLDER cells\.zip$"):
        model.predict("cells.zip")
    subprocess.run("gunzip -c packed.h5ad.gz > NEW.h5ad", shell=True, check=True)
    assert model.predict("NEW.h5ad").tolist() == model.predict(cells()).tolist()


def test_folders_of_named_matrices_are_refused_with_a_remedy(model, tmp_path):
    for name in "GSM1_", "GSM2_":
        write_matrix(
            f"{tmp_path}/{name}", COUNTS, list(cells().var_names), cells().obs_names, False
        )
    with pytest.raises(IsADirectoryError, match=r"Name the files in it: '.*/\*\.mtx\*'") as caught:
        model.predict(tmp_path)
    assert len(model.predict(str(caught.value).split("'")[1])) == 2 * len(TYPES)


def test_objects_that_are_no_anndata_are_refused_with_a_remedy(model):
    adata = cells()
    adata.raw = adata
    with pytest.raises(ValueError, match=r"Raw objects can't be read.*adata\.raw\.to_adata\(\)"):
        model.predict(adata.raw)
    assert model.predict(adata.raw.to_adata()).tolist() == model.predict(adata).tolist()


def test_columns_of_a_table_that_are_no_genes_are_named(model):
    frame = cells().to_df()
    some = [None, *["text"] * (len(frame) - 1)]
    for values, shown in (
        (some, "text"), (pd.Timestamp("2020"), "2020-01-01"), (pd.Period("2020-03"), "2020-03"),
        (pd.Interval(0, 1), r"\(0, 1\]"), (pd.Timedelta("1h"), "0 days"), (pd.NA, "<NA>"),
    ):  # fmt: skip
        told = f"The column 'other' has values that are no numbers, such as '{shown}"
        with pytest.raises(ValueError, match=told):
            model.predict(frame.assign(other=values))
    with pytest.raises(ValueError, match=r"2-dimensional|2D"):
        model.predict(frame.iloc[0])


def test_cells_without_a_label_can_not_be_scored(model):
    types = pd.Series(TYPES, dtype=object)
    types[3] = np.nan
    with pytest.raises(ValueError, match=r"y\[3\]|NaN"):
        model.score(cells(), types.to_numpy())


def test_annotated_types_are_shown_in_a_line(model):
    assert len(repr(annotate(model, cells()))) < 80


def test_layer_of_a_model_is_left_out_on_the_command_line(path):
    adata = cells()
    adata.layers["counts"] = adata.X.copy()
    adata.write_h5ad("layer.h5ad")
    run("train", "layer.h5ad", "--label", "cell_type", "--layer", "counts", "-o", "a.model")
    told = run("annotate", "a.model", path, code=1).stderr
    assert "--layer none reads X" in " ".join(told.split())
    expected = run("annotate", "a.model", "layer.h5ad").stdout
    assert run("annotate", "a.model", path, "--layer", "none").stdout == expected
    assert load_model("a.model").layer == "counts"


@pytest.mark.filterwarnings("ignore:.*[Ff]orward slash")
def test_columns_that_can_not_be_read_do_not_hinder_advice(model, tmp_path):
    few = cells()[:, :40].copy()
    few.write_h5ad(tmp_path / "few.h5ad")
    with h5py.File(tmp_path / "few.h5ad", "a") as file:
        # Older versions of anndata write a column "path/name" in this way.
        file["var/path/name"] = np.zeros(few.n_vars)
    few.var["lists"] = [[1, 2]] * few.n_vars
    few.var = pd.concat([few.var, few.var], axis=1)
    for what in few, tmp_path / "few.h5ad":
        with pytest.warns(UserWarning, match="lacks 20 of the 60 genes"):
            model.predict(what)


def test_columns_with_numbers_as_names_are_listed(model):
    adata = cells()
    adata.obs[5] = adata.var[6] = 1
    with pytest.raises(ValueError, match=r"There are: cell_type, 5\."):
        new("other").fit(adata)
    with pytest.raises(ValueError, match=r"There are: ensembl, 6\."):
        model.predict(adata, var="other")


def test_columns_with_one_name_are_refused_with_a_remedy(model):
    adata = cells()
    adata.obs = pd.concat([adata.obs, adata.obs], axis=1)
    calls = [
        lambda: new().fit(adata), lambda: model.annotate(adata, majority_voting="cell_type"),
        lambda: marker_genes(model, adata, groupby="cell_type"),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError, match=r"several columns 'cell_type'\. Keep the first"):
            call()
    adata.obs = adata.obs.loc[:, ~adata.obs.columns.duplicated()]
    for call in calls:
        call()
