"""Prediction for files block by block, in memory that does not depend on their length."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.rows.csr import Csr
from sparsemargin.files.sources import Source
from sparsemargin.models import Learner
from sparsemargin.models.fitted.outputs import (
    choice_of,
    codes_of,
    confidence_of,
    first_infinite,
    outputs_of,
    ranked,
    rejection,
)
from sparsemargin.models.inputs.label_table import LabelTable, word_of
from sparsemargin.models.inputs.labels import Choice, label_text
from sparsemargin.models.inputs.rows import naming_bad_rows
from sparsemargin.models.inputs.training_set import Targets
from sparsemargin.readers.reading import LARGEST_INDEX, Reading, columns_of
from sparsemargin.readers.rows import LabelledRows, RowSource
from sparsemargin.readers.svmlight import Corpus
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.readers.texts import DocumentCorpus

# Largest number of outputs (rows times vectors) in memory: 16 MB of float64.
_OUTPUTS_PER_PART = 1 << 21


class PredictedBlock(NamedTuple):
    """Rows of a file and their predictions. The arrays are valid until the next block is read.

    `codes` are indices into the learner's `classes_`, one for each row, or several in multilabel
    problems. `outputs` has shape (n_rows, n_vectors); two classes have one vector. `rows` are the
    rows without the features that the model does not know. `block` is the block as it was read, or
    a part of it if its outputs would take too much memory.
    """

    codes: Targets
    outputs: np.ndarray
    rows: Csr
    block: LabelledRows


#: Opens the files to be predicted. The argument says whether rows may have several labels.
OpenCorpus = Callable[[bool], RowSource]


def svmlight_of(
    learner: Learner, sources: list[Source], *, zero_based: bool | Literal["auto"] = "auto",
    n_threads: int = 1,
) -> OpenCorpus:  # fmt: skip
    """Return a function that opens files of svmlight text with the model's features.

    `zero_based` applies to a learner that was trained on a matrix; a learner trained on files has
    stored its value. `n_threads` is the number of threads that read ahead.
    """
    if zero_based != "auto" and learner.fitted.reading is not None:
        raise ValueError(
            f"zero_based={zero_based} is for models that were trained on matrices. This one was "
            "trained on files, and stores whether their indices start at 0. Leave it out."
        )
    columns = columns_of(learner, zero_based)

    def opened(multilabel: bool) -> Corpus:
        reading = Reading(multilabel=multilabel, **columns)
        return Corpus(sources, reading, n_threads, purpose="predicting")

    return opened


def documents_of(
    learner: Learner, vectorizer: Any, sources: list[Source], how: DocumentForm, n_threads: int
) -> OpenCorpus:
    """Return a function that opens files of texts, vectorized by the steps before the learner."""

    fitted = learner.fitted
    classes = frozenset(map(word_of, map(label_text, learner.classes_.tolist())))

    def opened(multilabel: bool) -> Corpus:
        many = multilabel if how.labelled else fitted.many
        several = replace(how, multilabel=many, classes=classes)
        return DocumentCorpus(sources, several, vectorizer, learner.n_features_in_, n_threads)

    return opened


class Predictor:
    """Predictor for the rows of files.

    The labels of the files are added to `table`; if it is None they are ignored. `threshold` and
    `top_k` are as for `predict_labels`, and `max_error` is as for `Rejector`. Without `max_error`,
    rows with a confidence below `least` are rejected. Their code is ``len(classes_)``.
    """

    def __init__(
        self,
        learner: Learner,
        opened: OpenCorpus,
        *,
        multilabel: bool = True,
        table: LabelTable | None = None,
        threshold: float | str | None = None,
        top_k: int | None = None,
        max_error: float | None = None,
        least: float | None = None,
    ) -> None:
        self._choice: Choice | None = None
        self._top_k = top_k
        fitted = learner.fitted
        if fitted.many or (threshold is not None and top_k is None and len(fitted.classes) == 2):
            self._choice = choice_of(fitted, threshold, top_k)
        elif threshold is not None:
            raise ValueError(
                "threshold is for multilabel models, or two classes without top_k. Leave it out."
            )
        self._least = least
        if max_error is not None:
            if top_k is not None or threshold is not None:
                raise ValueError("max_error excludes threshold and top_k. Leave one of them out.")
            self._least = rejection(fitted, max_error)[0]
        self.learner = learner
        self.table = _NoTable() if table is None else table
        self.corpus = opened(multilabel)

    def blocks(self) -> Iterator[PredictedBlock]:
        """Yield the rows and their predictions in order. Unknown features are ignored.

        Raises ValueError if an output exceeds float64, and warns if no row has a feature.
        """
        n_rows = n_entries = 0
        # A block can hold so many short rows that their outputs take far more memory than its text.
        step = max(1, _OUTPUTS_PER_PART // self.learner.space.n_vectors)
        for block in self.corpus.scan(self.table, LARGEST_INDEX):
            if not n_rows:
                check_form(block, self.corpus)
            n_rows, n_entries = n_rows + block.n_rows, n_entries + len(block.data)
            for first in range(0, block.n_rows, step):
                yield self._predict(block, first, first + step)
        if n_rows and not n_entries:
            corpus = self.corpus
            warnings.warn(f"{corpus.names} has rows but no features. {corpus.form}.", stacklevel=2)

    def _predict(self, block: LabelledRows, first: int, stop: int) -> PredictedBlock:
        """Predict the rows ``first`` to ``stop - 1`` of a block."""
        if stop - first < block.n_rows:
            block = block.part(first, stop)
        rows = known_features(block, self.learner.n_features_in_)
        with naming_bad_rows(rows):
            outputs = outputs_of(self.learner.fitted, rows, self.learner.n_threads())
        row = first_infinite(outputs)
        if row is not None:
            raise ValueError(
                f"{block.location_of(row)}the output for this row exceeds a float64. "
                "Rescale the values."
            )
        return PredictedBlock(self._codes_of(outputs), outputs, rows, block)

    def _codes_of(self, outputs: np.ndarray) -> Targets:
        fitted = self.learner.fitted
        if self._choice is not None and fitted.many:
            return self._choice.labels(outputs)
        if self._choice is not None:
            return self._choice.lone_codes(outputs)
        if self._top_k is None:
            codes = codes_of(fitted, outputs)
            if self._least is not None:
                codes[confidence_of(outputs) < self._least] = len(fitted.classes)
            return codes
        best = ranked(self.learner.fitted, self._top_k, outputs)
        n_rows, n_best = best.shape
        return Positives(np.arange(n_rows + 1) * n_best, best.ravel())


def check_form(block: LabelledRows, corpus: RowSource) -> None:
    """Refuse a file whose first rows have several labels each, but no features."""
    if not len(block.data) and len(block.labels) > block.n_rows:
        raise ValueError(
            f"{corpus.names} looks like comma-separated values: its rows have several labels and "
            f"no features. {corpus.form}."
        )


class _NoTable(LabelTable):
    """A table that ignores labels, so that memory does not grow if every row has another label."""

    takes_labels = False

    def ids_of(self, scanner: Any, labels: np.ndarray) -> np.ndarray:
        return labels


def known_features(rows: LabelledRows, n_features: int) -> Csr:
    """Return the rows without entries of features whose index is `n_features` or more."""
    if len(rows.indices) and int(rows.indices.max()) >= n_features:
        known = rows.indices < n_features
        before = np.zeros(len(known) + 1, dtype=rows.indptr.dtype)
        np.cumsum(known, out=before[1:])
        data, indices = rows.data[known], rows.indices[known]
        rows = replace(rows, data=data, indices=indices, indptr=before[rows.indptr])
    return rows.with_columns(n_features)
