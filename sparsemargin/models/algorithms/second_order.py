"""The Second-order Perceptron."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from sparsemargin._engine.matrix.base import MatrixSpace
from sparsemargin._engine.matrix.second_order import SecondOrderDual, SecondOrderSpace
from sparsemargin.models.algorithms.matrix import MatrixLearner, Solver
from sparsemargin.models.parameters import declared, parameter, real


@declared
class SecondOrder(MatrixLearner):
    r"""Second-order Perceptron, SO(a) [1]_.

    A Perceptron in the metric of its own mistakes: with S the matrix whose columns are the
    mistaken instances, divided by their 2-norms, and v their sum with the signs of their labels,

    .. math:: w = (a I + S S^\top)^{-1} v,

    and a trial is a mistake where :math:`y\, w \cdot \hat{x} \le 0`. The paper's prediction adds
    the instance at hand to S, which divides the output by a positive number: with two classes
    nothing changes. With more, outputs of the classes are compared without these divisors; the
    largest of them is another one in less than one case in a hundred.

    `alpha` and `margin`, which are not in the paper, correct trials of a small margin too, and v
    and S take these in: where :math:`y\, w \cdot \hat{x}` is at most `margin`, or at most
    :math:`(1 - \alpha) \gamma_k \sqrt{w \cdot v}`, k - 1 corrections having been made, with ALMA's
    :math:`\gamma_k = \sqrt{8} / (\alpha \sqrt{k})`. The root is the norm of
    :math:`(a I + S S^\top)^{-1/2} v`, which learns in the metric of the mistakes. The gain is an
    empirical one: on microarrays (leukaemia and lymphoma, 80 splits) the mean error falls from 6.5
    to 4.7 % with alpha = 0.9.

    A trial without a mistake costs O(nnz(x)), and so does a prediction, as for a Perceptron. The
    k-th mistake costs O(k^2 + nonzeros of S); or O(n^2) where an n x n matrix is kept. So a fit on
    many features grows with the cube of its mistakes, until S has `max_updates` of them; from then
    on a mistake costs O(nnz(x)) beside these. Unbounded, an epoch of 50,000 documents with 5 % of
    labels wrong takes 330 times as long as `LinearSVC`; one that will take minutes warns.

    {parameters}

    {attributes}

    Notes
    -----
    Weights of samples and classes multiply the step of v; S takes in the instance as it is.

    Beside the matrices a label takes 4 bytes a feature of X, 8 a mistake, and up to 32 a feature
    that mistakes have brought so far.

    See Also
    --------
    HigherOrderPerceptron : For any p, at a cost that does not grow with k^2.

    References
    ----------
    .. [1] N. Cesa-Bianchi, A. Conconi and C. Gentile. A second-order Perceptron algorithm. SIAM
       Journal on Computing 34, 2005.

    Examples
    --------
    >>> from sparsemargin import SecondOrderPerceptron
    >>> from sparsemargin.datasets import make_ho_target
    >>> X, y, X_test, y_test, _ = make_ho_target(random_state=0)
    >>> model = SecondOrderPerceptron(a=0.2, max_updates=None, random_state=0).fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.8)
    True
    """

    classifier = "SecondOrderPerceptron"

    p: float = field(default=2.0, init=False)

    a: float = parameter(
        1.0,
        real(1e-12, 1e12, "both"),
        "Weight of the identity, in units of the instances, whose norm is 1. The larger, the more "
        "like a Perceptron. Weights are exact to about 1e-15 / a.",
        structural=True,
    )
    max_updates: int | None = parameter(
        100,
        more="With a much below 1 they do gain on targets that few features decide without noise: "
        "what S has not then weighs 1 / a, and what it has less.",
    )
    solver: Solver = parameter(
        "auto",
        more=r"The rows are those of S, with the Cholesky factor of :math:`a I + S^\top S`: 4 k^2 "
        r"bytes for k mistakes and 12 a nonzero (8 for float32); the numbers are the factor of "
        r":math:`a I + S S^\top`. The bound is met at 16,000 mistakes of two classes.",
    )

    def _make_space(self, **settings: Any) -> MatrixSpace:
        return SecondOrderSpace(a=float(self.a), **settings)

    def _make_dual(self, **settings: Any) -> MatrixSpace:
        return SecondOrderDual(a=float(self.a), **settings)
