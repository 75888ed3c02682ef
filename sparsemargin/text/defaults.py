"""The default features of texts, in memory and in files."""

from math import ceil
from typing import Any

import numpy as np

from sparsemargin import text

# Total characters (for files: bytes) of texts above which character n-grams have only one length,
# and above which they are not used. On 40 MB of source code, training with the lengths 3 to 5 takes
# four times as long as with the length 4, and the error is the same.
_MANY_CHARACTERS, _MOST_CHARACTERS = 20_000_000, 1 << 28

# Base-2 logarithms of the smallest and the largest default number of columns for hashed terms,
# 65,536 and 4 million.
_LEAST_BITS, _MOST_BITS = 16, 22

# Bytes of text per column of words and word pairs. Texts have about one distinct word or word pair
# per 10 bytes, so that a fifth of the columns occur. With 4 times fewer columns, the error on
# 10,000 sentences of film reviews is 0.2 percentage points higher. Character n-grams have the same
# number of columns.
_BYTES_PER_COLUMN = 2


def default_vectorizer(n_characters: float) -> Any:
    """Return an unfitted vectorizer of words, word pairs and character n-grams for texts in memory,
    or only of words and word pairs for more than 268 million characters."""
    if n_characters <= _MOST_CHARACTERS:
        return text.WordCharVectorizer(char_ngram_range=_lengths(n_characters))
    return words_and_pairs()


def words_and_pairs() -> Any:
    """Return an unfitted TF-IDF vectorizer of words and word pairs."""
    return text.TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32)


def default_hashing(n_bytes: float, bits: int | None = None) -> Any:
    """Return a hashing vectorizer for files, of the same terms as `default_vectorizer`.

    Terms have value 1 before normalization. `n_bytes` is the size of the files, infinity if it is
    not known. There are ``2**bits`` columns. If `bits` is None, larger files get more columns.
    """
    with_ngrams = n_bytes <= _MOST_CHARACTERS
    if bits is None:
        columns = ceil(min(n_bytes, 1 << _MOST_BITS + 8) / _BYTES_PER_COLUMN)
        bits = min(max(columns.bit_length() + with_ngrams, _LEAST_BITS), _MOST_BITS)
    if with_ngrams:
        return text.WordCharHashingVectorizer(1 << bits, char_ngram_range=_lengths(n_bytes))
    return hashed_pairs(bits)


def hashing_for_batches() -> Any:
    """Return a hashing vectorizer for batches of texts whose number is not known."""
    return default_hashing(_MANY_CHARACTERS)


def hashed_pairs(bits: int) -> Any:
    """Return a vectorizer of binary words and word pairs with ``2**bits`` columns."""
    return text.HashingVectorizer(
        n_features=1 << bits, ngram_range=(1, 2), binary=True, dtype=np.float32
    )


def _lengths(n_characters: float) -> tuple[int, int]:
    """Return the smallest and largest length of character n-grams."""
    return (2, 5) if n_characters <= _MANY_CHARACTERS else (4, 4)


def norm_of_own_terms(vectorizer: Any) -> str | None:
    """Return the norm of the rows of a fitted vectorizer whose vocabulary are the terms of its
    training texts: "l1" or "l2". The result is None for rows that are not normalized, for hashed
    terms, and for a vocabulary that was given."""
    if hasattr(vectorizer, "n_features") or getattr(vectorizer, "vocabulary", None) is not None:
        return None
    return getattr(vectorizer, "norm", None)


def has_default_terms(vectorizer: Any) -> bool:
    """Return whether the terms of a vectorizer are words and character n-grams, for which the
    default algorithm of texts was chosen."""
    return isinstance(vectorizer, text.WordCharVectorizer | text.WordCharHashingVectorizer)
