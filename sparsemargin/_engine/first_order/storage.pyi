from collections.abc import Mapping

from numpy.typing import DTypeLike

DENSE_BYTES: int
TILE_LABELS: int

def are_tiled(n_coordinates: int, n_labels: int, dtypes: Mapping[str, DTypeLike]) -> bool: ...
