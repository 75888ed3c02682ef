"""The Second-order Perceptron."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from sparsemargin._engine.matrix.base import MatrixSpace
from sparsemargin._engine.matrix.second_order import SecondOrderDual, SecondOrderSpace
from sparsemargin.models.algorithms.matrix import MatrixLearner, Solver
from sparsemargin.models.parameters import declared, parameter, real
from sparsemargin.models.shared_parameters import standardize_parameter


@declared
class SecondOrder(MatrixLearner):
    r"""Second-order Perceptron, SO(a) [1]_.

    A Perceptron that uses the correlation matrix of its mistakes. The columns of S are the mistaken
    instances, divided by their 2-norms. v is the sum of these columns, multiplied by the signs of
    their labels. The weights are

    .. math:: w = (a I + S S^\top)^{-1} v,

    and a trial is a mistake if :math:`y\, w \cdot \hat{x} \le 0`. For prediction, the paper adds
    the current instance to S, which divides the output by a positive number. With two classes, this
    makes no difference. With more classes, the outputs are compared without these divisors. The
    predicted class then differs in less than 1 % of the cases.

    With `alpha`, which is not in the paper, trials with a small margin are corrected and added to v
    and S, too. A trial corrects if :math:`y\, w \cdot \hat{x}` is at most
    :math:`(1 - \alpha) \gamma_k \sqrt{w \cdot v}` with ALMA's
    :math:`\gamma_k = \sqrt{8} / (\alpha \sqrt{k})`, where k is the number of corrections so far
    plus one. The square root is the norm of :math:`(a I + S S^\top)^{-1/2} v`, the Perceptron's
    vector after the change of metric. The gain is empirical: on microarrays (leukaemia and
    lymphoma, 80 splits), alpha = 0.9 reduces the mean error from 6.5 to 4.7 %.

    A trial without a mistake and a prediction cost O(nnz(x)), as for a Perceptron. The k-th mistake
    costs O(k^2 + nonzeros of S), or O(n^2) if an n x n matrix is stored. On many features, the time
    of a fit therefore grows with the cube of the number of mistakes, until S has `max_updates`
    columns. Later mistakes cost O(nnz(x)) and a part that no longer grows. Without a limit, an
    epoch of 50,000 documents with 5 % label noise takes 330 times as long as `LinearSVC`. A fit
    warns if it will take minutes.

    {parameters}

    {attributes}

    Notes
    -----
    Sample weights and class weights multiply the step of v. They do not change the columns of S.

    In addition to the matrices, each vector takes 4 bytes per feature of X, 8 bytes per mistake,
    and up to 32 bytes per feature seen in mistakes.

    See Also
    --------
    HigherOrderPerceptron : Supports any p, at a cost that does not grow with k^2.

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
        "Weight of the identity matrix, relative to instances of norm 1. Larger values are closer "
        "to a Perceptron. Weights are accurate to about 1e-15 / a.",
        structural=True,
    )
    max_updates: int | None = parameter(
        100,
        more="If a is much smaller than 1, more corrections do reduce the error on noise-free "
        "targets with few relevant features. Directions outside the span of S then have weight "
        "1 / a, and directions in S a lower weight.",
    )
    standardize: bool = standardize_parameter()  # type: ignore[misc]
    solver: Solver = parameter(
        "auto",
        more=r'"implicit" stores S and the Cholesky factor of :math:`a I + S^\top S`: 4 k^2 bytes '
        r'for k mistakes and 12 bytes per nonzero (8 if X is float32). "primal" stores the '
        r"Cholesky factor of :math:`a I + S S^\top`. With two classes, the memory limit is reached "
        "after 16,000 mistakes.",
    )

    def _make_space(self, **settings: Any) -> MatrixSpace:
        return SecondOrderSpace(a=float(self.a), **settings)

    def _make_dual(self, **settings: Any) -> MatrixSpace:
        return SecondOrderDual(a=float(self.a), **settings)
