"""The Higher-order Perceptron."""

from __future__ import annotations

from typing import Any

from sparsemargin._engine.matrix.base import MatrixSpace
from sparsemargin._engine.matrix.higher_order import HigherOrderDual, HigherOrderSpace
from sparsemargin.models.algorithms.matrix import MatrixLearner, Solver
from sparsemargin.models.parameters import FLAG, declared, parameter, real


@declared
class HigherOrder(MatrixLearner):
    r"""Higher-order Perceptron, HO_p(c) [1]_.

    A p-norm Perceptron that also learns how its mistakes lie to each other. On the k-th of them,
    :math:`y\, w_{k-1} \cdot \hat{x} \le 0` with :math:`\hat{x} = x / \|x\|_p`,

    .. math::

        v_k = v_{k-1} + y \hat{x},

        B_k = B_{k-1} \left(I - \rho_k\, \hat{x}\, g(\hat{x})^\top\right),

        w_k = B_k^\top g(B_k v_k),

    where :math:`g = \nabla \|\cdot\|_p^2 / 2` is the link and :math:`\rho_k = c / k`. ``c = 0`` is
    the p-norm Perceptron. Larger p favours targets with few relevant features.

    `alpha` and `margin`, which are not in the paper, correct trials of a small margin too, and v, B
    and k then move at each correction: where :math:`y\, w_{k-1} \cdot \hat{x}` is at most
    `margin`, or at most

    .. math::

        (1 - \alpha) \gamma_k \|B_{k-1} v_{k-1}\|_p, \qquad
        \gamma_k = \sqrt{8} / (\alpha \sqrt{k}),

    the threshold of ALMA_2 [2]_ against the norm of what learns, in the space that B takes
    instances to: for p = 2, :math:`w \cdot \hat{x}` is the product of
    :math:`B v` with :math:`B \hat{x}` there. The gain is an empirical one: on microarrays
    (leukaemia and lymphoma, 80 splits) the mean error falls from 6.9 to 4.6 % with alpha = 0.9.

    A trial without a mistake costs O(nnz(x)), and so does a prediction, as for a Perceptron. A
    mistake costs O(stored nonzeros of the mistakes that changed B), plus some passes over the
    features seen in mistakes so far; or O(n^2) where B itself is kept. So a fit grows with the
    square of its mistakes, until `max_updates` of them have changed B. From then on a mistake costs
    O(nnz(x)) beside those, whatever features have been seen: with p = 7, five epochs of 100,000
    documents with 5 % of labels wrong take about as long as `LinearSVC`. Unbounded and without a
    margin, one takes 36 times as long; one that will take minutes warns.

    {parameters}

    {attributes}

    Notes
    -----
    With `alpha`, for p = 2 and weights of 1, the bound of Theorem 1 holds for the number of all
    corrections where margins are divided by :math:`\theta + \sqrt{1 + \theta^2}`,
    :math:`\theta = (1 - \alpha) \sqrt{8} / \alpha`: the norm of B v then grows by that factor
    faster. So on rows whose transforms a vector of length 1 separates by gamma, learning ends after
    at most :math:`((1 + c) / (1 - c))^2 (\theta + \sqrt{1 + \theta^2})^2 / \gamma^2` corrections.
    Nothing is proved of the margin reached, nor for p > 2 or `margin`.

    Weights of samples and classes multiply the step of v, not rho.

    Beside the matrix a label takes 4 bytes a feature of X, 8 a mistake, and up to 48 a feature that
    mistakes have brought so far.

    Where a row lies exactly on the hyperplane, rounding may tell on which side, and differently for
    each solver, as for any two ways to work out the same sum.

    See Also
    --------
    SecondOrderPerceptron : Inverts the mistakes' correlation matrix instead.
    PNormPerceptron : The same with c = 0, in O(nnz(x)) a mistake.

    References
    ----------
    .. [1] C. Brotto, C. Gentile and F. Vitale. On Higher-Order Perceptron Algorithms. NIPS 2007:
       Figure 1, section 2 (p > 2 and the implicit primal form), Theorem 1.
    .. [2] C. Gentile. A new approximate maximal margin classification algorithm. Journal of
       Machine Learning Research 2, 2001.

    Examples
    --------
    >>> from sparsemargin import HigherOrderPerceptron
    >>> from sparsemargin.datasets import make_ho_target
    >>> X, y, X_test, y_test, _ = make_ho_target(random_state=0)
    >>> fit = lambda p: HigherOrderPerceptron(p=p, random_state=0).fit(X, y)
    >>> bool(fit(7).score(X_test, y_test) > fit(2).score(X_test, y_test) + 0.05)
    True
    """

    classifier = "HigherOrderPerceptron"

    c: float = parameter(
        0.4,
        real(0, 1, "left"),
        "How much of an instance's direction a mistake takes out of the matrix. 1 - c is the c of "
        "the paper's Theorem 1.",
        structural=True,
    )
    sparse_updates: bool = parameter(
        False,
        FLAG,
        r"Whether only some mistakes change the matrix. It stays where "
        r":math:`y\, g(\hat{x}) \cdot v_{k-1} < 0`. Half of the mistakes then change it in the "
        "paper's kernel experiments, a tenth on text. "
        r"The paper has it for p = 2 (section 4), with :math:`\hat{x} \cdot v`.",
        structural=True,
    )
    max_updates: int | None = parameter(
        100,
        more=r"Theorem 1, for p = 2 and steps of weight 1, allows any :math:`\rho_k` from 0 up to "
        r":math:`(1 - c_T) / (1 + |v_{k-1} \cdot x_k|)`, so it still holds.",
    )
    solver: Solver = parameter(
        "auto", more="The rows take 12 bytes a nonzero (20 for p > 2; 8 and 12 for float32)."
    )

    def _make_space(self, **settings: Any) -> MatrixSpace:
        return HigherOrderSpace(
            p=self.p_for(settings["n_features"]), c=float(self.c),
            sparse_updates=bool(self.sparse_updates), **settings,
        )  # fmt: skip

    def _make_dual(self, **settings: Any) -> MatrixSpace:
        return HigherOrderDual(
            c=float(self.c), sparse_updates=bool(self.sparse_updates), **settings
        )  # fmt: skip
