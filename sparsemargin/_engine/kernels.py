"""The codes that compiled loops report, and the types that rows may have."""

import numpy as np

# Status codes, in the order of `Status` in _types.pxd.
OK, NOT_FINITE, OUT_OF_RANGE, NOT_CANONICAL, TOO_WIDE, ALL_STOPPED = range(6)
# A row whose length in feature space no kernel value could be divided by.
NO_LENGTH = 6

VALUE_TYPES = np.dtype(np.float32), np.dtype(np.float64)
INDEX_TYPES = np.dtype(np.int32), np.dtype(np.int64)


class BadRow(Exception):
    """A kernel met a row it can't learn from."""

    def __init__(self, status: int, row: int):
        super().__init__(status, row)
        self.status = status
        self.row = row
