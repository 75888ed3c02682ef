"""Synthetic TF-IDF text with Zipf-Mandelbrot words, topics, and documents of varying length."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse as sp
from scipy.optimize import brentq
from scipy.special import ndtri

from sparsemargin._checks import check_count, check_float_dtype, check_real

from ._targets import spawn_streams

_MAX_COUNT = 2**31 - 1
# The r-th most frequent word has a frequency proportional to 1 / (r + shift)**exponent. Words of a
# topic have a larger shift, so they are less frequent than common words.
_HEAD_SHIFT = 10
_TOPIC_SHIFT_PER_CLASS = 50
# Standard deviation of the logarithm of the number of words of a document.
_LENGTH_SIGMA = 0.6
# Sum of the parameters of the beta distribution of the shares of topic words.
_SHARE_CONCENTRATION = 6.0
# Number of words that are drawn or sorted at once, which limits the memory.
_CHUNK_TOKENS = 2**18
# Largest ratio of the median length of a document to `mean_nnz`, its number of distinct words.
_MAX_TOKENS_PER_WORD = 1000
_LARGEST_SHARE = 0.99


def make_zipf_text(
    n_samples: int,
    n_features: int = 47236,
    *,
    mean_nnz: float = 76,
    n_classes: int = 2,
    noise: float = 0.0,
    topic_share: float = 0.4,
    exponent: float = 1.05,
    dtype: DTypeLike = np.float64,
    random_state=None,
) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
    """Draw labelled documents that resemble TF-IDF text, of any number and width.

    A document is a bag of tokens. Each token comes from its topic with a probability that varies
    from document to document, and from the common vocabulary otherwise. Common words of rank r
    have probability proportional to (r + 10)^-exponent (Zipf-Mandelbrot). For topic words, the
    shift is 50 per class instead of 10, so that the most frequent words are hardly informative.
    Document lengths are log-normal. Values are (1 + ln tf) (1 + ln((1 + m) / (1 + df))) for m
    documents, in rows of 2-norm 1. Word ranks are scattered over the features by a random
    permutation. The defaults have the shape of RCV1; `make_zipf_text(20000, 1355191,
    mean_nnz=455)` has the shape of news20.binary.

    Parameters
    ----------
    n_samples : int
        Number of documents m.
    n_features : int, default=47236
        Number of words, at least twice `n_classes`.
    mean_nnz : float, default=76
        Expected number of distinct words in a document, from 1 to `n_features` / 2.
    n_classes : int, default=2
        Number of topics, equally likely.
    noise : float, default=0.0
        Probability that a label is replaced by another one. The documents do not depend on it.
    topic_share : float, default=0.4
        Mean share of the tokens that come from the topic, from 0 to 0.99. Larger values make the
        problem easier.
    exponent : float, default=1.05
        Exponent of the Zipf-Mandelbrot law, from 0 to 5.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float64
        Type of the values.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    X : csr_matrix of shape (n_samples, n_features)
        Canonical format (sorted indices, no duplicates), with int32 indices if the number of
        nonzeros permits, and no empty rows.
    y : ndarray of shape (n_samples,), int64
        -1 and +1 for two classes, else 0 to `n_classes` - 1.

    Raises
    ------
    ValueError
        If an argument is out of range, or if `exponent` is so steep that a document would need
        more than 1000 tokens for each distinct word.

    Examples
    --------
    >>> from sparsemargin.datasets import make_zipf_text
    >>> X, y = make_zipf_text(100, 5000, mean_nnz=30, random_state=0)
    >>> X.shape, X.has_canonical_format, sorted(set(y.tolist()))
    ((100, 5000), True, [-1, 1])
    """
    n_samples = check_count("n_samples", n_samples, 1, _MAX_COUNT)
    n_classes = check_count("n_classes", n_classes, 2, _MAX_COUNT // 2)
    n_features = check_count("n_features", n_features, 2 * n_classes, _MAX_COUNT)
    mean_nnz = check_real("mean_nnz", mean_nnz, 1, n_features / 2)
    noise = check_real("noise", noise, 0, 1)
    topic_share = check_real("topic_share", topic_share, 0, _LARGEST_SHARE)
    exponent = check_real("exponent", exponent, 0, 5)
    dtype = check_float_dtype(dtype)
    topic_stream, share_stream, length_stream, token_stream, word_stream, noise_stream = (
        spawn_streams(random_state, 6)
    )

    common = _zipf_mandelbrot(n_features, exponent, _HEAD_SHIFT)
    topical = _zipf_mandelbrot(n_features, exponent, _TOPIC_SHIFT_PER_CLASS * n_classes)
    one_topic = (1 - topic_share) * common + topic_share * _gather_topic(topical, n_classes)
    log_length = _calibrate_log_length(one_topic, mean_nnz)

    topics = topic_stream.randint(n_classes, size=n_samples)
    shares = _draw_shares(share_stream, topic_share, n_samples)
    lengths = _lengths(log_length, length_stream.standard_normal(n_samples))
    tokens = _token_chunks(token_stream, common, topical, topics, shares, lengths, n_classes)
    X = _term_frequencies(tokens, word_stream.permutation(n_features), dtype)
    _weigh_by_idf(X)
    y = _draw_labels(topics, noise, n_classes, noise_stream)
    return X, y


def _zipf_mandelbrot(n_words: int, exponent: float, shift: float) -> NDArray[np.float64]:
    weights = np.arange(1 + shift, n_words + 1 + shift, dtype=np.float64) ** -exponent
    return weights / weights.sum()


def _gather_topic(probabilities: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Move the probability of each block of `n_classes` ranks to its first, a word of topic 0."""
    starts = np.arange(0, probabilities.size, n_classes)
    moved = np.zeros_like(probabilities)
    moved[starts] = np.add.reduceat(probabilities, starts)
    return moved


def _draw_shares(stream, mean: float, n_samples: int) -> NDArray[np.float64]:
    if mean == 0:
        return np.zeros(n_samples)
    return stream.beta(
        _SHARE_CONCENTRATION * mean, _SHARE_CONCENTRATION * (1 - mean), size=n_samples
    )


def _lengths(log_length: float, deviates: NDArray[np.float64]) -> NDArray[np.int64]:
    tokens = np.rint(np.exp(log_length + _LENGTH_SIGMA * deviates))
    return np.maximum(tokens, 1).astype(np.int64)


def _calibrate_log_length(probabilities: NDArray[np.float64], mean_nnz: float) -> float:
    """Find the log-median document length that gives `mean_nnz` distinct words on average.

    The expected number of distinct words in a document of L tokens is sum_w 1 - (1 - p_w)^L.
    """
    log_absent = np.log1p(-probabilities)
    sizes, distinct = [1], [1.0]
    # The table must extend beyond the mean, to the long documents of the log-normal distribution.
    enough = min(8 * mean_nnz, 0.9 * probabilities.size)
    while distinct[-1] < enough and sizes[-1] < 8 * _MAX_TOKENS_PER_WORD * mean_nnz:
        sizes.append(2 * sizes[-1])
        distinct.append(-np.expm1(sizes[-1] * log_absent).sum())
    log_sizes, log_distinct = np.log(sizes), np.log(distinct)
    deviates = ndtri((np.arange(200) + 0.5) / 200)

    def excess(log_length):
        log_tokens = np.log(_lengths(log_length, deviates))
        return np.exp(np.interp(log_tokens, log_sizes, log_distinct)).mean() - mean_nnz

    longest = np.log(_MAX_TOKENS_PER_WORD * mean_nnz)
    if excess(longest) < 0:
        raise ValueError(
            f"mean_nnz={mean_nnz} distinct words cannot be had in {_MAX_TOKENS_PER_WORD} tokens "
            "each: lower mean_nnz or exponent, or raise n_features"
        )
    return brentq(excess, -5.0, longest, xtol=1e-6)


def _token_chunks(
    stream, common, topical, topics, shares, lengths, n_classes
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.intp]]]:
    """Yield (token counts of some documents, word ranks of their tokens), in document order."""
    steps = np.cumsum(common), np.cumsum(topical)
    for cumulated in steps:
        cumulated[-1] = np.inf  # because of rounding, a draw may exceed the last step
    ends = np.cumsum(lengths)
    cuts = np.searchsorted(ends, np.arange(_CHUNK_TOKENS, ends[-1], _CHUNK_TOKENS))
    edges = np.unique(np.r_[0, cuts, lengths.size])
    for first, last in pairwise(edges):
        counts = lengths[first:last]
        share, topic = (np.repeat(of[first:last], counts) for of in (shares, topics))
        yield counts, _draw_words(stream.random_sample(share.size), share, topic, *steps, n_classes)


def _draw_words(uniform, share, topic, common_steps, topical_steps, n_classes) -> NDArray[np.intp]:
    """Convert one uniform number per token to a word rank by inverting the two distributions."""
    # Numbers below the share give a topic word, others a common word. Either part of the numbers,
    # rescaled to [0, 1), is uniform again.
    of_topic = uniform < share
    below, above = uniform[of_topic], uniform[~of_topic]
    below /= share[of_topic]
    above = (above - share[~of_topic]) / (1 - share[~of_topic])
    ranks = np.empty(uniform.size, dtype=np.intp)
    ranks[~of_topic] = np.searchsorted(common_steps, above, side="right")
    drawn = np.searchsorted(topical_steps, below, side="right")
    # In each block of ranks, choose the word that belongs to the topic.
    words = drawn - drawn % n_classes + topic[of_topic]
    ranks[of_topic] = np.where(words < common_steps.size, words, words - n_classes)
    return ranks


def _term_frequencies(token_chunks, feature_of_rank, dtype) -> sp.csr_matrix:
    """Count the tokens of each document; values are 1 + ln tf."""
    chunks = []
    for counts, ranks in token_chunks:
        tokens = np.ones(ranks.size), feature_of_rank[ranks].astype(np.int32)
        shape = counts.size, feature_of_rank.size
        chunk = sp.csr_matrix((*tokens, np.r_[0, np.cumsum(counts)]), shape=shape)
        chunk.sum_duplicates()
        chunk.data = (1 + np.log(chunk.data)).astype(dtype)
        chunks.append(chunk)
    return sp.vstack(chunks, format="csr")


def _weigh_by_idf(X: sp.csr_matrix) -> None:
    """Multiply by the smoothed idf and scale the rows to 2-norm 1, in place."""
    n_samples, n_features = X.shape
    # Blocks are used because NumPy converts int32 indices to a temporary copy of twice the size.
    blocks = [slice(at, at + _CHUNK_TOKENS) for at in range(0, X.nnz, _CHUNK_TOKENS)]
    document_frequency = np.zeros(n_features, dtype=np.int64)
    for block in blocks:
        document_frequency += np.bincount(X.indices[block], minlength=n_features)
    idf = (1 + np.log((1 + n_samples) / (1 + document_frequency))).astype(X.dtype)
    for block in blocks:
        X.data[block] *= idf[X.indices[block]]
    norms = np.sqrt(np.add.reduceat(np.square(X.data), X.indptr[:-1]))
    X.data /= np.repeat(norms, np.diff(X.indptr))


def _draw_labels(topics, noise: float, n_classes: int, stream) -> NDArray[np.int64]:
    replaced = stream.random_sample(topics.size) < noise
    labels = (topics + replaced * stream.randint(1, n_classes, size=topics.size)) % n_classes
    return (2 * labels - 1 if n_classes == 2 else labels).astype(np.int64)
