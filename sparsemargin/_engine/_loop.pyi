from typing import Any

import numpy as np

from sparsemargin._engine._rules import FirstOrderRule
from sparsemargin._engine._space import LinearSpace

# A fused function: indexed by the names of its types before it is called.
train: Any

def set_bars(space: LinearSpace, rule: FirstOrderRule) -> None: ...
def shuffle(order: np.ndarray, seed: int) -> None: ...
