"""Cells by genes from AnnData and 10x: in memory, or in HDF5 files, zarr stores or text files."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.rows.csr import Csr, bad_pointer
from sparsemargin._engine.rows.parts import pointers_of
from sparsemargin._shown import first_three
from sparsemargin.files.folders import MATRIX_ENDS, STORES
from sparsemargin.files.sources import Source, open_sources
from sparsemargin.readers.cell_columns import (
    FEATURE_TYPES,
    GENE,
    MISSING_NAME,
    Frame,
    Names,
    genes_among,
    names_of,
    stored_frame,
)
from sparsemargin.readers.stored_arrays import DAMAGED, UNPACKING, Array, Group, Node, readable


class NoCellsError(ValueError):
    """A file has no cells."""


@dataclass
class Cells:
    """Cells, and the location of their values.

    `data`, `indices` and `indptr` are the arrays of a CSR matrix; the first two may still be in the
    file. For a dense matrix, `data` is the matrix, and `indices` and `indptr` are None.
    `is_gene` is True for each feature that is a gene; None means that all features are used.
    `barcodes` are the names of the cells, which may still be in the file. `obs` and `var` are the
    tables of cells and genes. `source` is the file, or None for cells in memory.
    """

    name: str
    genes: np.ndarray
    barcodes: Any
    data: Any
    indices: Any
    indptr: np.ndarray | None
    obs: Frame
    var: Frame
    is_gene: np.ndarray | None = None
    source: Source | None = None
    layers: tuple[str, ...] = ()
    close: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.genes = np.asarray(self.genes, dtype=object)
        if self.indptr is not None:
            self._check_pointers(self.data.shape[0])
        if self.n_genes != len(self.genes):
            raise self._damaged(
                f"its matrix has {self.n_genes:,} columns, but it names {len(self.genes):,} genes"
            )
        if hasattr(self.barcodes, "__len__") and self.n_cells != len(self.barcodes):
            raise self._damaged(
                f"its matrix has {self.n_cells:,} rows, but it names {len(self.barcodes):,} cells"
            )
        if not self.n_cells or not self.n_genes:
            kind = ValueError if self.n_cells else NoCellsError
            raise kind(f"{self.name} has no {'genes' if self.n_cells else 'cells'}.")

    def _damaged(self, what: str) -> ValueError:
        return ValueError(f"{self.name} is damaged: {what}.")

    def _check_pointers(self, n_entries: int) -> None:
        """Raise an error if rows overlap, or if a row has more values than there are genes."""
        indptr = self.indptr
        assert indptr is not None
        if indptr.dtype not in (np.int32, np.int64):
            self.indptr = indptr = indptr.astype(np.int64)
        if indptr.ndim != 1 or bad_pointer(indptr, n_entries) >= 0:
            raise self._damaged("its rows do not divide its values")
        lengths = np.diff(indptr)
        if len(lengths) and lengths.max() > len(self.genes):
            cell = int(lengths.argmax())
            raise self._damaged(
                f"cell {cell + 1} has {lengths[cell]:,} values, but there are only "
                f"{len(self.genes):,} genes. If genes have several values, call sum_duplicates() "
                "of the matrix; otherwise copy the file again"
            )

    @property
    def n_cells(self) -> int:
        return self.data.shape[0] if self.indptr is None else len(self.indptr) - 1

    @property
    def n_genes(self) -> int:
        return self.data.shape[1] if self.indptr is None else len(self.genes)

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix in memory, with indices of 4 bytes."""
        each = self.data.dtype.itemsize + (0 if self.indices is None else 4)
        return int(np.prod(self.data.shape)) * each

    def names(self) -> np.ndarray:
        """Return the names of all cells."""
        return self.barcodes if isinstance(self.barcodes, np.ndarray) else self.barcodes.whole()

    def entries_before(self, cell: int) -> int:
        """Return the number of stored values of all cells before this one."""
        return cell * self.n_genes if self.indptr is None else int(self.indptr[cell])

    def _check_readable(self) -> None:
        """Raise an error for a Dask array, which only `fit_distributed` can read."""
        if hasattr(self.data, "__dask_graph__"):
            raise ValueError(
                f"{self.name} has a Dask array. Call adata.to_memory() first, or use "
                "fit_distributed."
            )

    def read(self, spans: list[tuple[int, int]], dtype: np.dtype) -> Csr:
        """Read the cells of several spans (first, stop) as a CSR matrix of the given dtype."""
        self._check_readable()
        if self.indptr is None:
            # Spans are converted one by one, so only one is a dense matrix in memory at a time.
            rows = (self.data[slice(*span)].astype(dtype, copy=False) for span in spans)
            X = vstack(list(map(csr_matrix, rows)), format="csr")
            return Csr(X.data, X.indices, X.indptr, self.n_genes)
        kind = np.int32 if self.indices.dtype.itemsize <= 4 else np.int64
        indptr = pointers_of(
            np.concatenate([np.diff(self.indptr[a : b + 1]) for a, b in spans]), kind
        )
        data, indices = np.empty(indptr[-1], dtype), np.empty(indptr[-1], kind)

        def fill(span: tuple[int, int], first: int) -> None:
            entries = slice(*map(int, self.indptr[list(span)]))  # type: ignore[index]
            to = slice(first, first + entries.stop - entries.start)
            data[to], indices[to] = self.data[entries], self.indices[entries]

        starts = indptr[np.cumsum([0, *(b - a for a, b in spans[:-1])])].tolist()
        with ThreadPoolExecutor(UNPACKING) as pool:
            list(pool.map(fill, spans, starts))
        return Csr(data, indices, indptr, self.n_genes)


def open_cells(source: Source, layer: str | None = None, var: str | None = None) -> Cells:
    """Open a file of cells. `layer` selects a matrix other than X, `var` the column that names the
    genes."""
    if source.path is None:
        raise ValueError(f"{source.name}: files of cells must be given by name. Pass a path.")
    with readable(source.name):
        if source.path.lower().endswith(MATRIX_ENDS):
            # scipy.io takes 0.2 s, and only these files need it.
            from sparsemargin.readers.cell_matrices import read_matrix

            features, barcodes, X = read_matrix(source.path)
            return _of_10x(source, features, barcodes, (X.data, X.indices, X.indptr), layer, var)
        root, close = _opened(source, source.path)
        try:
            cells = _of_group(source, root, layer, var)
        except BaseException:
            # The traceback of the error would otherwise keep the file open.
            close()
            raise
    cells.close = close
    return cells


def _opened(source: Source, path: str) -> tuple[Group, Callable[[], None]]:
    """Open an HDF5 file or a zarr store. Return its root and a function that closes it."""
    is_zarr, n_bytes = path.lower().endswith(STORES), source.size or 0
    try:
        if is_zarr:
            # zarr is an optional dependency.
            from sparsemargin.readers.zarr_stores import open_zarr

            return open_zarr(source.name, os.path.dirname(path), n_bytes), lambda: None
        # h5py is an optional dependency.
        from sparsemargin.readers.hdf5_files import open_hdf5

        return open_hdf5(source.name, path, n_bytes)
    except ImportError:
        package, extra = ("zarr", "zarr") if is_zarr else ("h5py", "cells")
        raise ModuleNotFoundError(
            f"{source.name} can only be read with {package}. Install it: "
            f"pip install 'sparsemargin[{extra}]'"
        ) from None


def _of_group(source: Source, root: Group, layer: str | None, var: str | None) -> Cells:
    if root.get("obs") is not None:
        return _of_h5ad(source, root, layer, var)
    matrix = root.get("matrix")
    if not isinstance(matrix, Group) or matrix.get("features") is None:
        raise ValueError(
            f"{source.name} is neither a file of AnnData nor of Cell Ranger 3 or later. Write it "
            "again with anndata."
        )
    table = matrix.group("features")
    features = {name: table.array(name, "T").whole() for name in ("id", "name")}
    if table.get("feature_type") is not None:
        features["feature_type"] = table.array("feature_type", "T").whole()
    shape = matrix.array("shape", "iuf").whole()
    barcodes = Names(matrix.array("barcodes", "T"))
    _check_shape(matrix, shape, (len(features["id"]), len(barcodes)))
    return _of_10x(source, features, barcodes, _compressed(matrix), layer, var)


def _check_shape(node: Node, shape: Any, named: tuple[int, int]) -> None:
    """Raise an error if the stated shape of a sparse matrix differs from the numbers of names."""
    stated = tuple(np.ravel(shape).tolist())
    if stated != named:
        raise node.fault(
            f"has the shape {stated}, but the file has {named[0]:,} and {named[1]:,} names. "
            f"{DAMAGED}"
        )


def _compressed(matrix: Group) -> tuple[Array, Array, np.ndarray]:
    """Return data, indices and pointers of a sparse matrix."""
    data, indices = matrix.array("data", "biuf"), matrix.array("indices", "iu")
    if len(data) != len(indices):
        raise matrix.fault(f"has {len(data):,} values and {len(indices):,} indices. {DAMAGED}")
    return data, indices, matrix.array("indptr", "iu").whole()


def cells_of(adata: Any, layer: str | None = None, var: str | None = None) -> Cells:
    """Return the cells of an AnnData. If it is backed, X and raw.X are read from the file. The rest
    of it is in memory, and may differ from the file."""
    if not hasattr(type(adata), "isbacked") or not hasattr(type(adata), "layers"):
        raise ValueError(
            f"{type(adata).__name__} objects can't be read. Pass an AnnData, such as mdata['rna'], "
            "adata.raw.to_adata() or collection[:].to_adata()."
        )
    if adata.isbacked and adata.is_view:
        raise ValueError("A view of a backed AnnData can't be read. Pass adata.to_memory().")
    layers = [name for name in adata.layers if name is not None]  # None is X in anndata 0.13
    is_layer, is_raw = layer in layers, layer == "raw" and adata.raw is not None
    layers += ["raw"] * (adata.raw is not None and "raw" not in layers)
    if layer is not None and not is_layer and not is_raw:
        raise _no_layer("The AnnData", layer, layers)
    frame = adata.raw.var if is_raw and not is_layer else adata.var
    genes = _pandas_frame(frame)
    _check_column("The AnnData", "var", var, genes.columns)
    names = _pandas_names(frame.index if var is None else pandas_column(frame, var))
    about: dict[str, Any] = {
        "genes": names, "barcodes": _pandas_names(adata.obs_names),
        "obs": _pandas_frame(adata.obs), "var": genes,
        "is_gene": genes_among(genes, FEATURE_TYPES), "layers": tuple(layers),
    }  # fmt: skip
    if adata.isbacked and not is_layer:
        [source] = open_sources(os.fspath(adata.filename))
        return replace(open_cells(source, layer), **about)
    holder = adata.layers if is_layer else adata.raw if is_raw else adata
    X = holder[layer] if is_layer else holder.X
    if X is None:
        raise _no_matrix("The AnnData", layers)
    parts = X, None, None
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        parts = X.data, X.indices, X.indptr
    data, indices, indptr = parts
    return Cells("The AnnData", data=data, indices=indices, indptr=indptr, **about)


def _pandas_names(names: Any) -> np.ndarray:
    """Return the names in an index or a column of pandas, as text, as in files."""
    texts = (each.decode() if isinstance(each, bytes) else str(each) for each in names)
    found = np.array(list(texts), dtype=object)
    found[np.asarray(names.isna())] = MISSING_NAME
    return found


def pandas_column(frame: Any, name: str) -> Any:
    """Return a column of obs or var. Raise a ValueError if several columns have this name."""
    column = frame[name]
    if hasattr(column, "columns"):
        raise ValueError(
            f"The AnnData has several columns {name!r}. Keep the first: adata.obs = "
            "adata.obs.loc[:, ~adata.obs.columns.duplicated()], and likewise for var."
        )
    return column


def _pandas_frame(frame: Any) -> Frame:
    def column(name: str | None) -> tuple[np.ndarray, np.ndarray]:
        return _of_pandas(frame.index.to_series() if name is None else pandas_column(frame, name))

    return Frame(list(frame), column)


def _of_pandas(column: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        values = column.astype("category").cat
    except TypeError:
        raise ValueError(
            f"The column {column.name!r} of the AnnData has values that are neither numbers nor "
            "text. Convert them to text: .astype('string')."
        ) from None
    return np.asarray(values.codes), np.asarray(values.categories)


def _no_layer(name: str, layer: str, layers: list[str]) -> ValueError:
    known = ", ".join(layers) or "none"
    return ValueError(f"{name} has no layer {layer!r}. There are: {known}. layer=None reads X.")


def _no_matrix(name: str, layers: list[str]) -> ValueError:
    known = " or ".join(f"layer={each!r}" for each in layers)
    return ValueError(f"{name} has no X. Pass {known or 'cells with a matrix of counts'}.")


def _check_column(name: str, frame: str, column: str | None, columns: list[str]) -> None:
    if column is not None and column not in columns:
        known = ", ".join(map(str, columns)) or "none"
        raise ValueError(f"{name} has no column {column!r} in {frame}. There are: {known}.")


def _of_h5ad(source: Source, root: Group, layer: str | None, var: str | None) -> Cells:
    holder, name, frame = root, "X", root.group("var")
    own, is_raw = _members(root, "layers"), "X" in _members(root, "raw")
    layers = [*own, *["raw"] * is_raw]
    remedy = "adata.X = adata.X.tocsr()"
    if layer is not None and layer in own:
        holder, name = root.group("layers"), layer
        remedy = f"adata.layers[{layer!r}] = adata.layers[{layer!r}].tocsr()"
    elif layer == "raw" and is_raw:
        holder = root.group("raw")
        frame = holder.group("var")
        remedy = "raw = adata.raw.to_adata(); raw.X = raw.X.tocsr(); adata.raw = raw"
    elif layer is not None:
        raise _no_layer(source.name, layer, layers)
    if holder.get(name) is None:
        raise _no_matrix(source.name, layers)
    barcodes = names_of(root.group("obs"))
    obs = stored_frame(root.group("obs"), len(barcodes))
    genes = stored_frame(frame, len(names_of(frame)))
    _check_column(source.name, "var", var, genes.columns)
    names = names_of(frame, var)
    return Cells(
        source.name, names.whole(), barcodes,
        *_matrix_of(source, holder, name, remedy, (len(barcodes), len(names))),
        obs, genes, genes_among(genes, FEATURE_TYPES), source, tuple(layers),
    )  # fmt: skip


def _members(root: Group, name: str) -> list[str]:
    """Return the names of the members of an optional group."""
    found = root.get(name)
    return found.names() if isinstance(found, Group) else []


def _matrix_of(
    source: Source, holder: Group, name: str, remedy: str, shape: tuple[int, int]
) -> tuple[Any, Any, Any]:
    """Return data, indices and pointers; the last two are None for a dense matrix. `remedy` is
    Python code that converts the matrix to CSR, for an error message."""
    matrix = holder.get(name)
    if isinstance(matrix, Array):
        return matrix.checked("biuf", 2), None, None
    matrix = holder.group(name)
    form = matrix.text("encoding-type") or matrix.text("h5sparse_format")
    if not form.startswith("csr"):
        raise ValueError(
            f"{source.name} stores its values gene by gene ({form}), but they are read cell by "
            f"cell. Write it again with anndata after {remedy}."
        )
    found = matrix.attribute("shape")
    _check_shape(matrix, matrix.attribute("h5sparse_shape") if found is None else found, shape)
    return _compressed(matrix)


def _of_10x(
    source: Source, features: dict[str, np.ndarray], barcodes: Any, parts: tuple[Any, Any, Any],
    layer: str | None, var: str | None,
) -> Cells:  # fmt: skip
    if layer is not None:
        raise _no_layer(source.name, layer, [])
    _check_column(source.name, "features", var, ["id", "name"])
    if len({*map(len, features.values())}) > 1:
        raise ValueError(
            f"{source.name}: the columns of its features have different lengths. {DAMAGED}"
        )

    def column(name: str | None) -> tuple[np.ndarray, np.ndarray]:
        values, codes = np.unique(features[name or "name"], return_inverse=True)
        return codes, values

    table = Frame(list(features), column)
    genes, is_gene = features[var or "name"], genes_among(table, "feature_type")
    if var is None:  # genes that share a name are called by their ids
        among = slice(None) if is_gene is None else is_gene
        names, counts = np.unique(genes[among], return_counts=True)
        shared = np.isin(genes, names[counts > 1])
        genes = np.where(shared, features["id"], genes)
    return Cells(
        source.name, genes, barcodes, *parts, Frame([], dict[Any, Any]().__getitem__), table,
        is_gene, source,
    )  # fmt: skip


def warn_of_left_out(cells: list[Cells]) -> None:
    """Warn once if features that are not genes, such as antibodies, are left out."""
    some = [each for each in cells if each.is_gene is not None]
    if some:
        is_gene = np.concatenate([each.is_gene for each in some])
        warn_user(
            f"{first_three(each.name for each in some)}: {np.count_nonzero(~is_gene):,} of "
            f"{len(is_gene):,} features are left out, because their type is not {GENE!r}."
        )
