from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin._engine._labels import FirstOrderSpace
from sparsemargin._engine._log import CorrectionLog

MAX_P: float

class LinearSpace(FirstOrderSpace):
    t: np.ndarray
    g: np.ndarray
    acc: np.ndarray
    pending: np.ndarray
    multipliers: np.ndarray | None
    n_features: int
    nbytes: int
    is_tiled: bool
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
    def resize(self, n_features: int, first: int = 0) -> None: ...
    def open_slack(self, n_rows: int, kept: np.ndarray | None = None) -> None: ...
    def close_slack(self) -> np.ndarray | None: ...
    def open_multipliers(self, n_rows: int, kept: np.ndarray | None = None) -> None: ...
    def close_multipliers(self) -> np.ndarray | None: ...
    def weights(self) -> Any: ...
    def theta(self) -> Any: ...
    def visible_norm(self) -> np.ndarray: ...
    def slack_outputs(self, start: int, stop: int) -> np.ndarray | float: ...
    def __getstate__(self) -> dict[str, Any]: ...
    def __setstate__(self, state: dict[str, Any]) -> None: ...
