"""The common properties of the rows of all shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.rows.csr import Csr
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.models.inputs.labels import (
    LabelEncoder,
    MultilabelEncoder,
    encoder_of,
    first_labels,
    given_encoder,
    refuse_lone,
    refuse_no_labels,
)
from sparsemargin.models.inputs.training_set import Beginning
from sparsemargin.readers.label_kinds import LabelKind, check_kind
from sparsemargin.readers.reading import Reading
from sparsemargin.streaming.label_order import LabelOrder


class Part(NamedTuple):
    """A part of the rows of each shard: of n rows those from n * start // of to n * stop // of."""

    start: int
    stop: int
    of: int

    def bounds(self, n_rows: int) -> tuple[int, int]:
        """The first row, and the row after the last."""
        return n_rows * self.start // self.of, n_rows * self.stop // self.of


WHOLE = Part(0, 1, 1)


class Survey(NamedTuple):
    """The facts about a shard that must be known before training."""

    n_rows: int
    n_entries: int
    n_columns: int | None  # number of columns of a matrix
    lowest: int  # smallest index in a file, as written
    highest: int
    dtype: str  # dtype of the values
    labels: Any  # LabelTable of a file, or classes of a matrix
    form: str | None  # form of multilabel targets of a matrix; None: one label per row
    reading: Reading | None  # how a row cache was read
    beginning: list[Csr]  # first rows, which determine the scale of the intercept
    n_bytes: int  # size of the text, or of the arrays
    checksum: int  # checksum of rows and labels
    label_order: LabelOrder  # order of the labels; empty if rows have several labels
    label_kind: LabelKind | None = None  # kind of the labels of files with types
    is_row_cache: bool = False  # whether the shard was given as a row cache

    def identity(self) -> dict[str, Any]:
        """The facts by which a resumed fit recognizes the shard."""
        return {"n_rows": self.n_rows, "dtype": self.dtype, "checksum": self.checksum}


@dataclass(frozen=True)
class Schema:
    """The common properties of the rows of all shards."""

    n_columns: int  # number of columns in training
    n_features: int
    dtype: np.dtype  # dtype of the values
    classes: np.ndarray
    form: Any  # form of multilabel targets; None: one label per row
    # The following fields are used for files only.
    encoder: LabelEncoder | None = None  # encodes the labels of rows
    reading: dict[str, Any] | None = None  # parameters for reading other files with these features
    drops_column_0: bool = False  # True if index 0 does not occur
    grows: bool = False  # True if the number of features was not known in advance
    checksums: dict[str, int] = field(default_factory=dict)  # by name of the shard
    counts: np.ndarray | None = None  # result of `rows_by_class`, if requested
    # Seed of a random order of the rows of each shard; a part of a shard is a range of this order.
    # None: the order in which the rows were given.
    mixed: int | None = None

    def beginning(self, n_columns: int) -> Beginning:
        """The facts needed to open a learner for rows like these, with `n_columns` columns."""
        indices, indptr = np.zeros(0, np.int32), np.zeros(1, np.int32)
        no_rows = Csr(np.zeros(0, self.dtype), indices, indptr, n_columns)
        return Beginning(no_rows, self.classes, self.form, self.counts, grows=self.grows)


def schema_of_files(
    surveys: Sequence[Survey], titles: Sequence[str], classes: Any, positive: Any
) -> Schema:
    """The schema of files; the classes are the caller's, or all labels found. `titles` are the
    numbers of the shards, in words."""
    reading, table, kinds = surveys[0].reading, LabelTable(), list[LabelKind]()
    assert reading is not None
    for survey, title in zip(surveys, titles, strict=True):
        table.take(survey.labels.texts, survey.labels.numbers)
        if survey.label_kind is not None:
            kinds.append(survey.label_kind)
            check_kind(kinds[-1], kinds[0])
        # The dtypes may differ, because all values are converted to the widest one.
        if survey.reading is None or replace(survey.reading, dtype=reading.dtype) != reading:
            raise ValueError(
                f"{titles[0].capitalize()} and {title} were read in different ways: "
                f"{reading} and {survey.reading}. Make their row caches anew with the same "
                "settings."
            )
    # The row caches determine whether rows may have several labels.
    encoder = given_encoder(classes, positive, reading.multilabel)
    if encoder is None:
        encoder = encoder_of(table.values(), "The data", reading.multilabel)
    if positive is not None and table.find(positive) < 0:
        known = first_labels(table.texts)
        raise ValueError(f"No row has the label positive={positive!r}. There are: {known}.")
    lowest = min(survey.lowest for survey in surveys)
    drops = reading.drops_column_0(lowest)
    # Indices from 1 to `n_features` need one more column, as long as column 0 is not left out.
    highest = max(survey.highest for survey in surveys)
    n_columns = max(reading.n_columns or 0, reading.columns_up_to(highest))
    return Schema(
        n_columns, reading.n_features or n_columns - drops, _dtype(surveys), encoder.classes,
        "lists" if isinstance(encoder, MultilabelEncoder) else None, encoder,
        reading.resolved(lowest), drops, reading.n_columns is None,
    )  # fmt: skip


def schema_of_matrices(surveys: Sequence[Survey], titles: Sequence[str]) -> Schema:
    """The schema of matrices, with the classes of all shards. `titles` are the numbers of the
    shards, in words."""
    first = surveys[0]
    # A shard of rows with several labels may have no label. Its empty array has no type of labels.
    labelled = [s for s, survey in enumerate(surveys) if len(survey.labels)]
    for survey, title in zip(surveys, titles, strict=True):
        if survey.n_columns != first.n_columns:
            raise ValueError(
                f"{titles[0].capitalize()} has {first.n_columns} features, {title} has "
                f"{survey.n_columns}. All shards must have the same."
            )
    for s in labelled:
        kinds = _kind(surveys[labelled[0]]), _kind(surveys[s])
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"The labels of {titles[labelled[0]]} and {titles[s]} are of different kinds: "
                f"{kinds[0]} and {kinds[1]}. Give them all in one way."
            )
    classes = np.unique(np.concatenate([surveys[s].labels for s in labelled] or [first.labels]))
    refuse_no_labels(classes)
    first = surveys[labelled[0]]
    if first.form is None:
        refuse_lone(classes, "y")
    n_columns = int(first.n_columns or 0)
    return Schema(n_columns, n_columns, _dtype(surveys), classes, first.form)


def _dtype(surveys: Sequence[Survey]) -> np.dtype:
    return np.result_type(*(survey.dtype for survey in surveys))


def _kind(survey: Survey) -> str:
    kind = {"U": "text", "b": "truth values"}.get(survey.labels.dtype.kind, "numbers")
    indicator = f", in a {survey.form} indicator of {len(survey.labels)} labels"
    return kind + {None: "", "lists": ", any number a row"}.get(survey.form, indicator)
