"""Training on the workers of a Dask cluster, for ``sparsemargin train --dask``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sparsemargin._engine.fitting.threads import interruptible
from sparsemargin.cells.learn import mixing_seed
from sparsemargin.cli.train_options import Job, TrainOptions
from sparsemargin.distributed.cell_shards import CellRows
from sparsemargin.distributed.fit import learn_distributed
from sparsemargin.distributed.rounds import MIN_ROWS
from sparsemargin.distributed.row_makers import Texts
from sparsemargin.models import Learner


def training_on_dask(
    options: TrainOptions, job: Job, arguments: dict[str, Any]
) -> Callable[..., Learner]:
    """Return the function that trains a model on the workers of a cluster."""
    row_maker: Any = None
    if job.kind == "texts":
        row_maker = Texts(options.reading.document_form(), job.step)
    elif job.kind == "cells":
        seed = mixing_seed(arguments)
        row_maker = CellRows(options.reading.label_column, options.cell_form, job.step, seed=seed)
    learn = partial(
        learn_distributed, job.names, client=options.dask, checkpoint=options.output,
        row_maker=row_maker, cache_dir=options.cache or None, mixing=options.mixing or "auto",
        min_rows=options.min_rows or MIN_ROWS, **arguments,
    )  # fmt: skip
    # Ctrl-C may stop training at any time, because each mixture is saved atomically.
    return interruptible()(learn)
