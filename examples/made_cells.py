"""Generated single cells of several types, in h5ad files of any length.

Counts have a negative binomial distribution. The mean of a gene depends on the type of the cell,
its batch and its sequencing depth. The distributions are similar to those of pancreas cells (Baron
et al. 2016): standard deviation 2.2 of the logarithms of the genes' means, 0.5 of the logarithms of
the cells' totals, and dispersion 2. Types form a tree: each type differs from its family in some
genes. With 50 types, half of them have less than 0.5 % of the cells. The notebook cells.ipynb and
the benchmarks use these cells.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

DISPERSION = 2.0
# Factors of the sequencing depth.
LEVELS = np.exp(np.linspace(-0.8, 0.8, 5))
# Number of cells that are generated at a time.
BLOCK = 10_000


@dataclass
class Tissue:
    """Distributions of types of cells. `row_entries` is the mean number of genes with counts."""

    n_genes: int = 20_000
    n_types: int = 50
    n_batches: int = 4
    row_entries: int = 1400
    seed: int = 0
    names: list = field(init=False)

    def __post_init__(self):
        random = np.random.RandomState(self.seed)
        base = random.normal(0, 2.2, self.n_genes)
        n_families = max(2, self.n_types // 6)
        families = [base + self._way(random, 0.02, 1.0) for _ in range(n_families)]
        types = [
            families[i % n_families] + self._way(random, 0.01, 1.5) for i in range(self.n_types)
        ]
        self.means = self._scaled(np.exp(types))
        self.batches = np.exp(random.normal(0, 0.15, (self.n_batches, self.n_genes)))
        shares = np.exp(-0.12 * np.arange(self.n_types))
        self.shares = random.permutation(shares / shares.sum())
        self.names = [f"family {i % n_families + 1}, type {i + 1}" for i in range(self.n_types)]
        self.genes = [f"GENE{i + 1:05d}" for i in range(self.n_genes)]

    def _way(self, random, share, size):
        """Return random changes of the logarithms of the means, for a share of the genes."""
        return random.normal(0, size, self.n_genes) * (random.uniform(size=self.n_genes) < share)

    def _scaled(self, means):
        """Scale the means so that a cell has counts of about `row_entries` genes."""
        low, high = 1e-6, 1e6
        while high / low > 1.001:
            middle = np.sqrt(low * high)
            met = (1 - (1 + means * middle / DISPERSION) ** -DISPERSION).sum(axis=1).mean()
            low, high = (middle, high) if met < self.row_entries else (low, middle)
        return means * low

    def counts(self, types, batches, random):
        """Draw the counts of cells, a CSR matrix of float32."""
        levels = random.choice(len(LEVELS), len(types), p=[0.1, 0.2, 0.4, 0.2, 0.1])
        groups = np.stack([types, batches, levels])
        kinds, group_of = np.unique(groups, axis=1, return_inverse=True)
        parts, rows = [], []
        for number, (kind, batch, level) in enumerate(kinds.T):
            mean = self.means[kind] * self.batches[batch] * LEVELS[level]
            rows.append(np.flatnonzero(group_of == number))
            parts.append(_negative_binomial(mean, len(rows[-1]), random))
        lengths = np.concatenate([np.diff(part.indptr) for part in parts])
        rows = np.concatenate(rows)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        stacked = csr_matrix(
            (
                np.concatenate([part.data for part in parts]),
                np.concatenate([part.indices for part in parts]),
                starts,
            ),
            shape=(len(types), self.n_genes),
        )
        return stacked[np.argsort(rows)]


def _negative_binomial(mean, n_cells, random):
    """Draw counts with these means: a Poisson number of clusters of logarithmic sizes."""
    p = mean / (mean + DISPERSION)
    n_clusters = random.poisson(-DISPERSION * np.log1p(-p) * n_cells)
    gene = np.repeat(np.arange(len(mean), dtype=np.int32), n_clusters)
    cell = random.randint(n_cells, size=len(gene), dtype=np.int32)
    alone = (p / -np.log1p(-p)).astype(np.float32)
    several = np.flatnonzero(random.random_sample(len(gene)) > alone[gene])
    size = np.ones(len(gene), np.float32)
    # Draw the sizes of clusters with at least two molecules. Sizes of one are drawn again.
    for _ in range(20):
        size[several] = random.logseries(p[gene[several]])
        several = several[size[several] == 1]
    size[several] = 2
    return coo_matrix((size, (cell, gene)), shape=(n_cells, len(mean))).tocsr()


def make_cells(n_cells, tissue=None, seed=0):
    """Return the counts of generated cells, the names of their types, and their batches."""
    tissue, random = tissue or Tissue(), np.random.RandomState(seed)
    types = random.choice(tissue.n_types, n_cells, p=tissue.shares)
    batches = random.randint(tissue.n_batches, size=n_cells)
    return tissue.counts(types, batches, random), np.array(tissue.names)[types], batches


def write_cells(path, n_cells, tissue=None, *, order="shuffled", seed=0, compression=None):
    """Write generated cells to an h5ad file. `order` is "shuffled", "type" or "batch"."""
    import h5py

    tissue, random = tissue or Tissue(), np.random.RandomState(seed)
    types = random.choice(tissue.n_types, n_cells, p=tissue.shares)
    batches = random.randint(tissue.n_batches, size=n_cells)
    if order != "shuffled":
        by = np.argsort(types if order == "type" else batches, kind="stable")
        types, batches = types[by], batches[by]
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        X = file.create_group("X")
        shape = np.array([n_cells, tissue.n_genes])
        X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": shape})
        room = {"maxshape": (None,), "compression": compression, "chunks": (1 << 15,)}
        data = X.create_dataset("data", (0,), np.float32, **room)
        indices = X.create_dataset("indices", (0,), np.int32, **room)
        ends = [np.zeros(1, np.int64)]
        for start in range(0, n_cells, BLOCK):
            some = slice(start, start + BLOCK)
            rows, stored = tissue.counts(types[some], batches[some], random), int(ends[-1][-1])
            for dataset, values in (data, rows.data), (indices, rows.indices):
                dataset.resize(stored + len(values), axis=0)
                dataset[stored:] = values
            ends.append(rows.indptr[1:].astype(np.int64) + stored)
        indptr = np.concatenate(ends)
        # scipy needs the same type for both arrays.
        X["indptr"] = indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr
        obs = {"cell_type": (types, tissue.names), "batch": (batches, list("ABCDEFGH"))}
        _write_frame(file, "obs", [f"cell{i}" for i in range(n_cells)], obs)
        _write_frame(file, "var", tissue.genes, {})
    return Path(path)


def _write_frame(file, name, index, columns):
    """Write a data frame with categorical columns in the format of AnnData."""
    frame = file.create_group(name)
    frame.attrs.update(
        {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"}
    )
    frame.attrs["column-order"] = np.array(list(columns), dtype=object) if columns else np.zeros(0)
    texts = {"_index": index}
    for column, (codes, categories) in columns.items():
        group = frame.create_group(column)
        group.attrs.update(
            {"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False}
        )
        group["codes"] = codes.astype(np.int8)
        group["codes"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        texts[f"{column}/categories"] = categories
    for place, values in texts.items():
        frame[place] = np.array(values, dtype=object)
        frame[place].attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
