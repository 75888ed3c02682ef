"""Training on files of texts: their default vectorizer and the implementation of `fit_text`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil, inf
from typing import Any

import numpy as np

from sparsemargin import text
from sparsemargin.files.kinds import FORMS
from sparsemargin.files.sources import File, Source, open_sources
from sparsemargin.models import Learner
from sparsemargin.readers.reading import SettingsError, threads_for
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.readers.texts import DocumentCorpus
from sparsemargin.streaming.options import StreamOptions
from sparsemargin.streaming.stream import learn_rows, with_cache_path, with_init_model

# Smallest and largest base-2 logarithm of the default number of hashed features. The largest is 4
# million features.
_LEAST_BITS, _MOST_BITS = 16, 22

# Bytes of text per hashed feature. Texts have about one distinct word or word pair per 10 bytes, so
# that a fifth of the features occur. With 4 times fewer features, the error on 10,000 sentences of
# film reviews is 0.2 points higher.
_BYTES_PER_FEATURE = 2

# Largest number of bytes of text for which the number of epochs is selected. Their row cache takes
# up to three times as many bytes. Larger files are read once.
_MOST_BYTES = 1 << 28

# Least number of epochs over files of up to `_MOST_BYTES`. On messages, questions, reviews,
# languages and documentation, the error is up to 3.4 points lower after two epochs than after one.
_LEAST_EPOCHS = 2

# Bytes of text per byte of a compressed file.
_EXPANSION = 4


def vectorizer_for(sources: list[Source], bits: int | None = None) -> Any:
    """Return the default vectorizer for files of texts, with ``2**bits`` features.

    With `bits` None, larger files get more features. Input of unknown size, or no sources, gets
    the most.
    """
    if bits is None:
        features = ceil(min(_bytes_of(sources), 1 << _MOST_BITS + 8) / _BYTES_PER_FEATURE)
        bits = min(max(features.bit_length(), _LEAST_BITS), _MOST_BITS)
    return hashed_pairs(bits)


def _bytes_of(sources: list[Source]) -> float:
    """Return the approximate number of bytes of text of files, infinity if it is not known."""
    sizes = [source.size for source in sources]
    if not sources or None in sizes:
        return inf
    factors = [_EXPANSION if source.compression else 1 for source in sources]
    return float(sum(size * factor for size, factor in zip(sizes, factors, strict=True) if size))


def hashed_pairs(bits: int) -> Any:
    """Return a vectorizer of binary single words and word pairs, hashed to ``2**bits`` features."""
    return text.HashingVectorizer(
        n_features=1 << bits, ngram_range=(1, 2), binary=True, dtype=np.float32
    )


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
            raise SettingsError(f"{name} is the vectorizer's. Pass vectorizer=.")
    if how.form is not None and how.form not in FORMS:
        raise SettingsError(f"format must be one of {', '.join(FORMS)}, got {how.form!r}.")
    if options.init_model is not None:
        options = with_init_model(options)
    how = replace(how, multilabel=options.multilabel or options.positive is not None)
    # Vectorizing a text takes much longer than training on its row, so no core is set aside.
    n_threads = threads_for(options.n_jobs)
    sources = open_sources(path)
    n_features = getattr(vectorizer, "n_columns", vectorizer.n_features)
    options = with_cache_path(options, sources)
    if automatic and options.init_model is None and _bytes_of(sources) <= _MOST_BYTES:
        options = replace(options, least_epochs=_LEAST_EPOCHS)
    corpus = DocumentCorpus(sources, how, vectorizer, n_features, n_threads)
    if hasattr(vectorizer, "remember_terms") and not hasattr(vectorizer, "terms_"):
        corpus.first_texts = []
    learner = learn_rows(corpus, options)
    corpus.name_columns()
    return learner
