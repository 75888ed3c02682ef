"""Labels of streamed rows: the classes of the stream and the targets of each block."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from sparsemargin.models import Learner
from sparsemargin.models.fitted.new_classes import (
    key_of,
    label_as,
    type_of,
    warn_of_only_new,
    why_no_new_classes,
    with_classes,
    with_file_labels,
)
from sparsemargin.models.inputs.labels import (
    LabelEncoder,
    MultilabelEncoder,
    UnknownLabelError,
    encoder_of,
    first_labels,
    label_sets,
)
from sparsemargin.models.inputs.training_set import Targets, weights_by_class
from sparsemargin.readers.rows import LabelledRows
from sparsemargin.readers.svmlight import located_label
from sparsemargin.streaming.passes import Passes


class NewClassError(Exception):
    """Raised if a row has a label that did not occur in the rows before it."""


# This ends the message about an unknown label for a model that takes no new classes.
_NEVER = (
    "This model can't learn new classes. Leave such rows out, or train a new model on all rows."
)

# This ends the message about a label that has no value of the type of the classes.
_OTHER_TYPE = "The classes are {}. Correct the label, or train a new model on all rows."


class StreamLabels:
    """Encoder for the labels of streamed rows.

    If `encoder` is None, the classes are those of the first rows, and a row with another label
    raises `NewClassError`. `are_known` is True if all classes of the data are known. With
    `adds_classes`, a trained model takes new classes.
    """

    # The end of the message about an unknown label.
    remedy = "Pass classes=[...] with all classes of the data."

    def __init__(
        self, passes: Passes, encoder: LabelEncoder | None, *, adds_classes: bool = False
    ) -> None:
        self.passes, self.source = passes, passes.source
        self.are_known, self.adds_classes = encoder is not None, adds_classes
        self.encoder = LabelEncoder() if encoder is None else encoder

    @property
    def classes(self) -> np.ndarray:
        return self.encoder.classes

    @property
    def many(self) -> bool:
        """True if the problem is multilabel."""
        return isinstance(self.encoder, MultilabelEncoder)

    def targets_of(self, block: LabelledRows) -> Targets:
        """Return the codes of the labels of the rows."""
        try:
            return self.encoder.transform_ids(self.passes.table, block.labels, block.label_start)
        except UnknownLabelError as error:
            if self.passes.labels_may_come and not self.are_known:
                raise NewClassError from None
            known = self.classes.tolist()
            remedy = self.remedy
            if self.adds_classes and label_as(error.label, self.classes) is None:
                remedy = _OTHER_TYPE.format(type_of(self.classes))
            raise located_label(block, error.row, error.label, known, remedy) from None

    def add_classes(self, learner: Learner) -> None:
        """Add the given classes, or those of the first rows, to a trained model that takes new
        classes. For other models, set the reason that the error for an unknown label gives."""
        fitted = learner.fitted
        why = why_no_new_classes(fitted) if self.adds_classes else _NEVER
        if why is not None or self.encoder.positive is not None:
            self.remedy, self.adds_classes = why or _NEVER, False
            return
        self.remedy = "Pass classes=[...] with all classes of the model and of the data."
        labels = self.classes.tolist() if self.are_known else self.passes.table.short_texts()
        if self.are_known and not set(map(key_of, fitted.classes.tolist())) <= set(
            map(key_of, labels)
        ):
            return  # `keep` raises an error, because classes of the model are missing
        classes = with_file_labels(fitted.classes, labels)
        if not self.are_known:
            warn_of_only_new(fitted.classes, labels, "The first rows")
        if len(classes) > len(fitted.classes):
            learner.restore(with_classes(fitted, classes))
        if self.are_known:
            self.encoder = LabelEncoder.of_text(classes)

    def keep(self, learner: Learner) -> None:
        """Use the classes of a trained model; refuse other classes."""
        classes = learner.classes_
        if not self.are_known:
            encoder = MultilabelEncoder if learner.fitted.many else LabelEncoder
            self.encoder, self.are_known = encoder.of_text(classes), not self.adds_classes
        elif not np.array_equal(self.classes, classes):
            if self.encoder.positive is not None:
                raise ValueError(
                    f"positive={self.encoder.positive!r} needs a model of the classes -1, 1, and "
                    f"this one has {first_labels(classes.tolist())}. Leave it out."
                )
            new = np.setdiff1d(self.classes, classes).tolist() or self.classes.tolist()
            remedy = "They can't be changed. Leave classes out."
            if self.adds_classes:
                remedy = "Pass all classes of the model and the new ones, or leave classes out."
            raise ValueError(
                f"classes has {first_labels(new)}, but the classes of the model are "
                f"{first_labels(classes.tolist())}. {remedy}"
            )

    def find(self, learner: Learner) -> None:
        """Find the classes in the first rows, unless they are known, and name the learner's
        `class_weight` by them.

        All classes in `class_weight` must occur in the first rows. Otherwise raise NewClassError if
        the source can be read again, or ValueError if not.
        """
        table, many = self.passes.table, self.source.reading.multilabel
        weighted = learner.class_weight
        named = weighted if isinstance(weighted, dict) else {}
        if not self.are_known:
            if len(table.texts) < 2 - many or any(table.find(label) < 0 for label in named):
                self._check_first_rows()
            self.encoder = encoder_of(table.values(), self.source.names, many)
        if named:
            learner.class_weight = weights_by_class(named, self.classes)

    def _check_first_rows(self) -> None:
        """Raise an error for first rows without all classes, unless the source was read whole."""
        if self.passes.labels_may_come:
            raise NewClassError
        if not self.source.rereadable:
            known = first_labels(self.passes.table.texts)
            found = f"the labels {known} only" if known else "no labels"
            raise ValueError(
                f"The first rows of {self.source.names} have {found}, and it can't be read "
                "twice. Pass all labels as classes=[...]."
            )

    def count_rows(self) -> np.ndarray | None:
        """Count the rows of each class, as `rows_by_class` does, in a separate pass that also finds
        all classes. Return None if there are no rows; training then raises the error."""
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
        if not self.are_known:
            many = self.source.reading.multilabel
            self.encoder, self.are_known = encoder_of(table.values(), self.source.names, many), True
        self.check_positive()
        # `find` returns -1 for a class without rows, which refers to the 0 appended here.
        by_id, positive = np.append(by_id, 0), self.encoder.positive
        labels = self.classes.tolist() if positive is None else [positive]
        counts = by_id[[table.find(label) for label in labels]]
        if positive is not None:
            counts = np.append(n_rows - counts, counts)
        return np.vstack([n_rows - counts, counts])

    def check_positive(self) -> None:
        """Raise a ValueError if no row has the label `positive`, which may be misspelt."""
        positive, table = self.encoder.positive, self.passes.table
        if positive is not None and table.find(positive) < 0:
            raise ValueError(
                f"{self.source.names}: no row has the label positive={positive!r}. There are: "
                f"{first_labels(table.texts)}."
            )
