"""Margins of a model on given examples, and their distribution."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from sparsemargin._engine.fitting.task import norm
from sparsemargin.estimators import _validation as given
from sparsemargin.estimators._sparse import check_sparse
from sparsemargin.evaluation._coef import coef_of
from sparsemargin.evaluation._unit_margins import divided, own_margins
from sparsemargin.models import Learner
from sparsemargin.models import _rows as border
from sparsemargin.models._rows import row_norms


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
    model : fitted classifier
        One of this library, or any with `classes_`, `decision_function`, `coef_` and `intercept_`
        that learns one weight vector for two classes and one for each of more, such as
        scikit-learn's LinearSVC. p is `p_`, or 2 where there is none. With
        ``hypothesis="vote"`` the outputs are the shares of votes and nothing is divided.
    X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
        Never made dense.
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
    check_is_fitted(model)
    if getattr(model, "_has_many_labels", False):
        raise ValueError(
            "margins are those of rows with one class each; the rows of this model may have "
            "several labels. Divide its outputs by np.linalg.norm(model.coef_, ord=q, axis=1)."
        )
    check_sparse(X)
    y = given.check_labels(y)
    check_consistent_length(X, y)
    codes = _codes_of(y, model.classes_)
    return own_margins(_unit_outputs(model, X, normalize), codes)


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


def _codes_of(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Each label's place among the classes."""
    unknown = ~np.isin(y, classes)
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        raise ValueError(
            f"y[{row}] = {y[row : row + 1].tolist()[0]!r} is not among the model's classes "
            f"{classes.tolist()}. Leave such rows out."
        )
    return np.searchsorted(classes, y)


def _unit_outputs(model: Any, X: Any, normalize: bool) -> np.ndarray:
    """Outputs of the weights scaled to unit q-norm, for rows as they are or scaled to unit p-norm;
    shares of votes as they are; shape (n_samples, n_labels)."""
    hypothesis = getattr(model, "hypothesis", None)
    if hypothesis == "random":
        raise ValueError(
            "hypothesis='random' predicts each row by another weight vector, so it has no margins. "
            "Fit with hypothesis='last', 'average' or 'vote'."
        )
    if hypothesis == "vote":
        return _as_columns(model.decision_function(X))
    if isinstance(model, Learner):
        norms, lengths = model._hypothesis_norms(), model._row_lengths
    else:
        p, bias = float(getattr(model, "p_", 2.0)), _intercept_coordinate(model)
        norms, lengths = _dual_norms(model, p / (p - 1.0), bias), partial(row_norms, p=p, bias=bias)
    outputs = divided(_as_columns(model.decision_function(X)), norms)
    return divided(outputs, lengths(_rows_of(X))[:, np.newaxis]) if normalize else outputs


def _as_columns(outputs: Any) -> np.ndarray:
    outputs = np.asarray(outputs, dtype=np.float64)
    return outputs.reshape(len(outputs), -1)


def _intercept_coordinate(model: Any) -> float:
    """Value of the coordinate the intercept belongs to; 0 for none."""
    fitted = getattr(model, "fit_intercept", True)
    return float(getattr(model, "intercept_scaling", 1.0)) if fitted else 0.0


def _dual_norms(model: Any, q: float, bias: float) -> np.ndarray:
    """q-norm of every weight vector, shape (n_labels,)."""
    coef = coef_of(model)
    n_labels = coef.shape[0]
    intercepts = np.ravel(model.intercept_) / bias if bias else np.zeros(n_labels)
    vectors = [coef[k].data if issparse(coef) else coef[k] for k in range(n_labels)]
    return np.array([norm(np.append(v, w), q) for v, w in zip(vectors, intercepts, strict=True)])


def _rows_of(X: Any) -> border.Rows:
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    X = X if issparse(X) else csr_matrix(X)
    return border.check_rows(border.open_rows(X))
