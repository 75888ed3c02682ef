from typing import Any, Final

import numpy as np

OK: Final[int]
NOT_FINITE: Final[int]
OUT_OF_RANGE: Final[int]
NOT_CANONICAL: Final[int]
TOO_WIDE: Final[int]
ALL_STOPPED: Final[int]
NO_LENGTH: Final[int]
VALUE_TYPES: tuple[np.dtype, np.dtype]
INDEX_TYPES: tuple[np.dtype, np.dtype]

class Csr:
    data: Any
    indices: Any
    indptr: Any
    n_features: int
    n_rows: int
    def __init__(self, data: Any, indices: Any, indptr: Any, n_features: int) -> None: ...
    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
    def with_data(self, data: np.ndarray) -> Csr: ...
    def part(self, start: int, stop: int) -> Csr: ...

class BadRow(Exception):
    status: int
    row: int
    def __init__(self, status: int, row: int) -> None: ...

def first_bad_row(rows: Csr, repeats_allowed: bool) -> tuple[int, int]: ...
def rows_with_repeats(rows: Csr) -> np.ndarray: ...
def bad_pointer(indptr: np.ndarray, stored: int) -> int: ...
def row_norms(rows: Csr, p: float, bias: float = 0.0, slack: float = 0.0) -> np.ndarray: ...
def row_hashes(rows: Csr) -> np.ndarray: ...
def shuffle(order: np.ndarray, seed: int) -> None: ...
