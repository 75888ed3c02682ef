"""The p-norm Perceptron, with last, averaged, voted and random hypotheses."""

from __future__ import annotations

from sparsemargin._engine.core.vectors import FirstOrderRule
from sparsemargin.models.algorithms.first_order import FirstOrderLearner, Sample
from sparsemargin.models.parameters import declared, parameter
from sparsemargin.models.shared_parameters import standardize_parameter


@declared
class PNorm(FirstOrderLearner):
    r"""p-norm Perceptron.

    On a mistake, ``y w.x <= 0``, the signed instance is added to the dual vector. The link function
    maps the dual vector to the weights:

    .. math::

        \theta \leftarrow \theta + y \hat{x}, \qquad
        w_i = \operatorname{sign}(\theta_i) |\theta_i|^{p-1} / \|\theta\|_p^{p-2}.

    ``p = 2`` is Rosenblatt's Perceptron. Targets with few relevant features are learned faster with
    larger p, up to ``p = 2 ln n``, which behaves like Winnow [1]_.

    A trial costs O(nnz(x)) for any p with the last or averaged hypothesis.

    {parameters}

    {attributes}

    See Also
    --------
    ALMAClassifier : Also corrects rows with a small margin.

    References
    ----------
    .. [1] A. J. Grove, N. Littlestone and D. Schuurmans. General convergence results for linear
       discriminant updates. Machine Learning 43, 2001. C. Gentile and N. Littlestone. The
       robustness of the p-norm algorithms. COLT 1999.
    .. [2] Y. Freund and R. E. Schapire. Large margin classification using the Perceptron
       algorithm. Machine Learning 37, 1999: Figure 1, sections 3.2 (Theorem 2) and 5.

    Examples
    --------
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, _ = make_alma_target(2000, 1000, random_state=0)
    >>> model = PNormPerceptron(p=6, random_state=0).fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.85)
    True
    """

    classifier = "PNormPerceptron"

    normalize: bool = parameter(
        True, more="False uses them unchanged; with ``p=2`` this is the Perceptron of [2]_."
    )
    standardize: bool = standardize_parameter()  # type: ignore[misc]
    max_iter: float | None = parameter(
        10, more="The default was selected by cross-validation on text, microarrays and other data."
    )

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        return FirstOrderRule.perceptron(p, bool(self.normalize))
