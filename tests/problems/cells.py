"""Small tables of cells, as AnnData and in the file formats of 10x."""

import gzip

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import csr_matrix

anndata = pytest.importorskip("anndata", reason="anndata is not installed")
h5py = pytest.importorskip("h5py", reason="h5py is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")


def counts_of(n_cells=300, n_genes=80, n_types=3, seed=0, dtype=np.float32):
    """Counts, and the type of each cell."""
    random = np.random.RandomState(seed)
    means = np.random.RandomState(7).gamma(0.3, 2, (n_types, n_genes))
    types = random.randint(n_types, size=n_cells)
    return csr_matrix(random.poisson(means[types]).astype(dtype)), np.array(list("ABCDEF"))[types]


def adata_of(X, types, **obs):
    frame = pd.DataFrame({"cell_type": pd.Categorical(types), **obs})
    frame.index = [f"cell{i}" for i in range(len(frame))]
    genes = pd.DataFrame(index=[f"GENE{j}" for j in range(X.shape[1])])
    genes["ensembl"] = [f"ENSG{j:011d}.{j % 9 + 1}" for j in range(X.shape[1])]
    return anndata.AnnData(X, frame, genes)


def write_plain(adata, path, version=None, **how):
    """Write a .h5ad file, or a zarr store of this version, with names as plain arrays of text, like
    anndata with pandas 2."""
    with anndata.settings.override(allow_write_nullable_strings=False):
        if version is None:
            return adata.write_h5ad(path, **how)
        with anndata.settings.override(zarr_write_format=version):
            return adata.write_zarr(path)


def make_names_nullable(file, frame="obs", missing=(), **how):
    """Replace the names in an open file by an array of nullable text, like anndata 0.13 with pandas
    3."""
    names = anndata.io.read_elem(file[frame]).index.astype(object).tolist()
    values = pd.array([None if i in missing else each for i, each in enumerate(names)], "string")
    # anndata 0.12 writes text for this version, whatever version the open store has.
    version = 2 if isinstance(file, h5py.File) else file.metadata.zarr_format
    with anndata.settings.override(allow_write_nullable_strings=True, zarr_write_format=version):
        anndata.io.write_elem(file[frame], "_index", values, dataset_kwargs=how)


def write_10x(path, X, genes, barcodes):
    """Write a file like version 3 of cellranger."""
    kinds = ["Gene Expression"] * (len(genes) - 1) + ["Antibody Capture"]
    columns = {
        "matrix/data": X.data.astype(np.int32), "matrix/indices": X.indices.astype(np.int64),
        "matrix/indptr": X.indptr.astype(np.int64), "matrix/shape": np.array(X.shape[::-1]),
        "matrix/barcodes": np.array(barcodes, dtype="S"),
        "matrix/features/id": np.array([f"ENSG{j}" for j in range(len(genes))], dtype="S"),
        "matrix/features/name": np.array(genes, dtype="S"),
        "matrix/features/feature_type": np.array(kinds, dtype="S"),
    }  # fmt: skip
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            # Cell Ranger packs numbers and texts alike.
            file.create_dataset(name, data=values, compression="gzip", shuffle=True, chunks=True)


def write_matrix(begin, X, genes, barcodes, kinds=True):
    """Write a folder like version 3 of cellranger, or without `kinds` like version 2."""
    packed, opened = (".gz", gzip.open) if kinds else ("", open)
    with opened(f"{begin}matrix.mtx{packed}", "wb") as file:
        mmwrite(file, X.T.astype(np.int32))
    lines = [f"ENSG{j}\t{gene}" for j, gene in enumerate(genes)]
    if kinds:
        last = len(genes) - 1
        lines = [f"{line}\t{'Antibody Capture' if j == last else 'Gene Expression'}"
                 for j, line in enumerate(lines)]  # fmt: skip
    for name, table in ("features" if kinds else "genes", lines), ("barcodes", barcodes):
        with opened(f"{begin}{name}.tsv{packed}", "wt") as file:
            file.write("\n".join(table) + "\n")
