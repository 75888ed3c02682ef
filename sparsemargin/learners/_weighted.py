"""Learners whose steps a weight can multiply."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sparsemargin.learners._learner import Learner
from sparsemargin.learners._limits import MAPPING, NONE, Limit, one_of


class WeightedLearner(Learner):
    """Base of the learners that take weights; not for use by itself."""

    _limits: ClassVar[dict[str, tuple[Limit, ...]]] = {
        "class_weight": (one_of(["balanced"]), MAPPING, NONE),
    }

    class_weight: Any

    def _expand_class_weight(self, codes: np.ndarray | None) -> np.ndarray:
        """Weights of each label's negative and positive rows, shape (2, n_labels); codes is None
        in a stream.

        With many classes a label's negatives weigh 1, as in scikit-learn's one-versus-rest.
        """
        classes = self.classes_
        if self.class_weight is None:
            return np.ones((2, self._n_labels()))
        if self.class_weight == "balanced" and codes is None:
            raise ValueError(
                "class_weight='balanced' needs all labels at once and can't be used with "
                "partial_fit. Pass the weights as a dict."
            )
        y = classes if codes is None else classes[codes]
        from sklearn.utils import compute_class_weight

        weight = compute_class_weight(self.class_weight, classes=classes, y=y).astype(np.float64)
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError(f"class_weight must be finite and not negative, got {weight}.")
        if len(classes) == 2:
            return weight[:, np.newaxis]
        return np.vstack([np.ones_like(weight), weight])
