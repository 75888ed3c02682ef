"""Hashed words and character n-grams side by side."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from sparsemargin._checks import check_texts
from sparsemargin.text.analysis import parameters_of
from sparsemargin.text.hashed_terms import HashedNames, NamedColumns
from sparsemargin.text.vectorizers import MOST_HASHED, HashingVectorizer
from sparsemargin.text.word_char import WordChar, names_of


class WordCharHashingVectorizer(NamedColumns, WordChar, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Hashed words and character n-grams, side by side in one matrix.

    The matrix equals that of a `sklearn.pipeline.FeatureUnion` of two `HashingVectorizer` with
    half the columns each and ``alternate_sign=False``, one of them with ``analyzer="char_wb"``.
    The vectorizer is stateless: `transform` does not need `fit`.

    Parameters
    ----------
    n_features : int, default=2**22
        Number of columns, an even number. The first half is for words.
    word_ngram_range : tuple of int, default=(1, 2)
        Smallest and largest number of words in an n-gram of words.
    char_ngram_range : tuple of int, default=(2, 5)
        Smallest and largest number of characters in an n-gram within words.
    token_pattern, lowercase, strip_accents, norm, dtype, n_jobs, verbose
        As for `WordCharVectorizer`.
    binary : bool, default=True
        Whether all counts above 0 are replaced by 1.

    Examples
    --------
    >>> from sparsemargin.text import WordCharHashingVectorizer
    >>> vectorizer = WordCharHashingVectorizer(2**20, char_ngram_range=(3, 3))
    >>> vectorizer.transform(["she sings"]).nnz
    11
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **WordChar._parameter_constraints,
        "n_features": [Interval(Integral, 2, 2**31 - 2, closed="both")],
        "binary": ["boolean"],
    }  # fmt: skip

    def __init__(
        self,
        n_features: int = 2**22,
        *,
        word_ngram_range: tuple[int, int] = (1, 2),
        char_ngram_range: tuple[int, int] = (2, 5),
        token_pattern: str = r"(?u)\b\w\w+\b",
        lowercase: bool = True,
        strip_accents: str | None = None,
        binary: bool = True,
        norm: str | None = "l2",
        dtype: Any = np.float32,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_features = n_features
        self.word_ngram_range = word_ngram_range
        self.char_ngram_range = char_ngram_range
        self.token_pattern = token_pattern
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.binary = binary
        self.norm = norm
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.verbose = verbose

    def vectorizers(self) -> tuple[HashingVectorizer, HashingVectorizer]:
        """Return new vectorizers of words and of character n-grams with these parameters."""
        if self.n_features % 2:
            raise ValueError(f"n_features must be even, got {self.n_features}.")
        how = {
            "n_features": self.n_features // 2, "binary": self.binary, "alternate_sign": False
        }  # fmt: skip
        return self._vectorizers(HashingVectorizer, how, how)

    fitted_vectorizers = vectorizers

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters. `X` and `y` are not used."""
        self.vectorizers()
        return self

    def transform(self, X: Iterable[Any]) -> Any:
        """Return the rows of texts.

        Parameters
        ----------
        X : iterable of str or bytes

        Returns
        -------
        CSR matrix of shape (n_texts, n_features)
        """
        check_texts("X", X)
        parameters, scanning = parameters_of(self), self.__dict__.get("_scanning")
        if scanning is None or scanning[0] != parameters:
            vectorizers, n = self.vectorizers(), self.n_features // 2
            how = {"n_hashed": n, "signs": False}
            plans = self._plans_for(vectorizers, how, how) if n <= MOST_HASHED else None
            scanning = parameters, (vectorizers, plans, [n, n], [None, None])
            self.__dict__["_scanning"] = scanning
        return self._transformed(X, *scanning[1], norm=self.norm, by_logs=False)

    def remember_terms(self, texts: Iterable[str], most: int = 1 << 17) -> Self:
        """Name each column after its most frequent term in some texts.

        Parameters
        ----------
        texts : iterable of str
            Texts whose terms are counted.
        most : int, default=131072
            Largest number of terms of each family to keep. The most frequent ones are kept.

        Returns
        -------
        self : object
        """
        texts, (words, ngrams) = list(texts), self.vectorizers()
        words.remember_terms(texts, most)
        ngrams.remember_terms(texts, most)
        columns = [*words.terms_, *(self.n_features // 2 + column for column in ngrams.terms_)]
        names = names_of(words.terms_.values(), ngrams.terms_.values())
        self.terms_ = dict(zip(columns, names, strict=True))
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Sequence[str]:
        """Return the names of columns from `remember_terms`. Other columns have a number.

        Raises
        ------
        AttributeError
            If `remember_terms` has not been called.
        """
        return HashedNames(self.n_features, self.terms_)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
