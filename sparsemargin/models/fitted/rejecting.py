"""The threshold of a saved `Rejector`, and the label of the rows that it rejects."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from sparsemargin._engine.state import fields, flag, part, real
from sparsemargin.models.inputs.label_values import label_text

# The values of model files, and their checks.
_SCHEMA = {
    "max_error": (real, 0.0, 1.0),
    "threshold_": (real, -np.inf, np.inf),
    "share_": (real, 0.0, 1.0),
    "frozen": (flag,),
}


class Rejection(NamedTuple):
    """The values of a `Rejector` in a model file. `unknown` is the parameter, `label` the label of
    rejected rows."""

    max_error: float
    threshold: float
    share: float
    frozen: bool
    unknown: Any
    label: Any

    @classmethod
    def restored(cls, values: Any, classes: np.ndarray) -> Self:
        """Return the values in a file. Invalid ones raise a ValueError."""
        known, unknown = fields(values, _SCHEMA), part(values, "unknown")
        unknown = unknown.item() if isinstance(unknown, np.generic) else unknown
        return cls(
            known["max_error"], known["threshold_"], known["share_"], known["frozen"], unknown,
            label_unlike(classes, unknown),
        )  # fmt: skip


def label_unlike(classes: np.ndarray, unknown: Any) -> Any:
    """Return the label of rejected rows, which must be of the classes' type but none of them."""
    # Classes from a column of a table may be str objects in an array of dtype object.
    are_words = isinstance(classes.tolist()[0], str | bytes)
    if unknown is None:
        unknown = "unknown" if are_words else -1
    label = np.asarray(unknown)
    is_word = label.dtype.kind in "SU"
    if label.ndim or label.dtype.kind not in "biufSU" or is_word != are_words:
        raise ValueError(
            f"unknown={unknown!r} is not of the type of the classes, such as "
            f"{label_text(classes.tolist()[0])!r}. Pass such a label."
        )
    if not are_words:
        # NaN, which equals nothing, would look like an accepted row.
        joined = np.append(classes, label)
        if label.item() % 1 != 0 or joined[:-1].tolist() != classes.tolist():
            raise ValueError(
                f"unknown={unknown!r} and the classes are not whole numbers that one type can hold "
                "exactly. Pass another whole number, or make text of the labels: str(label)."
            )
    if label in classes:
        raise ValueError(f"unknown={label.item()!r} is one of the classes. Pass another.")
    # The classes are str even if the labels were bytes, and so are the predictions.
    return label.item().decode() if label.dtype.kind == "S" else label.item()
