from typing import Any

import numpy as np

from sparsemargin._engine.core.vectors import FirstOrderRule
from sparsemargin._engine.first_order.spaces import LinearState
from sparsemargin._engine.rows.csr import Csr

class Job:
    rows: Csr
    def __init__(self, space: LinearState, rule: FirstOrderRule, rows: Csr, task: Any) -> None: ...
    def run(
        self, order: np.ndarray | None, seed: int | None, span: tuple[int, int], n_passes: int,
        vectors: tuple[int, int], trials: int, check: bool,
    ) -> Call: ...  # fmt: skip

class Call:
    status: int
    row: int
    trials: int
    passes: int
    mistakes: int
    converged: bool

class Hypothesis:
    def __init__(self, space: LinearState, n_entries: int) -> None: ...
    def fill(self, out: np.ndarray, rows: Csr, start: int, stop: int) -> None: ...

def add_rows(
    space: LinearState, rows: Csr, l: int, multipliers: np.ndarray, scores: np.ndarray
) -> None: ...
