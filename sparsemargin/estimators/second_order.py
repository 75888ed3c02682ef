"""The Second-order Perceptron."""

from __future__ import annotations

from sparsemargin.estimators._common_sections import with_common_sections
from sparsemargin.estimators._weighted import WeightedClassifier
from sparsemargin.models.second_order import SecondOrderLearner


@with_common_sections
class SecondOrderPerceptron(WeightedClassifier, SecondOrderLearner):
    r"""Second-order Perceptron, SO(a) [1]_.

    A Perceptron in the metric of its own mistakes: with S the matrix whose columns are the
    mistaken instances, divided by their 2-norms, and v their sum with the signs of their labels,

    .. math:: w = (a I + S S^\top)^{-1} v,

    and a trial is a mistake where :math:`y\, w \cdot \hat{x} \le 0`. The paper's prediction adds
    the instance at hand to S, which divides the output by a positive number: with two classes
    nothing changes. With more, outputs of the classes are compared without these divisors; the
    largest of them is another one in less than one case in a hundred.

    A trial without a mistake costs O(nnz(x)), and so does a prediction, as for a Perceptron. The
    k-th mistake costs O(k^2 + nonzeros of S); or O(n^2) where an n x n matrix is kept. So a fit on
    many features grows with the cube of its mistakes, until S has `max_updates` of them, and then
    with their number. Unbounded, an epoch of 50,000 documents with 5 % of labels wrong takes 330
    times as long as `LinearSVC`; one that will take minutes warns.

    Parameters
    ----------
    a : float from 1e-12 to 1e12, default=1.0
        Weight of the identity, in units of the instances, whose norm is 1. The larger, the more
        like a Perceptron. Weights are exact to about 1e-15 / a.
    max_updates : int or None, default=1000
        After that many mistakes S stays as it is, and only v moves: a Perceptron in a fixed
        metric, at a bounded cost a mistake. More gain nothing on noisy text, nor do 1000 over 300.
        None, which the paper has: any number.
    solver : {"auto", "implicit", "primal", "dual"}, default="auto"
        "implicit": by S and the Cholesky factor of :math:`a I + S^\top S`, 4 k^2 bytes for k
        mistakes and 12 a nonzero of S (8 for float32). "primal": by the factor of :math:`a I + S
        S^\top`, 8 n^2 bytes. "auto" begins with the first and goes over to the second where n^2
        numbers take at most 64 MB, all classes together, and the first has come to cost more.
        "dual": by the k x k numbers of the k mistakes that changed S, 4 k^2 bytes a label (as much
        again for the products of all mistaken rows with `normalize_hypotheses`, a vote or a random
        hypothesis; beyond the bound these end the fit with an error), over a pool of rows that all
        labels share; for p = 2, with any kernel, and what "auto" is with one that is not linear.
        Each takes at most 1 GiB, all classes together: there S stops growing (at 16,000 mistakes of
        two classes), and a warning says so.
    {common parameters}

    {common attributes}

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
    >>> model = SecondOrderPerceptron(a=0.2, random_state=0).fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.8)
    True
    """
