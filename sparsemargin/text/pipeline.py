"""A pipeline that predicts a single text quickly."""

from typing import Any

from sklearn import get_config, pipeline


class Pipeline(pipeline.Pipeline):  # type: ignore[misc]
    """scikit-learn's `Pipeline` with a `predict` that does not check whether the steps are fitted.

    The steps raise their own errors. The check takes as long as predicting a short text.
    """

    def predict(self, X: Any, **params: Any) -> Any:
        if params or get_config()["enable_metadata_routing"]:
            return super().predict(X, **params)
        for _, step in self.steps[:-1]:
            if step not in (None, "passthrough"):
                X = step.transform(X)
        return self.steps[-1][1].predict(X)


PIPELINES = pipeline.Pipeline, Pipeline
