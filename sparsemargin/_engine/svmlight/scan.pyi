from typing import Any, Final

import numpy as np

PADDING: Final[int]

class ScanError(Exception):
    code: str
    offset: int
    length: int
    def __init__(self, code: str, offset: int, length: int) -> None: ...

class ScannedRows:
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    label_start: np.ndarray | None
    n_rows: int
    n_lines: int
    lowest: int
    highest: int

class Scanner:
    n_labels: int
    label_texts: list[str]
    label_numbers: list[float]
    def __init__(
        self, dtype: Any, *, base: int = 0, least: int = 0, max_index: int,
        multilabel: bool = False, hash_bits: int = 0,
    ) -> None: ...  # fmt: skip
    def labels_from(self, first: int) -> tuple[list[str], list[float]]: ...
    def scan(self, text: Any, stop: int) -> ScannedRows: ...
