"""TF-IDF of words and character n-grams side by side."""

from collections.abc import Iterable, Iterator
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import joblib
import numpy as np
from scipy.sparse import hstack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsemargin._checks import check_texts
from sparsemargin.text.analysis import Parts, ScanPlan, without_arrow
from sparsemargin.text.families import fit_families, transform_families
from sparsemargin.text.vectorizers import TfidfVectorizer, as_configured, matrix_of
from sparsemargin.text.vocabulary import CHAR, WORD, Vocabulary

# Largest length of n-grams that is accepted.
_LONGEST = 1000

_MIN_DF = [
    Interval(Integral, 1, None, closed="left"),
    Interval(RealNotInt, 0.0, 1.0, closed="both"),
]


def names_of(words: Iterable[str], ngrams: Iterable[str]) -> Iterator[str]:
    """Yield distinct names of columns: words, and n-grams such as "char: ing"."""
    for word in words:
        yield WORD + word if word.startswith((CHAR, WORD)) else word
    for ngram in ngrams:
        yield CHAR + ngram


class WordChar(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Base class of the vectorizers of words and character n-grams."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "word_ngram_range": [tuple, list],
        "char_ngram_range": [tuple, list],
        "token_pattern": [str],
        "lowercase": ["boolean"],
        "strip_accents": [StrOptions({"ascii", "unicode"}), None],
        "norm": [StrOptions({"l1", "l2"}), None],
        "dtype": "no_validation",
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }  # fmt: skip

    # Parameters that are passed to the vectorizers of both families.
    _shared: ClassVar[tuple[str, ...]] = (
        "lowercase", "strip_accents", "norm", "dtype", "n_jobs", "verbose"
    )  # fmt: skip

    def set_output(self, *, transform: str | None = None) -> Self:
        """Accept ``transform="default"``. Rows are sparse matrices, which tables can't hold.

        scikit-learn's global setting of ``transform_output`` has no effect, as for its vectorizers.
        """
        if transform not in (None, "default"):
            raise ValueError(
                f"transform={transform!r} needs dense rows, and those of texts are sparse. Pass "
                "transform='default'."
            )
        return self

    def _vectorizers(self, kind: type, words: dict[str, Any], ngrams: dict[str, Any]) -> Any:
        """Check the parameters, and return new vectorizers of both families."""
        self._validate_params()
        for name in "word_ngram_range", "char_ngram_range":
            lengths = getattr(self, name)
            whole = all(isinstance(n, Integral) for n in lengths)
            if len(lengths) != 2 or not whole or not 1 <= lengths[0] <= lengths[1] <= _LONGEST:
                raise ValueError(
                    f"{name} must be two integers from 1 to {_LONGEST}, the smaller one first, got "
                    f"{lengths!r}."
                )
        if self.dtype not in (np.float32, np.float64, "float32", "float64"):
            raise ValueError(f"dtype must be float32 or float64, got {self.dtype!r}.")
        shared = {name: getattr(self, name) for name in self._shared}
        return (
            kind(ngram_range=self.word_ngram_range, token_pattern=self.token_pattern,
                 **words, **shared),
            kind(ngram_range=self.char_ngram_range, analyzer="char_wb", **ngrams, **shared),
        )  # fmt: skip

    def _plans_for(self, vectorizers: Any, *given: dict[str, Any]) -> list[ScanPlan] | None:
        """Return plans of the scans of both families, or None if scikit-learn's code is needed."""
        plans = []
        for each, how in zip(vectorizers, given or ({}, {}), strict=True):
            plan = each._plan_of(**how)
            if plan is None:
                return None
            # Copy the plan, because its scanners count in another type than the vectorizer's.
            plan = ScanPlan(plan.parameters, plan.preparation, plan.settings, plan.known)
            plan.preparation.name = type(self).__name__
            plans.append(plan)
        return plans

    def _transformed(
        self, texts: Any, vectorizers: Any, plans: list[ScanPlan] | None, n_columns: list[int],
        idf: list[Any], *, norm: str | None, by_logs: bool,
    ) -> Any:  # fmt: skip
        """Return the rows of texts."""
        if not isinstance(texts, list | Parts):
            texts = list(without_arrow(texts))
        if not len(texts):
            raise ValueError("X has no texts. Pass at least one.")
        if plans is None:
            there = [each for each, n in zip(vectorizers, n_columns, strict=True) if n]
            return joined([each.transform(texts) for each in there])
        n_jobs, dtype = joblib.effective_n_jobs(self.n_jobs), np.dtype(self.dtype)
        rows = transform_families(plans, texts, n_jobs, n_columns, idf, dtype, norm, by_logs)
        return as_configured(matrix_of(rows, sum(n_columns), dtype))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_scanning"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def joined(matrices: list[Any]) -> Any:
    """Return CSR matrices side by side."""
    return hstack(matrices, format="csr") if len(matrices) > 1 else matrices[0]


def set_terms(vectorizer: TfidfVectorizer, vocabulary: Vocabulary, idf: np.ndarray) -> None:
    """Set the fitted attributes of a vectorizer."""
    vectorizer.vocabulary_ = vocabulary
    vectorizer.fixed_vocabulary_ = False
    names = "norm", "use_idf", "smooth_idf", "sublinear_tf"
    vectorizer._tfidf = TfidfTransformer(**{name: getattr(vectorizer, name) for name in names})
    vectorizer._tfidf.idf_ = idf
    vectorizer._tfidf.n_features_in_ = len(idf)


class WordCharVectorizer(WordChar, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    r"""TF-IDF of words and of character n-grams, side by side in one matrix.

    The matrix has two families of terms: word n-grams, and character n-grams within words (with the
    space before and after the word). Each family has its own document frequencies, and each of the
    two parts of a row has norm 1. The matrix equals that of a `sklearn.pipeline.FeatureUnion` of
    two `TfidfVectorizer`, one of them with ``analyzer="char_wb"``, up to the order of the entries
    in a row and rounding. The texts are read once, and the n-grams of each distinct word are
    computed once. A family without terms has no columns.

    Parameters
    ----------
    word_ngram_range : tuple of int, default=(1, 2)
        Smallest and largest number of words in an n-gram of words.
    char_ngram_range : tuple of int, default=(2, 5)
        Smallest and largest number of characters in an n-gram within words.
    word_min_df, char_min_df : int or float, default=1, 2
        Terms in fewer texts are ignored. A float is a share of the texts.
    token_pattern : str, default=r"(?u)\b\w\w+\b"
        Regular expression of words, see `TfidfVectorizer`. With ``r"(?u)\w+|[^\w\s]"``, single
        letters and punctuation characters are words, too. Character n-grams do not depend on it:
        their words are separated by whitespace.
    lowercase : bool, default=True
        Whether texts are converted to lowercase.
    strip_accents : {"ascii", "unicode", None}, default=None
        How accents are removed, see `TfidfVectorizer`.
    sublinear_tf : bool, default=True
        Whether counts are replaced by ``1 + log(count)``.
    norm : {"l1", "l2", None}, default="l2"
        Norm by which each family's part of a row is divided. None: rows are not normalized.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the values.
    n_jobs : int, default=None
        Number of threads. The matrix does not depend on it. None: 1 unless set by
        `joblib.parallel_config`.
    verbose : int, default=0
        Above 0, the number of texts read so far is printed every few seconds.

    Attributes
    ----------
    word_vectorizer_, char_vectorizer_ : TfidfVectorizer
        The fitted vectorizers of the two families.
    vocabulary_ : dict
        The column of each name.

    Examples
    --------
    >>> from sparsemargin.text import WordCharVectorizer
    >>> vectorizer = WordCharVectorizer(char_ngram_range=(3, 3))
    >>> X = vectorizer.fit_transform(["singing", "she sings"])
    >>> vectorizer.get_feature_names_out().tolist()
    ['she', 'she sings', 'singing', 'sings', 'char:  si', 'char: ing', 'char: sin']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **WordChar._parameter_constraints,
        "word_min_df": _MIN_DF, "char_min_df": _MIN_DF, "sublinear_tf": ["boolean"],
    }  # fmt: skip

    def __init__(
        self,
        *,
        word_ngram_range: tuple[int, int] = (1, 2),
        char_ngram_range: tuple[int, int] = (2, 5),
        word_min_df: float = 1,
        char_min_df: float = 2,
        token_pattern: str = r"(?u)\b\w\w+\b",
        lowercase: bool = True,
        strip_accents: str | None = None,
        sublinear_tf: bool = True,
        norm: str | None = "l2",
        dtype: Any = np.float32,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.word_ngram_range = word_ngram_range
        self.char_ngram_range = char_ngram_range
        self.word_min_df = word_min_df
        self.char_min_df = char_min_df
        self.token_pattern = token_pattern
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.sublinear_tf = sublinear_tf
        self.norm = norm
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.verbose = verbose

    def vectorizers(self) -> tuple[TfidfVectorizer, TfidfVectorizer]:
        """Return new vectorizers of words and of character n-grams with these parameters."""
        tf = {"sublinear_tf": self.sublinear_tf}
        return self._vectorizers(
            TfidfVectorizer,
            {"min_df": self.word_min_df, **tf}, {"min_df": self.char_min_df, **tf},
        )  # fmt: skip

    def fit(self, X: Iterable[Any], y: Any = None) -> Self:
        """Learn the terms of texts and their document frequencies.

        Parameters
        ----------
        X : iterable of str or bytes
        y : object
            Not used.

        Returns
        -------
        self : object
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Iterable[Any], y: Any = None) -> Any:
        """Fit to texts, and return their rows.

        Parameters
        ----------
        X : iterable of str or bytes
        y : object
            Not used.

        Returns
        -------
        CSR matrix of shape (n_texts, n_columns)

        Raises
        ------
        ValueError
            If there are no terms, or `X` is not a collection of texts.
        """
        return self._fit(X)

    def _fit(self, texts: Any) -> Any:
        check_texts("X", texts)
        vectorizers = self.vectorizers()
        plans = self._plans_for(vectorizers)
        texts = without_arrow(texts)
        if plans is None:
            texts = list(texts)
            X = joined([each.fit_transform(texts) for each in vectorizers])
            self.set_fitted(vectorizers)
            return X
        dtype = np.dtype(self.dtype)
        rows, fitted = fit_families(
            plans, texts, joblib.effective_n_jobs(self.n_jobs),
            (self.word_min_df, self.char_min_df), dtype, self.norm, self.sublinear_tf,
        )  # fmt: skip
        for each, learned in zip(vectorizers, fitted, strict=True):
            set_terms(each, *learned)
        self.set_fitted(vectorizers)
        return as_configured(matrix_of(rows, self.n_columns, dtype))

    def set_fitted(self, vectorizers: Any) -> None:
        """Set the fitted vectorizers of both families."""
        self.word_vectorizer_, self.char_vectorizer_ = vectorizers
        self.__dict__.pop("_scanning", None)

    def fitted_vectorizers(self) -> tuple[TfidfVectorizer, TfidfVectorizer]:
        """Return the fitted vectorizers of both families."""
        check_is_fitted(self, "word_vectorizer_")
        return self.word_vectorizer_, self.char_vectorizer_

    def transform(self, X: Iterable[Any]) -> Any:
        """Return the rows of texts.

        Parameters
        ----------
        X : iterable of str or bytes

        Returns
        -------
        CSR matrix of shape (n_texts, n_columns)
        """
        check_texts("X", X)
        vectorizers, scanning = self.fitted_vectorizers(), self.__dict__.get("_scanning")
        if scanning is None:
            plans = self._plans_for(vectorizers, *(
                {"terms": partial(each._vocabulary_of_fit, each.analyzer == "word")}
                for each in vectorizers
            ))  # fmt: skip
            idf = [each.idf_ for each in vectorizers]
            scanning = vectorizers, plans, [len(each) for each in idf], idf
            self.__dict__["_scanning"] = scanning
        fitted = vectorizers[0]
        return self._transformed(X, *scanning, norm=fitted.norm, by_logs=fitted.sublinear_tf)

    @property
    def n_columns(self) -> int:
        """The number of columns of the matrix."""
        return sum(len(each.idf_) for each in self.fitted_vectorizers())

    @property
    def vocabulary_(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.get_feature_names_out().tolist())}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, an array of str objects.

        Words have their own names. An n-gram of characters is named "char: ing".
        """
        terms = [
            each.get_feature_names_out() if len(each.idf_) else ()
            for each in self.fitted_vectorizers()
        ]
        return np.array(list(names_of(*terms)), dtype=object)
