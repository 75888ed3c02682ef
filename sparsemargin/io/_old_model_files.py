"""Model files of format 2: read for one release."""

from __future__ import annotations

import numpy as np

from sparsemargin._engine.state import require, require_starts
from sparsemargin.io._values import Decoder
from sparsemargin.io.archive import Archive


class OldDecoder(Decoder):
    """Makes the values again of a document of format 2."""

    def __init__(self, archive: Archive):
        super().__init__(archive)
        self.readers |= {"float": float, "scalar": self._array, "strings": self._strings}

    def _strings(self, names: list[str]) -> np.ndarray:
        text, ends = map(self._array, names)
        require(text.dtype == np.uint8 and text.ndim == 1, f"{names[0]!r} is no text")
        require_starts(names[1], ends, len(text))
        array = np.empty(len(ends) - 1, dtype=object)
        raw = text.tobytes()
        for i in range(len(array)):
            array[i] = raw[ends[i] : ends[i + 1]].decode("utf-8", "surrogatepass")
        return array
