"""Shards of cells give the same results as `fit_anndata`."""

import numpy as np
import pytest

from depth import long
from problems.cells import adata_of, anndata, counts_of, pd, write_matrix
from problems.command_line import run
from problems.published_files import data_folder
from problems.shards import assert_same
from sparsemargin import annotate, fit_anndata, load_model, marker_genes
from sparsemargin.distributed import fit_distributed
from sparsemargin.genomes import CellNormalizer
from sparsemargin.models.pipelines import parts_of

pytestmark = pytest.mark.filterwarnings("ignore:60 of 80 genes")
HOW = {"label": "cell_type", "random_state": 0}


@pytest.fixture
def adata():
    return adata_of(*counts_of())


@pytest.fixture
def paths(adata, tmp_path):
    """Three files; the first two lack some genes, and have them in another order."""
    genes = [slice(None, None, -1), slice(0, 60), slice(None)]
    for s, some in enumerate(genes):
        adata[s::3, some].copy().write_h5ad(tmp_path / f"{s}.h5ad")
    return [str(tmp_path / f"{s}.h5ad") for s in range(3)]


@pytest.mark.parametrize("how", [{}, {"algo": "arow"}, {"class_weight": "balanced"},
                                 {"positive": "B"}, {"shuffle": False}])  # fmt: skip
def test_one_shard_gives_the_model_of_one_machine(paths, how):
    alone = fit_anndata(paths[0], "cell_type", random_state=0, **how)
    model = fit_distributed(paths[:1], **HOW, **how)
    assert [name for name, _ in model.pipeline_.steps] == [
        name for name, _ in alone.pipeline_.steps
    ]
    assert_same(model.classifier_, alone.classifier_)
    assert list(model.feature_names_in_) == list(alone.feature_names_in_)
    np.testing.assert_array_equal(model.normalizer_.deviations_, alone.normalizer_.deviations_)
    if "positive" not in how:
        told, expected = annotate(model, paths[2]), annotate(alone, paths[2])
        assert (told.predicted == expected.predicted).all()
        np.testing.assert_allclose(told.confidence, expected.confidence, atol=0.1)
        assert marker_genes(model)["type"].tolist() == marker_genes(alone)["type"].tolist()


def test_genes_of_all_shards_are_matched(paths, adata):
    for genes, wanted in ((None, 60), ("union", 80), (["GENE20", "none", "GENE5"], 3)):
        with pytest.warns(UserWarning, match=r"60 of 80 genes are in all|1 of 3 genes are in no"):
            model = fit_distributed(paths, genes=genes, max_iter=2, **HOW)
        with pytest.warns(UserWarning, match="genes"):
            alone = fit_anndata(paths, "cell_type", genes=genes, max_iter=2)
        assert model.classifier_.n_features_in_ == wanted
        assert list(model.feature_names_in_) == list(alone.feature_names_in_)
    whole = fit_distributed([paths], genes="union", **HOW)
    alone = fit_anndata(paths, "cell_type", genes="union", random_state=0)
    assert_same(whole.classifier_, alone.classifier_)
    types = annotate(fit_distributed(paths, **HOW), adata).predicted
    assert (types == adata.obs["cell_type"].astype(str)).mean() > 0.95


def test_workers_and_resumed_fits_give_the_same_model(paths, tmp_path):
    distributed = pytest.importorskip("dask.distributed")
    local = {"dashboard_address": None, "set_as_default": False, "processes": False}
    pattern, kept = str(tmp_path / "[0-9].h5ad"), {"checkpoint": tmp_path / "types.model"}
    here = fit_distributed(paths, max_iter=3, **HOW)
    with distributed.Client(n_workers=2, threads_per_worker=1, **local) as client:
        there = fit_distributed(pattern, client=client, max_iter=3, **HOW, **kept)
        address = client.scheduler.address
        assert run("train", pattern, "--label", "cell_type", "--epochs", "3", "--dask", address,
                   "-o", str(tmp_path / "c.model")).exit_code == 0  # fmt: skip
    fit_distributed(paths, max_iter=1, **HOW, checkpoint=tmp_path / "cut.model")
    resumed = fit_distributed(
        paths, max_iter=3, **HOW, checkpoint=tmp_path / "cut.model", resume=True
    )
    told = annotate(here, paths[2])
    for model in there, resumed, *(load_model(tmp_path / f"{name}.model")
                                   for name in ("types", "cut", "c")):  # fmt: skip
        before, classifier = parts_of(model)
        assert_same(classifier, here.classifier_)
        np.testing.assert_array_equal(before[-1].deviations_, here.normalizer_.deviations_)
        np.testing.assert_array_equal(annotate(model, paths[2]).confidence, told.confidence)


def test_values_of_shards_are_not_rescaled(adata, tmp_path):
    X = adata.X.toarray()
    scales = {"counts": X, "square roots": np.sqrt(X), "scaled": (X - X.mean(axis=0)) / 3}
    paths = [str(tmp_path / f"{name}.h5ad") for name in scales]
    for path, values in zip(paths, scales.values(), strict=True):
        some = adata.copy()
        some.X = values
        some.write_h5ad(path)
    how = {"normalize": None, "max_iter": 2}
    model = fit_distributed([paths], **HOW | how)
    assert_same(
        model.classifier_, fit_anndata(paths, "cell_type", random_state=0, **how).classifier_
    )
    fit_distributed(paths, **HOW | how)


def test_dask_array_in_anndata_is_split_at_its_chunks(adata):
    arrays = pytest.importorskip("dask.array")
    counts = adata.X
    adata.layers["lazy"] = arrays.from_array(counts.toarray(), chunks=(100, -1))
    model = fit_distributed(adata, layer="lazy", genes=list(adata.var_names[:50]), **HOW)
    assert model.classifier_.n_features_in_ == 50
    X, types = counts_of(seed=1)
    assert (annotate(model, adata_of(X, types), layer=None).predicted == types).mean() > 0.9
    rows = CellNormalizer().fit_transform(counts)
    pairs = [(rows[i : i + 100], adata.obs["cell_type"].to_numpy(str)[i : i + 100])
             for i in (0, 100, 200)]  # fmt: skip
    how = {"algo": "alma", "multi_class": "joint", "max_iter": 3, "random_state": 0}
    lazy = fit_distributed(adata, layer="lazy", label="cell_type", **how)
    assert_same(lazy.classifier_, fit_distributed(pairs, **how))
    np.testing.assert_allclose(
        lazy.normalizer_.deviations_, CellNormalizer().fit(counts).deviations_
    )


def test_cell_labels_are_read_from_their_column(adata, tmp_path):
    adata.obs["leiden"] = pd.Categorical(["10", "1", "0"] * 100)
    adata.obs["stage"] = np.tile([20, 3], 150)
    for s in range(2):
        adata[s * 150 : s * 150 + 150].copy().write_h5ad(tmp_path / f"{s}.h5ad")
    paths = str(tmp_path / "*.h5ad")
    for label, classes in (("leiden", ["0", "1", "10"]), ("stage", [3, 20])):
        model = fit_distributed(paths, label=label, max_iter=1)
        assert model.classes_.tolist() == classes


def test_options_that_do_not_apply_to_cells_raise_an_error(paths):
    for wrong in {"n_features": 3}, {"hash_bits": 3}, {"multilabel": True}, {"classes": ["A"]}:
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}=.* does not apply to cells"):
            fit_distributed(paths, **HOW, **wrong)
    with pytest.raises(ValueError, match=r"Shard 0 of 3.*has no column 'kind' in obs"):
        fit_distributed(paths, label="kind")


@long
@pytest.mark.parametrize(("name", "most"), [("paul", 0.36), ("baron", 0.035)])
def test_four_shards_have_the_error_of_one_machine(name, most, tmp_path):
    cells = anndata.read_h5ad(data_folder(f"cells/{name}.h5ad") / "cells" / f"{name}.h5ad")
    order = np.random.RandomState(0).permutation(cells.n_obs)
    train, test = np.split(order, [cells.n_obs * 2 // 3])
    for s in range(4):
        cells[train[s::4]].copy().write_h5ad(tmp_path / f"{s}.h5ad")
    model = fit_distributed(str(tmp_path / "*.h5ad"), **HOW)
    right = annotate(model, cells[test].copy()).predicted == cells.obs["cell_type"].iloc[test]
    assert 1 - right.mean() < most


def test_files_and_blocks_without_cells_are_left_out(adata, paths, tmp_path):
    expected = fit_distributed(paths, **HOW)
    adata[:0, :30].copy().write_h5ad(tmp_path / "0a.h5ad")
    given = [str(tmp_path / "0a.h5ad"), *paths]
    assert_same(fit_distributed(given, **HOW).classifier_, expected.classifier_)
    with pytest.raises(ValueError, match=r"No shard has rows: .*0a\.h5ad\. Pass data"):
        fit_distributed(given[:1], **HOW)
    with pytest.raises(ValueError, match=r"0a\.h5ad has no cells"):
        fit_distributed([given[:2]], **HOW)
    arrays = pytest.importorskip("dask.array")
    n, counts = adata.n_obs, adata.X.toarray()
    lazy = []
    for chunks in (100, n - 100), (0, 100, 0, n - 100):
        adata.layers["lazy"] = arrays.from_array(counts, chunks=(chunks, -1))
        assert adata.layers["lazy"].chunks[0] == chunks
        lazy.append(fit_distributed(adata, layer="lazy", **HOW).classifier_)
    assert_same(*lazy)


@pytest.mark.filterwarnings("ignore:2 of 4 shards have rows of one class")
def test_shards_sorted_by_type_give_probabilities(adata, tmp_path):
    order = np.argsort(adata.obs["cell_type"].astype(str), kind="stable")
    for s, some in enumerate(np.array_split(order, 4)):
        adata[some].copy().write_h5ad(tmp_path / f"{s}.h5ad")
    told = annotate(fit_distributed(str(tmp_path / "*.h5ad"), **HOW), adata)
    right = (told.predicted == adata.obs["cell_type"].astype(str)).mean()
    assert right > 0.9
    assert abs(told.confidence.mean() - right) < 0.2


@pytest.mark.filterwarnings("ignore")
def test_truth_values_are_classes_as_of_one_file(tmp_path):
    adata = adata_of(*counts_of(100, 40))
    adata.obs["large"] = np.arange(100) % 2 == 0
    for i, part in enumerate((adata[:50], adata[50:])):
        part.copy().write_h5ad(tmp_path / f"{i}.h5ad")
    model = fit_distributed(str(tmp_path / "*.h5ad"), **HOW | {"label": "large"})
    assert model.classes_.tolist() == [False, True]
    assert model.classes_.dtype == bool


def test_10x_folder_is_read_with_its_label_table(adata, tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    write_matrix(f"{tmp_path}/run/", adata.X, list(adata.var_names), list(adata.obs_names))
    table = adata.obs["cell_type"].astype(str).to_dict()
    (tmp_path / "types.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in table.items()))
    monkeypatch.chdir(tmp_path)
    model = fit_distributed(["run"], **HOW | {"label": "types.tsv"})
    assert_same(model.classifier_, fit_anndata("run", table, random_state=0).classifier_)
    with pytest.raises(ValueError, match="batch can't be had over shards"):
        fit_distributed(["run"], **HOW, batch="donor")
