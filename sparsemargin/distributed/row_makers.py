"""The step that makes rows of texts or cells on a worker, before the classifier."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from sparsemargin.files.sources import Source
from sparsemargin.models.inputs.label_values import is_missing
from sparsemargin.readers.text_forms import DocumentForm, fill_missing
from sparsemargin.readers.texts import DocumentCorpus


class RowMaker(Protocol):
    """The conversion of texts or cells to rows."""

    on_one_machine: ClassVar[str]  # name of the function that trains on one machine
    step: Any  # the transformer

    def opened(self, sources: list[Source], multilabel: bool) -> Any:
        """A context in which files are open as a corpus of rows."""

    def rows(self, X: Any) -> Any:
        """The rows of texts or cells in memory."""

    def estimator(self, classifier: Any) -> Any:
        """The text or cell classifier that combines the step and a classifier."""


@dataclass
class Texts:
    """The conversion of texts: the format of files and tables, and the vectorizer."""

    how: DocumentForm
    step: Any

    on_one_machine: ClassVar = "fit_text"

    @contextmanager
    def opened(self, sources: list[Source], multilabel: bool) -> Iterator[DocumentCorpus]:
        step, how = self.step, replace(self.how, multilabel=multilabel)
        n_features = getattr(step, "n_features", None) or len(step.get_feature_names_out())
        yield DocumentCorpus(sources, how, step, n_features, 1)

    def rows(self, X: Any) -> Any:
        return self.step.transform(X)

    def present(self, texts: list[Any], y: Any) -> tuple[list[str], Any]:
        """Texts and labels in memory, with missing texts treated as in files."""
        if self.how.missing == "error":
            for i, text in enumerate(() if set(map(type, texts)) <= {str} else texts):
                if is_missing(text):
                    raise ValueError(
                        f"Text {i}, counted from 0, is missing. Pass missing='empty' for an empty "
                        "text, or missing='drop' to leave such rows out."
                    )
            return texts, y
        (texts,), kept = fill_missing([texts], self.how.missing)
        if kept is None:
            return texts, y
        at = np.flatnonzero(kept).tolist()
        return [texts[i] for i in at], np.asarray(y)[at]

    def estimator(self, classifier: Any) -> Any:
        # Imported here because it imports scikit-learn, which workers do not need.
        from sparsemargin.tasks.text_classifier import TextClassifier

        text, *more = self.how.texts
        empty = TextClassifier(text=[text, *more] if more else text, missing=self.how.missing)
        empty.label_ = self.how.label
        return empty.keep(self.step, classifier)
