"""The mixture on disk, from which a fit goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sparsemargin.distributed._schema import Mixture
from sparsemargin.distributed._shards import FileShard, Pair
from sparsemargin.io.files import check_replaceable
from sparsemargin.io.model_files import load_run, save_run, set_aside
from sparsemargin.models import Learner

# Parameters that may change when a fit goes on.
_MAY_CHANGE = {"max_iter", "n_jobs", "verbose"}


def check_writable(path: str | os.PathLike[str] | None, shards: Sequence[Pair | FileShard]) -> None:
    """Find out before the work whether the mixture can be written there."""
    if path is None:
        return
    check_replaceable(path)
    if any(isinstance(shard, FileShard) and shard.reads(path) for shard in shards):
        raise ValueError(
            f"checkpoint={os.fspath(path)} would replace a file that is learned from. Name another."
        )


class Checkpoint:
    """A model file that is written after every epoch, unless its path is None; `made_by` is what a
    fit that goes on must have alike, of which the model itself tells nothing."""

    def __init__(self, path: str | os.PathLike[str] | None, made_by: dict[str, Any]) -> None:
        self.path, self.made_by = path, made_by

    def write(
        self, epoch: int, converged: bool, seed: int | None, finished: Callable[[], Learner]
    ) -> None:
        """Write the mixture after an epoch."""
        if self.path is None:
            return
        learner = finished()
        progress = {"epoch": epoch, "converged": converged, "seed": seed, **self.made_by}
        save = partial(save_run, learner, progress)
        try:
            save(self.path)
        except OSError as error:
            set_aside(save, self.path, error)
            raise

    def tell(self, epochs: int) -> str:
        """What is left of a fit that broke off after so many epochs, and what to do."""
        if not epochs or self.path is None:
            return "Nothing of it is on disk: pass a checkpoint to have each epoch's mixture there."
        return (
            f"The mixture after epoch {epochs} is in {os.fspath(self.path)}; with resume the fit "
            "goes on from it."
        )

    def resume(self, mixture: Mixture) -> tuple[int, bool]:
        """Let the mixture be that of the file, if there is one: after how many epochs it was, and
        whether the last of these made no correction.
        """
        if self.path is None or not os.path.exists(self.path):
            return 0, False
        (found, progress), name = load_run(self.path), os.fspath(self.path)
        if progress is None:
            raise ValueError(
                f"{name} is the model of no fit over shards, and none can go on from it. Pass "
                "another checkpoint, or leave resume out."
            )
        self._check_alike(name, mixture, found, progress)
        mixture.resume(found, progress["seed"])
        return progress["epoch"], progress["converged"]

    def _check_alike(
        self, name: str, mixture: Mixture, found: Learner, progress: dict[str, Any]
    ) -> None:
        learner, schema = mixture.learner, mixture.schema
        if type(found) is not type(learner):
            raise ValueError(
                f"{name} is of {found.classifier}, not of {learner.classifier}. Pass the algorithm "
                "and parameters of the fit that is to go on."
            )
        fitted = found._fitted
        same_form = schema.form == fitted.form
        same_classes = same_form and np.array_equal(schema.classes, fitted.classes)
        read = found.n_features_in_, fitted.reading
        before, now = found._parameters(), learner._parameters()
        # The seeds that a generator gave are in the file.
        others = {
            "classes": not same_classes,
            "features": read != (schema.n_features, schema.reading),
            **{key: progress[key] != value for key, value in self.made_by.items()},
            **{
                key: before[key] != value and not isinstance(value, np.random.RandomState)
                for key, value in now.items()
                if key not in _MAY_CHANGE
            },
        }
        changed = [key for key, other in others.items() if other]
        if changed:
            raise ValueError(
                f"{name} is of a fit with other {', '.join(changed)}. Pass what that fit had, its "
                "shards in the same order, or leave resume out."
            )
