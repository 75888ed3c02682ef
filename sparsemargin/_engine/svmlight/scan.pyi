from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

Text: TypeAlias = bytes | bytearray | memoryview | NDArray[np.uint8]

PADDING: int

class ScanError(Exception):
    code: str
    offset: int
    length: int
    def __init__(self, code: str, offset: int, length: int) -> None: ...

class ScannedRows:
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: NDArray[np.int32]
    label_start: NDArray[np.int64] | None
    query_ids: NDArray[np.int64] | None
    n_rows: int
    n_lines: int
    lowest: int
    highest: int

class Scanner:
    n_labels: int
    label_texts: list[str]
    label_numbers: list[float]
    def __init__(
        self,
        dtype: DTypeLike,
        *,
        base: int = 0,
        least: int = 0,
        max_index: int,
        multilabel: bool = False,
        query_id: bool = False,
        hash_bits: int = 0,
    ) -> None: ...
    def labels_from(self, first: int) -> tuple[list[str], list[float]]: ...
    def scan(self, text: Text, stop: int) -> ScannedRows: ...
    def fill(
        self,
        text: Text,
        stop: int,
        data: np.ndarray,
        indices: np.ndarray,
        ends: np.ndarray,
        labels: NDArray[np.int32],
        row: int,
        entry: int,
    ) -> tuple[int, int, int, int]: ...

def count(text: Text, stop: int) -> tuple[int, int]: ...
