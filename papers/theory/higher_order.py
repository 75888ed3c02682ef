"""Mistakes of the Higher-order Perceptron: Brotto, Gentile & Vitale (2007), Theorem 1.

Margins are those of the transformed sequence, which `HigherOrderRun.transformed_margins` gives: of
rows divided by their p-norm and multiplied by the matrix of all mistakes before, under a u of unit
q-norm. c is the estimator's, rho_k being c / k; that of the paper's theorem is 1 - c.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import sqrt
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array, diags_array, hstack
from scipy.sparse.linalg import norm
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from papers.theory.checks import (
    Numbers,
    check_least,
    check_numbers,
    check_positive,
    check_vector,
)
from papers.theory.perceptron import deviations


def higher_order_mistakes(
    margin: ArrayLike,
    hinge_loss: ArrayLike = 0.0,
    *,
    c: float,
    p: float = 2.0,
    radius: float | None = None,
    alpha: float | None = None,
) -> Numbers:
    r"""Most mistakes that HO_p(c) makes on a sequence of examples, or corrections with a margin.

    .. math::

        m \le \alpha \frac{D}{\gamma} + \frac{\alpha^2}{2 \gamma^2}
              + \frac{\alpha}{\gamma} \sqrt{\alpha \frac{D}{\gamma} + \frac{\alpha^2}{4 \gamma^2}},
        \qquad \alpha = \frac{1 + c}{1 - c},

    for any gamma > 0 and any u of unit length: Brotto, Gentile & Vitale (2007), Theorem 1, eq. 2,
    where p = 2. For other p see the notes.

    Parameters
    ----------
    margin : float or array-like
        gamma, any number greater than 0.
    hinge_loss : float or array-like, default=0.0
        D, the sum of the `deviations` from that margin over all mistakes, a row mistaken twice
        counted twice: :math:`\sum_k \max(0, \gamma - y_k u \cdot B_{k-1} x_k)`.
    c : float
        In [0, 1). Any rates with :math:`0 \le \rho_k \le c / (1 + |G_k \cdot v_{k-1}|)` will do,
        so the bound holds for ``c / k`` and where rates are 0, as `sparse_updates` and
        `max_updates` make them. Weights other than 1, of rows or classes, are outside of it.
    p : float, default=2.0
        Norm of the instances, at least 2.
    radius : float, default=None
        X, the root mean square or a larger bound of the p-norms of the transformed instances:
        `HigherOrderRun.radius`. None: 1, which none exceeds where p is 2; for other p it has to
        be given.
    alpha : float, default=None
        The estimator's: the bound is then for all its corrections. For p = 2.

    Returns
    -------
    float or ndarray
        A count, to hold against `n_corrections_`; not rounded down.

    See Also
    --------
    tightest_higher_order_bound : The least bound that one u gives.

    Notes
    -----
    The paper has no formula for p > 2. Its proof carries over with
    :math:`\alpha \sqrt{p - 1}\, X` in place of each :math:`\alpha` but those before D:

    Let :math:`B_k = B_{k-1} (I - \rho_k x_k G_k^\top)`, G_k being the image of x_k under the link,
    so that :math:`G_k \cdot x_k = 1`, and :math:`z_k = B_{k-1} x_k`. Then
    :math:`B_k v_k = B_{k-1} v_{k-1} + y_k r_k z_k` with
    :math:`r_k = 1 - \rho_k - \rho_k\, y_k G_k \cdot v_{k-1}`, which the condition on the rates
    keeps between 1 - c and 1 + c; ``c / k`` meets it as
    :math:`|G_k \cdot v_{k-1}| \le \|G_k\|_q \|v_{k-1}\|_p \le k - 1`. From above: half the
    squared p-norm has the link as its gradient and is smooth with constant p - 1 (Grove,
    Littlestone & Schuurmans, 2001), and at a mistake
    :math:`y_k\, \mathrm{link}(B_{k-1} v_{k-1}) \cdot z_k \le 0`, so
    :math:`\|B_m v_m\|_p^2 \le (p - 1) (1 + c)^2 \sum_k \|z_k\|_p^2`. From below:
    :math:`\|B_m v_m\|_p \ge u \cdot B_m v_m = \sum_k r_k y_k u \cdot z_k
    \ge (1 - c) \gamma m - (1 + c) D`. Both together are quadratic in :math:`\sqrt m`. For p = 2
    the factors of B are contractions, hence X = 1 is enough; for p > 2 they are not, and X has to
    be measured.

    With `alpha`, which no paper has here, ALMA's argument goes through the same proof, for p = 2.
    With :math:`N_k = \|B_k v_k\|_2` and :math:`\theta = (1 - \alpha_M) \sqrt 8 / \alpha_M`,
    :math:`\alpha_M` being `alpha`, correction k has
    :math:`y_k\, B_{k-1} v_{k-1} \cdot z_k \le \theta N_{k-1} / \sqrt k`, hence
    :math:`N_k^2 \le N_{k-1}^2 + 2 (1 + c) \theta N_{k-1} / \sqrt k + (1 + c)^2`, and by induction
    :math:`N_k \le (1 + c) (\theta + \sqrt{1 + \theta^2}) \sqrt k`. So the bound holds with
    :math:`\theta + \sqrt{1 + \theta^2}` in the place of X.

    Examples
    --------
    >>> print(higher_order_mistakes(0.5, c=0.0))
    4.0
    >>> print(higher_order_mistakes(1.5, 1.5, c=0.5))
    9.0
    """
    gamma = check_positive("margin", margin)
    loss = _alpha(c) * check_least("hinge_loss", hinge_loss, 0.0) / gamma
    half = _alpha(c) * _scale(p, radius) * _growth(alpha, p) / (2.0 * gamma)
    return (half + np.sqrt(half**2 + loss)) ** 2


def tightest_higher_order_bound(
    margins: ArrayLike, *, c: float, p: float = 2.0, radius: float | None = None,
    alpha: float | None = None,
) -> float:  # fmt: skip
    r"""The least bound of `higher_order_mistakes` that one u gives, over its own margins.

    The least for gamma up to the largest margin that occurs, which is always at one of them. Beyond
    it the bound tends to :math:`\alpha m`, whatever the data, and says nothing. For, with
    :math:`s = 1 / \gamma` and :math:`t = \sqrt m`, the bound solves
    :math:`t^2 = \alpha (\sqrt{p - 1}\, X s t + \sum_k \max(0, 1 - s\, y_k u \cdot z_k))`, and
    for a given t the right side is least where the sum has a bend.

    Parameters
    ----------
    margins : array-like of shape (n_mistakes,)
        :math:`y_k u \cdot z_k` of the transformed sequence: `HigherOrderRun.transformed_margins`.
    c, p, radius, alpha
        As for `higher_order_mistakes`.

    Returns
    -------
    float
        A count; not rounded down. Infinite where no margin is positive.

    Examples
    --------
    >>> tightest_higher_order_bound([0.5, 0.5, 0.5, -0.125], c=0.0)
    6.25
    """
    a = np.sort(check_vector("margins", margins))
    positive = a > 0
    # Rounding may leave a loss of nothing below zero.
    losses = np.maximum(np.arange(len(a)) * a - (np.cumsum(a) - a), 0.0)
    bounds = higher_order_mistakes(
        a[positive], losses[positive], c=c, p=p, radius=radius, alpha=alpha
    )
    return float(np.min(bounds, initial=np.inf))


def _check_rate(c: float) -> float:
    """`c` as a float in [0, 1)."""
    number = float(check_numbers("c", c))
    if not 0.0 <= number < 1.0:
        raise ValueError(f"c must be at least 0 and less than 1, got {c!r}.")
    return number


def _alpha(c: float) -> float:
    checked = _check_rate(c)
    return (1.0 + checked) / (1.0 - checked)


def _scale(p: float, radius: float | None) -> float:
    """sqrt(p - 1) times the radius."""
    checked = float(check_least("p", p, 2.0))
    if radius is None:
        if checked > 2.0:
            raise ValueError(
                f"p={p!r} needs radius: the transformed instances of p-norms above 2 may be longer "
                "than 1. Pass HigherOrderRun.radius."
            )
        return 1.0
    return float(np.sqrt(checked - 1.0) * check_positive("radius", radius))


def _growth(alpha: float | None, p: float) -> float:
    """By what a margin makes what learns longer."""
    if alpha is None:
        return 1.0
    if p > 2.0:
        raise ValueError(
            f"alpha={alpha!r}: with a margin there is a bound for p=2 only, got p={p!r}. Pass "
            "alpha=None for a run of mistakes."
        )
    theta = (1.0 - alpha) * sqrt(8.0) / float(check_positive("alpha", alpha))
    return theta + sqrt(1.0 + theta**2)


class HigherOrderBound(NamedTuple):
    """Mistakes of a run beside the most that theory allows, as `HigherOrderRun.bound` gives it."""

    n_mistakes: int
    bound: float


class HigherOrderRun:
    r"""A run of HO_p(c) as its mistakes, and the transformed sequence of Theorem 1.

    The k-th mistaken instance :math:`x_k` becomes :math:`z_k = B_{k-1} x_k`, where
    :math:`B_k = B_{k-1} (I - \rho_k x_k G_k^\top)`, :math:`B_0 = I`, and :math:`G_k` is the image
    of :math:`x_k` under the link, :math:`x_k` itself where p is 2: Brotto, Gentile & Vitale
    (2007), section 3, eq. 1, and the end of section 2 for p > 2. A matrix is never formed.

    Parameters
    ----------
    X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_mistakes, n_features)
        The instances on which mistakes were made, in the order in which they were made, a row
        mistaken twice being there twice; with an intercept its coordinate too. They are divided by
        their p-norm here.
    y : array-like of shape (n_mistakes,)
        Their labels, -1 or 1.
    c, p, sparse_updates, max_updates, alpha
        As for `HigherOrderPerceptron`; p is a number.

    Attributes
    ----------
    rows : csr_array of shape (n_mistakes, n_features), float64
        The instances, of unit p-norm.
    labels : ndarray of shape (n_mistakes,), float64
        -1 and 1.
    rates : ndarray of shape (n_mistakes,), float64
        :math:`\rho_k`; 0 where a mistake left the matrix as it was.
    c, p : float

    Raises
    ------
    ValueError
        If an argument can't be used, there is no mistake, or a row is zero: on such a row none is
        made.

    See Also
    --------
    higher_order_mistakes : The bound as a function of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> run = HigherOrderRun(np.array([[1.0, 0.0], [0.6, 0.8]]), [1, -1], c=0.5)
    >>> run.rates
    array([0.5 , 0.25])
    >>> run.transformed_rows().toarray()
    array([[1. , 0. ],
           [0.3, 0.8]])
    >>> run.transformed_margins([0.0, -1.0])
    array([0. , 0.8])
    >>> print(run.bound([0.6, -0.8], margin=0.4))
    HigherOrderBound(n_mistakes=2, bound=56.25)
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        *,
        c: float,
        p: float = 2.0,
        sparse_updates: bool = False,
        max_updates: int | None = None,
        alpha: float | None = None,
    ):
        self.alpha = alpha
        self.c, self.p = _check_rate(c), float(check_least("p", p, 2.0))
        self.rows = _unit_rows(X, self.p)
        self.labels = check_vector("y", y)
        check_consistent_length(self.rows, self.labels)
        if not (np.abs(self.labels) == 1.0).all():
            raise ValueError("y has labels other than -1 and 1. Map the classes to these two.")
        # Of unit rows, under the link.
        images = np.sign(self.rows.data) * np.abs(self.rows.data) ** (self.p - 1.0)
        self._images = csr_array((images, self.rows.indices, self.rows.indptr), self.rows.shape)
        self.rates = self.c / np.arange(1, len(self.labels) + 1)
        if sparse_updates:
            self.rates[self._agreements() < 0] = 0.0
        if max_updates is not None:
            self.rates[np.cumsum(self.rates > 0) > max_updates] = 0.0

    @classmethod
    def from_model(cls, model: Any, X: Any, y: Any) -> Self:
        """The run behind a fitted HigherOrderPerceptron of two classes.

        Parameters
        ----------
        model : HigherOrderPerceptron
            Fitted on X and y with all weights 1: weighted runs are outside of the theorem. Those
            of `class_weight` are refused here; `sample_weight` leaves no trace to be found.
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
            The rows that the model learned from; after `partial_fit` those of all calls, in this
            order.
        y : array-like of shape (n_samples,)
            Their labels, among ``model.classes_``.

        Returns
        -------
        HigherOrderRun

        Raises
        ------
        ValueError
            If the model has more than two classes or weights them, made more
            mistakes than `max_updates`, or did not learn from X and y.
        """
        check_is_fitted(model)
        if len(model.classes_) != 2 or model.class_weight is not None:
            raise ValueError(
                "The bound is for one weight vector and weights of 1. Fit with two classes and "
                "class_weight=None."
            )
        check_consistent_length(X, y)
        X, mistakes = check_array(X, accept_sparse="csr", dtype=np.float64), model.mistakes_
        if len(mistakes) < model.n_corrections_:
            raise ValueError(
                f"The model knows the rows of its first {len(mistakes)} mistakes alone, of "
                f"{model.n_corrections_}. Fit with max_updates=None."
            )
        if X.shape[1] != model.n_features_in_ or mistakes.max(initial=-1) >= X.shape[0]:
            raise _not_learned_from("they have another shape")
        y = np.asarray(column_or_1d(y, warn=True))[mistakes]
        if not np.isin(y, model.classes_).all():
            raise _not_learned_from(f"a label is not among {model.classes_.tolist()}")
        rows = csr_array(X[mistakes])
        if model.fit_intercept:
            bias = np.full((len(mistakes), 1), model.intercept_scaling_)
            rows = hstack([rows, csr_array(bias)], format="csr")
        run = cls(
            rows, np.where(y == model.classes_[1], 1.0, -1.0), c=model.c, p=model.p_,
            sparse_updates=model.sparse_updates, max_updates=model.max_updates, alpha=model.alpha,
        )  # fmt: skip
        if np.count_nonzero(run.rates) != model.n_updates_:
            raise _not_learned_from(
                f"their mistakes change the matrix {np.count_nonzero(run.rates)} times, those of "
                f"the model did {model.n_updates_} times"
            )
        return run

    def transformed_rows(self) -> csr_array:
        r"""The transformed instances :math:`z_k`, for instance to find a u on by LinearSVC.

        From :math:`B_{k-1} = I - \sum_{i<k} \rho_i z_i G_i^\top` follows
        :math:`z_k = x_k - \sum_{i<k} \rho_i (G_i \cdot x_k) z_i`, a triangular system. It takes
        O(n_mistakes^2) times the features that occur, and dense matrices of that width.

        Returns
        -------
        csr_array of shape (n_mistakes, n_features), float64
            As good as dense in the features that occur.
        """
        seen = np.unique(self.rows.indices)
        products = (self.rows @ self._images.T).toarray()
        system = np.tril(products, -1) * self.rates
        transformed = solve_triangular(
            system, self.rows[:, seen].toarray(), lower=True, unit_diagonal=True
        )
        filled = csr_array(transformed)
        return csr_array((filled.data, seen[filled.indices], filled.indptr), shape=self.rows.shape)

    def transformed_margins(self, u: ArrayLike) -> NDArray[np.float64]:
        r"""Margins of the transformed sequence, :math:`y_k u \cdot B_{k-1} x_k`.

        In O(nnz(x_k)) each: :math:`B_k^\top u = B_{k-1}^\top u - \rho_k (x_k \cdot B_{k-1}^\top u)
        G_k` takes the place of the transformed instances.

        Parameters
        ----------
        u : array-like of shape (n_features,)
            The comparison vector; divided by its q-norm here, 1/p + 1/q = 1. With an intercept
            its coordinate is the last.

        Returns
        -------
        ndarray of shape (n_mistakes,), float64
            In [-1, 1] where p is 2.

        Raises
        ------
        ValueError
            If u has another length, or is zero.
        """
        moved = self._unit_dual(u)
        margins = np.empty(len(self.rates))
        for k, (columns, values, images) in enumerate(self._stored()):
            margins[k] = values @ moved[columns]
            moved[columns] -= self.rates[k] * margins[k] * images
        return self.labels * margins

    @cached_property
    def radius(self) -> float:
        """Root mean square of the p-norms of the transformed instances; at most 1 where p is 2."""
        norms = norm(self.transformed_rows(), ord=self.p, axis=1)
        return float(np.sqrt(np.mean(norms**2)))

    def bound(self, u: ArrayLike, margin: float | None = None) -> HigherOrderBound:
        """The mistakes of this run, and the most that one comparison vector allows.

        Parameters
        ----------
        u : array-like of shape (n_features,)
            As for `transformed_margins`.
        margin : float, default=None
            gamma. None: where the bound is least, see `tightest_higher_order_bound`.

        Returns
        -------
        HigherOrderBound
            `n_mistakes` and `bound`, which is Theorem 1's where p is 2; for p > 2 that of the
            notes of `higher_order_mistakes`, with this run's `radius`.

        Raises
        ------
        ValueError
            If u or `margin` can't be used.
        """
        margins = self.transformed_margins(u)
        radius = None if self.p == 2.0 else self.radius
        if margin is None:
            bound = tightest_higher_order_bound(
                margins, c=self.c, p=self.p, radius=radius, alpha=self.alpha
            )
        else:
            loss = np.sum(deviations(margins, margin))
            found = higher_order_mistakes(
                margin, loss, c=self.c, p=self.p, radius=radius, alpha=self.alpha
            )
            bound = float(found)
        return HigherOrderBound(len(margins), bound)

    def _stored(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Of each mistake the columns, the values and their images under the link."""
        ends = self.rows.indptr[1:-1]
        arrays = self.rows.indices, self.rows.data, self._images.data
        return zip(*(np.split(array, ends) for array in arrays), strict=True)

    def _agreements(self) -> NDArray[np.float64]:
        """y_k G_k . v_{k-1}."""
        v = np.zeros(self.rows.shape[1])
        agreements = np.empty(len(self.labels))
        for k, (columns, values, images) in enumerate(self._stored()):
            agreements[k] = self.labels[k] * (images @ v[columns])
            v[columns] += self.labels[k] * values
        return agreements

    def _unit_dual(self, u: ArrayLike) -> NDArray[np.float64]:
        """u divided by its q-norm."""
        vector = check_vector("u", u)
        if len(vector) != self.rows.shape[1]:
            raise ValueError(
                f"u has {len(vector)} entries, the rows {self.rows.shape[1]}. With an intercept "
                "its coordinate belongs to both."
            )
        norm = np.linalg.norm(vector, ord=self.p / (self.p - 1.0))
        if norm == 0:
            raise ValueError("u is zero: it compares with nothing.")
        return vector / norm


def _not_learned_from(reason: str) -> ValueError:
    return ValueError(
        f"The model did not learn from these X and y: {reason}. Pass the rows of fit, or those of "
        "all calls of partial_fit."
    )


def _unit_rows(X: Any, p: float) -> csr_array:
    """X divided by the p-norms of its rows, each column stored once and no zeros."""
    rows = csr_array(check_array(X, accept_sparse="csr", dtype=np.float64), copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    norms = norm(rows, ord=p, axis=1)
    if not norms.all():
        raise ValueError(
            f"Row {int(np.argmin(norms))} of X is zero: no mistake is made on it. Leave it out."
        )
    return csr_array(diags_array(1.0 / norms) @ rows)
