"""Training on several machines: iterative parameter mixing with Dask."""

from sparsemargin.distributed.backends import LostScheduler
from sparsemargin.distributed.fit import fit_distributed
from sparsemargin.distributed.rounds import Round

__all__ = ["LostScheduler", "Round", "fit_distributed"]
