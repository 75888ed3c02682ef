"""What all classifiers of this library share: the scikit-learn contract of an online learner."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, get_args

import joblib
import numpy as np
from scipy.sparse import csr_array, csr_matrix, hstack, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from sparsemargin._engine._space import MAX_P
from sparsemargin._engine.kernels import BadRow
from sparsemargin._engine.learning import learn_once
from sparsemargin._engine.task import Task
from sparsemargin.estimators import _validation as border

_LARGEST_SEED = 2**31 - 1


Hypothesis = Literal["last", "average", "vote", "random"]


class OnlineClassifier(ClassifierMixin, BaseEstimator):
    """Base of the classifiers that learn row by row; not for use by itself."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": [Interval(Real, 2, MAX_P, closed="both"), StrOptions({"log"})],
        "hypothesis": [StrOptions(set(get_args(Hypothesis)))],
        "normalize_hypotheses": ["boolean"],
        "max_iter": [Interval(Real, 0, None, closed="neither"), None],
        "max_corrections": [Interval(Integral, 1, None, closed="left"), None],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "verbose": ["verbose"],
    }

    # The parameters that the learned state is made for.
    _structural: ClassVar[tuple[str, ...]] = (
        "p", "hypothesis", "normalize_hypotheses", "fit_intercept", "intercept_scaling"
    )  # fmt: skip

    # Set by the constructors of the subclasses; those without a p have 2.
    p: float | Literal["log"] = 2.0
    hypothesis: Hypothesis
    normalize_hypotheses: bool
    max_iter: float | None
    max_corrections: int | None
    shuffle: bool
    random_state: Any
    fit_intercept: bool
    intercept_scaling: float
    warm_start: bool
    n_jobs: int | None
    verbose: int

    classes_: np.ndarray
    n_iter_: float
    n_features_in_: int

    _space: Any
    _slice_seed: int
    _structure: dict[str, Any]
    _class_weight: np.ndarray
    _coef: np.ndarray | None

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Set what the constructor was given."""
        for name in self._get_param_names():
            setattr(self, name, arguments[name])

    @abstractmethod
    def _open(self, rows: border.Rows) -> None:
        """Make what a stream that begins with these rows is learned in."""

    @abstractmethod
    def _loop(self, task: Task) -> AbstractContextManager:
        """The loop over a task."""

    @abstractmethod
    def _learn_afresh(self, X: Any, codes: Any, weights: Any, seed: int | None) -> Self:
        """Open a space and learn."""

    @abstractmethod
    def _learn_on(self, X: Any, codes: Any, weights: Any, seed: int | None) -> Self:
        """Go on with the space there is; all rows are checked before the first is used."""

    @abstractmethod
    def _outputs_of_rows(self, rows: border.Rows, *, relative: bool) -> tuple[np.ndarray, bool]:
        """Outputs of checked rows, shape (n_rows, n_labels), and whether all are finite; relative:
        up to a power of two for each row."""

    # ------------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from X and y, from scratch unless `warm_start`.

        Ctrl-C ends the fit with a warning; the model keeps what it had learned by then.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
            CSR of float32 or float64 with int32 or int64 indices is used where it lies, read-only
            and memory-mapped included; anything else is converted to it.
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter, X or y can't be used; says where, and what helps. The model is then as
            it was, unless under `warm_start` a row's magnitudes are to blame: the rows before it
            have been learned.
        """
        return self._fit(X, y, None)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        self._coef = None
        with self._all_or_nothing():
            resumed = self.warm_start and hasattr(self, "classes_")
            X, y = self._check_input(X, y, reset=not resumed)
            weights = border.check_weights(sample_weight, X.shape[0])
            if weights is not None and not weights.any():
                raise ValueError("sample_weight is zero for every row: nothing to learn from.")
            random = check_random_state(self.random_state)
            seed = random.randint(_LARGEST_SEED) if self.shuffle else None
            if resumed:
                self._check_structure()
                codes = border.codes_of(y, self.classes_)
                return self._learn_on(X, codes, weights, seed)
            classes, codes = border.find_classes(y)
            if len(classes) < 2:
                raise ValueError(
                    f"y has one class only, {classes.tolist()}; at least 2 are needed."
                )
            self.classes_, self._slice_seed = classes, random.randint(_LARGEST_SEED)
            return self._learn_afresh(X, codes, weights, seed)

    def _check_parameters(self) -> None:
        self._validate_params()

    def _get_structure(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._structural if hasattr(self, name)}

    def _check_structure(self) -> None:
        """Refuse to go on with a state that was made for other parameters."""
        changed = [
            name for name, value in self._get_structure().items() if self._structure[name] != value
        ]
        if changed:
            raise ValueError(
                f"warm_start can't go on with another {', '.join(changed)}. Pass warm_start=False."
            )

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Take back all attributes set on the way to an error."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Take the rows of X as the next trials, once, in the given order.

        Any split of the same rows into batches gives the same model to the bit, and the one of
        a single epoch of `fit` with ``shuffle=False``: but for rounding where that works out
        products with rows to come, as `HigherOrderPerceptron` does. With `soft_margin`, every row
        of every call gets a new coordinate of its own. `max_iter`, `max_corrections`, `tol` and
        `shuffle` do not apply; parameters changed since the first call take effect with the next
        `fit`.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
            As for `fit`.
        y : array-like of shape (n_samples,)
            Labels, all among `classes`.
        classes : array-like of shape (n_classes,), default=None
            All classes there will ever be; needed in the first call, optional later.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As for `fit`, or if a label is not among the classes. The model is then as it was,
            unless a row's magnitudes are to blame: the rows before it have been learned.
        """
        return self._partial_fit(X, y, classes, None)

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        self._coef = None
        if hasattr(self, "classes_"):
            return self._take(X, y, classes, sample_weight)
        with self._all_or_nothing():
            self._check_parameters()
            return self._take(X, y, classes, sample_weight)

    def _take(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        first = not hasattr(self, "classes_")
        X, y = self._check_input(X, y, reset=first)
        known = self._check_classes(classes)
        codes = border.codes_of(y, known)
        weights = border.check_weights(sample_weight, X.shape[0])
        rows = border.check_rows(X, border.open_rows(X))
        if first:
            self.classes_ = known
            self._class_weight = self._expand_class_weight(None)
            self._open(rows)
            self._structure = self._get_structure()
            self._slice_seed = check_random_state(self.random_state).randint(_LARGEST_SEED)
        task = Task(rows, codes, weights, self._class_weight, n_threads=self._n_threads())
        try:
            self._learn_stream(task)
        except BadRow as bad:
            border.refuse_row(rows, bad.status, bad.row)
        return self

    def _p(self, n_features: int) -> float:
        return max(2.0, 2.0 * np.log(n_features)) if self.p == "log" else float(self.p)

    def _bias(self) -> float:
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _learn_stream(self, task: Task) -> None:
        learn_once(self._loop(task))

    def _task(self, rows: border.Rows, codes: Any, weights: Any, *, check: bool = False) -> Task:
        """What a fit learns from."""
        self._class_weight = self._expand_class_weight(codes)
        return Task(
            rows, codes, weights, self._class_weight, check=check,
            max_corrections=self.max_corrections, n_threads=self._n_threads(),
        )  # fmt: skip

    # ------------------------------------------------------------------------------ validation

    def _check_input(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        X = self._check_X(X, reset=reset)
        y = border.check_labels(y)
        if len(y) != X.shape[0]:
            check_consistent_length(X, y)
        return X, y

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        """X as CSR of types the engine takes; the rows themselves are checked later."""
        if border.is_plain_csr(X) and 0 not in X.shape:
            if reset:
                validate_data(self, X, skip_check_array=True)
            elif X.shape[1] != self.n_features_in_ or hasattr(self, "feature_names_in_"):
                validate_data(self, X, reset=False, skip_check_array=True)
            return X
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", accept_large_sparse=True,
            dtype=[np.float64, np.float32],
        )  # fmt: skip
        return X if issparse(X) else csr_matrix(X)

    def _check_classes(self, classes: Any) -> np.ndarray:
        fitted = getattr(self, "classes_", None)
        if classes is None:
            if fitted is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            return fitted
        given = np.unique(border.check_labels(classes))
        if len(given) < 2:
            raise ValueError(
                f"classes has one class only, {given.tolist()}; at least 2 are needed."
            )
        if fitted is not None and not np.array_equal(given, fitted):
            raise ValueError(
                f"classes={given.tolist()} is not the same as on the last call to partial_fit, "
                f"which was {fitted.tolist()}."
            )
        return given

    def _n_labels(self) -> int:
        """Vectors learned side by side: one for two classes, else one for each."""
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _expand_class_weight(self, codes: np.ndarray | None) -> np.ndarray:
        """Weights of each label's negative and positive rows, shape (2, n_labels); codes is None
        in a stream."""
        return np.ones((2, self._n_labels()))

    def _n_threads(self) -> int:
        return 1 if self.n_jobs is None else joblib.effective_n_jobs(self.n_jobs)

    # ------------------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Output of the hypothesis for every row.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes
            ``w.x``, intercept included, x as it is (not normalised). ``hypothesis="average"``:
            divided by the trials; ``"vote"``: ``sum_k c_k sign(w_k.x)`` divided by the trials, in
            [-1, 1]; ``"random"``: with the vectors of a time slice drawn for each row from
            `random_state` and the row's content, one for all classes.
        """
        scores = self._outputs(X, relative=False)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Class of every row: the sign of the output, 0 being positive, or the largest one.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._outputs(X, relative=True)
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] >= 0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    def _outputs(self, X: Any, *, relative: bool) -> np.ndarray:
        """Outputs, shape (n_samples, n_labels); relative: up to a power of two for each row."""
        if not hasattr(self, "classes_"):
            check_is_fitted(self)
        X = self._check_X(X, reset=False)
        rows = border.check_rows(X, border.open_rows(X), repeats_allowed=True)
        result, finite = self._outputs_of_rows(rows, relative=relative)
        if not finite:
            row = int(np.flatnonzero(~np.isfinite(result).all(axis=1))[0])
            raise ValueError(f"The output for row {row} of X exceeds a float64. Rescale X.")
        return result

    def _points(self, rows: border.Rows, which: Any = slice(None)) -> tuple[csr_array, np.ndarray]:
        """Those of the rows as test points: float64, with the intercept's column, repeats summed,
        divided by powers of two that bring them near 1, shape (n_points, n_coordinates); and the
        exponents, shape (n_points, 1)."""
        n_rows = len(rows.indptr) - 1
        X = csr_array((rows.data, rows.indices, rows.indptr), shape=(n_rows, rows.n_features))
        X = X[which].astype(np.float64)
        X.sum_duplicates()
        if self._space.bias:
            X = hstack([X, csr_array(np.full((X.shape[0], 1), self._space.bias))], format="csr")
        # Powers of two: no digit changes, and no product leaves the range of a double.
        exponent = np.frexp(abs(X).max(axis=1).toarray().ravel())[1]
        X.data = np.ldexp(X.data, -np.repeat(exponent, np.diff(X.indptr)))
        return X, exponent[:, np.newaxis]

    # ------------------------------------------------------------------------ fitted attributes

    def _weights(self) -> np.ndarray:
        check_is_fitted(self)
        if self._structure["hypothesis"] in ("vote", "random"):
            raise AttributeError(
                f"hypothesis={self._structure['hypothesis']!r} has no single weight vector. "
                "Fit with hypothesis='average' or 'last'."
            )
        coef = self._space.weights() if self._coef is None else self._coef
        self._coef = coef
        return coef

    @property
    def coef_(self) -> np.ndarray | csr_matrix:
        """Weights of the hypothesis, shape (1, n_features) or (n_classes, n_features).

        Built when asked for; the average is divided by the trials. CSR after `sparsify`.
        """
        coef = self._weights()[:, : self.n_features_in_]
        return csr_matrix(coef) if getattr(self, "_sparse_coef", False) else coef

    @property
    def intercept_(self) -> np.ndarray:
        """Intercept of each label, shape (1,) or (n_classes,); zero without `fit_intercept`."""
        weights = self._weights()
        if not self._space.bias:
            return np.zeros(len(weights), dtype=weights.dtype)
        return weights[:, -1] * weights.dtype.type(self._space.bias)

    @property
    def n_corrections_(self) -> int | np.ndarray:
        """Corrections made: an int for two classes, else an array of shape (n_classes,)."""
        return self._counts("corrections")

    def _counts(self, name: str) -> int | np.ndarray:
        check_is_fitted(self)
        counts = self._space.per_label(name)
        return int(counts[0]) if len(counts) == 1 else counts.copy()

    @property
    def p_(self) -> float:
        """The p of the norm that instances are measured with."""
        check_is_fitted(self)
        return self._space.p

    def sparsify(self) -> Self:
        """Give `coef_` as a CSR matrix from now on."""
        check_is_fitted(self)
        self._sparse_coef = True
        return self

    def densify(self) -> Self:
        """Give `coef_` as a dense array again."""
        check_is_fitted(self)
        self._sparse_coef = False
        return self

    def __getstate__(self) -> dict:
        state = super().__getstate__()
        return {**state, "_coef": None} if "_coef" in state else state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # A hyperplane through the origin can't favour one class of blobs that lie around it, as
        # scikit-learn's check of class_weight expects.
        tags.classifier_tags.poor_score = not self.fit_intercept
        return tags
