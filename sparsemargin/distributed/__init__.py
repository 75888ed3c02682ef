"""Training on several machines: iterative parameter mixing with Dask."""

from sparsemargin.distributed._backends import LostScheduler
from sparsemargin.distributed._fit import fit_distributed
from sparsemargin.distributed._rounds import Round

__all__ = ["LostScheduler", "Round", "fit_distributed"]
