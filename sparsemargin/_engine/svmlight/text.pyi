import numpy as np
from numpy.typing import NDArray

def text_of_rows(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    heads: NDArray[np.uint8],
    head_ends: NDArray[np.int64],
    first: int,
) -> NDArray[np.uint8]: ...
