"""Encoded targets and classes for fits of classifiers."""

from __future__ import annotations

import numpy as np

from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.inputs.labels import (
    LabelEncoder,
    MultilabelEncoder,
    refuse_lone,
    warn_of_many_classes,
)
from sparsemargin.models.inputs.multilabel_targets import MultilabelTargets
from sparsemargin.models.inputs.training_set import Targets


def encoded_targets(
    y: np.ndarray | MultilabelTargets, before: Fitted | None, classes: np.ndarray | None
) -> tuple[Targets, np.ndarray]:
    """Return the encoded targets, and the classes: the given ones, or those that occur in y.

    `before` is the state of the model, None before the first call. It must have the same form of
    labels as y: one class or several labels for each row.
    """
    many = isinstance(y, MultilabelTargets)
    if before is not None and many != before.many:
        form = "one class a row, but y may have several labels a row"
        if not many:
            form = "any number of labels a row, but y has one class a row"
        raise ValueError(f"The model has learned {form}. Give y as before, or fit anew.")
    if classes is not None:
        return (MultilabelEncoder(classes) if many else LabelEncoder(classes)).transform(y), classes
    encoder = MultilabelEncoder() if many else LabelEncoder()
    targets: Targets = encoder.fit_transform(y)
    if not many:
        refuse_lone(encoder.classes, "y")
        warn_of_many_classes(len(encoder.classes), len(targets), "y")
    return targets, encoder.classes


def check_classes(
    before: Fitted | None, wanted: np.ndarray | None, y: np.ndarray | MultilabelTargets
) -> np.ndarray:
    """Return the classes for a call of `partial_fit`: those of earlier calls, those passed
    (`wanted`), or the columns of an indicator. Refuse classes that contradict each other."""
    columns = y.columns if isinstance(y, MultilabelTargets) else None
    if wanted is None:
        known = columns if before is None else before.classes
        if known is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return known
    if columns is not None and not np.array_equal(wanted, columns):
        raise ValueError(
            f"classes={wanted.tolist()} are not the columns of y, an indicator of "
            f"{len(columns)} labels. Leave classes out."
        )
    if not isinstance(y, MultilabelTargets):
        refuse_lone(wanted, "classes")
    if before is not None and not np.array_equal(wanted, before.classes):
        raise ValueError(
            f"classes={wanted.tolist()} is not the same as on the last call to partial_fit, "
            f"which was {before.classes.tolist()}."
        )
    return wanted
