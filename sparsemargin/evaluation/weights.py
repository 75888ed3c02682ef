"""What the weights of a fitted model tell: the margins they leave, and which are the strongest.

scikit-learn is imported on first use: the command line does without.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsemargin._engine.numerics.norms import norm, vectors_of
from sparsemargin.models import Learner
from sparsemargin.models.inputs.labels import LabelEncoder
from sparsemargin.models.inputs.rows import Rows, check_rows, open_rows, refusing, row_norms
from sparsemargin.models.pipelines import (
    check_names,
    model_and_names,
    model_and_rows,
    names_at,
)


class MarginDistribution(NamedTuple):
    """A cumulative distribution, as `margin_distribution` returns it."""

    thresholds: NDArray[np.float64]
    share: NDArray[np.float64]


def margins(model: Any, X: Any, y: Any, *, normalize: bool = True) -> NDArray[np.float64]:
    r"""Margin of a linear model, or of one of this library's with a kernel, on every row.

    With two classes it is :math:`y\, w \cdot \hat x / \|w\|_q`, y being +1 for ``classes_[1]``
    and :math:`\hat x = x / \|x\|_p`, in [-1, 1]; with more the output of the row's own class less
    the largest other one, every class's w divided by its own q-norm, in [-2, 2]: Gentile (2001),
    sections 2 and 4. Under ``multi_class="joint"`` the vectors of all classes are one, and the
    instance is x in one place and -x in another: the margin is in [-1, 1]. It is positive where
    the row is classified correctly with such weights. The intercept is one more coordinate, of
    weight ``intercept_ / s`` and value s, this library's `intercept_scaling_`, or the parameter
    `intercept_scaling` of other models (1 where they have none); soft-margin coordinates are no
    part of it. With a kernel all norms are those in feature space.

    Parameters
    ----------
    model : fitted classifier, or pipeline that ends in one
        One of this library, or any with `classes_`, `decision_function`, `coef_` and `intercept_`
        that learns one weight vector for two classes and one for each of more, such as
        scikit-learn's LinearSVC. p is `p_`, or 2 where there is none. With
        ``hypothesis="vote"`` the outputs are the shares of votes and nothing is divided.
    X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
        Never made dense; of a pipeline what its first step takes.
    y : array-like of shape (n_samples,)
        Labels, all among ``model.classes_``.
    normalize : bool, default=True
        Whether rows are divided by their p-norm, the intercept's coordinate included. False: the
        directional margin in the units of X.

    Returns
    -------
    ndarray of shape (n_samples,), float64
        0 for a row without a nonzero coordinate, and from a w that is zero.

    Raises
    ------
    ValueError
        If the model is fitted with ``hypothesis="random"`` or to rows that may have several
        labels, or has no weight vectors of this kind,
        if a label is not among its classes, or if X can't be used.

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
    from sklearn.utils import check_consistent_length
    from sklearn.utils.validation import check_is_fitted

    from sparsemargin.estimators.validation import as_csr, check_labels, check_sparse

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
    """Share of examples whose margin is at most a threshold: Gentile (2001), Figures 3 to 5.

    Parameters
    ----------
    margins : array-like of shape (n_samples,)
        As `margins` returns them.
    thresholds : array-like of shape (n_thresholds,), default=None
        Where the distribution is wanted, for instance to average it over runs. None: at every
        margin that occurs, in rising order; it is constant between these.

    Returns
    -------
    MarginDistribution
        The arrays `thresholds` and `share`, the latter in [0, 1]; ready for
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
    """The features, such as words, that speak most for each class.

    Parameters
    ----------
    model : fitted linear classifier, or pipeline that ends in one
        Of this library with ``hypothesis="average"`` or ``"last"``, or any other with `coef_` that
        learns one weight vector for two classes and one for each of more.
    top : int, default=10
        How many of each class, at most.
    feature_names : sequence of str of length n_features, or fitted vectorizer, default=None
        None: those that the pipeline's other steps tell, or `feature_names_in_`; the numbers of
        the columns, from 0, where there are none.

    Returns
    -------
    dict
        For each class pairs of a name and a weight above 0, the largest first. What speaks for the
        first of two classes speaks against the second: its weights are those of `coef_` with the
        opposite sign.

    Raises
    ------
    ValueError
        If the model is not fitted or has no weight vector for each class, `top` is negative, or
        there are not as many names as features.

    See Also
    --------
    explain_row : What decides for one row.
    sparsemargin.plotting.StrongestFeaturesDisplay : For and against, as a picture.

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
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    model, names = model_and_names(model, feature_names)
    coef, classes = coef_of(model), model.classes_.tolist()
    names = check_names(names, coef.shape[1])
    vectors = list(vectors_of(coef))
    vectors = [-vectors[0], vectors[0]] if len(vectors) < len(classes) else vectors
    found = {}
    for label, vector in zip(classes, vectors, strict=True):
        at = strongest_features(np.maximum(vector, 0), top)
        pairs = zip(names_at(at, names), vector[at].tolist(), strict=True)
        found[label] = list(pairs)
    return found


def strongest_features(weights: ArrayLike, top: int) -> NDArray[np.intp]:
    """Places of so many weights of largest magnitude, the strongest first; of equal ones, those
    that come first; none of weight 0."""
    strength = np.abs(np.asarray(weights, dtype=np.float64))
    if top < 0:
        raise ValueError(f"top must be 0 or more, got {top}.")
    at = np.flatnonzero(strength)
    if 0 < top < len(at):
        # A partition finds the last of them without sorting millions of others.
        least = np.partition(strength, -top)[-top]
        above, equal = np.flatnonzero(strength > least), np.flatnonzero(strength == least)
        at = np.sort(np.concatenate([above, equal[: top - len(above)]]))
    return at[np.argsort(-strength[at], kind="stable")][:top]


def coef_of(model: Any) -> Any:
    """Return `coef_`, array or CSR, where it has a vector for each class, or one for the second of
    two; else a ValueError says what to pass."""
    name, coef = type(model).__name__, getattr(model, "coef_", None)
    if coef is None:
        raise ValueError(
            f"{name} has no weight vector for each class, since it has no coef_. Pass a linear "
            "classifier whose hypothesis is 'last' or 'average'."
        )
    if isinstance(coef, np.ndarray):
        coef = np.atleast_2d(coef)
    n_classes = len(model.classes_)
    # Support vector machines over pairs of classes have as many vectors as classes when these are
    # three, so the number alone does not give them away.
    in_pairs = n_classes > 2 and hasattr(model, "decision_function_shape")
    if in_pairs or not (coef.shape[0] == n_classes or coef.shape[0] == 1 == n_classes - 1):
        raise ValueError(
            f"{name} has no weight vector for each class (one for two classes). Pass a linear "
            "classifier that learns one class versus the rest."
        )
    return coef


def margins_of(outputs: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Each row's output for its own class, whose place is its code, less the largest other one;
    a single column, of two classes, is the output for class 1 and the opposite of class 0's."""
    if outputs.shape[1] == 1:
        return np.where(codes == 1, outputs[:, 0], -outputs[:, 0])
    at = np.arange(len(codes))
    others = outputs.copy()
    others[at, codes] = -np.inf
    return outputs[at, codes] - others.max(axis=1)


def divided(outputs: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Quotients, 0 where the divisor is."""
    return np.divide(outputs, norms, out=np.zeros_like(outputs), where=norms > 0)


def _outputs(model: Any, X: Any) -> np.ndarray:
    outputs = np.asarray(model.decision_function(X), dtype=np.float64)
    return outputs.reshape(len(outputs), -1)


def _row_lengths(learner: Learner, rows: Rows) -> np.ndarray:
    """Norm of checked rows, the intercept's coordinate included, in feature space if the model is
    there; a ValueError with a precomputed kernel, which does not tell them."""
    with refusing(rows):
        lengths: np.ndarray = learner.space.row_lengths(rows)
    return lengths


def _lengths_for(model: Any) -> tuple[np.ndarray, Callable[[Rows], np.ndarray]]:
    """q-norms of the weight vectors, shape (n_labels,), and what gives the p-norms of rows."""
    if isinstance(model, Learner):
        return model.fitted.norms(model.n_threads()), partial(_row_lengths, model)
    p, coef = float(getattr(model, "p_", 2.0)), coef_of(model)
    fitted = getattr(model, "fit_intercept", True)
    # Value of the coordinate that the intercept belongs to; 0 for none.
    bias = float(getattr(model, "intercept_scaling", 1.0)) if fitted else 0.0
    intercepts = np.ravel(model.intercept_) / bias if bias else np.zeros(coef.shape[0])
    vectors = zip(vectors_of(coef), intercepts, strict=True)
    norms = np.array([norm(np.append(v, w), p / (p - 1.0)) for v, w in vectors])
    return norms, partial(row_norms, p=p, bias=bias)
