import numpy as np

from sparsemargin._engine._hypotheses import Hypotheses
from sparsemargin._engine._space import LinearSpace

class LinearHypotheses(Hypotheses):
    def __init__(
        self,
        space: LinearSpace,
        data: np.ndarray,
        points: np.ndarray,
        column_start: np.ndarray,
        n_points: int,
        *,
        averaged: bool,
    ) -> None: ...

def draw_slices(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, seed: int, trials: int
) -> np.ndarray: ...
def outputs_at(
    space: LinearSpace,
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    slices: np.ndarray,
    normalized: bool,
) -> np.ndarray: ...
