"""Saving of estimators of whole tasks around their fitted pipelines."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sparsemargin._engine.state import require
from sparsemargin.models import Learner
from sparsemargin.text.pipeline import Pipeline

# Options of a fit that name files or other models. Model files do not hold them, so that a file
# from a stranger can't make a later fit read or write a file.
_NAMING_FILES = frozenset({"cache", "checkpoint", "init_model", "made_from", "resume"})


def has_probabilities(model: SavedEstimator) -> bool:
    """Return True if a model is not fitted or has probabilities. Otherwise raise an AttributeError
    that gives the reason."""
    return not hasattr(model, "pipeline_") or model.classifier_.check_probabilities()


class SavedEstimator(BaseEstimator):
    """Base class of estimators that store the fitted model as a pipeline of two steps, `pipeline_`.

    See `sparsemargin.saving.wrappers`.
    """

    pipeline_: Any
    classifier_ = property(lambda self: self.pipeline_.steps[-1][1], doc="The fitted classifier.")
    classes_ = property(attrgetter("pipeline_.classes_"), doc="The classes, sorted.")
    # Name of the first step.
    _first: str

    def saved_wrapper(self) -> tuple[Any, dict[str, Any]]:
        """Return the fitted pipeline, and the parameters as plain values."""
        check_is_fitted(self)
        return self.pipeline_, self._values_for_file()

    @classmethod
    def restored(cls, inner: Any, values: dict[str, Any]) -> Self:
        """Return the estimator around a loaded pipeline. Invalid values raise a ValueError.

        Parameters that only `fit` uses are checked by `fit`.
        """
        name = cls.__name__
        require(isinstance(inner, Pipeline) and len(inner) == 2, f"a {name} has no pipeline")
        require(values.keys() == cls().get_params().keys(), f"a {name} has other parameters")
        params = values["params"]
        sound = params is None or (isinstance(params, dict) and not _NAMING_FILES & params.keys())
        require(sound, f"params of a {name} are not parameters of a classifier")
        model = cls(**values)
        model.check_restored(inner.steps[0][1])
        model.pipeline_ = inner
        return model

    def check_restored(self, first: Any) -> None:
        """Raise a ValueError if a parameter that predictions use is invalid, or if `first` is not a
        valid first step."""

    def parts_for_file(self, first: Any, learner: Learner) -> dict[str, Any]:
        """Return the arguments with which `write_model` saves a fitted first step and a learner as
        an estimator with the parameters of this one."""
        steps = [(self._first, first), ("classifier", learner)]
        wrapper = {"class": type(self).__name__, "values": self._values_for_file()}
        return {"steps": steps, "wrappers": [wrapper]}

    def keep(self, first: Any, classifier: Any) -> Self:
        """Set the fitted steps."""
        self.pipeline_ = Pipeline([(self._first, first), ("classifier", classifier)])
        return self

    def _fitted_steps(self) -> list[Any]:
        """Return the two fitted steps. They belong together, even if another thread fits the model
        meanwhile."""
        check_is_fitted(self)
        return [step for _, step in self.pipeline_.steps]

    def _values_for_file(self) -> dict[str, Any]:
        """Return the values that a model file holds beside the pipeline: the parameters."""
        values = self.get_params(deep=False)
        return {name: self._plain(name, value) for name, value in values.items()}

    def _plain(self, name: str, value: Any) -> Any:
        """Return the value of a parameter in the form that a model file holds."""
        if name == "params" and value is not None:
            return {key: each for key, each in value.items() if key not in _NAMING_FILES}
        return value

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "pipeline_")
