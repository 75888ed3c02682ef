from typing import Any, Self

import numpy as np

class DualSpace:
    logged: bool
    full: bool
    trials: int
    corrections: int
    updates: int
    limit: int
    support: np.ndarray
    mistaken_rows: np.ndarray
    n_support: int
    nbytes: int
    def __init__(self, **settings: Any) -> None: ...
    def __getstate__(self) -> dict[str, Any]: ...
    def __setstate__(self, state: dict[str, Any]) -> None: ...
    def can_grow(self, n_rows: int) -> bool: ...
    def count_trials(self, n: int) -> None: ...
    def renumber(self, base: int, places: np.ndarray) -> None: ...
    def hypothesis(self) -> np.ndarray: ...
    def rounding(self) -> float: ...
    def blank(self) -> Self: ...
    def log(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

# A fused function: indexed by the names of its types before it is called.
own_products: Any

def learn_rows(
    space: DualSpace,
    products: np.ndarray,
    square: np.ndarray,
    steps: np.ndarray,
    own: np.ndarray,
    numbers: np.ndarray,
    base: int,
) -> float: ...
def replay(
    space: DualSpace, now: DualSpace, start: int, vectors: np.ndarray, units: np.ndarray
) -> None: ...
