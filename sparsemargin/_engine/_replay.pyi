import numpy as np

from sparsemargin._engine._space import LinearSpace

def votes(
    space: LinearSpace,
    data: np.ndarray,
    points: np.ndarray,
    column_start: np.ndarray,
    n_points: int,
) -> np.ndarray: ...
def draw_slices(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, seed: int, trials: int
) -> np.ndarray: ...
def outputs_at(
    space: LinearSpace,
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    slices: np.ndarray,
) -> np.ndarray: ...
