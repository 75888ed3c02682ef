"""Learning from files of texts: the default vectorizer, and the entry point of `fit_text`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from sparsemargin.files.sources import File, open_sources
from sparsemargin.models import Learner
from sparsemargin.readers.reading import SettingsError, threads_for
from sparsemargin.readers.text_forms import FORMS, DocumentForm
from sparsemargin.readers.texts import DocumentCorpus
from sparsemargin.streaming.options import StreamOptions
from sparsemargin.streaming.stream import going_on, learn_rows, with_cache_path

#: Features of files of texts, unless told: 4 million.
HASHED_BITS = 22


def hashed_pairs(bits: int) -> Any:
    """The vectorizer of files: words and pairs of neighbours, present or not, hashed to so many
    features as a number of `bits` bits can tell apart."""
    from sparsemargin.text import HashingVectorizer

    return HashingVectorizer(
        n_features=1 << bits, ngram_range=(1, 2), binary=True, dtype=np.float32
    )


def learn_documents(
    path: File | Iterable[File], vectorizer: Any, how: DocumentForm, **given: Any
) -> Learner:
    """`sparsemargin.fit_text` of files: gives a learner of the rows that the vectorizer makes.
    `StreamOptions` are what it takes; all else is the estimator's."""
    options = StreamOptions.of(given)
    for name in "n_features", "hash_bits", "zero_based":
        if name in given:
            raise SettingsError(f"{name} is the vectorizer's. Pass vectorizer=.")
    if how.form is not None and how.form not in FORMS:
        raise SettingsError(f"format must be one of {', '.join(FORMS)}, got {how.form!r}.")
    if options.init_model is not None:
        options = going_on(options)
    how = replace(how, multilabel=options.multilabel or options.positive is not None)
    # Texts take several times as long to be made rows as these to be learned from.
    n_threads = threads_for(options.n_jobs)
    sources = open_sources(path)
    n_features = getattr(vectorizer, "n_columns", vectorizer.n_features)
    options = with_cache_path(options, sources)
    corpus = DocumentCorpus(sources, how, vectorizer, n_features, n_threads)
    if hasattr(vectorizer, "remember_terms") and not hasattr(vectorizer, "terms_"):
        corpus.first_texts = []
    learner = learn_rows(corpus, options)
    corpus.name_columns()
    return learner
