"""Additional classes for a trained one-vs-rest model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.packed import PackedSpace
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin.models.fitted.state import Fitted

# Output of the vector of a new class. AROW moves the output of a negative row to -1, and all rows
# before were negative for the new class.
_OUTPUT = -1.0

# Counters of a vector that are kept.
_COUNTERS = "corrections", "passes", "initial"


def with_classes(fitted: Fitted, classes: np.ndarray) -> Fitted:
    """Return the state of an AROW model with additional classes.

    The vectors of the earlier classes are unchanged. The vector of a new class has the output -1
    for every row, by its intercept, and initial variances.

    Parameters
    ----------
    fitted : Fitted
    classes : ndarray of shape (n_classes,)
        All classes, sorted; those of `fitted` are among them.

    Raises
    ------
    ValueError
        If the model has no variances, no intercept, several labels per row, or averaged weights.
    """
    space = fitted.space
    if isinstance(space, PackedSpace):
        space = space.unpacked()
    if (
        fitted.many or type(space) is not LinearSpace or not space.adaptive or space.averaged
        or not space.bias or fitted.scaling is not None
    ):  # fmt: skip
        raise ValueError(
            "Only AROW with an intercept, hypothesis='last', one class for each row and less than "
            "half a gigabyte of weights takes new classes. Pass all classes in the first call, or "
            "fit a new model."
        )
    place = np.searchsorted(classes, fitted.classes)
    kept = np.zeros(len(classes), bool)
    kept[place] = True
    wide = _widened(space, place, len(classes))
    n_rows = fitted.rows_by_class[:, :1].sum()
    rows_by_class = np.vstack([np.full(len(classes), n_rows), np.zeros(len(classes), int)])
    rows_by_class[:, place] = fitted.rows_by_class
    weights = np.ones((2, len(classes)))
    own = fitted.class_weight
    weights[:, place] = np.hstack([own[::-1], own]) if own.shape[1] < len(place) else own
    progress = fitted.progress
    if progress is not None:
        progress = _outputs(progress, place, len(classes))
    return replace(
        fitted, classes=classes, space=wide, rows_by_class=rows_by_class, class_weight=weights,
        progress=progress, last_rows=None,
    )  # fmt: skip


def _both(numbers: np.ndarray, of_other: Any) -> np.ndarray:
    """Return numbers of shape (n, n_vectors) for all classes: with two classes, `of_other` returns
    those of the first one."""
    if numbers.shape[1] > 1:
        return numbers
    return np.hstack([of_other(numbers), numbers])


def _widened(space: Any, place: np.ndarray, n_classes: int) -> LinearSpace:
    """Return a space with a vector for each class. Earlier vectors are at the indices `place`."""
    wide = LinearSpace(
        space.n_features, n_classes, space.p, space.t.dtype, bias=space.bias, slack=space.slack,
        averaged=False, normalized=space.normalized, log=None, adaptive=True,
    )  # fmt: skip
    theta = np.zeros((len(wide.t), n_classes), space.t.dtype)
    variances = wide.of_vectors(wide.variances)
    held = _both(space.of_vectors(space.variances), lambda numbers: numbers)
    theta[:, place] = _both(space.theta().T, np.negative)
    variances[:, place] = held
    new = np.setdiff1d(np.arange(n_classes), place)
    theta[-1, new] = _OUTPUT / space.bias
    # The variance of an intercept shows how many rows the model has seen.
    variances[-1, new] = held[-1].mean()
    wide.set_dual(theta)
    wide.trials = space.trials  # type: ignore[misc]
    for name in _COUNTERS:
        own = space.vectors[name]
        wide.vectors[name][place] = own
        if name == "initial":
            wide.vectors[name][new] = own.mean()
    return wide


def _outputs(kept: ProgressiveOutputs, place: np.ndarray, n_classes: int) -> ProgressiveOutputs:
    """Return the outputs for earlier rows with those of the new classes."""
    wide = ProgressiveOutputs.__new__(ProgressiveOutputs)
    vars(wide).update(vars(kept))
    shape = len(kept.steps), n_classes
    wide.outputs, wide.positive = np.full(shape, _OUTPUT), np.zeros(shape, np.uint8)
    wide.outputs[:, place] = _both(kept.outputs, np.negative)
    wide.positive[:, place] = _both(kept.positive, lambda positive: 1 - positive)
    return wide
