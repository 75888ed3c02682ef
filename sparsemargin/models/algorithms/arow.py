"""AROW, adaptive regularization of weights, with a variance for each weight."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from sparsemargin._engine.core.labels import FirstOrderRule
from sparsemargin._engine.first_order.label_blocks import LabelBlocks
from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin.models.algorithms.first_order import FirstOrderLearner, Sample
from sparsemargin.models.parameters import NONE, Hypothesis, declared, one_of, parameter, real


@declared
class AROW(FirstOrderLearner):
    r"""Adaptive regularization of weights [1]_, with a variance for each weight.

    Beside the mean :math:`w_i` of each weight its variance :math:`v_i` is kept, 1 to begin with. A
    trial corrects where :math:`y\, w \cdot \hat{x} < 1`, with what is rarely met moving furthest:

    .. math::

        \beta = \frac{1}{\sum_i v_i \hat{x}_i^2 + r}, \qquad
        w_i \leftarrow w_i + \beta (1 - y\, w \cdot \hat{x})\, y\, v_i \hat{x}_i, \qquad
        v_i \leftarrow v_i - \beta (v_i \hat{x}_i)^2.

    That is Figure 1 of [1]_, of whose covariance matrix the diagonal is kept. One epoch is mostly
    enough. A trial costs O(nnz(x)). A row of weight c counts as one with
    r / sqrt(c) would.

    {parameters}

    {attributes}

    Notes
    -----
    In [1]_ the mistakes on any data are bounded for the full matrix; of its diagonal, and of losses
    that are cut, nothing is proven. No margin is proven either: `margin_upper_bound_` is infinite.

    See Also
    --------
    SecondOrderPerceptron : Keeps the full matrix of its mistakes.

    References
    ----------
    .. [1] K. Crammer, A. Kulesza and M. Dredze. Adaptive regularization of weight vectors. Advances
       in Neural Information Processing Systems 22, 2009.

    Examples
    --------
    >>> from sparsemargin import AROWClassifier
    >>> from sparsemargin.datasets import make_zipf_text
    >>> X, y = make_zipf_text(2000, 1000, random_state=0)
    >>> model = AROWClassifier(random_state=0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.8)
    True
    """

    classifier = "AROWClassifier"

    spaces = (LinearSpace, LabelBlocks)

    _adaptive = True

    p: float = field(default=2.0, init=False)
    soft_margin: float = field(default=0.0, init=False)
    tol: float | None = field(default=None, init=False)
    keep_history: bool = field(default=False, init=False)
    max_support: int | None = field(default=None, init=False)
    when_full: Literal["error", "skip"] = field(default="error", init=False)
    multi_class: Literal["ovr", "joint"] = field(default="ovr", init=False)
    kernel: Any = field(default="linear", init=False)
    degree: int = field(default=3, init=False)
    gamma: float | Literal["scale", "auto"] = field(default="scale", init=False)
    coef0: float = field(default=0.0, init=False)

    r: float = parameter(
        0.5,
        real(0),
        "How little a row is trusted: the larger, the more labels are wrong. The paper's is 1.",
        structural=True,
    )
    max_loss: float | None = parameter(
        1.0,
        (real(0), NONE),
        "The most that the loss of a row, ``1 - y w.x``, counts for: 1 and less keep rows whose "
        "labels are wrong from moving the weights far. None: as much as it is, as in the paper.",
    )
    hypothesis: Hypothesis = parameter(
        "last",
        one_of(["average", "last"]),
        "What predicts: the last weights, or the average of all, each counted for the trials it "
        "lasted.",
    )
    normalize: bool = parameter(True)
    max_iter: float | None = parameter(1)

    _steps_by_output = True

    # Of r. By the weight itself rare topics are found more often, and dense rows of the others
    # taken for rare ones.
    _weight_root = 2

    def _ends_by_itself(self) -> bool:
        return False

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        return FirstOrderRule.arow(self.r, self.max_loss, bool(self.normalize))
