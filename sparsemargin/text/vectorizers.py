"""The vectorizers: subclasses of scikit-learn's classes with steps computed by the engine.

Each overridden step calls scikit-learn's code for analyses that the engine does not support. If a
version of scikit-learn does not call such a step, the engine is not used and results stay correct.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from numbers import Integral
from typing import Any, Self

import joblib
import numpy as np
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.feature_extraction import text as theirs
from sklearn.preprocessing import normalize
from sklearn.utils import murmurhash3_32
from sklearn.utils.sparsefuncs_fast import (
    inplace_csr_row_normalize_l1,
    inplace_csr_row_normalize_l2,
)
from sklearn.utils.validation import check_is_fitted

from sparsemargin._checks import check_texts
from sparsemargin._engine.text import counting
from sparsemargin.text.analysis import (
    ENTRIES,
    Preparation,
    ScanPlan,
    for_shares,
    frequent_terms,
    naming_no_texts,
    parameters_of,
    scan,
    settings_of,
    shares,
)
from sparsemargin.text.hashed_terms import HashedNames, NamedColumns
from sparsemargin.text.vocabulary import Vocabulary

#: Largest number of hashed columns, because a scanner has a counter for each. For more columns,
#: scikit-learn's code is used.
MOST_HASHED = 1 << 26

try:
    from sklearn.utils._sparse import _align_api_if_sparse as as_configured
except ImportError:  # Before version 1.9, scikit-learn always returns matrices.

    def as_configured(X: Any) -> Any:
        return X


def matrix_of(arrays: tuple[np.ndarray, ...], n_columns: int, dtype: Any) -> csr_matrix:
    """Return the rows of a scanner (values, columns and ends of rows) as a CSR matrix."""
    values, columns, ends = arrays
    if len(columns) <= np.iinfo(np.int32).max:
        ends = ends.astype(np.int32)
    else:
        columns = columns.astype(np.int64)
    return csr_matrix((values, columns, ends), shape=(len(ends) - 1, n_columns), dtype=dtype)


def normalized(X: Any, norm: str | None) -> Any:
    """Return the rows divided by their norms, in place if their type can hold the result.
    scikit-learn raises a ValueError for infinite weights."""
    if norm is None:
        return X
    # Values may be finite although their sum overflows, so scikit-learn checks them.
    if X.dtype not in (np.float64, np.float32) or not np.isfinite(X.data.sum()):
        return normalize(X, norm=norm, copy=False)
    {"l1": inplace_csr_row_normalize_l1, "l2": inplace_csr_row_normalize_l2}[norm](X)
    return X


def n_texts_of(X: Any) -> np.ndarray:
    """Return the number of rows that contain each column, as int64 of shape (n_columns,).

    `numpy.bincount` converts indices to 64 bits, so it is called on parts of them.
    """
    n_columns = X.shape[1]
    counts = np.zeros(n_columns, np.int64)
    for part in shares(X.nnz, max(ENTRIES, n_columns)):
        counts += np.bincount(X.indices[part], minlength=n_columns)
    return counts


# The end of the docstrings of all vectorizers.
_SHARED_DOC = """
    With a callable `analyzer`, `tokenizer` or `preprocessor`, or with an unusual `token_pattern`,
    scikit-learn's code is used. The results are correct, but not faster than scikit-learn's.

    Parameters
    ----------
    **params
        Parameters of `sklearn.feature_extraction.text.{name}`.
    n_jobs : int, default=None
        Number of threads. The matrix does not depend on it. With more than one thread, all texts
        are first read into a list. None: 1 unless set by `joblib.parallel_config`.
    verbose : int, default=0
        Above 0, the number of texts read so far is printed every few seconds.
    """


def with_threads(cls: type) -> type:
    """Decorate a vectorizer: add ``n_jobs`` and ``verbose`` to the constructor of its base."""
    # From version 3.13 on, Python removes the indentation of docstrings, but not of other texts.
    shared = inspect.cleandoc(_SHARED_DOC.format(name=cls.__name__))
    cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{shared}\n"
    base = next(each for each in cls.__mro__ if each.__module__ == theirs.__name__)

    def __init__(self: Any, *, n_jobs: int | None = None, verbose: int = 0, **params: Any) -> None:
        base.__init__(self, **params)  # type: ignore[misc]
        self.n_jobs = n_jobs
        self.verbose = verbose

    own = list(inspect.signature(__init__).parameters.values())[1:3]
    given = list(inspect.signature(base.__init__).parameters.values())  # type: ignore[misc]
    __init__.__signature__ = inspect.Signature([*given, *own])  # type: ignore[attr-defined]
    cls.__init__ = __init__  # type: ignore[misc]
    constraints = getattr(base, "_parameter_constraints", {})
    cls._parameter_constraints = {  # type: ignore[attr-defined]
        **constraints, "n_jobs": [Integral, None], "verbose": ["verbose"],
    }  # fmt: skip
    return cls


class _Scanning:
    """Base of all vectorizers, with the plan by which the engine scans their texts."""

    _base: type
    # Name of the argument with the texts, for error messages.
    _argument = "raw_documents"

    def fit(self, raw_documents: Any, y: Any = None) -> Self:
        """Fit as scikit-learn's class does.

        Parameters
        ----------
        raw_documents : iterable of str or bytes
        y : object
            Not used.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If `raw_documents` is a single text, a table, a mapping, a set or an array that is not
            one-dimensional.
        """
        check_texts(self._argument, raw_documents)
        return super().fit(raw_documents, y)  # type: ignore[misc,no-any-return]

    def _plan_of(
        self, terms: Callable[[], Vocabulary] | None = None, **given: Any
    ) -> ScanPlan | None:
        """Return the plan for the current parameters and `terms`, or None for scikit-learn's code.

        `given` are additional arguments of the scanners.
        """
        plan = self.__dict__.get("_plan")
        parameters = parameters_of(self)
        if plan is None or plan.parameters != parameters:
            settings = settings_of(self, self._base)
            if settings is None:
                return None
            plan = ScanPlan(parameters, Preparation(self, self._base), settings | given)
        known = terms and terms()
        if known is not plan.known:
            plan = ScanPlan(plan.parameters, plan.preparation, plan.settings, known)
        self.__dict__["_plan"] = plan
        return plan

    def __getstate__(self) -> dict[str, Any]:
        if "_terms" in vars(self):
            self.vocabulary_  # type: ignore[attr-defined] # noqa: B018
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name not in ("_terms", "_plan")}


class _Counting(_Scanning):
    """The steps of `CountVectorizer` and `TfidfVectorizer`."""

    analyzer: Any
    dtype: Any
    n_jobs: int | None

    def fit_transform(self, raw_documents: Any, y: Any = None) -> Any:
        """Fit to texts and transform them as scikit-learn's class does. See `fit`."""
        check_texts(self._argument, raw_documents)
        return super().fit_transform(raw_documents, y)  # type: ignore[misc]

    def transform(self, raw_documents: Any) -> Any:
        """Transform texts to rows as scikit-learn's class does. See `fit`."""
        check_texts(self._argument, raw_documents)
        return super().transform(raw_documents)  # type: ignore[misc]

    @property
    def vocabulary_(self) -> dict[Any, int]:
        state = self.__dict__
        if "vocabulary_" not in state:
            if "_terms" not in state:
                raise AttributeError(f"{type(self).__name__!r} object has no vocabulary_ yet")
            state["vocabulary_"] = state["_terms"].as_dict()
        return state["vocabulary_"]

    @vocabulary_.setter
    def vocabulary_(self, value: Any) -> None:
        del self.vocabulary_
        self.__dict__["_terms" if isinstance(value, Vocabulary) else "vocabulary_"] = value

    @vocabulary_.deleter
    def vocabulary_(self) -> None:
        self.__dict__.pop("vocabulary_", None)
        self.__dict__.pop("_terms", None)

    @property
    def compiled_vocabulary(self) -> Vocabulary | None:
        """The terms in the engine's form, or None if they are a dict."""
        terms = self.__dict__.get("_terms")
        return None if terms is None or "vocabulary_" in self.__dict__ else terms

    def _check_vocabulary(self) -> None:
        if not self.__dict__.get("_terms"):
            super()._check_vocabulary()  # type: ignore[misc]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the terms in the order of the columns, an array of str objects."""
        if not self.compiled_vocabulary:
            return super().get_feature_names_out(input_features)  # type: ignore[misc]
        return np.array(self.compiled_vocabulary.terms(), dtype=object)

    def _vocabulary_of_fit(self, as_words: bool) -> Vocabulary:
        """Return the current terms and their columns."""
        terms, given = self.__dict__.get("_terms"), self.__dict__.get("vocabulary_")
        changed = terms is not None and given is not None and len(given) != len(terms)
        if terms is None or changed or terms.as_words != as_words:
            terms = Vocabulary.of_terms(self.vocabulary_, as_words)
            self.__dict__["_terms"] = terms
        return terms

    def _count_vocab(self, raw_documents: Iterable[Any], fixed_vocab: bool) -> tuple[Any, Any]:
        as_words = self.analyzer == "word"
        terms = partial(self._vocabulary_of_fit, as_words) if fixed_vocab else None
        plan = self._plan_of(terms)
        if plan is None:
            with naming_no_texts(raw_documents) as texts:
                return super()._count_vocab(texts, fixed_vocab)  # type: ignore[misc]
        n_jobs = joblib.effective_n_jobs(self.n_jobs)
        dtype = np.dtype(self.dtype)
        counted = dtype if dtype in counting.TYPES else np.dtype(np.int32)
        scanner, rows = scan(plan, counted, raw_documents, n_jobs)
        if plan.known is not None:
            return plan.known, matrix_of(rows, len(plan.known), self.dtype)
        lengths = scanner.lexicon.lengths()
        numbers = np.flatnonzero(lengths >= (plan.settings["ngram_range"][0] if as_words else 1))
        met = Vocabulary(scanner.lexicon, numbers.astype(np.int32), as_words)
        if not len(met):
            raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
        if len(met) < len(lengths):
            met.columns.take(rows[1], out=rows[1], mode="clip")
        return met, matrix_of(rows, len(met), self.dtype)

    def _sort_features(self, X: Any, vocabulary: Any) -> Any:
        if not isinstance(vocabulary, Vocabulary):
            return super()._sort_features(X, vocabulary)  # type: ignore[misc]
        new = vocabulary.sort().astype(X.indices.dtype, copy=False)

        def renumber(entries: slice) -> None:
            columns = X.indices[entries]
            new.take(columns, out=columns, mode="clip")

        for_shares(renumber, X.nnz, joblib.effective_n_jobs(self.n_jobs))
        X.has_sorted_indices = False
        return X

    def _limit_features(
        self, X: Any, vocabulary: Any, high: Any = None, low: Any = None, limit: Any = None
    ) -> Any:
        if not isinstance(vocabulary, Vocabulary):
            return super()._limit_features(X, vocabulary, high, low, limit)  # type: ignore[misc]
        if low <= 1 and high >= X.shape[0] and limit is None:
            return X
        n_documents = n_texts_of(X)
        kept = (n_documents <= high) & (n_documents >= low)
        if limit is not None and kept.sum() > limit:
            # scikit-learn makes the same call, so ties are resolved in the same way.
            n_times = np.asarray(X.sum(axis=0)).ravel()
            most = (-n_times[kept]).argsort()[:limit]
            most_kept = np.zeros_like(kept)
            most_kept[np.flatnonzero(kept)[most]] = True
            kept = most_kept
        if not kept.any():
            raise ValueError(
                "After pruning, no terms remain. Try a lower min_df or a higher max_df."
            )
        if kept.all():
            return X
        vocabulary.keep(kept)
        return X[:, np.flatnonzero(kept)]


@with_threads
class CountVectorizer(_Counting, theirs.CountVectorizer):
    """Counts of the terms of texts, identical to scikit-learn's `CountVectorizer`.

    The engine stores the terms. The dict `vocabulary_` is made on first access and for pickles. To
    change it, assign another dict.
    """

    _base = theirs.CountVectorizer


@with_threads
class TfidfVectorizer(_Counting, theirs.TfidfVectorizer):
    """TF-IDF weights of the terms of texts, identical to scikit-learn's `TfidfVectorizer`.

    With ``dtype=numpy.float32``, weights are computed in float32.
    """

    _base = theirs.TfidfVectorizer

    def fit_transform(self, raw_documents: Any, y: Any = None) -> Any:
        check_texts(self._argument, raw_documents)
        self._check_params()
        names = "norm", "use_idf", "smooth_idf", "sublinear_tf"
        self._tfidf = theirs.TfidfTransformer(**{name: getattr(self, name) for name in names})
        X = super(self._base, self).fit_transform(raw_documents)
        # TfidfTransformer.fit uses only the number of entries of each column. So a CSC matrix with
        # the right column pointers suffices; its row numbers are not correct.
        ends = np.append(0, n_texts_of(X).cumsum()).astype(X.indices.dtype)
        self._tfidf.fit(csc_matrix((X.data, X.indices, ends), shape=X.shape))
        return self._weighed(X)

    def transform(self, raw_documents: Any) -> Any:
        check_texts(self._argument, raw_documents)
        if "_tfidf" not in vars(self):
            check_is_fitted(self, msg="The TF-IDF vectorizer is not fitted")
        return self._weighed(super(self._base, self).transform(raw_documents))

    def _weighed(self, X: Any) -> Any:
        """Weight the rows of counts in place, as `TfidfTransformer.transform` does.

        The checks of that method are skipped if they cannot fail: they take longer than a text.
        """
        tfidf = self._tfidf
        n_features = getattr(tfidf, "n_features_in_", X.shape[1])
        if (
            not X.shape[0] or X.dtype not in (np.float64, np.float32) or X.shape[1] != n_features
        ):  # fmt: skip
            return tfidf.transform(X, copy=False)
        idf = getattr(tfidf, "idf_", None)

        def weigh(entries: slice) -> None:
            values = X.data[entries]
            if tfidf.sublinear_tf:
                np.log(values, values)
                values += 1.0
            if idf is not None:
                values *= idf.take(X.indices[entries])

        for_shares(weigh, X.nnz, joblib.effective_n_jobs(self.n_jobs))
        return normalized(X, tfidf.norm)


@with_threads
class HashingVectorizer(  # type: ignore[call-arg]
    NamedColumns, _Scanning, theirs.HashingVectorizer, auto_wrap_output_keys=None
):
    """Counts of the hashed terms of texts, identical to scikit-learn's `HashingVectorizer`.

    With more than 2**26 (67 million) features, scikit-learn's code is used.
    """

    _base = theirs.HashingVectorizer
    _argument = "X"

    def fit(self, X: Any, y: Any = None) -> Self:
        return super().fit(X, y)

    def remember_terms(self, texts: Iterable[Any], most: int = 1 << 17) -> Self:
        """Name each column after its most frequent term in some texts.

        Parameters
        ----------
        texts : iterable of str
            Texts whose terms are counted.
        most : int, default=131072
            Largest number of terms to keep. The most frequent ones are kept.

        Returns
        -------
        self : object
        """
        check_texts("texts", texts)
        self.terms_: dict[int, str] = {}
        names = set(CountVectorizer().get_params()) & set(self.get_params()) - {"binary", "dtype"}
        counter = CountVectorizer(**{name: getattr(self, name) for name in names})
        plan = counter._plan_of()
        try:
            if plan is not None:
                terms = frequent_terms(plan, texts, joblib.effective_n_jobs(self.n_jobs), most)
            else:
                counts = np.asarray(counter.fit_transform(texts).sum(axis=0)).ravel()
                frequent = np.argsort(counts, kind="stable")[-most:]
                terms = counter.get_feature_names_out()[frequent].tolist()
        except ValueError:  # there are no terms
            return self
        self.terms_ = {abs(murmurhash3_32(term)) % self.n_features: term for term in terms}
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Sequence[str]:
        """Return the term of each column from `remember_terms`, else the column's number.

        Raises
        ------
        AttributeError
            If `remember_terms` has not been called.
        """
        return HashedNames(self.n_features, self.terms_)

    def transform(self, X: Any) -> Any:
        check_texts(self._argument, X)
        fits = np.dtype(self.dtype) in counting.TYPES and self.n_features <= MOST_HASHED
        given = {"n_hashed": self.n_features, "signs": self.alternate_sign}
        plan = self._plan_of(**given) if fits else None
        if plan is None:
            with naming_no_texts(X) as texts:
                return super().transform(texts)
        n_jobs = joblib.effective_n_jobs(self.n_jobs)
        _, arrays = scan(plan, np.dtype(self.dtype), X, n_jobs)
        rows = matrix_of(arrays, self.n_features, self.dtype)
        if not rows.shape[0]:
            return super().transform([])
        return as_configured(normalized(rows, self.norm))
