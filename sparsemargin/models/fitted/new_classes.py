"""Additional classes for a trained one-vs-rest model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.packed import PackedSpace
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.messages import warn_user
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.inputs.label_table import label_text, number_of, word_of
from sparsemargin.models.inputs.labels import places_among

# Output of the vector of a new class. AROW moves the output of a negative row to -1, and all rows
# before were negative for the new class.
_OUTPUT = -1.0

# Counters of a vector that are kept.
_COUNTERS = "corrections", "passes", "initial"


# The type of labels for messages, by the kind of their dtype. All other kinds are numbers.
_TYPES = {"U": "text", "b": "truth values"}


def type_of(labels: np.ndarray) -> str:
    """Return the type of labels for messages."""
    return _TYPES.get(labels.dtype.kind, "numbers")


def key_of(label: Any) -> str:
    """Return the text by which a label of a file is compared with classes."""
    return word_of(label_text(label))


def label_as(label: Any, classes: np.ndarray) -> Any:
    """Return a label of a file, a text or a number, in the type of the classes; None if that is not
    possible."""
    if classes.dtype.kind == "U":
        return label_text(label)
    number = number_of(label)
    whole = classes.dtype.kind in "iu"
    if classes.dtype.kind == "b" or isnan(number) or (whole and number % 1):
        return None
    value = int(number) if whole else number
    # Texts that are only equal as numbers, such as 01 and 1, are different labels.
    return value if key_of(value) == key_of(label) else None


def with_file_labels(classes: np.ndarray, labels: Iterable[Any]) -> np.ndarray:
    """Return the classes and the new labels of a file that have the type of the classes."""
    known = set(map(key_of, classes.tolist()))
    new = [label_as(label, classes) for label in labels if key_of(label) not in known]
    new = [label for label in new if label is not None]
    return np.union1d(classes, new) if new else classes


def joined_classes(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the classes and the new labels, sorted.

    Raises
    ------
    ValueError
        If a label is new and has another type than the classes.
    """
    new = labels[places_among(classes, labels) < 0]
    if not len(new):
        return classes
    own, other = type_of(classes), type_of(new)
    if own != other:
        example = classes[:1].tolist()[0]
        raise ValueError(
            f"The label {new[:1].tolist()[0]!r} is new, and labels of its type ({other}) can't be "
            f"classes of this model, whose classes are {own}, such as {example!r}. Convert the "
            f"labels to {own}, or fit a new model."
        )
    return np.union1d(classes, new)


def warn_of_only_new(
    classes: np.ndarray, labels: Iterable[Any], rows: str = "All of these rows"
) -> None:
    """Warn if all labels of rows are the same, and that label is not one of the classes."""
    names = set(map(key_of, labels))
    if len(names) == 1 and not names & set(map(key_of, classes.tolist())):
        warn_user(
            f"{rows} have the label {min(names)!r}, which is new to the model. It would "
            "be predicted for many rows of other classes. Mix them with rows of the other classes."
        )


def why_no_new_classes(fitted: Fitted) -> str | None:
    """Return why a model can't have additional classes, and a remedy; None if it can."""
    space = fitted.space
    if (
        fitted.many or type(space) not in (LinearSpace, PackedSpace) or not space.bias
        or fitted.structure.get("hypothesis") != "last" or "prior" not in fitted.structure
        or fitted.scaling is not None
    ):  # fmt: skip
        return (
            "Only AROW with an intercept, hypothesis='last', one class for each row and less than "
            "half a gigabyte of weights takes new classes. Train a new model with all classes."
        )
    return None


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
        If the model can't have additional classes, see `why_no_new_classes`.
    """
    why = why_no_new_classes(fitted)
    if why is not None:
        raise ValueError(why)
    space = fitted.space.unpacked()
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
    """Return numbers of shape (n, n_vectors) for all classes. Two classes share one vector, and
    `of_other` computes the numbers of the first class from those of the vector."""
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
    """Return the stored outputs with columns for the new classes."""
    wide = ProgressiveOutputs.__new__(ProgressiveOutputs)
    vars(wide).update(vars(kept))
    shape = len(kept.steps), n_classes
    wide.outputs, wide.positive = np.full(shape, _OUTPUT), np.zeros(shape, np.uint8)
    wide.outputs[:, place] = _both(kept.outputs, np.negative)
    wide.positive[:, place] = _both(kept.positive, lambda positive: 1 - positive)
    return wide
