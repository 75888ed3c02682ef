"""K-mer counts of DNA and RNA sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval

from sparsemargin._checks import check_texts
from sparsemargin._engine.genomes.kmers import count_kmers
from sparsemargin._engine.messages import warn_user

# Fraction of k-mers with letters other than bases above which a warning is issued. Soft-masked and
# draft genomes have a smaller fraction.
_MOST_LEFT_OUT = 0.5

_SEQUENCES = (str, bytes, bytearray, memoryview)

# Largest default number of columns. For k > 10, k-mers are hashed to this number of columns.
_MOST = 4**10


class KmerVectorizer(TransformerMixin, BaseEstimator):
    """Count the k-mers of sequences, that is, all substrings of k bases.

    Bases are A, C, G and T or U, in upper or lower case. K-mers with another letter, such as N, are
    not counted. The vectorizer is stateless: `transform` does not need `fit`.

    Parameters
    ----------
    k : int, default=6
        Length of the k-mers, from 1 to 31.
    canonical : bool, default=True
        Whether a k-mer and its reverse complement are counted together, in the column of the
        alphabetically first of the two. This makes both strands equal.
    n_features : int, default=None
        Number of columns. With less than 4**k columns, k-mers are hashed. None: 4**k columns, one
        for each k-mer, but at most 4**10.

    Examples
    --------
    >>> from sparsemargin.genomes import KmerVectorizer
    >>> kmers = KmerVectorizer(2, canonical=False)
    >>> X = kmers.transform(["ACGTACNGT"])
    >>> dict(zip(kmers.get_feature_names_out()[X.indices].tolist(), X.data.tolist()))
    {'AC': 2.0, 'CG': 1.0, 'GT': 2.0, 'TA': 1.0}
    """

    dtype = np.float32
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "k": [Interval(Integral, 1, 31, closed="both")],
        "canonical": ["boolean"],
        "n_features": [Interval(Integral, 1, 2**31 - 1, closed="both"), None],
    }  # fmt: skip

    def __init__(
        self, k: int = 6, *, canonical: bool = True, n_features: int | None = None
    ) -> None:
        self.k = k
        self.canonical = canonical
        self.n_features = n_features

    @property
    def n_columns(self) -> int:
        """The number of columns of the rows."""
        return min(4**self.k, self.n_features or _MOST)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters. `X` and `y` are not used."""
        self._validate_params()
        return self

    def transform(self, X: Iterable[str | bytes]) -> csr_matrix:
        """Count k-mers.

        Parameters
        ----------
        X : iterable of str or bytes
            Sequences, for example those of `read_sequences`.

        Returns
        -------
        csr_matrix of float32, shape (n_sequences, n_columns)

        Raises
        ------
        TypeError
            If an item of X is not a sequence.
        """
        self._validate_params()
        if isinstance(X, str | bytes):
            raise ValueError("X is one sequence: pass a list of them, or read_sequences(path).")
        check_texts("X", X)
        if hasattr(X, "to_pylist"):  # Arrow scalars are not str
            X = X.to_pylist()
        n_kmers = 0

        def as_bytes() -> Iterator[bytes]:
            nonlocal n_kmers
            for i, each in enumerate(X):
                if not isinstance(each, _SEQUENCES):
                    raise TypeError(
                        f"X[{i}] is {each!r:.60}, and not a sequence (str or bytes). Leave missing "
                        "ones out. Of pairs, as read_sequences yields them, pass the second items."
                    )
                # Letters outside ASCII are replaced by "?", which is not a base.
                raw = each.encode("ascii", "replace") if isinstance(each, str) else each
                n_kmers += max(0, len(raw) - self.k + 1)
                yield raw

        counts, columns, ends = count_kmers(as_bytes(), self.k, self.canonical, self.n_columns)
        n_left_out = n_kmers - int(counts.sum(dtype=np.float64))
        if n_left_out > _MOST_LEFT_OUT * n_kmers:
            warn_user(
                f"{100 * n_left_out / n_kmers:.0f} % of the k-mers were left out, because they "
                "have letters other than A, C, G, T and U. For proteins, use "
                "CountVectorizer(analyzer='char', ngram_range=(k, k))."
            )
        kind = np.int32 if len(columns) < 2**31 else np.int64
        arrays = counts, columns.astype(kind), ends.astype(kind)
        return csr_matrix(arrays, shape=(len(ends) - 1, self.n_columns))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the k-mers in the order of the columns, an array of str objects.

        Raises
        ------
        ValueError
            If k-mers are hashed, because columns then have no names.
        """
        if self.n_columns < 4**self.k:
            raise ValueError(f"K-mers of {self.k} bases are hashed: columns have no names.")
        codes = np.arange(self.n_columns)[:, np.newaxis] >> 2 * np.arange(self.k)[::-1] & 3
        letters = np.frombuffer(b"ACGT", np.uint8)[codes]
        return letters.view(f"S{self.k}").ravel().astype(str).astype(object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.requires_fit = False
        return tags
