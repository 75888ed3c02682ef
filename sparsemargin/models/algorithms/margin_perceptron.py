"""The Perceptron with margin, in any p-norm."""

from __future__ import annotations

from sparsemargin._engine.core.vectors import FirstOrderRule
from sparsemargin.models.algorithms.first_order import Sample
from sparsemargin.models.algorithms.margin_seeker import MarginSeeker
from sparsemargin.models.parameters import declared, parameter, real


@declared
class Margin(MarginSeeker):
    r"""Perceptron with margin [1]_, [2]_.

    A trial corrects if

    .. math::

        y\, w \cdot x \le b, \qquad
        \theta \leftarrow \theta + y x,

        w_i = \operatorname{sign}(\theta_i) |\theta_i|^{p-1} / \|\theta\|_p^{p-2}.

    On separable data, the margin reached with ``p = 2`` is at least
    :math:`\gamma^* / (2 + R^2 / b)`, where R is the largest norm of a row. This is nearly half
    of the largest margin if b is large. Compare `margin_` with `margin_upper_bound_` for a bound
    computed from the data.

    {parameters}

    {attributes}

    See Also
    --------
    CRAMMAClassifier : Approximates the largest margin to any accuracy, for p = 2.
    ALMAClassifier : Approximates the largest margin to any accuracy, in any p-norm.

    References
    ----------
    .. [1] W. Krauth and M. Mezard. Learning algorithms with optimal stability in neural networks.
       Journal of Physics A 20, 1987.
    .. [2] P. Tsampouka and J. Shawe-Taylor. Constant rate approximate maximum margin algorithms.
       ECML 2006: section 5.

    Examples
    --------
    >>> from sparsemargin import MarginPerceptron
    >>> model = MarginPerceptron(margin=10, hypothesis="last", shuffle=False)
    >>> model = model.fit([[2.0, 1.0], [1.0, -1.0], [0.0, -2.0]], [1, 0, 0])
    >>> bool(model.margin_ > 0.7 * model.margin_upper_bound_)
    True
    """

    classifier = "MarginPerceptron"

    margin: float = parameter(
        1.0,
        real(0, closed="left"),
        "The threshold b, in units of ``w.x``. Larger values, relative to ``R^2``, lead to more "
        "corrections and a larger margin. Steps of another length than 1 have the effect of "
        "another threshold, because only their ratio matters.",
    )

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        return FirstOrderRule.perceptron(p, bool(self.normalize), float(self.margin))
