"""ALMA_p, the approximate large margin algorithm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from math import sqrt
from typing import Literal

from sparsemargin._engine.core.vectors import FirstOrderRule
from sparsemargin.models.algorithms.first_order import FirstOrderLearner, Sample
from sparsemargin.models.parameters import FLAG, declared, one_of, parameter, real

_LARGEST_NORM = (
    "normalize='max' needs the largest norm of all the data, which no stream can know. Pass "
    "normalize='running', or call fit first."
)


@declared
class ALMA(FirstOrderLearner):
    r"""Approximate large margin algorithm ALMA_p(alpha; B, C) [1]_, Figure 1.

    B is :math:`\sqrt 8 / \alpha`, as in Theorem 3, part 1. Another B has the effect of another
    alpha, because only :math:`(1 - \alpha) B` matters.

    Let k be the number of corrections so far plus one. A trial corrects if

    .. math::

        y\, w \cdot \hat{x} \le (1 - \alpha) \gamma_k, \qquad
        \gamma_k = B \sqrt{p - 1} / \sqrt{k},

    .. math::

        \theta' = \theta + \frac{C}{\sqrt{p - 1} \sqrt{k}} y \hat{x}, \qquad
        \theta \leftarrow \theta' / \max(1, \|\theta'\|_p),

    .. math::

        w_i = \operatorname{sign}(\theta_i) |\theta_i|^{p-1} / \|\theta\|_p^{p-2}.

    On separable data whose largest p-norm margin is :math:`\gamma^*`, it reaches a margin of at
    least :math:`(1 - \alpha) \gamma^*` after at most
    :math:`2 (p-1) / \gamma^{*2} \, (2/\alpha - 1)^2 + 8/\alpha - 4` corrections (Theorem 3).

    A trial costs O(nnz(x)) for any p with the last or averaged hypothesis.

    {parameters}

    {attributes}

    See Also
    --------
    PNormPerceptron : Corrects only on mistakes, with a constant step.

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

    classifier = "ALMAClassifier"

    alpha: float = parameter(
        0.9,
        real(0, 1, "right"),
        "The margin reached is at least ``1 - alpha`` of the largest margin. Smaller values lead "
        "to more corrections and a larger margin; 1 corrects only on mistakes. On RCV1 topics, 0.9 "
        "is best after one epoch; after five epochs, the error of 0.7 to 0.8 is 0.2 percentage "
        "points lower (``benchmarks/defaults.py``).",
    )
    C: float = parameter(sqrt(2.0), real(0), "Scale of the steps.")
    normalize: bool | Literal["running", "max"] = parameter(  # type: ignore[assignment]
        True,
        (FLAG, one_of(["running", "max"])),
        "The norm by which instances are divided; True: their own p-norm, False: none, "
        '``"running"``: the largest norm among the rows corrected so far (Remark 7), ``"max"``: '
        "the largest norm in the data except rows of weight 0, which requires `fit`. Norms include "
        "the intercept and soft-margin coordinates.",
    )
    # The vectors are projected to the unit ball.
    normalize_hypotheses: bool = field(default=False, init=False)
    max_iter: float | None = parameter(
        5, more="The default was selected by cross-validation on text, microarrays and other data."
    )

    def _stream_faults(self, grows: bool) -> Iterator[str]:
        yield from super()._stream_faults(grows)
        # A model that resumes training has stored the largest norm.
        if self.normalize == "max" and self._learned is None:
            yield _LARGEST_NORM

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        radius = 0.0
        if self.normalize == "max":
            if sample is None:
                raise ValueError(_LARGEST_NORM)
            radius = sample.largest_norm()
        B = sqrt(8.0) / self.alpha
        return FirstOrderRule.alma(p, self.normalize, float(self.alpha), B, float(self.C), radius)
