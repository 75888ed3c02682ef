"""The default features of texts in memory."""

from typing import Any

import numpy as np

from sparsemargin.text.analysis import sizes_of
from sparsemargin.text.vectorizers import TfidfVectorizer
from sparsemargin.text.word_char import WordCharVectorizer

# Largest number of characters of all texts up to which character n-grams are used. On more text
# the error is hardly lower with them, and training takes several times as long.
_MOST_CHARACTERS = 20_000_000


def default_vectorizer(texts: list[Any]) -> Any:
    """Return an unfitted vectorizer of words, word pairs and character n-grams, or only of words
    and word pairs for more than 20 million characters."""
    every, sizes = sizes_of(texts)
    if every * sum(sizes) <= _MOST_CHARACTERS:
        return WordCharVectorizer()
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32)
