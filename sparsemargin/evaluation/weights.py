"""Margins of a fitted model, and its strongest features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from sparsemargin._engine.numerics.norms import norm, vectors_of
from sparsemargin.estimators.validation import as_csr, check_labels, check_sparse
from sparsemargin.evaluation.vectors import (
    coef_of,
    divided,
    margins_of,
    strongest_features,
    vectors_by_class,
)
from sparsemargin.models import Learner
from sparsemargin.models.inputs.labels import LabelEncoder
from sparsemargin.models.inputs.rows import Rows, check_rows, naming_bad_rows, open_rows, row_norms
from sparsemargin.models.pipelines import (
    check_names,
    model_and_names,
    model_and_rows,
    names_at,
)


class MarginDistribution(NamedTuple):
    """Cumulative distribution of margins, returned by `margin_distribution`."""

    thresholds: NDArray[np.float64]
    share: NDArray[np.float64]


def margins(model: Any, X: Any, y: Any, *, normalize: bool = True) -> NDArray[np.float64]:
    r"""Margin of a fitted model on each row.

    The model is linear, or one of this library with a kernel. The margins are those of Gentile
    (2001), sections 2 and 4. They are positive if the row is classified correctly with normalised
    weights.

    - Two classes: :math:`y\, w \cdot \hat x / \|w\|_q` in [-1, 1], where y is +1 for
      ``classes_[1]`` and :math:`\hat x = x / \|x\|_p`.
    - More classes: the output for the class of the row minus the largest other output, in [-2, 2].
      The w of each class is divided by its q-norm.
    - ``multi_class="joint"``: the vectors of all classes form one vector. The instance contains x
      in one place and -x in another. The margin is in [-1, 1].

    The intercept counts as one more coordinate with weight ``intercept_ / s`` and value s. For this
    library s is `intercept_scaling_`. For other models it is the parameter `intercept_scaling`, or
    1 if they have none. Soft-margin coordinates do not count. With a kernel, all norms are those in
    feature space.

    Parameters
    ----------
    model : fitted classifier, or pipeline that ends in one
        A classifier of this library, or another one with `classes_`, `decision_function`, `coef_`
        and `intercept_` that has one weight vector for two classes, or one for each class, such as
        scikit-learn's LinearSVC. p is `p_`, or 2 if the model has no `p_`. With
        ``hypothesis="vote"`` the margins are differences of vote shares, without division.
    X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
        Rows, or inputs of the first step of a pipeline. Sparse rows are not converted to dense.
    y : array-like of shape (n_samples,)
        Labels of the rows, all in ``model.classes_``.
    normalize : bool, default=True
        Whether to divide rows by their p-norm, which includes the coordinate of the intercept.
        False: the directional margin in the units of X.

    Returns
    -------
    ndarray of shape (n_samples,), float64
        Margin of each row. 0 if the row or w has no nonzero coordinate.

    Raises
    ------
    ValueError
        If the model is fitted with ``hypothesis="random"``, is a multilabel model or has no weight
        vectors of this kind, if a label is not in its classes, or if X is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import LinearSVC
    >>> X, y = np.array([[3.0, 4.0], [-2.0, 0.0], [0.0, 0.0]]), np.array([1, 0, 1])
    >>> model = LinearSVC(fit_intercept=False).fit(X, y)
    >>> model.coef_ = np.array([[2.0, 0.0]])
    >>> margins(model, X, y)
    array([0.6, 1. , 0. ])
    >>> margins(model, X, y, normalize=False)
    array([3., 2., 0.])
    """
    check_is_fitted(model)
    model, X = model_and_rows(model, X)
    hypothesis = getattr(model, "hypothesis", None)
    if isinstance(model, Learner) and model.fitted.many:
        raise ValueError(
            "margins are those of rows with one class each; the rows of this model may have "
            "several labels. Divide its outputs by np.linalg.norm(model.coef_, ord=q, axis=1)."
        )
    if hypothesis == "random":
        raise ValueError(
            "hypothesis='random' predicts each row by another weight vector, so it has no margins. "
            "Fit with hypothesis='last', 'average' or 'vote'."
        )
    X = check_sparse(X)
    y = check_labels(y)
    check_consistent_length(X, y)
    codes = LabelEncoder(model.classes_).transform(y)
    if hypothesis == "vote":
        return margins_of(_outputs(model, X), codes)
    norms, lengths = _lengths_for(model)
    outputs = divided(_outputs(model, X), norms)
    if normalize:
        rows = check_rows(open_rows(as_csr(X)))
        outputs = divided(outputs, lengths(rows)[:, np.newaxis])
    return margins_of(outputs, codes)


def margin_distribution(
    margins: ArrayLike, thresholds: ArrayLike | None = None
) -> MarginDistribution:
    """Fraction of rows with a margin of at most a threshold: Gentile (2001), Figures 3 to 5.

    Parameters
    ----------
    margins : array-like of shape (n_samples,)
        Margins as returned by `margins`.
    thresholds : array-like of shape (n_thresholds,), default=None
        Thresholds at which the distribution is computed, for instance to average it over runs.
        None: all margins that occur, in increasing order. The distribution is constant between
        them.

    Returns
    -------
    MarginDistribution
        The arrays `thresholds` and `share` (in [0, 1]). Plot them with
        ``plt.step(*distribution, where="post")``.

    Raises
    ------
    ValueError
        If there are no margins, or one is NaN.

    Examples
    --------
    >>> thresholds, share = margin_distribution([0.3, -0.1, 0.3, 0.8])
    >>> thresholds
    array([-0.1,  0.3,  0.8])
    >>> share
    array([0.25, 0.75, 1.  ])
    """
    ordered = np.sort(np.asarray(margins, dtype=np.float64))
    if ordered.ndim != 1 or not len(ordered):
        raise ValueError(f"margins must be a vector with entries, got shape {ordered.shape}.")
    if np.isnan(ordered[-1]):
        raise ValueError("margins contain NaN. Drop the rows they come from.")
    at = np.unique(ordered) if thresholds is None else np.asarray(thresholds, dtype=np.float64)
    return MarginDistribution(at, np.searchsorted(ordered, at, side="right") / len(ordered))


def top_features(
    model: Any, top: int = 10, *, feature_names: Any = None
) -> dict[Any, list[tuple[str, float]]]:
    """Find the features, such as words, with the largest weights for each class.

    Parameters
    ----------
    model : fitted linear classifier, or pipeline that ends in one
        A classifier of this library with ``hypothesis="average"`` or ``"last"``, or another one
        with `coef_` that has one weight vector for two classes, or one for each class.
    top : int, default=10
        Largest number of features for each class.
    feature_names : sequence of str of length n_features, or fitted vectorizer, default=None
        Names of the features. None: the output names of the pipeline's other steps, or
        `feature_names_in_`. If there are none, column numbers from 0.

    Returns
    -------
    dict
        For each class, pairs of a name and a positive weight, the largest first. With two classes,
        the weights of the first class are those of `coef_` with the opposite sign.

    Raises
    ------
    ValueError
        If the model is not fitted or has no weight vector for each class, `top` is negative, or
        the number of names differs from the number of features.

    See Also
    --------
    explain_row : Contributions of the features of one row.
    sparsemargin.plotting.StrongestFeaturesDisplay : Plot the strongest features.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sparsemargin import PNormPerceptron
    >>> model = make_pipeline(CountVectorizer(), PNormPerceptron(random_state=0))
    >>> texts = ["free money", "money now", "see you now", "see the plan"]
    >>> top = top_features(model.fit(texts, ["spam", "spam", "ham", "ham"]), 2)
    >>> [name for name, weight in top["spam"]]
    ['free', 'money']
    """
    check_is_fitted(model)
    model, names = model_and_names(model, feature_names)
    vectors = vectors_by_class(model)
    names = check_names(names, len(next(iter(vectors.values()))))
    found = {}
    for label, vector in vectors.items():
        at = strongest_features(np.maximum(vector, 0), top)
        found[label] = list(zip(names_at(at, names), vector[at].tolist(), strict=True))
    return found


def _outputs(model: Any, X: Any) -> np.ndarray:
    outputs = np.asarray(model.decision_function(X), dtype=np.float64)
    return outputs.reshape(len(outputs), -1)


def _row_lengths(learner: Learner, rows: Rows) -> np.ndarray:
    """Return the norms of checked rows, including the coordinate of the intercept.

    For a kernel these are norms in feature space. A precomputed kernel raises a ValueError.
    """
    with naming_bad_rows(rows):
        lengths: np.ndarray = learner.fitted.row_lengths(rows)
    return lengths


def _lengths_for(model: Any) -> tuple[np.ndarray, Callable[[Rows], np.ndarray]]:
    """Return the q-norms of the weight vectors, shape (n_vectors,), and a function that returns the
    p-norms of rows."""
    if isinstance(model, Learner):
        return model.fitted.norms(model.n_threads()), partial(_row_lengths, model)
    p, coef = float(getattr(model, "p_", 2.0)), coef_of(model)
    has_intercept = getattr(model, "fit_intercept", True)
    # Value of the coordinate of the intercept, or 0 without an intercept.
    bias = float(getattr(model, "intercept_scaling", 1.0)) if has_intercept else 0.0
    intercepts = np.ravel(model.intercept_) / bias if bias else np.zeros(coef.shape[0])
    vectors = zip(vectors_of(coef), intercepts, strict=True)
    norms = np.array([norm(np.append(v, w), p / (p - 1.0)) for v, w in vectors])
    return norms, partial(row_norms, p=p, bias=bias)
