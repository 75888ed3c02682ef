from collections.abc import Callable
from typing import Any, Final

import numpy as np

from sparsemargin._engine.core.vectors import FirstOrderSpace

MAX_P: Final[float]
MOST_NUMBERS: Final[int]

def counted_of(
    g: np.ndarray, acc: np.ndarray, synced: np.ndarray, vectors: np.ndarray,
    pending: np.ndarray | None,
) -> np.ndarray: ...  # fmt: skip

class LinearState(FirstOrderSpace):
    t: np.ndarray
    g: np.ndarray
    acc: np.ndarray
    synced: np.ndarray
    variances: np.ndarray
    gain: np.ndarray
    pending: np.ndarray
    width: int
    row_slack: np.ndarray | None
    multipliers: np.ndarray | None
    n_features: int
    nbytes: int
    def __init__(
        self, n_features: int, n_vectors: int, p: float, dtype: Any, *, bias: float, slack: float,
        averaged: bool, normalized: bool, log: Any, adaptive: bool = False,
    ) -> None: ...  # fmt: skip
    def of_vectors(self, numbers: np.ndarray) -> np.ndarray: ...
    def resize(self, n_features: int, first: int = 0) -> None: ...
    def like(self, n_vectors: int, bias: float, look: Callable[[Any], Any]) -> LinearState: ...
    def over(self, columns: Any) -> LinearState: ...
    def weights(self, columns: Any = None) -> np.ndarray: ...
    def weighed(self) -> np.ndarray: ...
    def factors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]: ...
    def theta(self) -> np.ndarray: ...
    def set_dual(self, theta: np.ndarray) -> None: ...
    def open_rows(self, n_rows: int, kept: Any, keeps_multipliers: bool) -> None: ...
    def close_rows(self) -> tuple[np.ndarray | None, np.ndarray | None]: ...
    def slack_outputs(self, start: int, stop: int) -> Any: ...
    def clear(self, l: int) -> None: ...

class JointState(LinearState):
    n_classes: int
    rho: float
    def side_by_side(self) -> LinearState: ...
