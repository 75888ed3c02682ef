from collections.abc import Iterable

import numpy as np

def count_kmers(
    sequences: Iterable[bytes], k: int, canonical: bool, n_columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
