"""From shards, given in any of their forms, to a learner."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from sparsemargin.distributed import _epoch
from sparsemargin.distributed import _opening as opening
from sparsemargin.distributed._checkpoints import Checkpoint, check_place, made_by
from sparsemargin.distributed._crew import Crew, InTurn, OnDask, connected_to
from sparsemargin.distributed._inputs import shards_of
from sparsemargin.distributed._opening import Opened
from sparsemargin.distributed._rounds import Round, Rounds
from sparsemargin.distributed._shards import FileShard, Survey
from sparsemargin.distributed._vectors import Mixing
from sparsemargin.io.reading import Reading
from sparsemargin.io.stream import WEIGHT_MEMORY, Moment
from sparsemargin.models import DEFAULT_ALGORITHM, Algorithm, Learner, find_algorithm
from sparsemargin.models.labels import told_encoder

# What is told of files only, and when it is not.
_OF_FILES = {
    "classes": None, "positive": None, "multilabel": False, "n_features": None, "hash_bits": None,
    "zero_based": "auto", "dtype": np.float64, "cache_dir": None,
}  # fmt: skip


def learn_distributed(
    shards: Any,
    y: Any = None,
    *,
    client: Any = None,
    algo: Algorithm | None = None,
    max_iter: int | None = 5,
    mixing: Mixing = "uniform",
    classes: Any = None,
    positive: Any = None,
    multilabel: bool = False,
    n_features: int | None = None,
    hash_bits: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: Any = np.float64,
    cache_dir: str | os.PathLike[str] | None = None,
    memory_limit: int = WEIGHT_MEMORY,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    report: Callable[[Moment], None] | None = None,
    on_round: Callable[[Round], None] | None = None,
    **params: Any,
) -> Learner:
    """`fit_distributed` without scikit-learn: gives a learner.

    Parameters
    ----------
    report : callable, default=None
        Is told the `Moment` whenever a shard has been learned from.
    """
    if mixing not in ("uniform", "errors"):
        raise ValueError(f"mixing must be 'uniform' or 'errors', got {mixing!r}.")
    if resume and checkpoint is None:
        raise ValueError("resume=True goes on from a checkpoint: pass its path as checkpoint.")
    kind, known = find_algorithm(algo or DEFAULT_ALGORITHM, {"max_iter": max_iter, **params})
    opening.check_mixable(kind(**known))
    reading = Reading(
        dtype=dtype, multilabel=multilabel or positive is not None, zero_based=zero_based,
        n_features=n_features, hash_bits=hash_bits,
    )  # fmt: skip
    given = shards_of(shards, y, reading, cache_dir, memory_limit)
    if not isinstance(given[0], FileShard):
        _refuse_options_of_files(
            classes=classes, positive=positive, multilabel=multilabel, n_features=n_features,
            hash_bits=hash_bits, zero_based=zero_based, dtype=dtype, cache_dir=cache_dir,
        )  # fmt: skip
    check_place(checkpoint, given)
    with _crew(client, given) as crew:
        surveys: list[Survey] = crew.each(_epoch.survey)
        opening.check_rows_there(surveys)
        learner = kind(**known)
        if learner.intercept_scaling == "auto":
            learner.intercept_scaling = surveys[0].intercept_scale
        opened = Opened(learner, surveys)
        if isinstance(given[0], FileShard):
            _open_files(crew, opened, classes, positive, memory_limit)
        else:
            _open_matrices(crew, opened, memory_limit)
        kept = Checkpoint(checkpoint, made_by(mixing, positive, surveys))
        done, converged = kept.go_on(opened) if resume else (0, False)
        rounds = Rounds(crew, opened, mixing, kept, report, on_round)
        try:
            return rounds.run(done, converged)
        finally:
            crew.close(rounds.run_id)


def _refuse_options_of_files(**given: Any) -> None:
    """Refuse for matrices what is told of files only."""
    for name, value in given.items():
        off = _OF_FILES[name]
        # An array, which classes may be, is equal to nothing as a whole.
        if value is not off and (off is None or value != off):
            raise ValueError(
                f"{name}={value!r} is of files, and these shards are matrices. Leave it out."
            )


def _open_files(crew: Crew, opened: Opened, classes: Any, positive: Any, memory_limit: int) -> None:
    """Get ready to learn from files."""
    surveys = opened.surveys
    opened.reading = opening.common_reading(surveys)
    # Rows of a cache have as many labels as it was made with.
    told = told_encoder(classes, positive, opened.reading.multilabel)
    coder = opening.classes_of_files(surveys, told, opened.reading.multilabel)
    opened.open(coder.classes, opening.form_of(coder), memory_limit)
    crew.replace(_epoch.with_classes, [(coder, opened.n_columns, each) for each in surveys])


def _open_matrices(crew: Crew, opened: Opened, memory_limit: int) -> None:
    """Get ready to learn from matrices."""
    surveys = opened.surveys
    classes = opening.classes_of_matrices(surveys)
    opened.open(classes, surveys[0].form, memory_limit)
    crew.replace(_epoch.with_classes, [(classes, opened.dtype.name)] * len(surveys))


@contextmanager
def _crew(client: Any, given: Any) -> Iterator[Crew]:
    """Who learns from the shards."""
    if client is None:
        yield InTurn(given)
        return
    with connected_to(client) as connected:
        yield OnDask(connected, given)
