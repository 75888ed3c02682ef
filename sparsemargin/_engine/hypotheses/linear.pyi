import numpy as np

from sparsemargin._engine.first_order.spaces import LinearSpace
from sparsemargin._engine.hypotheses.base import Hypotheses

class LinearHypotheses(Hypotheses):
    def __init__(
        self,
        space: LinearSpace,
        used: np.ndarray,
        values: np.ndarray,
        places: np.ndarray,
        row_start: np.ndarray,
        data: np.ndarray,
        points: np.ndarray,
        column_start: np.ndarray,
        *,
        averaged: bool,
    ) -> None: ...

def draw_slices(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, seed: int, trials: int
) -> np.ndarray: ...
def outputs_at(
    space: LinearSpace,
    used: np.ndarray,
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    slices: np.ndarray,
    normalized: bool,
) -> np.ndarray: ...
