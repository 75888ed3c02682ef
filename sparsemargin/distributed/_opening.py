"""From what is known of the shards to a learner that can begin."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsemargin.distributed._shards import Survey
from sparsemargin.io.reading import Reading
from sparsemargin.models import Learner
from sparsemargin.models.base import LARGEST_SEED, count_labels
from sparsemargin.models.first_order import FirstOrderLearner
from sparsemargin.models.labels import (
    LabelEncoder,
    LabelTable,
    MultilabelEncoder,
    encoder_of,
    first_labels,
)
from sparsemargin.models.rows import Rows

# Those whose epochs on shards can be mixed, and why others can't.
_NOT_MIXED = {
    "CRAMMAClassifier": "its vector has norm 1 throughout, which a mixture has not",
    "ROMMAClassifier": "its weights satisfy constraints of its rows, which a mixture does not",
    "MaxMarginClassifier": "it keeps a multiplier for each row",
}


# What can't be had where no process has all rows: parameters, and what they must be.
_ELSEWHERE = {
    "kernel": "linear", "soft_margin": 0, "tol": None, "keep_history": False,
    "max_corrections": None, "solver": "auto", "class_weight": None, "normalize": "running",
}  # fmt: skip
# Of these one value only.
_AMONG_OTHERS = {"solver": "dual", "class_weight": "balanced", "normalize": "max"}


def check_mixable(learner: Learner) -> None:
    """Refuse what can't be learned on shards.

    Raises
    ------
    ValueError
        Says why, and what helps.
    """
    if learner.classifier in _NOT_MIXED:
        raise ValueError(
            f"{learner.classifier} can't be mixed: {_NOT_MIXED[learner.classifier]}. Those that "
            "can are perceptron, pnorm, alma, margin, so and ho."
        )
    for name, off in _ELSEWHERE.items():
        value = getattr(learner, name, off)
        if value != off and (name not in _AMONG_OTHERS or value == _AMONG_OTHERS[name]):
            raise ValueError(
                f"{name}={value!r} needs all rows in one place, and these are in shards. Pass "
                f"{name}={off!r}."
            )
    learner._check_parameters()
    if learner.hypothesis in ("vote", "random"):
        raise ValueError(
            f"hypothesis={learner.hypothesis!r} is replayed from a log of corrections, which "
            "mixtures have not. Pass hypothesis='average'."
        )
    if learner.warm_start:
        raise ValueError("warm_start is of fit. To go on with a fit over shards pass resume=True.")
    if learner.max_iter is not None and learner.max_iter % 1:
        raise ValueError(f"max_iter={learner.max_iter} must be a whole number of epochs.")


@dataclass
class Opened:
    """A learner that can begin, and what it learns from.

    Attributes
    ----------
    learner : Learner
    surveys : list of Survey
    reading : Reading or None
        Of files.
    seed : int or None
        Of the shuffling.
    """

    learner: Learner
    surveys: list[Survey]
    reading: Reading | None = None
    seed: int | None = None

    def open(self, classes: np.ndarray, form: Any, memory_limit: int) -> None:
        """Make what is learned in, and draw the seeds as a fit on one machine does."""
        learner, random = self.learner, self.learner._random()
        self.seed = random.randint(LARGEST_SEED) if learner.shuffle else None
        grows = self.reading is not None and self.reading.n_columns is None
        if learner.p == "log" and grows:
            raise ValueError("p='log' is 2 ln n_features: pass n_features, or hash_bits.")
        learner.classes_ = classes
        if form is not None:
            learner._label_form = form
            if not learner._takes_many_labels:
                learner._refuse_many_labels()
        n_labels = count_labels(classes, form is not None)
        needed = self.n_columns * learner._bytes_per_feature(self.dtype, n_labels, self.n_columns)
        if needed > memory_limit:
            raise ValueError(
                f"{self.n_columns:,} features take {needed:,} bytes of weights, more than "
                f"memory_limit={memory_limit:,}. Raise it, or pass hash_bits for files."
            )
        learner._open_stream(self.no_rows, classes, random.randint(LARGEST_SEED), grows=grows)
        learner._coef = None
        if isinstance(learner, FirstOrderLearner):
            learner._outcome = learner._learned = None
        if len(self.surveys) > 1 and learner._space.in_blocks:
            raise ValueError(
                f"The weights of {n_labels} labels and {self.n_columns:,} features would be held "
                "sparsely, and such can't be mixed. Pass fewer features, by hash_bits, or fit "
                "some of the labels at a time."
            )

    @property
    def n_rows(self) -> int:
        return sum(survey.n_rows for survey in self.surveys)

    @property
    def first_rows(self) -> list[int]:
        """Of each shard, the number of its first row among all."""
        counts = [survey.n_rows for survey in self.surveys]
        return [0, *np.cumsum(counts)[:-1].tolist()]

    @property
    def dtype(self) -> np.dtype:
        """Of the values, in all shards."""
        return np.result_type(*(survey.dtype for survey in self.surveys))

    @property
    def n_bytes(self) -> int:
        return sum(survey.n_bytes for survey in self.surveys)

    @property
    def lowest(self) -> int:
        return min(survey.lowest for survey in self.surveys)

    @property
    def n_columns(self) -> int:
        """Columns of the rows as they are learned from."""
        if self.reading is None:
            return int(self.surveys[0].n_columns or 0)
        highest = max(survey.highest for survey in self.surveys)
        return self.reading.n_columns or self.reading.columns_up_to(highest)

    @property
    def no_rows(self) -> Rows:
        """Rows of the type and with the columns of all, but none of them."""
        indices, indptr = np.zeros(0, np.int32), np.zeros(1, np.int32)
        return Rows(np.zeros(0, self.dtype), indices, indptr, self.n_columns)

    @property
    def _drops(self) -> int:
        """1 where column 0 is that of an index that does not occur."""
        return int(self.reading is not None and self.reading.drops_column_0(self.lowest))

    @property
    def n_features(self) -> int:
        if self.reading is not None and self.reading.n_features:
            return self.reading.n_features
        return self.n_columns - self._drops

    @property
    def features(self) -> tuple[int, dict[str, Any] | None]:
        """How many, and of files how they are to be read for these."""
        settled = None if self.reading is None else self.reading.settled(self.lowest)
        return self.n_features, settled

    @property
    def form(self) -> str | None:
        """How rows have any number of labels; None: each has one."""
        return getattr(self.learner, "_label_form", None)

    def finished(self, epochs: int) -> Learner:
        """A learner of its own, whose features are those of the rows."""
        learner = copy.copy(self.learner)
        learner._space = copy.deepcopy(self.learner._space)
        learner.n_features_in_, reading = self.features
        if reading is not None:
            learner._resize(self.n_features, self._drops)
            learner._reading = reading
        learner.n_iter_ = float(epochs)
        return learner

    def take_over(self, found: Learner, seed: int | None) -> None:
        """Go on with the space of a finished learner."""
        found._resize(self.n_columns, -self._drops)
        self.learner._space = found._space
        self.learner._slice_seed = found._slice_seed
        self.seed = seed


def classes_of_files(
    surveys: Sequence[Survey], told: LabelEncoder | None, many: bool
) -> LabelEncoder:
    """What tells the classes of rows: as the caller has said, or by the labels of all shards.

    Raises
    ------
    ValueError
        If there are too few, or none of the rows has the label that is told from the others.
    """
    table = LabelTable()
    for survey in surveys:
        table.take(survey.labels.texts, survey.labels.numbers)
    if told is None:
        return encoder_of(table.values(), "The data", many)
    if told.positive is not None and table.find(told.positive) < 0:
        known = first_labels(table.texts)
        raise ValueError(f"No row has the label positive={told.positive!r}. There are: {known}.")
    return told


def form_of(coder: LabelEncoder) -> str | None:
    """How a model of such rows gives their labels."""
    return "lists" if isinstance(coder, MultilabelEncoder) else None


def classes_of_matrices(surveys: Sequence[Survey]) -> np.ndarray:
    """Those of all shards, sorted.

    Raises
    ------
    ValueError
        If the shards do not go together.
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
    return classes


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


def common_reading(surveys: Sequence[Survey]) -> Reading:
    """How all files were read.

    Raises
    ------
    ValueError
        If row caches were made in different ways.
    """
    first = surveys[0].reading
    assert first is not None
    for s, survey in enumerate(surveys):
        if survey.reading != first:
            raise ValueError(
                f"Shards 0 and {s} were read in different ways: {first} and {survey.reading}. Make "
                "their row caches anew with the same settings."
            )
    return first
