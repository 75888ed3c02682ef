from typing import Final

import numpy as np

from sparsemargin._engine.rows.csr import Csr

NEGATIVE: Final[int]
NO_LOGARITHM: Final[int]
LEFT_OUT: Final[int]
NO_GENE: Final[int]

def find_scales(
    rows: Csr, columns: np.ndarray, target: float, may_be_logs: bool
) -> tuple[np.ndarray, np.ndarray]: ...
def write_rows(
    rows: Csr,
    columns: np.ndarray,
    scales: np.ndarray,
    starts: np.ndarray,
    data: np.ndarray,
    indices: np.ndarray,
) -> bool: ...
