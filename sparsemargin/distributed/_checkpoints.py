"""The mixture on disk, from which a fit goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from sparsemargin.distributed._opening import Opened
from sparsemargin.distributed._shards import Survey
from sparsemargin.io.model_files import load_learner, save_model
from sparsemargin.learners import Learner

# Parameters that may change when a fit goes on.
_MAY_CHANGE = {"max_iter", "n_jobs", "verbose"}
_ATTRIBUTE = "_distributed"


class Checkpoint:
    """A model file that is written after every epoch.

    Parameters
    ----------
    path : path or None
        None: nothing is kept.
    made_by : dict
        What a fit that goes on must have alike: the mixing and the shards.
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
        save_model(learner, self.path)

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
        self._check_alike(name, opened.learner, found, progress)
        opened.take_over(found, progress["seed"])
        return progress["epoch"], progress["converged"]

    def _check_alike(
        self, name: str, learner: Learner, found: Learner, progress: dict[str, Any]
    ) -> None:
        if type(found) is not type(learner):
            raise ValueError(
                f"{name} is of {found.classifier}, not of {learner.classifier}. Pass the algorithm "
                "and parameters of the fit that is to go on."
            )
        before, now = found._parameters(), learner._parameters()
        changed = [key for key in now if key not in _MAY_CHANGE and before[key] != now[key]]
        if changed:
            raise ValueError(
                f"{name} was learned with {changed[0]}={before[changed[0]]!r}, not "
                f"{now[changed[0]]!r}. Pass the parameters of the fit that is to go on."
            )
        for key, value in self.made_by.items():
            if progress[key] != value:
                raise ValueError(
                    f"{name} was learned with other {key}. Pass those of the fit that is to go on, "
                    "in the same order."
                )


def made_by(mixing: str, surveys: Sequence[Survey]) -> dict[str, Any]:
    """What a fit that goes on must have alike."""
    return {"mixing": mixing, "shards": [survey.identity() for survey in surveys]}
