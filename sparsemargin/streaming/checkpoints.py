"""Checkpoints: the state of a training run in a file, from which the run can be resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsemargin.files.remote import RemoteFile, delete, exists, is_url
from sparsemargin.models import Learner
from sparsemargin.models.inputs.training_set import weights_by_class
from sparsemargin.saving.model_files import is_run, load_saved, write_model

# Parameters that do not affect the trained model and may differ when a run is resumed.
_MAY_CHANGE = {"n_jobs", "verbose"}
_REMEDY = "Leave resume out to train from the beginning."


@dataclass(frozen=True)
class Checkpoint:
    """A model file that is written during training.

    A run resumes from it only if `made_by` (facts that the model itself does not hold) and the
    parameters are the same, except the parameters in `may_change`. `steps` are the steps of the
    pipeline, if the model is the last step of one, and `wrappers` are the wrappers that `unwrapped`
    has found around it. The file is readable only by users who may read all files in `made_from`.
    """

    path: str
    made_by: dict[str, Any]
    may_change: Collection[str] = ()
    steps: list[tuple[str, Any]] = field(default_factory=list)
    made_from: Collection[str | os.PathLike[str]] = ()
    wrappers: Collection[dict[str, Any]] = ()

    @property
    def advice(self) -> str:
        """How to continue after an interruption."""
        return f"Pass resume=True to continue from {self.path}."

    def write(self, learner: Learner, position: dict[str, Any], path: str | None = None) -> None:
        """Write the learner and the position of the run to `path`, or to the checkpoint's path."""
        # Number of features after an earlier `fit`. The current run sets it only when it ends.
        before = getattr(learner, "n_features_in_", None)
        run = {"position": position, "n_features": before, "made_by": self.made_by}
        write_model(learner, path or self.path, self.steps, run, self.made_from, self.wrappers)

    def read(
        self, make_learner: Callable[[dict[str, Any]], Learner]
    ) -> tuple[Learner, dict[str, Any]]:
        """Return the saved learner and position of the run.

        `make_learner` creates a learner as the current call would, for this position. Raises
        FileNotFoundError if there is no checkpoint, and ValueError if it belongs to a run with
        other settings.
        """
        if not exists(self.path):
            raise FileNotFoundError(
                f"{self.path}: there is no checkpoint to resume from. {_REMEDY}"
            )
        loaded = load_saved(self.path)
        learner, run = loaded.learner, loaded.run
        if run is None:
            raise ValueError(f"{self.path} is a model, not a checkpoint. {_REMEDY}")
        self.refuse([
            name for name, value in self.made_by.items() if run["made_by"].get(name) != value
        ])  # fmt: skip
        fresh = make_learner(run["position"])
        changed = [] if type(learner) is type(fresh) else ["algorithm"]
        before, now = learner.parameters(), fresh.parameters()
        if "class_weight" in now:
            now["class_weight"] = weights_by_class(now["class_weight"], learner.classes_)
        changed += [
            name for name, value in now.items()
            if name not in {*_MAY_CHANGE, *self.may_change} and value != before.get(name)
            # The state of a random generator is part of the checkpoint.
            and not isinstance(value, np.random.RandomState)
        ]  # fmt: skip
        self.refuse(changed)
        del learner.n_features_in_
        if run["n_features"] is not None:
            learner.n_features_in_ = run["n_features"]
        return learner, run["position"]

    def refuse(self, changed: Collection[str]) -> None:
        """Raise a ValueError that names the settings in `changed`, if there are any."""
        if changed:
            raise ValueError(
                f"{self.path} belongs to a run with other {', '.join(changed)}. Pass the same. "
                f"{_REMEDY}"
            )


def check_free(path: str) -> None:
    """Raise a ValueError if there is a file at `path` that is not a checkpoint."""
    if exists(path) and not is_run(path):
        raise ValueError(
            f"{path} is not a checkpoint, and would be replaced by one. Move it, or give the model "
            "another name."
        )


def state_of(path: str) -> Any:
    """Return a value that changes when the file at `path` is rewritten; None if it is missing."""
    try:
        if is_url(path):
            return RemoteFile.find(path)
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def remove_written(path: str, before: Any) -> None:
    """Delete the checkpoint at `path` if it has been written since `state_of` returned `before`."""
    if state_of(path) != before:
        delete(path)
