from typing import Any

import numpy as np

from sparsemargin._engine.first_order.labels import FirstOrderSpace
from sparsemargin._engine.hypotheses.log import CorrectionLog
from sparsemargin._engine.kernel.functions import Kernel
from sparsemargin._engine.kernel.support import Points, Pool

class KernelSpace(FirstOrderSpace):
    kernel: Kernel
    pool: Pool
    t: np.ndarray
    acc: np.ndarray
    origin: np.ndarray
    passed_over: np.ndarray
    max_support: int | None
    multipliers: None
    rows_taken: int
    n_features: int
    n_support: int
    nbytes: int
    free: float
    def __init__(
        self,
        kernel: Kernel,
        n_features: int,
        n_labels: int,
        *,
        bias: float,
        slack: float,
        averaged: bool,
        normalized: bool,
        log: CorrectionLog | None,
        max_support: int | None,
    ) -> None: ...
    def reserve(self, n_new: int) -> None: ...
    def adopt(
        self, points: Points, rows: np.ndarray, n_new: int, which: np.ndarray, log_start: int
    ) -> None: ...
    def resize(self, n_features: int, first: int = 0) -> None: ...
    def count_rows(self, n_rows: int) -> None: ...
    def save(self) -> Any: ...
    def restore(self, saved: Any) -> None: ...
    def set_square(self, label: int, square: float) -> None: ...
    def rescale(self, label: int, shift: int) -> None: ...
    def coefficients(self) -> np.ndarray: ...
    def count_support(self) -> np.ndarray: ...
    def visible_norm(self) -> np.ndarray: ...
    def __getstate__(self) -> dict[str, Any]: ...
    def __setstate__(self, state: dict[str, Any]) -> None: ...
