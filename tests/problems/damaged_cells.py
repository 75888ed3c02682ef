"""Files of cells that are changed at random in what they say, as strangers might change them."""

import json
import shutil

import numpy as np

from problems.cells import adata_of, anndata, counts_of, h5py, write_10x, write_matrix

#: The forms that files of cells have.
FORMS = "cells.h5ad", "cells.h5", "cells2.zarr", "cells3.zarr", "matrix"

_ODD_VALUES = None, -1, 0, 1 << 40, 0.5, "x", [], [1 << 40], {}, True, [-1], "../../x", "pickle"


def write_sound(folder):
    """A small file of each form, and the labels of its cells."""
    X, types = counts_of(40, 12)
    adata = adata_of(X, types, n=np.arange(40) % 3)
    adata.obs["many"] = adata.obs["n"].astype("Int64")
    adata.layers["counts"] = X.toarray()
    names = adata.var_names.tolist(), adata.obs_names.tolist()
    adata.write_h5ad(folder / "cells.h5ad", compression="gzip")
    write_10x(folder / "cells.h5", X, *names)
    for version in 2, 3:
        with anndata.settings.override(zarr_write_format=version):
            adata.write_zarr(folder / f"cells{version}.zarr")
    (folder / "matrix").mkdir()
    write_matrix(f"{folder}/matrix/", X, *names, kinds=False)
    return dict(zip(names[1], types, strict=True))


def copied(sound, to):
    """A fresh copy of a file or a folder."""
    if to.is_dir():
        shutil.rmtree(to)
    (shutil.copytree if sound.is_dir() else shutil.copy)(sound, to)
    return to


def change(path, random):
    """Change one thing; what was done."""
    if path.suffix in (".h5ad", ".h5"):
        return _change_hdf5(path, random)
    files = sorted(each for each in path.rglob("*") if each.is_file())
    file = files[random.randint(len(files))]
    if file.name in (".zarray", ".zattrs", ".zgroup", "zarr.json") and random.rand() < 0.8:
        return _change_json(file, random)
    return _change_bytes(file, random)


def _change_bytes(file, random):
    raw, kind = bytearray(file.read_bytes()), random.choice(["cut", "bytes", "gone", "folder"])
    if kind == "cut":
        file.write_bytes(raw[: random.randint(len(raw) + 1)])
    elif kind == "bytes":
        for _ in range(random.randint(1, 9)):
            if raw:
                raw[random.randint(len(raw))] = random.choice([0, 255, 45, 57, random.randint(256)])
        file.write_bytes(raw)
    else:
        file.unlink()
        if kind == "folder":
            file.mkdir()
    return f"{kind} {file}"


def _change_json(file, random):
    told = json.loads(file.read_text())
    holder, key = told, None
    while isinstance(holder, dict | list) and len(holder):
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        above, key = holder, keys[random.randint(len(keys))]
        holder = holder[key]
        if random.rand() < 0.3:
            break
    if key is None:
        return f"nothing in {file}"
    value = _ODD_VALUES[random.randint(len(_ODD_VALUES))]
    if random.rand() < 0.2:
        del above[key]
    else:
        above[key] = value
    file.write_text(json.dumps(told))
    return f"{file} {key}: {value!r}"


def _change_hdf5(path, random):
    with h5py.File(path, "a") as file:
        names = list[str]()
        file.visit(names.append)
        if not names:
            return "nothing is left"
        name = names[random.randint(len(names))]
        node, kind = file[name], random.randint(10)
        attributes = dict(node.attrs.items())
        if kind == 0 or (isinstance(node, h5py.Group) and kind < 5):
            del file[name]
            if kind:
                file[name] = [1, 2] if kind < 3 else np.array([b"x", b"y"])
            return f"{name} {kind}"
        if kind == 1 and attributes:
            key = sorted(attributes)[random.randint(len(attributes))]
            value = [None, 1, "x", b"x", [1 << 40, 3], 0.5, ["a"]][random.randint(7)]
            del node.attrs[key]
            if value is not None:
                node.attrs[key] = value
            return f"{name} {key}: {value!r}"
        if isinstance(node, h5py.Group):
            return f"{name}: nothing"
        return f"{name} {_change_dataset(file, name, node, attributes, random)}"


def _change_dataset(file, name, node, attributes, random):
    values = node[()]
    del file[name]
    kind = random.randint(14)
    if kind == 0:
        file.create_group(name).attrs.update(attributes)
    elif kind == 1:
        file.create_dataset(name, (1 << 40,), "i8", chunks=(1000,))
    elif kind == 2:
        file.create_dataset(name, (1 << 20,) * 2, "f4", chunks=(1 << 14, 1 << 14))
    elif kind == 3:
        file[name] = h5py.SoftLink(f"/{name}")
    elif kind == 4:
        file[name] = h5py.ExternalLink("other.h5", "/x")
    else:
        file[name] = _changed_values(np.atleast_1d(values), kind, random)
    if name in file and kind not in (3, 4):
        file[name].attrs.update(attributes)
    return f"changed by {kind}"


def _changed_values(values, kind, random):
    if kind == 5:
        return np.append(values, values[:1])
    if kind == 6:
        return values[:-1]
    if kind == 7:
        return values[np.newaxis]
    if kind == 8:
        return values[:0]
    if kind == 9:
        return values.ravel()[0]
    if values.dtype.kind == "O" or kind == 10:
        return np.array([b"\xff", b"x"] * len(values))[: len(values)].astype(
            "S2" if kind % 2 else object
        )
    if kind == 11:
        kinds = ["S4"] if values.dtype.kind == "S" else ["f8", "i8", "u8", "S4", "c16", "?"]
        return values.astype(random.choice(kinds))
    wrong = values.astype("i8" if values.dtype.kind in "biu" else values.dtype, copy=True)
    if values.dtype.kind in "biuf" and len(wrong):
        at = random.randint(len(wrong))
        wrong[at] = random.choice([-1, -(1 << 31), 1 << 31, 1 << 62, 300])
    return wrong
