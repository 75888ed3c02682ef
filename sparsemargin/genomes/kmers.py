"""Sequences of DNA or RNA made rows: counts of their k-mers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval

from sparsemargin._checks import check_texts
from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.text.kmers import count_kmers

# Share of k-mers with other letters than bases from which on a warning says so. In soft-masked or
# draft genomes it is smaller.
_MOST_LEFT_OUT = 0.5

# From k = 11 on k-mers are hashed to as many columns as those of 10 have.
_MOST = 4**10


class KmerVectorizer(TransformerMixin, BaseEstimator):
    """Counts of the k-mers of sequences: all parts of k bases, at two bits a base.

    Letters are A, C, G and T or U, of either case; a k-mer with another one, such as N, does not
    count. Nothing is learned: `transform` needs no `fit`.

    Parameters
    ----------
    k : int, default=6
        From 1 to 31.
    canonical : bool, default=True
        Whether a k-mer counts as its reverse complement, the first of both by the alphabet, as
        strands can't be told apart.
    n_features : int, default=None
        Columns. None: one for each of the 4**k k-mers, up to k = 10; k-mers are hashed to 4**10
        above, or wherever fewer are told.

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
        """As many as rows have."""
        return min(4**self.k, self.n_features or _MOST)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters.

        Parameters
        ----------
        X, y : object
            Not used.

        Returns
        -------
        self : object
        """
        self._validate_params()
        return self

    def transform(self, X: Iterable[str | bytes]) -> csr_matrix:
        """Count k-mers.

        Parameters
        ----------
        X : iterable of str or bytes
            Sequences, such as `read_sequences` gives them.

        Returns
        -------
        csr_matrix of float32, shape (n_sequences, n_columns)
        """
        self._validate_params()
        if isinstance(X, str | bytes):
            raise ValueError("X is one sequence: pass a list of them, or read_sequences(path).")
        check_texts("X", X)
        if hasattr(X, "to_pylist"):
            # Iterating over an Arrow column gives Arrow scalars, which are not str.
            X = X.to_pylist()
        n_kmers = 0

        def as_bytes() -> Iterator[bytes]:
            nonlocal n_kmers
            for each in X:
                # Letters that are not ASCII are no bases.
                raw = each.encode("ascii", "replace") if isinstance(each, str) else each
                n_kmers += max(0, len(raw) - self.k + 1)
                yield raw

        counts, columns, ends = count_kmers(as_bytes(), self.k, self.canonical, self.n_columns)
        n_left_out = n_kmers - int(counts.sum(dtype=np.float64))
        if n_left_out > _MOST_LEFT_OUT * n_kmers:
            warn_user(
                f"{100 * n_left_out / n_kmers:.0f} % of the k-mers were left out, as they have "
                "letters other than A, C, G, T and U. Are the sequences proteins? "
                "CountVectorizer(analyzer='char', ngram_range=(k, k)) counts k-mers of any letters."
            )
        kind = np.int32 if len(columns) < 2**31 else np.int64
        arrays = counts, columns.astype(kind), ends.astype(kind)
        return csr_matrix(arrays, shape=(len(ends) - 1, self.n_columns))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """K-mers by column, an array of str objects.

        Raises
        ------
        ValueError
            If k-mers are hashed.
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
