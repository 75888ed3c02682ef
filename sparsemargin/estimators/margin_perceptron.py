"""The Perceptron with margin, in any p-norm."""

from __future__ import annotations

from sparsemargin.estimators._common_sections import with_common_sections
from sparsemargin.estimators._weighted import WeightedClassifier
from sparsemargin.models.margin_perceptron import MarginLearner


@with_common_sections
class MarginPerceptron(WeightedClassifier, MarginLearner):
    r"""Perceptron with margin [1]_, [2]_.

    A trial corrects where

    .. math::

        y\, w \cdot x \le b, \qquad
        \theta \leftarrow \theta + \eta y x,

        w_i = \operatorname{sign}(\theta_i) |\theta_i|^{p-1} / \|\theta\|_p^{p-2}.

    On separable data the margin reached is at least :math:`\gamma^* / (2 + \eta R^2 / b)` for
    ``p = 2`` and R the largest norm, so nearly half of the largest one for a large b. How near
    it came in truth, `margin_upper_bound_` tells.

    Parameters
    ----------
    margin : float, default=1.0
        b, in units of ``w.x``: the larger against ``eta R^2``, the more corrections and the
        larger the margin.
    p : float from 2 to 64, or "log", default=2.0
        Norm of the instances; weights are measured by the dual norm. ``"log"`` is
        ``max(2, 2 ln n_features)``.
    eta : float, default=1.0
        The step.
    normalize : bool, default=False
        Whether instances are divided by their p-norm, intercept and soft-margin coordinates
        included.
    {common parameters}

    {common attributes}

    See Also
    --------
    CRAMMAClassifier : Comes as near to the largest margin as one likes.
    ALMAClassifier : The same in any p-norm.

    References
    ----------
    .. [1] W. Krauth and M. Mezard. Learning algorithms with optimal stability in neural networks.
       Journal of Physics A 20, 1987.
    .. [2] P. Tsampouka and J. Shawe-Taylor. Constant rate approximate maximum margin algorithms.
       ECML 2006: section 5.

    Examples
    --------
    >>> from sparsemargin import MarginPerceptron
    >>> model = MarginPerceptron(margin=10).fit([[2.0, 1.0], [1.0, -1.0], [0.0, -2.0]], [1, 0, 0])
    >>> bool(model.margin_ > 0.7 * model.margin_upper_bound_)
    True
    """
