"""Cell types trained from files: `fit_anndata` compared with plain reading and other classifiers.

Cells are generated (`examples/made_cells.py`): by default 100,000 cells of 20,000 genes and 50
types, with 7 % nonzero entries. Each contestant runs in a new process. Its peak memory excludes the
memory at the start; seconds are wall time and CPU time. `reading` is h5py alone, block by block.
`SGDClassifier` is trained with `partial_fit` on blocks that are normalized with scipy and shuffled.
LinearSVC and CellTypist hold all their cells in memory, as many as `--in-memory` says. Accuracy is
that on 20,000 further cells.

    python benchmarks/cells.py [--cells 100000] [--compression gzip] [--order type] [--only fit ...]
"""

import resource
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
from timing import FOLDER, apart

sys.path.append(str(FOLDER.parent / "examples"))

BLOCK = 3000
TEST_CELLS = 20_000


def blocks_of(path, block=BLOCK):
    """Yield blocks of counts and the codes of the cell types, read with h5py."""
    import h5py
    from scipy.sparse import csr_matrix

    with h5py.File(path) as file:
        X, codes = file["X"], file["obs/cell_type/codes"][:]
        indptr, n_genes = X["indptr"][:], int(X.attrs["shape"][1])
        for start in range(0, len(codes), block):
            ends = indptr[start : start + block + 1]
            entries = slice(ends[0], ends[-1])
            arrays = X["data"][entries], X["indices"][entries], ends - ends[0]
            shape = len(ends) - 1, n_genes
            yield csr_matrix(arrays, shape=shape), codes[start : start + block]


def logs(X):
    """Normalize like normalize_total and log1p of scanpy."""
    totals = np.asarray(X.sum(axis=1)).ravel()
    X.data *= np.repeat(1e4 / np.maximum(totals, 1), np.diff(X.indptr)).astype(X.dtype)
    return X.log1p()


def reading(path, settings):
    for _ in blocks_of(path):
        pass


def fit(path, settings):
    from sparsemargin import fit_anndata

    model = fit_anndata(path, "cell_type", **settings)
    return model.pipeline_.predict


def sgd(path, settings):
    from sklearn.linear_model import SGDClassifier

    model, random = SGDClassifier(loss="log_loss", random_state=0), np.random.RandomState(0)
    for X, codes in blocks_of(path):
        order = random.permutation(len(codes))
        model.partial_fit(logs(X)[order], codes[order], classes=np.arange(50))
    return lambda X: names_of(path)[model.predict(logs(X))]


def svm(path, settings):
    from scipy.sparse import vstack
    from sklearn.svm import LinearSVC

    parts, n_cells = [], 0
    for X, codes in blocks_of(path):
        parts.append((logs(X), codes))
        n_cells += len(codes)
        if n_cells >= settings["in_memory"]:
            break
    rows, codes = zip(*parts, strict=True)
    model = LinearSVC().fit(vstack(rows, format="csr"), np.concatenate(codes))
    return lambda X: names_of(path)[model.predict(logs(X))]


def celltypist(path, settings):
    import anndata
    import celltypist as other
    import scanpy as sc

    adata = anndata.read_h5ad(path)[: settings["in_memory"]].copy()
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    model = other.train(adata, labels="cell_type", n_jobs=2, check_expression=False)
    return lambda X: model.classifier.predict(model.scaler.transform(logs(X).toarray()))


def names_of(path):
    import h5py

    with h5py.File(path) as file:
        return file["obs/cell_type/categories"].asstr()[:].astype(str)


CONTESTANTS = {
    "reading": (reading, {}),
    "fit": (fit, {}),
    "fit, one epoch": (fit, {"max_iter": 1}),
    "fit, AROW": (fit, {"algo": "arow", "max_iter": 1}),
    "SGDClassifier, one epoch": (sgd, {}),
    "LinearSVC": (svm, {"in_memory": 20_000}),
    "CellTypist": (celltypist, {"in_memory": 20_000}),
}


def measured(name, path, test, in_memory):
    """Seconds, CPU seconds, added peak memory in MB, accuracy and macro F1 in percent."""
    from sklearn.metrics import accuracy_score, f1_score

    call, settings = CONTESTANTS[name]
    if "in_memory" in settings:
        settings = {"in_memory": in_memory}
    import h5py  # noqa: F401

    import sparsemargin.cells.source  # noqa: F401  (the cost of imports is excluded)

    before = peak()
    started, worked = time.perf_counter(), time.process_time()
    predict = call(path, settings)
    figures = [time.perf_counter() - started, time.process_time() - worked, peak() - before]
    if predict is None:
        return figures
    found, true = zip(*((predict(X), codes) for X, codes in blocks_of(test)), strict=True)
    found, true = np.concatenate(found).astype(str), names_of(test)[np.concatenate(true)]
    scores = accuracy_score(true, found), f1_score(true, found, average="macro")
    return figures + [100 * each for each in scores]


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--compression")
    parser.add_argument("--order", choices=["shuffled", "type", "batch"], default="shuffled")
    parser.add_argument("--in-memory", type=int, default=20_000)
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--folder", type=Path, help="where the files are made, and stay")
    args = parser.parse_args()
    from made_cells import write_cells

    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        path = folder / f"cells-{args.cells}-{args.order}-{args.compression}.h5ad"
        test = folder / "cells-test.h5ad"
        if not test.exists():
            write_cells(test, TEST_CELLS, seed=9)
        if not path.exists():
            write_cells(path, args.cells, order=args.order, compression=args.compression)
        print("| contestant | s | CPU s | of reading | peak MB | accuracy, % | macro F1, % |")
        print("|---|---|---|---|---|---|---|")
        whole = None
        for name in args.only:
            try:
                seconds, worked, memory, *scores = apart(measured, name, path, test, args.in_memory)
            except Exception as error:
                print(f"| {name} | - {str(error).splitlines()[-1]} |", flush=True)
                continue
            whole = whole or seconds
            shown = [f"{each:.1f}" for each in (seconds, worked, seconds / whole, memory, *scores)]
            print(f"| {name} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
