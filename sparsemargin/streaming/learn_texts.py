"""Training on files of texts: their default vectorizer and the implementation of `fit_text`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from sparsemargin.files.kinds import FORMS
from sparsemargin.files.sources import File, Source, open_sources
from sparsemargin.models import Learner
from sparsemargin.readers.reading import SettingsError, threads_for
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.readers.texts import DocumentCorpus
from sparsemargin.streaming.options import StreamOptions
from sparsemargin.streaming.stream import learn_rows, with_cache_path, with_init_model
from sparsemargin.text.defaults import default_hashing, has_default_terms

# Largest number of bytes of text for which the number of epochs is selected. Their row cache takes
# up to three times as many bytes. Larger files are read once.
_MOST_BYTES = 1 << 28

# Least number of epochs over files of up to `_MOST_BYTES`. On messages, questions, reviews,
# languages and documentation, the error is up to 3.4 points lower after two epochs than after one.
_LEAST_EPOCHS = 2

# Bytes of text per byte of a compressed file.
_EXPANSION = 4


def vectorizer_for(sources: list[Source], bits: int | None = None) -> Any:
    """Return the default vectorizer for files of texts, with ``2**bits`` columns."""
    return default_hashing(_bytes_of(sources), bits)


def _bytes_of(sources: list[Source]) -> float:
    """Return the approximate number of bytes of text of files, infinity if it is not known."""
    sizes = [source.size for source in sources]
    if not sources or None in sizes:
        return inf
    factors = [_EXPANSION if source.compression else 1 for source in sources]
    return float(sum(size * factor for size, factor in zip(sizes, factors, strict=True) if size))


# Types of truth values.
_TRUTHS = {bool, np.bool_}


def learn_documents(
    path: File | Iterable[File], vectorizer: Any, how: DocumentForm, **given: Any
) -> Learner:
    """Train on files of texts as `sparsemargin.fit_text` does, and return the learner.

    Keyword arguments that are not fields of `StreamOptions` are parameters of the classifier.
    Without `max_iter`, the first texts determine the number of epochs.
    """
    if automatic := given.get("max_iter", "auto") == "auto":
        given = {**given, "max_iter": 1}
    options = StreamOptions.of(given)
    for name in "n_features", "hash_bits", "zero_based":
        if name in given:
            raise SettingsError(f"{name} belongs to the vectorizer. Pass it in features.")
    if how.form is not None and how.form not in FORMS:
        raise SettingsError(f"format must be one of {', '.join(FORMS)}, got {how.form!r}.")
    if options.init_model is not None:
        options = replace(with_init_model(options), adds_classes=True)
    if options.classes is not None:
        options = replace(options, classes=classes_of_texts(options.classes))
    how = replace(how, multilabel=options.multilabel or options.positive is not None)
    # Vectorizing takes much longer than training, so no core is set aside for the training thread.
    n_threads = threads_for(options.n_jobs)
    sources = open_sources(path)
    n_features = getattr(vectorizer, "n_columns", vectorizer.n_features)
    options = with_cache_path(options, sources)
    # The number of epochs is selected only together with the algorithm.
    automatic &= options.algo is None and options.init_model is None
    if automatic and _bytes_of(sources) <= _MOST_BYTES:
        options = replace(options, least_epochs=_LEAST_EPOCHS)
    options = replace(options, of_texts=has_default_terms(vectorizer))
    corpus = DocumentCorpus(sources, how, vectorizer, n_features, n_threads)
    if hasattr(vectorizer, "remember_terms") and not hasattr(vectorizer, "terms_"):
        corpus.first_texts = []
    learner = learn_rows(corpus, options)
    corpus.name_columns()
    return learner


def classes_of_texts(classes: Any) -> Any:
    """Return classes, with truth values as text, which they are in files of texts."""
    labels = classes.tolist() if hasattr(classes, "tolist") else classes
    is_of_truths = isinstance(labels, Sequence | Set) and set(map(type, labels)) <= _TRUTHS
    return list(map(str, labels)) if is_of_truths else classes
