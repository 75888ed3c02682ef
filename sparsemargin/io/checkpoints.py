"""What a run over files has learned by a moment, on disk, from which it goes on."""

from __future__ import annotations

import os
from typing import Any

from sparsemargin._engine.fitting.task import warn_user
from sparsemargin.io.model_files import load_run, save_run
from sparsemargin.models import Learner

# Parameters that change no bit.
_MAY_CHANGE = {"n_jobs", "verbose"}


class Checkpoint:
    """A model file that is written on the way; `made_by` is what a run that goes on must have
    alike, of which the model itself tells nothing. A `fresh` learner of the run asks to go on:
    `found` then are the learner and the position in the file."""

    def __init__(
        self, path: str | os.PathLike[str], made_by: dict[str, Any], fresh: Learner | None = None
    ) -> None:
        self.path, self.made_by = os.fspath(path), made_by
        self.found = None if fresh is None else self._find(fresh)

    def write(self, learner: Learner, position: dict[str, Any]) -> None:
        """Write what has been learned, and where the run is; a warning where that can't be."""
        # Of a run before, as this one has not come to its end.
        before = vars(learner).get("n_features_in_")
        run = {"position": position, "n_features": before, "made_by": self.made_by}
        try:
            save_run(learner, run, self.path)
        except OSError as error:
            warn_user(f"There is no checkpoint to resume from: {error}.")

    def _find(self, fresh: Learner) -> tuple[Learner, dict[str, Any]]:
        """What was written for a run like that of the fresh learner; an error tells of none, or of
        another run."""
        path, remedy = self.path, "Leave resume out to learn from the beginning."
        if not os.path.exists(path):
            raise FileNotFoundError(f"{path}: there is no checkpoint to resume from. {remedy}")
        learner, run = load_run(path)
        if run is None:
            raise ValueError(f"{path} is a model, and no checkpoint. {remedy}")
        changed = [name for name, value in self.made_by.items() if run["made_by"][name] != value]
        before, now = learner._parameters(), fresh._parameters()
        changed += [] if type(learner) is type(fresh) else ["algorithm"]
        changed += [
            name for name in now if name not in _MAY_CHANGE and now[name] != before.get(name)
        ]
        if changed:
            raise ValueError(
                f"{path} is of a run with other {', '.join(changed)}. Pass what that run had. "
                f"{remedy}"
            )
        del learner.n_features_in_
        if run["n_features"] is not None:
            learner.n_features_in_ = run["n_features"]
        return learner, run["position"]
