from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin._engine._log import CorrectionLog

MAX_P: float

class LinearSpace:
    trials: int
    t: np.ndarray
    g: np.ndarray
    acc: np.ndarray
    synced: np.ndarray
    pending: np.ndarray
    floats: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    log: CorrectionLog | None
    multipliers: np.ndarray | None
    n_features: int
    n_labels: int
    p: float
    bias: float
    slack: float
    averages: bool
    trials_per_label: np.ndarray
    def __init__(
        self,
        n_features: int,
        n_labels: int,
        p: float,
        dtype: DTypeLike,
        *,
        bias: float,
        slack: float,
        averaged: bool,
        normalized: bool,
        log: CorrectionLog | None,
    ) -> None: ...
    def per_label(self, name: str) -> np.ndarray: ...
    def count_trials(self, trials: int) -> None: ...
    def resume(self, max_corrections: int | None = None) -> None: ...
    def open_slack(self, n_rows: int, kept: np.ndarray | None = None) -> None: ...
    def close_slack(self) -> np.ndarray | None: ...
    def open_multipliers(self, n_rows: int, kept: np.ndarray | None = None) -> None: ...
    def close_multipliers(self) -> np.ndarray | None: ...
    def mixture(self) -> tuple[np.ndarray, np.ndarray]: ...
    def weights(self) -> np.ndarray: ...
    def theta(self) -> np.ndarray: ...
    def theta_norm(self) -> np.ndarray: ...
    def visible_norm(self) -> np.ndarray: ...
    def slack_outputs(self, start: int, stop: int) -> np.ndarray | float: ...
    def exhausted(self) -> np.ndarray: ...
    def stop(self, which: np.ndarray) -> None: ...
    def __setstate__(self, state: tuple[Any, ...]) -> None: ...
