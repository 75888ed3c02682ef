from typing import Any

import numpy as np

from sparsemargin._engine.first_order.linear import LinearSpace
from sparsemargin._engine.first_order.rules import FirstOrderRule

# A fused function: indexed by the names of its types before it is called.
train: Any

def set_bars(space: LinearSpace, rule: FirstOrderRule) -> None: ...
def shuffle(order: np.ndarray, seed: int) -> None: ...
