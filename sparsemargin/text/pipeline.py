"""A pipeline that predicts a single text quickly."""

from typing import Any

from sklearn import get_config, pipeline


class Pipeline(pipeline.Pipeline):  # type: ignore[misc]
    """scikit-learn's `Pipeline`, whose `predict` leaves it to the steps to say that they are not
    fitted: to ask them beforehand takes as long as a short text does."""

    def predict(self, X: Any, **params: Any) -> Any:
        if params or get_config()["enable_metadata_routing"]:
            return super().predict(X, **params)
        for _, step in self.steps[:-1]:
            if step not in (None, "passthrough"):
                X = step.transform(X)
        return self.steps[-1][1].predict(X)
