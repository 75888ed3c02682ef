from typing import Final

import numpy as np

SOUND: Final[int]
NOT_FINITE: Final[int]
NEGATIVE: Final[int]
OUT_OF_RANGE: Final[int]
NEITHER: Final[int]
AS_THEY_ARE: Final[int]
WHOLE: Final[int]
ALL: Final[int]
UNKNOWN: Final[int]
NO_GENE: Final[int]

def made_rows(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    order: np.ndarray,
    columns: np.ndarray,
    target: float,
    kind: int,
) -> tuple[int, int, int, bool, tuple[np.ndarray, np.ndarray, np.ndarray]]: ...
