"""The labels of a stream's rows: which classes there are, and those of each block."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from sparsemargin.models import Learner
from sparsemargin.models.inputs.class_weights import Targets
from sparsemargin.models.inputs.labels import (
    LabelEncoder,
    MultilabelEncoder,
    UnknownLabelError,
    encoder_of,
    first_labels,
    label_sets,
)
from sparsemargin.readers.rows import LabelledRows
from sparsemargin.readers.svmlight import located_label
from sparsemargin.streaming.passes import Passes


class NewClassError(Exception):
    """A label turned up that is none of those the rows before it had."""


class StreamLabels:
    """Tells the classes of rows as they come; encoder None: the classes are those that the first
    rows have, until another one turns up. `told` is whether all classes are known by now."""

    def __init__(self, passes: Passes, encoder: LabelEncoder | None) -> None:
        self.passes, self.source = passes, passes.source
        self.told = encoder is not None
        self.encoder = LabelEncoder() if encoder is None else encoder

    @property
    def classes(self) -> np.ndarray:
        return self.encoder.classes

    @property
    def many(self) -> bool:
        """Whether rows have any number of labels."""
        return isinstance(self.encoder, MultilabelEncoder)

    def targets_of(self, block: LabelledRows) -> Targets:
        """The classes of the rows."""
        try:
            return self.encoder.transform_ids(self.passes.table, block.labels, block.label_start)
        except UnknownLabelError as error:
            if self.passes.labels_may_come and not self.told:
                raise NewClassError from None
            known = self.classes.tolist()
            raise located_label(block, error.row, error.label, known) from None

    def keep(self, learner: Learner) -> None:
        """Go on with the classes that a model has learned."""
        classes = learner.classes_
        if not self.told:
            encoder = MultilabelEncoder if learner.fitted.many else LabelEncoder
            self.encoder, self.told = encoder.of_text(classes), True
        elif not np.array_equal(self.classes, classes):
            raise ValueError(
                f"The model has learned the classes {first_labels(classes.tolist())}, not "
                f"{first_labels(self.classes.tolist())}. It can't learn others."
            )

    def find(self, learner: Learner) -> None:
        """Find the classes in the first rows, unless they are told; all that the learner's weights
        name must be there."""
        if self.told:
            return
        table, many = self.passes.table, self.source.reading.multilabel
        weighted = learner.class_weight
        named = weighted if isinstance(weighted, dict) else {}
        if len(table.texts) < (1 if many else 2) or any(table.find(label) < 0 for label in named):
            if self.passes.labels_may_come:
                raise NewClassError
            if not self.source.rereadable:
                known = first_labels(table.texts)
                found = f"the labels {known} only" if known else "no labels"
                raise ValueError(
                    f"The first rows of {self.source.names} have {found}, and it can't be read "
                    "twice. Pass all labels there will be as classes=[...]."
                )
        self.encoder = encoder_of(table.values(), self.source.names, many)

    def count_rows(self) -> np.ndarray | None:
        """Count the rows of each class, as of `rows_by_class`, in a pass of their own, by which all
        classes are known; None: there are no rows, of which learning tells."""
        table, n_rows, by_id = self.passes.table, 0, np.zeros(0, dtype=np.int64)
        with closing(self.passes.first()) as blocks:
            for block in blocks:
                ids, n_rows, n_ids = block.labels, n_rows + block.n_rows, len(table.texts)
                if block.label_start is not None:
                    ids = label_sets(ids, block.label_start, n_ids).labels
                by_id = np.append(by_id, np.zeros(n_ids - len(by_id), dtype=np.int64))
                by_id += np.bincount(ids, minlength=n_ids)
        if not n_rows:
            return None
        if not self.told:
            many = self.source.reading.multilabel
            self.encoder, self.told = encoder_of(table.values(), self.source.names, many), True
        self.check_positive()
        # A class without rows finds its 0 at the end.
        by_id, positive = np.append(by_id, 0), self.encoder.positive
        labels = self.classes.tolist() if positive is None else [positive]
        counts = by_id[[table.find(label) for label in labels]]
        if positive is not None:
            counts = np.append(n_rows - counts, counts)
        return np.vstack([n_rows - counts, counts])

    def check_positive(self) -> None:
        """Refuse a label that no row has: it may be misspelt."""
        positive, table = self.encoder.positive, self.passes.table
        if positive is not None and table.find(positive) < 0:
            raise ValueError(
                f"{self.source.names}: no row has the label positive={positive!r}. There are: "
                f"{first_labels(table.texts)}."
            )
