"""The mixture on disk, from which a fit goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparsemargin.distributed._crew import Pair
from sparsemargin.distributed._opening import Opened
from sparsemargin.distributed._shards import FileShard, Survey
from sparsemargin.io.files import check_replaceable
from sparsemargin.io.model_files import load_learner, save_model, set_aside
from sparsemargin.models import Learner

# Parameters that may change when a fit goes on.
_MAY_CHANGE = {"max_iter", "n_jobs", "verbose"}
_ATTRIBUTE = "_distributed"


def check_place(path: str | os.PathLike[str] | None, shards: Sequence[Pair | FileShard]) -> None:
    """Find out before the work whether the mixture can be kept there.

    Raises
    ------
    OSError
        If it can't be written.
    ValueError
        If it would replace a file that is learned from.
    """
    if path is None:
        return
    check_replaceable(path)
    if any(isinstance(shard, FileShard) and shard.reads(path) for shard in shards):
        raise ValueError(
            f"checkpoint={os.fspath(path)} would replace a file that is learned from. Name another."
        )


class Checkpoint:
    """A model file that is written after every epoch.

    Parameters
    ----------
    path : path or None
        None: nothing is kept.
    made_by : dict
        What a fit that goes on must have alike, of which the model itself tells nothing.
    """

    def __init__(self, path: str | os.PathLike[str] | None, made_by: dict[str, Any]) -> None:
        self.path, self.made_by = path, made_by

    def write(
        self, epoch: int, converged: bool, seed: int | None, finished: Callable[[], Learner]
    ) -> None:
        """Keep the mixture after an epoch."""
        if self.path is None:
            return
        learner = finished()
        progress = {"epoch": epoch, "converged": converged, "seed": seed}
        setattr(learner, _ATTRIBUTE, {**progress, **self.made_by})
        try:
            save_model(learner, self.path)
        except OSError as error:
            set_aside(learner, self.path, error)
            raise

    def tell(self, epochs: int) -> str:
        """What is left of a fit that broke off after so many epochs, and what to do."""
        if not epochs or self.path is None:
            return "Nothing of it is on disk: pass a checkpoint to have each epoch's mixture there."
        return (
            f"The mixture after epoch {epochs} is in {os.fspath(self.path)}; with resume the fit "
            "goes on from it."
        )

    def go_on(self, opened: Opened) -> tuple[int, bool]:
        """Take over the mixture of the file, if there is one: after how many epochs it was, and
        whether the last of these made no correction.

        Raises
        ------
        ValueError
            If the fit was another one.
        """
        if self.path is None or not os.path.exists(self.path):
            return 0, False
        found, name = load_learner(self.path), os.fspath(self.path)
        progress = vars(found).pop(_ATTRIBUTE, None)
        if progress is None:
            raise ValueError(
                f"{name} is the model of no fit over shards, and none can go on from it. Pass "
                "another checkpoint, or leave resume out."
            )
        self._check_alike(name, opened, found, progress)
        opened.take_over(found, progress["seed"])
        return progress["epoch"], progress["converged"]

    def _check_alike(
        self, name: str, opened: Opened, found: Learner, progress: dict[str, Any]
    ) -> None:
        learner = opened.learner
        if type(found) is not type(learner):
            raise ValueError(
                f"{name} is of {found.classifier}, not of {learner.classifier}. Pass the algorithm "
                "and parameters of the fit that is to go on."
            )
        # First, as the scale of the intercept is that of the shards.
        others = [key for key, value in self.made_by.items() if progress[key] != value]
        if opened.form != getattr(found, "_label_form", None) or not np.array_equal(
            learner.classes_, found.classes_
        ):
            others.insert(0, "classes")
        if opened.features != (found.n_features_in_, getattr(found, "_reading", None)):
            others.insert(0, "features")
        if others:
            order = ", in the same order" if others[0] == "shards" else ""
            raise ValueError(
                f"{name} was learned with other {others[0]}. Pass what the fit had that is to go "
                f"on{order}."
            )
        before, now = found._parameters(), learner._parameters()
        changed = [
            key
            for key in now
            if key not in _MAY_CHANGE
            and before[key] != now[key]
            # The seeds that a generator gave are in the file.
            and not isinstance(now[key], np.random.RandomState)
        ]
        if changed:
            raise ValueError(
                f"{name} was learned with {changed[0]}={before[changed[0]]!r}, not "
                f"{now[changed[0]]!r}. Pass the parameters of the fit that is to go on."
            )


def made_by(mixing: str, positive: Any, surveys: Sequence[Survey]) -> dict[str, Any]:
    """What a fit that goes on must have alike, of which the model itself tells nothing."""
    identities = [survey.identity() for survey in surveys]
    return {"mixing": mixing, "positive": positive, "shards": identities}
