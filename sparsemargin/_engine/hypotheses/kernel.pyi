import numpy as np

from sparsemargin._engine.hypotheses.base import Hypotheses
from sparsemargin._engine.kernel.space import KernelSpace

class KernelHypotheses(Hypotheses):
    def __init__(self, space: KernelSpace, products: np.ndarray, *, averaged: bool) -> None: ...

def outputs_at(
    space: KernelSpace, products: np.ndarray, slices: np.ndarray, normalized: bool
) -> np.ndarray: ...
