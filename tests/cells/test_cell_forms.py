"""The model of cells does not depend on the form in which they are stored."""

import numpy as np
import pytest
from scipy.sparse import csc_matrix

from problems.cells import adata_of, anndata, counts_of, h5py, pd, write_10x, write_matrix
from sparsemargin import CellClassifier
from sparsemargin.cells import source as stream

pytestmark = pytest.mark.filterwarnings("ignore:.*zarr.*", "ignore::UserWarning:zarr")

GENES = [f"GENE{j}" for j in range(80)]


@pytest.fixture
def cells():
    return adata_of(*counts_of())


def dense(adata):
    made = adata.copy()
    made.X = made.X.toarray()
    return made


def csc(adata):
    made = adata.copy()
    made.X = csc_matrix(made.X)
    return made


def backed(adata, path):
    adata.write_h5ad(path)
    return anndata.read_h5ad(path, backed="r")


def as_10x(adata, path):
    write_10x(path, adata.X, GENES, adata.obs_names)
    with h5py.File(path, "a") as file:
        file["matrix/features/feature_type"][:] = b"Gene Expression"
    return path


def as_folder(adata, path):
    path.mkdir()
    write_matrix(f"{path}/", adata.X, GENES, adata.obs_names, kinds=False)
    return path


def as_zarr(adata, path, version):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    if version == 3 and zarr.__version__.startswith("2"):
        pytest.skip("zarr 2 does not write version 3")
    with anndata.settings.override(zarr_write_format=version):
        adata.write_zarr(path)
    return path


def as_h5ad(adata, path, **how):
    adata.write_h5ad(path, **how)
    return path


FORMS = {
    "CSC": lambda adata, folder: csc(adata),
    "dense": lambda adata, folder: dense(adata),
    "backed CSR": lambda adata, folder: backed(adata, folder / "a.h5ad"),
    "backed dense": lambda adata, folder: backed(dense(adata), folder / "a.h5ad"),
    "packed h5ad": lambda adata, folder: as_h5ad(adata, folder / "a.h5ad", compression="gzip"),
    "dense h5ad": lambda adata, folder: as_h5ad(dense(adata), folder / "a.h5ad"),
    "zarr 2": lambda adata, folder: as_zarr(adata, folder / "a.zarr", 2),
    "zarr 3": lambda adata, folder: as_zarr(adata, folder / "a.zarr", 3),
    "dense zarr": lambda adata, folder: as_zarr(dense(adata), folder / "a.zarr", 2),
    "10x": lambda adata, folder: as_10x(adata, folder / "a.h5"),
    "folder of 10x": lambda adata, folder: as_folder(adata, folder / "a"),
}


@pytest.mark.parametrize("form", FORMS)
def test_model_does_not_depend_on_the_form_of_the_cells(cells, tmp_path, form, monkeypatch):
    # Several blocks, in which cells are shuffled.
    monkeypatch.setattr(stream, "_BUFFERED", 4000)
    monkeypatch.setattr(stream, "_SPAN", 4)
    types = cells.obs["cell_type"].astype(str)
    settings = {"max_iter": 2, "random_state": 0}
    expected = CellClassifier(types, **settings).fit(cells)
    what = FORMS[form](cells, tmp_path)
    model = CellClassifier(types, **settings).fit(what)
    assert model.genes_.tolist() == GENES
    assert np.array_equal(model.classifier_.coef_, expected.classifier_.coef_)
    assert np.array_equal(model.predict_proba(what), expected.predict_proba(cells))


def test_matrix_of_cells_gives_the_model_of_an_anndata(cells, monkeypatch):
    monkeypatch.setattr(stream, "_BUFFERED", 4000)
    y = cells.obs["cell_type"].to_numpy().astype(str)
    expected = CellClassifier(max_iter=2, random_state=0).fit(cells).classifier_.coef_
    table = pd.DataFrame(cells.X.toarray(), columns=GENES)
    for X in cells.X, csc_matrix(cells.X), cells.X.toarray(), table:
        model = CellClassifier(max_iter=2, random_state=0).fit(X, y)
        assert np.array_equal(model.classifier_.coef_, expected)
