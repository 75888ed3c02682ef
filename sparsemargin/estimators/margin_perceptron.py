"""The Perceptron with margin, in any p-norm."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import Interval

from sparsemargin._engine._rules import FirstOrderRule
from sparsemargin.estimators._common_sections import with_common_sections
from sparsemargin.estimators._first_order import FirstOrderClassifier, Sample
from sparsemargin.estimators._online import Hypothesis
from sparsemargin.estimators._weighted import WeightedClassifier


@with_common_sections
class MarginPerceptron(WeightedClassifier, FirstOrderClassifier):
    r"""Perceptron with margin [1]_, [2]_.

    A trial corrects where

    .. math::

        y\, w \cdot x \le b, \qquad
        \theta \leftarrow \theta + \eta y x, \qquad
        w_i = \operatorname{sign}(\theta_i) |\theta_i|^{p-1} / \|\theta\|_p^{p-2}.

    On separable data the margin reached is at least :math:`\gamma^* / (2 + \eta R^2 / b)` for
    ``p = 2`` and R the largest norm, so nearly half of the largest one for a large b. How near
    it came in truth, `margin_upper_bound_` tells.

    Parameters
    ----------
    margin : float, default=1.0
        b, in units of ``w.x``: the larger against ``eta R^2``, the more corrections and the
        larger the margin.
    p : float from 2 to 256, or "log", default=2.0
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

    _seeks_margin = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **FirstOrderClassifier._parameter_constraints,
        **WeightedClassifier._parameter_constraints,
        "margin": [Interval(Real, 0, None, closed="left")],
        "eta": [Interval(Real, 0, None, closed="neither")],
        "normalize": ["boolean"],
    }

    def __init__(
        self,
        *,
        margin: float = 1.0,
        p: float | Literal["log"] = 2.0,
        eta: float = 1.0,
        normalize: bool = False,
        hypothesis: Hypothesis = "last",
        normalize_hypotheses: bool = False,
        max_iter: float | None = 1000,
        max_corrections: int | None = None,
        tol: float | None = None,
        shuffle: bool = False,
        random_state: Any = None,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        soft_margin: float = 0.0,
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        keep_history: bool = False,
    ):
        self._keep(locals())

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        return FirstOrderRule.perceptron(
            p, bool(self.normalize), float(self.margin), float(self.eta)
        )
