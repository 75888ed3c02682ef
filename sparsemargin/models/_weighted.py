"""Learners whose steps a weight can multiply."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.models._learner import Learner, Targets
from sparsemargin.models._limits import MAPPING, NONE, Limit, one_of


class WeightedLearner(Learner):
    """Base of the learners that take weights; not for use by itself."""

    _limits: ClassVar[dict[str, tuple[Limit, ...]]] = {
        "class_weight": (one_of(["balanced"]), MAPPING, NONE),
    }

    class_weight: Any

    def _expand_class_weight(self, targets: Targets | None) -> np.ndarray:
        """Weights of each label's negative and positive rows, shape (2, n_labels); targets is
        None in a stream.

        With many classes a label's negatives weigh 1, as in scikit-learn's one-versus-rest; where
        rows may have many, "balanced" makes its two sides weigh the same.
        """
        classes = self.classes_
        if self.class_weight is None:
            return np.ones((2, self._n_labels()))
        if self.class_weight != "balanced":
            weight = _named(self.class_weight, classes)
        elif isinstance(targets, Positives):
            return _balanced_sides(targets, len(classes))
        elif targets is not None:
            weight = _balanced(targets, classes)
        else:
            raise ValueError(
                "class_weight='balanced' needs all labels at once and can't be used with "
                "partial_fit. Pass the weights as a dict."
            )
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError(f"class_weight must be finite and not negative, got {weight}.")
        if len(classes) == 2 and not self._has_many_labels:
            return weight[:, np.newaxis]
        return np.vstack([np.ones_like(weight), weight])


def _balanced(codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Weights with which all classes weigh the same."""
    counts = np.bincount(codes, minlength=len(classes))
    if not counts.all():
        missing = classes[counts == 0].tolist()
        raise ValueError(
            f"class_weight='balanced' needs rows of every class; there are none of {missing}."
        )
    return counts.sum() / (len(classes) * counts)


def _balanced_sides(targets: Positives, n_labels: int) -> np.ndarray:
    """Weights with which each label's positive rows weigh as much as its negative ones; 1 where it
    has no others."""
    n_rows = len(targets.starts) - 1
    positive = np.bincount(targets.labels, minlength=n_labels)
    counts = np.vstack([n_rows - positive, positive])
    weights = np.ones(counts.shape)
    return np.divide(n_rows, 2 * counts, out=weights, where=counts.all(axis=0))


def _named(weights: dict[Any, float], classes: np.ndarray) -> np.ndarray:
    """The weights by class; 1 for those left out."""
    known = classes.tolist()
    unknown = [label for label in weights if label not in known]
    if unknown and any(label not in weights for label in known):
        raise ValueError(
            f"class_weight names {unknown}, which is not among the classes {known}. Leave it out."
        )
    return np.array([weights.get(label, 1.0) for label in known], dtype=np.float64)
