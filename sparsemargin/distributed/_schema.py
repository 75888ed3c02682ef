"""What the rows of all shards have in common, and a learner that is opened for it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsemargin.distributed._shards import FileShard, Survey
from sparsemargin.io.reading import Reading
from sparsemargin.models import Learner
from sparsemargin.models._learner import LARGEST_SEED, count_labels
from sparsemargin.models._rows import Rows
from sparsemargin.models.labels import (
    LabelEncoder,
    LabelTable,
    MultilabelEncoder,
    encoder_of,
    first_labels,
    told_encoder,
)


@dataclass(frozen=True)
class Schema:
    """What the rows of all shards have in common."""

    n_columns: int  # as they are learned from
    dtype: np.dtype  # of the values
    classes: np.ndarray
    form: Any  # how rows have any number of labels; None: each has one
    # Of files only: what tells the classes of rows, how text is read, the least index, and the
    # checksums of their rows by the names of the shards.
    encoder: LabelEncoder | None = None
    reading: Reading | None = None
    lowest: int = 0
    checksums: dict[str, int] = field(default_factory=dict)

    @property
    def no_rows(self) -> Rows:
        """Rows of the type and with the columns of all, but none of them."""
        indices, indptr = np.zeros(0, np.int32), np.zeros(1, np.int32)
        return Rows(np.zeros(0, self.dtype), indices, indptr, self.n_columns)

    @property
    def drops(self) -> int:
        """1 where column 0 is that of an index that does not occur."""
        return int(self.reading is not None and self.reading.drops_column_0(self.lowest))

    @property
    def n_features(self) -> int:
        if self.reading is not None and self.reading.n_features:
            return self.reading.n_features
        return self.n_columns - self.drops

    @property
    def settled(self) -> dict[str, Any] | None:
        """How files are to be read for these features."""
        return None if self.reading is None else self.reading.settled(self.lowest)


# ------------------------------------------------------------------------- from surveys to a schema


def schema_of_files(
    files: Sequence[FileShard], surveys: Sequence[Survey], classes: Any, positive: Any
) -> Schema:
    """That of files, whose classes are those that the caller has named, or the labels of all.

    Raises
    ------
    ValueError
        If row caches were made in different ways, there are too few classes, or no row has the
        label that is told from the others.
    """
    reading, table = surveys[0].reading, LabelTable()
    assert reading is not None
    for s, survey in enumerate(surveys):
        table.take(survey.labels.texts, survey.labels.numbers)
        if survey.reading != reading:
            raise ValueError(
                f"Shards 0 and {s} were read in different ways: {reading} and {survey.reading}. "
                "Make their row caches anew with the same settings."
            )
    # Rows of a cache have as many labels as it was made with.
    encoder = told_encoder(classes, positive, reading.multilabel)
    if encoder is None:
        encoder = encoder_of(table.values(), "The data", reading.multilabel)
    if positive is not None and table.find(positive) < 0:
        known = first_labels(table.texts)
        raise ValueError(f"No row has the label positive={positive!r}. There are: {known}.")
    highest = max(survey.highest for survey in surveys)
    return Schema(
        reading.n_columns or reading.columns_up_to(highest), _dtype(surveys), encoder.classes,
        "lists" if isinstance(encoder, MultilabelEncoder) else None, encoder, reading,
        min(survey.lowest for survey in surveys),
        {file.name: survey.checksum for file, survey in zip(files, surveys, strict=True)},
    )  # fmt: skip


def schema_of_matrices(surveys: Sequence[Survey]) -> Schema:
    """That of matrices, whose classes are those of all of them.

    Raises
    ------
    ValueError
        If they do not go together.
    """
    first = surveys[0]
    for s, survey in enumerate(surveys):
        if survey.n_columns != first.n_columns:
            raise ValueError(
                f"Shard 0 has {first.n_columns} features, shard {s} has {survey.n_columns}. All "
                "shards must have the same."
            )
        if _kind(survey) != _kind(first):
            raise ValueError(
                f"The labels of shards 0 and {s} are of different kinds: "
                f"{_kind(first)} and {_kind(survey)}. Give them all in one way."
            )
        if first.form in ("dense", "sparse") and len(survey.labels) != len(first.labels):
            raise ValueError(
                f"y of shard 0 is an indicator of {len(first.labels)} labels, that of shard {s} of "
                f"{len(survey.labels)}. Give all shards the columns of all labels."
            )
    classes = np.unique(np.concatenate([survey.labels for survey in surveys]))
    if len(classes) < 2 and first.form is None:
        raise ValueError(f"y has one class only, {classes.tolist()}; at least 2 are needed.")
    return Schema(int(first.n_columns or 0), _dtype(surveys), classes, first.form)


def _dtype(surveys: Sequence[Survey]) -> np.dtype:
    return np.result_type(*(survey.dtype for survey in surveys))


def _kind(survey: Survey) -> str:
    kind = "text" if isinstance(survey.labels.flat[0], str) else "numbers"
    many = {None: "", "lists": ", any number a row"}
    return kind + many.get(survey.form, f", in a {survey.form} indicator")


def check_rows_there(surveys: Sequence[Survey]) -> None:
    """Refuse shards without rows, and files without features."""
    for s, survey in enumerate(surveys):
        if not survey.n_rows:
            raise ValueError(
                f"Shard {s} of {len(surveys)}, counted from 0, has no rows. Leave it out."
            )
    if not any(survey.n_entries for survey in surveys):
        raise ValueError("The data have labels but no features: nothing can be learned from them.")


# ---------------------------------------------------------------------------- what is learned there


class Mixture:
    """The learner whose space is the mixture of what the shards have learned.

    Parameters
    ----------
    learner : Learner
        Is opened for rows of the schema, and draws the seeds as a fit on one machine does.
    schema : Schema
    n_shards : int
    memory_limit : int
        Bytes that the weights may take.

    Attributes
    ----------
    seed : int or None
        Of the shuffling.

    Raises
    ------
    ValueError
        If the learner can't be had for such rows.
    """

    def __init__(self, learner: Learner, schema: Schema, n_shards: int, memory_limit: int) -> None:
        self.learner, self.schema, random = learner, schema, learner._random()
        self.seed = random.randint(LARGEST_SEED) if learner.shuffle else None
        n_columns = schema.n_columns
        grows = schema.reading is not None and schema.reading.n_columns is None
        if learner.p == "log" and grows:
            raise ValueError("p='log' is 2 ln n_features: pass n_features, or hash_bits.")
        learner.classes_ = schema.classes
        if schema.form is not None:
            learner._label_form = schema.form
            if not learner._takes_many_labels:
                learner._refuse_many_labels()
        n_labels = count_labels(schema.classes, schema.form is not None)
        needed = n_columns * learner._bytes_per_feature(schema.dtype, n_labels, n_columns)
        if needed > memory_limit:
            raise ValueError(
                f"{n_columns:,} features take {needed:,} bytes of weights, more than "
                f"memory_limit={memory_limit:,}. Raise it, or pass hash_bits for files."
            )
        slice_seed = random.randint(LARGEST_SEED)
        learner._open_stream(schema.no_rows, schema.classes, slice_seed, grows=grows)
        if n_shards > 1 and learner._space.in_blocks:
            raise ValueError(
                f"The weights of {n_labels} labels and {n_columns:,} features would be held "
                "sparsely, and such can't be mixed. Pass fewer features, by hash_bits, or fit "
                "some of the labels at a time."
            )

    def finished(self, epochs: int) -> Learner:
        """A learner of its own, whose features are those of the rows."""
        learner, schema = copy.copy(self.learner), self.schema
        learner._space = copy.deepcopy(self.learner._space)
        learner.n_features_in_ = schema.n_features
        if schema.settled is not None:
            learner._resize(schema.n_features, schema.drops)
            learner._reading = schema.settled
        learner.n_iter_ = float(epochs)
        return learner

    def resume(self, found: Learner, seed: int | None) -> None:
        """Go on with the space of a finished learner."""
        found._resize(self.schema.n_columns, -self.schema.drops)
        self.learner._space = found._space
        self.learner._slice_seed = found._slice_seed
        self.seed = seed
