"""Classifiers whose steps a weight can multiply."""

from __future__ import annotations

from typing import Any, Self

from sparsemargin.estimators._common_sections import with_sample_weight
from sparsemargin.estimators._online import OnlineClassifier


class WeightedClassifier(OnlineClassifier):
    """Base of the classifiers that take weights; not for use by itself."""

    @with_sample_weight(OnlineClassifier.fit)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        return self._fit(X, y, sample_weight)

    @with_sample_weight(OnlineClassifier.partial_fit)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        return self._partial_fit(X, y, classes, sample_weight)
