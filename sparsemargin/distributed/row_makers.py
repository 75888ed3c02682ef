"""The step that makes rows of texts or cells on a worker, before the classifier."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from sparsemargin.files.sources import Source
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.readers.texts import DocumentCorpus


class RowMaker(Protocol):
    """The conversion of texts or cells to rows."""

    name: ClassVar[str]  # name of the step in a pipeline
    step: Any  # the transformer

    def opened(self, sources: list[Source], multilabel: bool) -> Any:
        """A context in which files are open as a corpus of rows."""

    def rows(self, X: Any) -> Any:
        """The rows of texts or cells in memory."""


@dataclass
class Texts:
    """The conversion of texts: the format of files and tables, and the vectorizer."""

    how: DocumentForm
    step: Any

    name: ClassVar = "vectorizer"

    @contextmanager
    def opened(self, sources: list[Source], multilabel: bool) -> Iterator[DocumentCorpus]:
        step, how = self.step, replace(self.how, multilabel=multilabel)
        n_features = getattr(step, "n_features", None) or len(step.get_feature_names_out())
        yield DocumentCorpus(sources, how, step, n_features, 1)

    def rows(self, X: Any) -> Any:
        return self.step.transform(X)
