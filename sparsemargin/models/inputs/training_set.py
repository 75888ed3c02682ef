"""Training rows with their targets, and the data that a new model is initialized with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.models.inputs.multilabel_targets import Form
from sparsemargin.models.inputs.rows import Rows

#: The code of each row's class, shape (n_rows,), or the labels of each row (multilabel).
Targets = np.ndarray | Positives


def count_vectors(classes: np.ndarray, many: bool) -> int:
    """Return the number of vectors: one per class, or a single one for two exclusive classes."""
    return 1 if len(classes) == 2 and not many else len(classes)


class TrainingSet(NamedTuple):
    """Training rows and their encoded targets. Both are valid, except for the entries of the rows,
    which are checked before they are used."""

    rows: Rows
    targets: Targets
    classes: np.ndarray
    form: Form | None  # format of multilabel targets; None: one class per row
    weights: np.ndarray | None  # sample weights; None: all are 1
    sparse: bool  # whether a callable kernel gets sparse rows, as X was sparse


@dataclass(frozen=True)
class Beginning:
    """The data that a new model is initialized with."""

    rows: Rows  # the first rows
    classes: np.ndarray
    form: Form | None = None  # format of multilabel targets; None: one class per row
    counts: np.ndarray | None = None  # result of `rows_by_class`; None: not all rows are known
    blocks: Sequence[Rows] = ()  # `rows` and the rows that follow; empty: only `rows`
    grows: bool = False  # whether the number of features may increase
    sparse: bool = True  # whether a callable kernel gets sparse rows, as X was sparse

    @property
    def n_vectors(self) -> int:
        return count_vectors(self.classes, self.form is not None)
