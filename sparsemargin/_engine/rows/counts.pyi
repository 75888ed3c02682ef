from typing import Final

import numpy as np

NEGATIVE: Final[int]
NO_LOGARITHM: Final[int]
NOT_WHOLE: Final[int]
COUNTS_AMONG_LOGARITHMS: Final[int]
LEFT_OUT: Final[int]
NO_GENE: Final[int]

def find_scales(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    columns: np.ndarray,
    target: float,
    whole: bool,
) -> tuple[np.ndarray, np.ndarray]: ...
def write_rows(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    columns: np.ndarray,
    scales: np.ndarray,
    starts: np.ndarray,
    to_data: np.ndarray,
    to_indices: np.ndarray,
) -> bool: ...
