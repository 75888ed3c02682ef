"""Hostile files of cells run no code, open no other file, and take no more memory than their size
allows."""

import gzip
import json
import os
import shutil
import zlib

import numpy as np
import pytest

from depth import some
from problems.cells import (
    adata_of,
    anndata,
    counts_of,
    h5py,
    make_names_nullable,
    write_10x,
    write_matrix,
    write_plain,
)
from sparsemargin import annotate, fit_anndata
from sparsemargin.files.sources import open_sources

pytestmark = pytest.mark.filterwarnings("ignore:.*zarr.*", "ignore::UserWarning:zarr")

TYPES = "cell_type"

#: Arrays of names in files with plain names, and in files with nullable names.
NAMES = [
    f"{frame}/_index{part}" for frame in ("obs", "var") for part in ("", "/values", "/mask")
]  # fmt: skip


@pytest.fixture
def adata():
    return adata_of(*counts_of())


@pytest.fixture
def path(adata, tmp_path):
    write_plain(adata, tmp_path / "cells.h5ad", compression="gzip")
    return tmp_path / "cells.h5ad"


def refused(path, *words, label=TYPES):
    """Return the error that a file raises. It must name the file."""
    with pytest.raises(ValueError, match=r"\.(h5ad|h5|zarr)") as error:
        fit_anndata(path, label, max_iter=1)
    text = str(error.value)
    assert str(path) in text
    assert "\n" not in text
    for each in words:
        assert each in text
    return text


def provide(file, name):
    """Make the names in an open file nullable if `name` is a part of nullable names."""
    frame, _, part = name.partition("/_index/")
    if part:
        packing = {"compression": "gzip"} if isinstance(file, h5py.File) else {}
        make_names_nullable(file, frame, **packing)


def replaced(path, name, make):
    """Replace an object of a file, and keep its attributes."""
    with h5py.File(path, "a") as file:
        provide(file, name)
        about = dict(file[name].attrs.items())
        values = file[name][()] if isinstance(file[name], h5py.Dataset) else None
        del file[name]
        make(file, name, values)
        if isinstance(file.get(name, getlink=True), h5py.HardLink):
            file[name].attrs.update(about)


def external(file, name, values):
    secret = os.path.join(os.path.dirname(file.filename), "secret.txt")
    with open(secret, "w") as text:
        text.write("TOPSECRET" * 1000)
    kind = values.dtype if values.dtype.kind in "iuf" else np.dtype("S3")
    size = len(values) * kind.itemsize
    file.create_dataset(name, values.shape, kind, external=[(secret, 0, size)])


def virtual(file, name, values):
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    layout[:] = h5py.VirtualSource("other.h5", "x", values.shape)
    file.create_virtual_dataset(name, layout)


def linked(file, name, values):
    file[name] = h5py.ExternalLink("other.h5", "/x")


def linked_softly(file, name, values):
    file["outside"] = h5py.ExternalLink("other.h5", "/")
    file[name] = h5py.SoftLink("/outside/x")


WHAT = {
    external: "has its values in another file", virtual: "is a virtual dataset",
    linked: "is a link to another file", linked_softly: "is a link to another file",
}  # fmt: skip


@pytest.mark.parametrize("make", WHAT)
@pytest.mark.parametrize("name", [
    "X/data", "X/indices", "X/indptr", "obs/cell_type/codes", "obs/cell_type/categories", *NAMES
])  # fmt: skip
def test_values_in_other_files_are_rejected(adata, path, tmp_path, make, name):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.arange(3)
    replaced(path, name, make)
    text = refused(path, WHAT[make], "If you trust it, open it with anndata")
    assert "SECRET" not in text
    if "cell_type" not in name:
        model = fit_anndata(adata, TYPES, max_iter=1)
        with pytest.raises(ValueError, match=WHAT[make]):
            annotate(model, path)


@pytest.mark.parametrize("name", ["X", "obs", "var", "obs/cell_type", "layers"])
def test_groups_in_other_files_are_rejected(path, name):
    replaced(path, name, linked)
    refused(path, "is a link to another file")


@pytest.mark.parametrize("name", ["data", "indptr", "barcodes", "features/id", "features", "shape"])
def test_10x_files_with_external_links_are_rejected(adata, tmp_path, name):
    X, types = counts_of()
    names = adata.obs_names.tolist()
    write_10x(tmp_path / "cells.h5", X, adata.var_names.tolist(), names)
    replaced(tmp_path / "cells.h5", f"matrix/{name}", linked)
    label = dict(zip(names, types, strict=True))
    refused(tmp_path / "cells.h5", "is a link to another file", label=label)


def test_remedy_for_external_links_works(adata, path, tmp_path):
    """The remedy in the error messages works."""
    adata.write_h5ad(tmp_path / "other.h5")
    with h5py.File(path, "a") as file:
        del file["X"]
        file["X"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/X")
    refused(path, "adata.write_h5ad('new.h5ad')")
    anndata.read_h5ad(path).write_h5ad(tmp_path / "new.h5ad")
    fit_anndata(tmp_path / "new.h5ad", TYPES, max_iter=1)


def test_soft_links_within_a_file_are_followed(adata, path):
    with h5py.File(path, "a") as file:
        file.move("X", "elsewhere")
        file["X"] = h5py.SoftLink("/middle")
        file["middle"] = h5py.SoftLink("elsewhere")
    fit_anndata(path, TYPES, max_iter=1)
    with h5py.File(path, "a") as file:
        del file["middle"]
        file["middle"] = h5py.SoftLink("/X")
    refused(path, "lead in a circle")


def test_hdf5_chunk_is_bounded_by_its_shape(adata, path):
    bomb, model = zlib.compress(bytes(1 << 27), 9), fit_anndata(adata, TYPES, max_iter=1)
    for name in "X/data", "X/indptr", "obs/cell_type/codes", *NAMES[:3]:
        whole = path.read_bytes()
        with h5py.File(path, "a") as file:
            provide(file, name)
            file[name].id.write_direct_chunk((0,), bomb)
        words = f"/{name} has a chunk that unpacks to more than"
        if name in NAMES:
            with pytest.raises(ValueError, match=words):
                annotate(model, path)
        else:
            refused(path, words)
        path.write_bytes(whole)


@pytest.mark.parametrize("name", ["X/data", "X/indices", "obs/cell_type/codes", *NAMES])
def test_large_chunks_are_rejected(path, tmp_path, name):
    def make(file, name, values):
        kind = h5py.string_dtype() if values.dtype.kind == "O" else values.dtype
        # Chunks of 2 GiB: HDF5 before 2.0 refuses those of 4. A string takes 16 bytes.
        n = (1 << 31) // (16 if values.dtype.kind == "O" else kind.itemsize)
        made = file.create_dataset(
            name, values.shape, kind, chunks=(n,), maxshape=(None,), compression="gzip"
        )
        made.attrs["later"] = True

    replaced(path, name, make)
    refused(path, f"/{name} has chunks of", "Write the file with smaller chunks")


def test_remedy_for_large_chunks_works(adata, path, tmp_path, monkeypatch):
    from sparsemargin.readers import stored_arrays

    monkeypatch.setattr(stored_arrays, "LARGEST_CHUNK", 10_000)

    def make(file, name, values):
        file.create_dataset(name, data=values, chunks=(5000,), compression="gzip")

    replaced(path, "X/data", make)
    refused(path, "adata.write_h5ad('new.h5ad')")
    anndata.read_h5ad(path).write_h5ad(tmp_path / "new.h5ad")
    fit_anndata(tmp_path / "new.h5ad", TYPES, max_iter=1)


@pytest.mark.parametrize("name", ["X/indptr", "obs/cell_type/codes", *NAMES])
@pytest.mark.parametrize("length", [1 << 33, 1 << 50])
def test_shapes_far_beyond_the_size_of_the_file_take_no_memory(path, name, length):
    def make(file, name, values):
        kind = h5py.string_dtype() if values.dtype.kind == "O" else values.dtype
        file.create_dataset(name, (length,), kind, chunks=(1000,))

    replaced(path, name, make)
    refused(path, f"{path}")


def test_cell_with_more_values_than_genes_is_rejected(path):
    with h5py.File(path, "a") as file:
        for name, kind in ("X/data", "f4"), ("X/indices", "i4"):
            del file[name]
            file.create_dataset(name, (1 << 40,), kind, chunks=(1000,))
        pointers = file["X/indptr"][:].astype(np.int64)
        pointers[-1] = 1 << 40
        del file["X/indptr"]
        file["X/indptr"] = pointers
    refused(path, "cell 300 has", "80 genes")


PLUGINS = {"zstd": "Zstd", "blosc": "Blosc", "lz4": "LZ4", "bitshuffle": "Bitshuffle"}


@pytest.mark.parametrize("name", PLUGINS)
def test_filters_of_hdf5plugin_are_read(adata, path, name):
    hdf5plugin = pytest.importorskip("hdf5plugin", reason="hdf5plugin is not installed")
    whole = fit_anndata(path, TYPES, max_iter=1, shuffle=False).classifier_.coef_
    with h5py.File(path, "a") as file:
        for each in "X/data", "X/indices", "X/indptr", "obs/cell_type/codes":
            values = file[each][:]
            del file[each]
            how = getattr(hdf5plugin, PLUGINS[name])()
            file.create_dataset(each, data=values, chunks=(100,), compression=how)
    read = fit_anndata(path, TYPES, max_iter=1, shuffle=False).classifier_.coef_
    assert np.array_equal(read, whole)
    packed = {
        "zstd": b"\x28\xb5\x2f\xfd\xa0" + (1 << 31).to_bytes(4, "little") + bytes(90),
        "blosc": bytes(4) + (1 << 31).to_bytes(4, "little") + bytes(90),
        "lz4": (1 << 31).to_bytes(8, "big") + bytes(90),
        "bitshuffle": (1 << 31).to_bytes(8, "big") + bytes(90),
    }[name]
    with h5py.File(path, "a") as file:
        file["X/data"].id.write_direct_chunk((0,), packed)
    refused(path, "/X/data has a chunk that unpacks to more than the 400 bytes")


@pytest.mark.parametrize("name", ["Blosc2", "BZip2"])
def test_filters_without_a_size_are_rejected(adata, path, name):
    hdf5plugin = pytest.importorskip("hdf5plugin", reason="hdf5plugin is not installed")
    with h5py.File(path, "a") as file:
        del file["X/data"]
        how = getattr(hdf5plugin, name)()
        file["X"].create_dataset("data", data=adata.X.data, chunks=(100,), compression=how)
    refused(path, "is packed by the HDF5 filters", "h5repack -f GZIP=4")


def stored(adata, to, version):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    if version == 3 and zarr.__version__.startswith("2"):
        pytest.skip("zarr 2 writes version 2 only")
    write_plain(adata, to, version)
    return to


def metadata(store, name, **changes):
    """Change the metadata of an array."""
    [file] = [each for each in (store / name).iterdir() if each.name in (".zarray", "zarr.json")]
    told = json.loads(file.read_text())
    told.update(changes)
    file.write_text(json.dumps(told))
    return told


UNSAFE_2 = [
    {"filters": [{"id": "vlen-utf8"}, {"id": "pickle"}], "dtype": "|O"},
    {"filters": [{"id": "pickle"}], "dtype": "|O"},
    {"filters": [{"id": "pickle"}]},
    {"filters": [], "dtype": "|O"},
    {"filters": None, "dtype": "|O"},
    {"filters": [{"id": "json2"}], "dtype": "|O"},
    {"compressor": {"id": "pickle"}},
    {"compressor": {"id": "unknown"}},
    {"filters": [{"id": "delta", "dtype": "<i4"}]},
    {"filters": [{}]},
    {"compressor": {}},
    {"compressor": "pickle"},
    {"filters": "pickle"},
    {"filters": [["pickle"]]},
]
PICKLE_3 = {"name": "numcodecs.pickle", "configuration": {}}
UNSAFE_3 = [
    {"codecs": [{"name": "bytes"}, PICKLE_3]},
    {"codecs": [PICKLE_3, {"name": "bytes"}]},
    {"codecs": [PICKLE_3]},
    {"codecs": []},
    {"codecs": ["pickle"]},
    {"codecs": [{"name": "bytes"}, {"name": "zstd"}, {"name": "gzip"}]},
    {"codecs": [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1], "codecs": [{"name": "bytes"}, PICKLE_3],
        "index_codecs": [{"name": "bytes"}]}}]},
    {"codecs": [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1], "codecs": [{"name": "bytes"}],
        "index_codecs": [{"name": "bytes"}, PICKLE_3]}}]},
    {"storage_transformers": [{"name": "x"}]},
    {"data_type": {"name": "object"}},
    {"data_type": "object"},
    {"data_type": "numpy.datetime64"},
    {"chunk_grid": {"name": "rectilinear"}},
]  # fmt: skip


@pytest.mark.parametrize(("version", "change"), [
    *((2, each) for each in UNSAFE_2), *((3, each) for each in UNSAFE_3)
][::some(5, 1)])  # fmt: skip
def test_zarr_codecs_that_may_run_code_are_rejected(adata, tmp_path, version, change, monkeypatch):
    """The codecs are refused even if the installed numcodecs may unpickle."""
    numcodecs = pytest.importorskip("numcodecs", reason="numcodecs is not installed")
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    loaded = list[object]()
    monkeypatch.setattr("pickle.loads", lambda *_, **__: loaded.append(0))
    whole = stored(adata, tmp_path / "whole.zarr", version)
    for i, name in enumerate(("X/data", *NAMES[:3])):
        store = shutil.copytree(whole, tmp_path / f"{i}.zarr")
        provide(zarr.open_group(store, mode="r+", use_consolidated=False), name)
        metadata(store, name, **change)
        refused(store, f"/{name} ")
    assert not loaded


def test_consolidated_metadata_are_not_used(adata, tmp_path):
    store = stored(adata, tmp_path / "cells.zarr", 2)
    (store / ".zmetadata").write_text("no JSON")
    fit_anndata(store, TYPES, max_iter=1)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("packer", ["zstd", "blosc", "gzip", "lz4"])
def test_zarr_chunk_is_bounded_by_its_shape(adata, tmp_path, version, packer):
    store = stored(adata, tmp_path / "cells.zarr", version)
    numcodecs = pytest.importorskip("numcodecs")
    if version == 2:
        codec = {"zstd": numcodecs.Zstd, "blosc": numcodecs.Blosc, "gzip": numcodecs.GZip,
                 "lz4": numcodecs.LZ4}[packer]()  # fmt: skip
        metadata(store, "X/indices", compressor=codec.get_config())
        chunk = store / "X/indices/0"
    elif packer == "lz4":
        pytest.skip("version 3 has no lz4")
    else:
        codec = {"zstd": numcodecs.Zstd, "blosc": numcodecs.Blosc, "gzip": numcodecs.GZip}[packer]()
        how = {"zstd": {"level": 1, "checksum": False}, "gzip": {"level": 1},
               "blosc": {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0,
                         "typesize": 1}}[packer]  # fmt: skip
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}},
                  {"name": packer, "configuration": how}]  # fmt: skip
        metadata(store, "X/indices", codecs=codecs)
        chunk = store / "X/indices/c/0"
    values = adata.X.indices.astype(np.int32)
    chunk.write_bytes(codec.encode(values))
    fit_anndata(store, TYPES, max_iter=1)
    chunk.write_bytes(codec.encode(np.zeros(1 << 22, np.uint8)))
    refused(store, "/X/indices has a chunk that unpacks to more than")


def test_shards_of_zarr_are_read_and_bounded(adata, tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3")
    store = stored(adata, tmp_path / "cells.zarr", 3)
    expected = fit_anndata(store, TYPES, max_iter=1).classifier_.coef_
    values = adata.X.indices.astype(np.int32)
    shutil.rmtree(store / "X/indices")
    inner = 1000
    n = -(-len(values) // inner) * inner
    zarr.create_array(store / "X/indices", data=values, chunks=(inner,), shards=(n,))
    assert np.array_equal(fit_anndata(store, TYPES, max_iter=1).classifier_.coef_, expected)
    shard = store / "X/indices/c/0"
    raw = bytearray(shard.read_bytes())
    at = raw.index(b"\x28\xb5\x2f\xfd")
    raw[at + 4 : at + 9] = b"\xa0" + (1 << 31).to_bytes(4, "little")
    shard.write_bytes(raw)
    refused(store, "/X/indices has a chunk that unpacks to more than")


@pytest.mark.parametrize("version", [2, 3])
def test_links_out_of_a_store_are_rejected(adata, tmp_path, version):
    store = stored(adata, tmp_path / "cells.zarr", version)
    shutil.copytree(store / "X", tmp_path / "X")
    shutil.rmtree(store / "X")
    (store / "X").symlink_to(tmp_path / "X")
    refused(store, "X is a link out of the store", "cp -rL STORE NEW")
    shutil.copytree(store, tmp_path / "new.zarr")  # copytree follows links, like cp -rL
    fit_anndata(tmp_path / "new.zarr", TYPES, max_iter=1)
    (store / "X").unlink()
    shutil.move(tmp_path / "X", store / "elsewhere")
    (store / "X").symlink_to("elsewhere")
    fit_anndata(store, TYPES, max_iter=1)
    (store / "X").unlink()
    (store / "X").symlink_to("/none")
    refused(store, "X is a link out of the store")


def test_names_cannot_point_out_of_a_store(adata, tmp_path):
    store = stored(adata, tmp_path / "cells.zarr", 2)
    stored(adata, tmp_path / "other.zarr", 2)
    attributes = json.loads((store / "obs/.zattrs").read_text())
    for name in "../../other.zarr/obs/_index", "..", "a/b", "", "\0":
        (store / "obs/.zattrs").write_text(json.dumps({**attributes, "_index": name}))
        refused(store, "/obs has no group")


def test_store_may_contain_regular_files_only(adata, tmp_path):
    store = stored(adata, tmp_path / "cells.zarr", 2)
    os.mkfifo(store / "X/pipe")
    with pytest.raises(ValueError, match="is no file, as those of a store are"):
        open_sources(store)


def test_size_of_10x_tables_and_label_tables_is_bounded(adata, tmp_path):
    X, types = counts_of()
    names = adata.obs_names.tolist()
    table = dict(zip(names, types, strict=True))
    write_matrix(f"{tmp_path}/", X, adata.var_names.tolist(), names)
    bomb = gzip.compress(bytes(1 << 27))
    for name in "features.tsv.gz", "barcodes.tsv.gz":
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(bomb)
        with pytest.raises(ValueError, match=f"{name} unpacks to far more"):
            fit_anndata(tmp_path, table)
        (tmp_path / name).write_bytes(whole)
    (tmp_path / "types.csv.gz").write_bytes(bomb)
    with pytest.raises(ValueError, match=r"types\.csv\.gz unpacks to far more"):
        fit_anndata(tmp_path, tmp_path / "types.csv.gz")
    text = gzip.decompress((tmp_path / "matrix.mtx.gz").read_bytes()).decode()
    for shape in "80 300 99999999999", "9999999999 300 1", "80 9999999999 1":
        lines = text.splitlines()
        lines[next(i for i, line in enumerate(lines) if line[0] != "%")] = shape
        (tmp_path / "matrix.mtx.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
        with pytest.raises(ValueError, match=f"{tmp_path} can't be read: it"):
            fit_anndata(tmp_path, table)
