from numpy.typing import DTypeLike

from sparsemargin._engine.first_order.linear import LinearSpace

class JointSpace(LinearSpace):
    def __init__(
        self,
        n_features: int,
        n_classes: int,
        p: float,
        dtype: DTypeLike,
        *,
        bias: float,
        averaged: bool,
        normalized: bool,
    ) -> None: ...
    def side_by_side(self) -> LinearSpace: ...
