import numpy as np

from sparsemargin._engine.hypotheses.log import CorrectionLog

FLOATS: tuple[str, ...]
COUNTS: tuple[str, ...]

class FirstOrderSpace:
    trials: int
    floats: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    log: CorrectionLog | None
    n_labels: int
    p: float
    bias: float
    slack: float
    averages: bool
    normalizes: bool
    trials_per_label: np.ndarray
    def per_label(self, name: str) -> np.ndarray: ...
    def count_trials(self, trials: int) -> None: ...
    def resume(self, max_corrections: int | None = None) -> None: ...
    def mixture(self) -> tuple[np.ndarray, np.ndarray]: ...
    def theta_norm(self) -> np.ndarray: ...
    def exhausted(self) -> np.ndarray: ...
    def stop(self, which: np.ndarray) -> None: ...
