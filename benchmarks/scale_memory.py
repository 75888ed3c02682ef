"""What a coordinate takes of the memory of who learns and who mixes, both in one process.

Each fit is made in a process of its own, whose peak the kernel keeps. Of two numbers of features
the difference is told, per feature; the updates, which few rows leave short, are not part of it.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from measure import text_table
from peak_memory import resident_peak
from scale_learners import FIRST_ORDER
from scipy.sparse import csr_matrix

from sparsemargin.distributed import fit_distributed

N_FEATURES = (1 << 22, 1 << 24)
N_ROWS, ROW_NNZ = 1_000, 20

_FIT = """
import sys
sys.path.insert(0, {folder!r})
import scale_memory
print(scale_memory.peak_of_a_fit({name!r}, {n_features}))
"""


def peak_of_a_fit(name: str, n_features: int) -> int:
    """Bytes that this process has held at most, after a fit of three epochs over two shards."""
    random = np.random.RandomState(0)
    columns = random.randint(n_features, size=N_ROWS * ROW_NNZ, dtype=np.int32)
    values = np.ones(len(columns), np.float32)
    starts = np.arange(0, len(columns) + 1, ROW_NNZ, dtype=np.int32)
    X = csr_matrix((values, columns, starts), shape=(N_ROWS, n_features))
    y = np.where(np.arange(N_ROWS) % 2, 1, -1)
    shards = [(X[start::2], y[start::2]) for start in (0, 1)]
    fit_distributed(shards, max_iter=3, random_state=0, **FIRST_ORDER[name])
    return resident_peak()


def measure(quick: bool) -> dict[str, float]:
    """Bytes a feature, by learner."""
    few, many = (n >> (4 if quick else 0) for n in N_FEATURES)
    return {name: (_peak(name, many) - _peak(name, few)) / (many - few) for name in FIRST_ORDER}


def _peak(name: str, n_features: int) -> int:
    code = _FIT.format(folder=str(Path(__file__).parent), name=name, n_features=n_features)
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(found.stdout)


def show(found: dict[str, Any]) -> None:
    """Print them."""
    print(text_table([("learner", ""), ("bytes a feature", ".0f")], found.items()))
