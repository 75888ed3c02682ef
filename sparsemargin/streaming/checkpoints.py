"""What a run has learned so far, on disk, from which another one goes on."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsemargin.files.remote import RemoteFile, delete, exists, is_url
from sparsemargin.models import Learner
from sparsemargin.saving.model_files import is_run, load_run, save_run

# Parameters that change no bit.
_MAY_CHANGE = {"n_jobs", "verbose"}
_REMEDY = "Leave resume out to learn from the beginning."


@dataclass(frozen=True)
class Checkpoint:
    """A model file that is written on the way. A run that goes on from it must have the same
    `made_by`, of which the model itself tells nothing, and the same parameters, but for those that
    `may_change`. `steps` are those of the pipeline that the model ends. Only who may read all files
    that it is `made_from` may read the checkpoint."""

    path: str
    made_by: dict[str, Any]
    may_change: Collection[str] = ()
    steps: list[tuple[str, Any]] = field(default_factory=list)
    made_from: Collection[str | os.PathLike[str]] = ()

    def write(self, learner: Learner, position: dict[str, Any], path: str | None = None) -> None:
        """Write what has been learned, and where the run is; there, or at another path."""
        # Of a run before, as this one may not have come to its end.
        before = getattr(learner, "n_features_in_", None)
        run = {"position": position, "n_features": before, "made_by": self.made_by}
        save_run(learner, run, path or self.path, self.steps, self.made_from)

    def read(self, fresh: Learner) -> tuple[Learner, dict[str, Any]]:
        """The learner and the position of a run like that of the fresh learner; an error tells of
        none, or of another run."""
        if not exists(self.path):
            raise FileNotFoundError(
                f"{self.path}: there is no checkpoint to resume from. {_REMEDY}"
            )
        learner, run = load_run(self.path)
        if run is None:
            raise ValueError(f"{self.path} is a model, and no checkpoint. {_REMEDY}")
        changed = [] if type(learner) is type(fresh) else ["algorithm"]
        before = learner.parameters()
        changed += [
            name for name, value in fresh.parameters().items()
            if name not in {*_MAY_CHANGE, *self.may_change} and value != before.get(name)
            # What a generator gave is in the file.
            and not isinstance(value, np.random.RandomState)
        ]  # fmt: skip
        self.refuse([*changed, *(
            name for name, value in self.made_by.items() if run["made_by"].get(name) != value
        )])  # fmt: skip
        del learner.n_features_in_
        if run["n_features"] is not None:
            learner.n_features_in_ = run["n_features"]
        return learner, run["position"]

    def refuse(self, changed: Collection[str]) -> None:
        """Refuse to go on where any of this is not as it was."""
        if changed:
            raise ValueError(
                f"{self.path} is of a run with other {', '.join(changed)}. Pass what that run had. "
                f"{_REMEDY}"
            )


def check_free(path: str) -> None:
    """Raise a ValueError if the file at `path` is something else than a checkpoint, which writing
    one would replace."""
    if exists(path) and not is_run(path):
        raise ValueError(
            f"{path} would be replaced by a checkpoint, and it is none. Move it, or give the model "
            "another name."
        )


def state_of(path: str) -> Any:
    """Return what changes when the file at `path` is written anew; None if there is no file."""
    try:
        if is_url(path):
            return RemoteFile.find(path)
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def remove_written(path: str, before: Any) -> None:
    """Delete the checkpoint at `path` if it has been written since its `state_of` was `before`."""
    if state_of(path) != before:
        delete(path)
