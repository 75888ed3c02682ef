"""The share of the words of texts that a model has not met in training."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import murmurhash3_32

from sparsemargin.estimators.classifiers import Classifier
from sparsemargin.text import CountVectorizer

# Parameters by which a vectorizer splits texts into words.
_SPLITTING = "token_pattern", "lowercase", "strip_accents", "stop_words", "encoding", "decode_error"


def unknown_shares(vectorizer: Any, classifier: Classifier, texts: Any) -> np.ndarray:
    """Return the share of unknown words of each text, shape (n_texts,), float64.

    A word is known if it is in the vocabulary, or if its hashed column has a weight.
    """
    words = vectorizer
    if hasattr(vectorizer, "fitted_vectorizers"):
        words = vectorizer.fitted_vectorizers()[0]
    if getattr(words, "analyzer", None) != "word" or words.ngram_range[0] != 1:
        raise ValueError("unknown_share needs features of single words.")
    splitting = {name: getattr(words, name) for name in _SPLITTING}
    counter = CountVectorizer(**splitting, preprocessor=words.preprocessor,
                              tokenizer=words.tokenizer, dtype=np.float64)  # fmt: skip
    texts = list(texts)
    try:
        counts = counter.fit_transform(texts)
    except ValueError:
        # The vectorizer reports other errors than the absence of words itself.
        words.transform(texts)
        return np.zeros(len(texts))
    terms = counter.get_feature_names_out()
    if hasattr(words, "n_features"):
        hashes = [murmurhash3_32(term) for term in terms.tolist()]
        columns = np.abs(np.array(hashes, dtype=np.int64)) % words.n_features
        weights = abs(classifier.fitted.weights_of(columns))
        known = np.asarray(weights.sum(axis=0)).ravel() > 0
    else:
        known = np.array([term in words.vocabulary_ for term in terms.tolist()])
    total = np.asarray(counts.sum(axis=1)).ravel()
    return (counts @ ~known) / np.maximum(total, 1)
