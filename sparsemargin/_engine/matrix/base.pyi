from typing import Any

import numpy as np

class SeenSpace:
    p: float
    n_coordinates: int
    bias: float
    logged: bool
    primal: bool
    full: bool
    trials: int
    corrections: int
    updates: int
    limit: int
    rows_taken: int
    reached: int
    mistaken_rows: np.ndarray
    place_of: np.ndarray
    n_features: int
    def __init__(self, **settings: Any) -> None: ...
    def __getstate__(self) -> dict[str, Any]: ...
    def __setstate__(self, state: dict[str, Any]) -> None: ...
    def count_trials(self, n: int) -> None: ...
    def count_rows(self, n: int) -> None: ...
    def resize(self, n_features: int, first: int = 0) -> None: ...
    def summed(self) -> np.ndarray: ...
    def take_sums(self, sums: np.ndarray, trials: int) -> None: ...
    def hypothesis(self) -> np.ndarray: ...
    def weights(self) -> np.ndarray: ...

def votes(
    space: SeenSpace, values: np.ndarray, places: np.ndarray, start: np.ndarray
) -> np.ndarray: ...
def outputs_at(
    space: SeenSpace,
    values: np.ndarray,
    places: np.ndarray,
    start: np.ndarray,
    slices: np.ndarray,
) -> np.ndarray: ...
