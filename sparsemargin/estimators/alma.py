"""ALMA_p, the approximate large margin algorithm."""

from __future__ import annotations

from typing import Any

from sparsemargin.estimators._common_sections import with_common_sections
from sparsemargin.estimators._weighted import WeightedClassifier
from sparsemargin.models.alma import ALMALearner


@with_common_sections
class ALMAClassifier(WeightedClassifier, ALMALearner):
    r"""Approximate large margin algorithm ALMA_p(alpha; B, C) [1]_, Figure 1.

    With k the corrections so far plus one, a trial corrects where

    .. math::

        y\, w \cdot \hat{x} \le (1 - \alpha) \gamma_k, \qquad
        \gamma_k = B \sqrt{p - 1} / \sqrt{k},

    .. math::

        \theta' = \theta + \frac{C}{\sqrt{p - 1} \sqrt{k}} y \hat{x}, \qquad
        \theta \leftarrow \theta' / \max(1, \|\theta'\|_p),

    .. math::

        w_i = \operatorname{sign}(\theta_i) |\theta_i|^{p-1} / \|\theta\|_p^{p-2}.

    On separable data whose largest p-norm margin is :math:`\gamma^*` it comes to a margin of at
    least :math:`(1 - \alpha) \gamma^*` after at most
    :math:`2 (p-1) / \gamma^{*2} \, (2/\alpha - 1)^2 + 8/\alpha - 4` corrections (Theorem 3).

    A trial costs O(nnz(x)), for any p, with the last or the averaged hypothesis.

    Parameters
    ----------
    p : float from 2 to 64, or "log", default=2.0
        Norm of the instances; weights are measured by the dual norm. ``"log"`` is
        ``max(2, 2 ln n_features)`` (Remark 6). Large p pays where few features are relevant.
    alpha : float in (0, 1], default=0.9
        The margin reached is at least ``1 - alpha`` of the largest. Smaller means more corrections
        and a larger margin; 1 corrects on mistakes only. 0.9 is best after a single epoch on RCV1
        topics; after five, 0.7 to 0.8 err 0.2 points less (``benchmarks/defaults.py``).
    B : float or None, default=None
        None is ``sqrt(8) / alpha``, as Theorem 3, part 1, needs.
    C : float, default=sqrt(2)
    normalize : {True, False, "running", "max"}, default=True
        What instances are divided by: their own p-norm; nothing; the largest norm among the
        corrections so far (Remark 7); the largest norm in the data, rows of weight 0 apart, which
        only `fit` can know.
        Intercept and soft-margin coordinates are included.
    {common parameters}

    {common attributes}

    See Also
    --------
    PNormPerceptron : Corrects on mistakes only, with a constant step.

    References
    ----------
    .. [1] C. Gentile. A new approximate maximal margin classification algorithm. Journal of
       Machine Learning Research 2, 2001.
    .. [2] Y. Freund and R. E. Schapire. Large margin classification using the Perceptron
       algorithm. Machine Learning 37, 1999: section 3.2 (soft margin) and section 5 (hypotheses).

    Examples
    --------
    >>> from sparsemargin import ALMAClassifier
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, _ = make_alma_target(2000, 1000, random_state=0)
    >>> model = ALMAClassifier(p=6, alpha=0.5, random_state=0).fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The projection forgets all but the last of steps far longer than 1, such as the class
        # weights of 1000 against 0.0001 make them that scikit-learn's check tries.
        tags.classifier_tags.poor_score = True
        return tags
