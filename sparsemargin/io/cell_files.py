"""Cells by genes, as AnnData and 10x have them: in memory, or in files of h5py, zarr, or text."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from sparsemargin._engine.rows.csr import Csr, bad_pointer
from sparsemargin._engine.rows.parts import pointers_of
from sparsemargin.io.sources import MATRIX_ENDS, STORES, Source, tables_beside

#: What the first bytes of HDF5 are.
HDF5_MARK = b"\x89HDF"

# Threads that unpack values.
_UNPACKING = 2

# What 10x's tables of features tell.
_FEATURES = "id", "name", "feature_type"


@dataclass
class Cells:
    """Cells, and how their values are had.

    `data`, `indices` and `indptr` are of a CSR matrix, arrays or what h5py has for them; of a dense
    one `indices` is None, and `data` the matrix. `is_gene` tells genes from other features, None:
    all are. `barcodes` are names of cells, which may lie in the file; `column` gives a column of
    `obs`, as codes, -1 where a value is missing, and what they stand for; `columns` are the names
    there are. `namings` gives other names of genes, by column of `var`, None for the index.
    `source` is the file, None: they are in memory.
    """

    name: str
    genes: np.ndarray
    barcodes: Any
    data: Any
    indices: Any
    indptr: np.ndarray | None
    columns: list[str]
    column: Callable[[str], tuple[np.ndarray, np.ndarray]]
    is_gene: np.ndarray | None = None
    source: Source | None = None
    layers: tuple[str, ...] = ()
    namings: Callable[[], dict[str | None, Any]] = dict

    def __post_init__(self) -> None:
        self.genes = np.asarray(self.genes, dtype=object)
        n_entries = 0 if self.indptr is None else self.data.shape[0]
        if self.indptr is not None and (
            self.indptr.ndim != 1 or bad_pointer(self.indptr, n_entries) >= 0
        ):
            raise ValueError(f"{self.name} is damaged: its rows do not divide its values.")
        if self.n_genes != len(self.genes):
            raise ValueError(
                f"{self.name} is damaged: its matrix has {self.n_genes:,} columns, and it names "
                f"{len(self.genes):,} genes."
            )

        if hasattr(self.barcodes, "__len__") and self.n_cells != len(self.barcodes):
            raise ValueError(
                f"{self.name} is damaged: its matrix has {self.n_cells:,} rows, and it names "
                f"{len(self.barcodes):,} cells."
            )
        if not self.n_cells or not self.n_genes:
            raise ValueError(f"{self.name} has no {'genes' if self.n_cells else 'cells'}.")

    @property
    def n_cells(self) -> int:
        return self.data.shape[0] if self.indptr is None else len(self.indptr) - 1

    @property
    def n_genes(self) -> int:
        return self.data.shape[1] if self.indptr is None else len(self.genes)

    @property
    def nbytes(self) -> int:
        """Of the matrix."""
        each = self.data.dtype.itemsize + (0 if self.indices is None else 4)
        return int(np.prod(self.data.shape)) * each

    @property
    def chunk(self) -> int:
        """Values that lie together in the file."""
        self._check_readable()
        chunks = getattr(self.data, "chunks", None)
        return 1 if chunks is None else int(np.prod(chunks))

    def entries_before(self, cell: int) -> int:
        """Values of all cells before one."""
        return cell * self.n_genes if self.indptr is None else int(self.indptr[cell])

    def _check_readable(self) -> None:
        """Only `fit_distributed` takes a Dask array, and never reads it here."""
        if hasattr(self.data, "__dask_graph__"):
            raise ValueError(
                f"{self.name} has a Dask array. Call adata.to_memory(), or fit_distributed."
            )

    def close(self) -> None:
        """Let go of the file."""
        if hasattr(self.data, "file"):
            self.data.file.close()

    def read(self, spans: list[tuple[int, int]], dtype: np.dtype) -> Csr:
        """The cells of spans, from one to before another, of values of a type."""
        self._check_readable()
        with _readable(self.name):
            if self.indptr is None:
                from scipy.sparse import csr_matrix

                dense = np.concatenate([self.data[slice(*span)] for span in spans])
                X = csr_matrix(dense.astype(dtype, copy=False))
                return Csr(X.data, X.indices, X.indptr, self.n_genes)
            kind = np.int32 if self.indices.dtype.itemsize <= 4 else np.int64
            indptr = pointers_of(
                np.concatenate([np.diff(self.indptr[a : b + 1]) for a, b in spans]), kind
            )
            data, indices = np.empty(indptr[-1], dtype), np.empty(indptr[-1], kind)

            def fill(span: tuple[int, int], first: int) -> None:
                entries = slice(*map(int, self.indptr[list(span)]))  # type: ignore[index]
                to = slice(first, first + entries.stop - entries.start)
                data[to], indices[to] = _values(self.data, entries), _values(self.indices, entries)

            starts = indptr[np.cumsum([0, *(b - a for a, b in spans[:-1])])].tolist()
            with ThreadPoolExecutor(_UNPACKING) as pool:
                list(pool.map(fill, spans, starts))
            return Csr(data, indices, indptr, self.n_genes)


def _values(dataset: Any, entries: slice) -> Any:
    """Some of a dataset's. What is packed by gzip is unpacked here: zlib lets other threads run
    meanwhile, which h5py does not."""
    packing = getattr(dataset, "compression", None)
    if packing != "gzip" or dataset.fletcher32 or dataset.scaleoffset is not None:
        return dataset[entries]
    [size] = dataset.chunks
    parts = list[np.ndarray]()
    for start in range(entries.start // size * size, entries.stop, size):
        try:
            skipped, packed = dataset.id.read_direct_chunk((start,))
        except (OSError, RuntimeError, MemoryError):
            # A chunk that was never written has no bytes (MemoryError: there is none of them at
            # all); h5py knows its values, or tells what is wrong.
            return dataset[entries]
        if skipped:
            return dataset[entries]
        raw = np.frombuffer(zlib.decompress(packed), np.uint8)
        if dataset.shuffle:
            raw = np.ascontiguousarray(raw.reshape(-1, size).T).ravel()
        part = slice(max(0, entries.start - start), entries.stop - start)
        parts.append(raw.view(dataset.dtype)[part])
    return np.concatenate(parts) if parts else dataset[entries]


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Let errors of h5py name the file."""
    try:
        yield
    except (OSError, EOFError, RuntimeError, KeyError, TypeError, ValueError, zlib.error) as error:
        if isinstance(error, FileNotFoundError | PermissionError) or name in str(error):
            raise
        raise ValueError(
            f"{name} can't be read: {error}. It was cut short or damaged, or is of another form: "
            "copy it again, or write it anew by anndata."
        ) from None


def is_cells(source: Source) -> bool:
    """Whether a file is of HDF5, or stands for a folder of cells."""
    if source.path is None or not source.rereadable:
        return False
    is_hdf5 = source.head(len(HDF5_MARK)) == HDF5_MARK
    return is_hdf5 or source.path.endswith((*STORES, *MATRIX_ENDS))


def open_cells(source: Source, layer: str | None = None, var: str | None = None) -> Cells:
    """The cells of a file; `layer` is another matrix than X, `var` the column that names genes."""
    if source.path is None:
        raise ValueError(f"{source.name}: cells are read from files by name. Pass a path.")
    if source.path.endswith(MATRIX_ENDS):
        with _readable(source.name):
            return _of_matrix(source, source.path, layer, var)
    package = "zarr" if source.path.endswith(STORES) else "h5py"
    try:
        reader = import_module(package)
    except ImportError:
        raise ModuleNotFoundError(
            f"{source.name}: such cells are read by {package}. Install it: "
            f"pip install 'sparsemargin[{'zarr' if package == 'zarr' else 'cells'}]'"
        ) from None
    with _readable(source.name):
        if package == "zarr":
            store = reader.open_group(os.path.dirname(source.path), mode="r")
            return _of_group(source, store, layer, var)
        file = reader.File(source.path, "r")
        try:
            return _of_group(source, file, layer, var)
        except BaseException:
            # An error's traceback would keep it open.
            file.close()
            raise


def _of_group(source: Source, file: Any, layer: str | None, var: str | None) -> Cells:
    if "obs" in file:
        return _of_h5ad(source, file, layer, var)
    if "features" not in file.get("matrix", ()):
        raise ValueError(f"{source.name} is neither of AnnData nor of Cell Ranger 3 or later.")
    matrix = file["matrix"]
    features = {name: values.asstr()[:] for name, values in matrix["features"].items()}
    parts = matrix["data"], matrix["indices"], matrix["indptr"][:]
    return _of_10x(source, features, matrix["barcodes"].asstr(), parts, layer, var)


def _of_matrix(source: Source, path: str, layer: str | None, var: str | None) -> Cells:
    """From a text of coordinates, gene by cell, and the tables beside it."""
    from scipy.io import mmread
    from scipy.sparse import csr_matrix

    table = zip(*_table(path, 2, "features", "genes"), strict=True)
    features = {
        name: np.array(each, dtype=object) for name, each in zip(_FEATURES, table, strict=False)
    }
    barcodes = np.array([line[0] for line in _table(path, 1, "barcodes")], dtype=object)
    X = csr_matrix(mmread(path).T)
    if X.shape != (len(barcodes), len(features["id"])):
        raise ValueError(
            f"its shape is {X.shape[::-1]}, and the tables name {len(features['id']):,} features "
            f"and {len(barcodes):,} barcodes"
        )
    return _of_10x(source, features, barcodes, (X.data, X.indices, X.indptr), layer, var)


def _table(matrix: str, n_columns: int, *names: str) -> list[list[str]]:
    """The lines of a table beside a matrix that has one of the names, and so many columns or
    more."""
    paths = tables_beside(matrix, *names)
    path = next(filter(os.path.exists, paths), None)
    if path is None:
        raise ValueError(f"there is no {os.path.basename(paths[1])}, nor .gz, beside it")
    opened: Any = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\r\n").split("\t") for line in file]
    table = os.path.basename(path)
    if not lines:
        raise ValueError(f"{table} names no {names[0]}")
    if len(lines[0]) < n_columns:
        raise ValueError(f"{table} has fewer than {n_columns} columns")
    for i, line in enumerate(lines, 1):
        if len(line) != len(lines[0]):
            raise ValueError(
                f"line {i} of {table} has another number of columns, {len(line)}, than the first, "
                f"{len(lines[0])}"
            )
    return lines


def cells_of(adata: Any, layer: str | None = None, var: str | None = None) -> Cells:
    """The cells of an AnnData; where it is backed, its matrix is read from the file."""
    if adata.isbacked:
        from sparsemargin.io.sources import open_sources

        if adata.is_view:
            raise ValueError("A part of a backed AnnData can't be read. Pass adata.to_memory().")
        [source] = open_sources(os.fspath(adata.filename))
        cells = open_cells(source, layer, var)
        # The cells may have got other labels since.
        cells.columns, cells.column = list(adata.obs), lambda name: _of_pandas(adata.obs[name])
        return cells
    X, frame = adata.X, adata.var
    if layer is not None and layer in adata.layers:
        X = adata.layers[layer]
    elif layer == "raw" and adata.raw is not None:
        X, frame = adata.raw.X, adata.raw.var
    elif layer is not None:
        raise _no_layer("The AnnData", layer, list(adata.layers))
    if X is None:
        raise ValueError("The AnnData has no X. Pass layer=.")
    parts = X, None, None
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        parts = X.data, X.indices, X.indptr
    _check_column("The AnnData", "var", var, list(frame))
    return Cells(
        "The AnnData", frame.index if var is None else frame[var], np.asarray(adata.obs_names),
        *parts, list(adata.obs), lambda name: _of_pandas(adata.obs[name]),
        layers=(*adata.layers, *["raw"] * (adata.raw is not None)),
        namings=lambda: _texts_in({
            None: _of_pandas(frame.index.to_series()),
            **{each: _of_pandas(frame[each]) for each in frame},
        }),
    )  # fmt: skip


def _texts_in(
    columns: dict[str | None, tuple[np.ndarray, np.ndarray]],
) -> dict[str | None, np.ndarray]:
    """The columns whose values are texts, which codes stand for."""
    return {
        name: values[codes[codes >= 0]]
        for name, (codes, values) in columns.items() if values.dtype.kind in "OUS"
    }  # fmt: skip


def _of_pandas(column: Any) -> tuple[np.ndarray, np.ndarray]:
    values = column.astype("category").cat
    return np.asarray(values.codes), np.asarray(values.categories)


def _no_layer(name: str, layer: str, layers: list[str]) -> ValueError:
    known = ", ".join(layers) or "none"
    return ValueError(f"{name} has no layer {layer!r}. There are: {known}.")


def _check_column(name: str, frame: str, column: str | None, columns: list[str]) -> None:
    if column is not None and column not in columns:
        known = ", ".join(columns) or "none"
        raise ValueError(f"{name} has no column {column!r} in {frame}. There are: {known}.")


def _of_h5ad(source: Source, file: Any, layer: str | None, var: str | None) -> Cells:
    matrix, frame, layers = file.get("X"), file["var"], list(file.get("layers", ()))
    remedy = "adata.X = adata.X.tocsr()"
    if layer is not None and layer in layers:
        matrix = file["layers"][layer]
        remedy = f"adata.layers[{layer!r}] = adata.layers[{layer!r}].tocsr()"
    elif layer == "raw" and "raw" in file:
        matrix, frame = file["raw/X"], file["raw/var"]
        remedy = "raw = adata.raw.to_adata(); raw.X = raw.X.tocsr(); adata.raw = raw"
    elif layer is not None:
        raise _no_layer(source.name, layer, layers)
    if matrix is None:
        raise ValueError(f"{source.name} has no X. Pass layer= one of {', '.join(layers)}.")
    obs = file["obs"]
    names = [each for each in frame if each != "__categories"]
    _check_column(source.name, "var", var, names)
    codes, genes = _column_of(frame, frame.attrs["_index"] if var is None else var)
    index = obs.attrs["_index"]
    return Cells(
        source.name, genes[codes], _texts_of(obs[index]), *_parts_of(source, matrix, remedy),
        [each for each in obs if each not in (index, "__categories")],
        lambda name: _column_of(obs, name), source=source,
        layers=(*layers, *["raw"] * ("raw" in file)),
        namings=lambda: _texts_in({
            None if each == frame.attrs["_index"] else each: _column_of(frame, each)
            for each in names
        }),
    )  # fmt: skip


def _parts_of(source: Source, matrix: Any, remedy: str) -> tuple[Any, Any, Any]:
    """Data, indices and pointers; `remedy` makes them lie cell by cell."""
    if not hasattr(matrix, "keys"):
        return matrix, None, None
    form = matrix.attrs.get("encoding-type", matrix.attrs.get("h5sparse_format", ""))
    if not str(form).startswith("csr"):
        raise ValueError(
            f"{source.name} has its values gene by gene ({form}), and they are read cell by cell. "
            f"Write it anew after {remedy}."
        )
    return matrix["data"], matrix["indices"], matrix["indptr"][:]


def _texts_of(node: Any) -> Any:
    """A dataset whose strings are read as such."""
    return node.asstr() if node.dtype.kind in "OS" and hasattr(node, "asstr") else node


def _column_of(frame: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A column of a data frame in a file, as codes and what they stand for."""
    node = frame[name]
    if hasattr(node, "keys") and "categories" in node:
        return node["codes"][:], _texts_of(node["categories"])[:]
    if "__categories" in frame and name in frame["__categories"]:
        return node[:], _texts_of(frame["__categories"][name])[:]
    missing: Any = False
    if hasattr(node, "keys"):
        node, missing = node["values"], node["mask"][:]
    values, codes = np.unique(_texts_of(node)[:], return_inverse=True)
    missing = missing | (values != values)[codes]
    return np.where(missing, -1, codes), values


def _of_10x(
    source: Source, features: dict[str, np.ndarray], barcodes: Any, parts: tuple[Any, Any, Any],
    layer: str | None, var: str | None,
) -> Cells:  # fmt: skip
    if layer is not None:
        raise _no_layer(source.name, layer, [])
    _check_column(source.name, "features", var, ["id", "name"])
    genes = features[var or "name"]
    if var is None:  # where several have one name, they go by their ids
        _, at, counts = np.unique(genes, return_inverse=True, return_counts=True)
        genes = np.where(counts[at] > 1, features["id"], genes)
    kinds = features.get("feature_type")  # Cell Ranger 2 knew genes alone
    return Cells(
        source.name, genes, barcodes, *parts, [], dict[str, Any]().__getitem__,
        None if kinds is None else kinds == "Gene Expression", source,
        namings=lambda: {each: features[each] for each in ("id", "name")},
    )  # fmt: skip
