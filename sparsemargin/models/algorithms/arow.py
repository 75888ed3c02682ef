"""AROW, adaptive regularization of weights, with a variance for each weight."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

import numpy as np

from sparsemargin._engine.core.vectors import FirstOrderRule
from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.prior import NaiveBayesPrior
from sparsemargin._engine.first_order.vector_blocks import VectorBlocks
from sparsemargin._engine.fitting.task import Positives
from sparsemargin.models.algorithms.first_order import FirstOrderLearner, Sample
from sparsemargin.models.inputs.rows import Rows
from sparsemargin.models.inputs.training_set import Targets, count_vectors
from sparsemargin.models.parameters import NONE, declared, one_of, parameter, real
from sparsemargin.models.shared_parameters import Hypothesis, standardize_parameter


@declared
class AROW(FirstOrderLearner):
    r"""Adaptive regularization of weights [1]_, with a variance for each weight.

    Each weight has a mean :math:`w_i` and a variance :math:`v_i`, which is 1 initially. A trial
    corrects if :math:`y\, w \cdot \hat{x} < 1`. Weights of rare features have larger variances and
    therefore larger steps:

    .. math::

        \beta = \frac{1}{\sum_i v_i \hat{x}_i^2 + r}, \qquad
        w_i \leftarrow w_i + \beta (1 - y\, w \cdot \hat{x})\, y\, v_i \hat{x}_i, \qquad
        v_i \leftarrow v_i - \beta (v_i \hat{x}_i)^2.

    This is Figure 1 of [1]_ with only the diagonal of the covariance matrix. One epoch is usually
    enough. A trial costs O(nnz(x)). For a row of weight c, r is replaced by r / sqrt(c).

    {parameters}

    {attributes}

    Notes
    -----
    The mistake bound in [1]_ requires the full matrix. There is no bound for the diagonal, or with
    `max_loss`. There is no bound on the margin either: `margin_upper_bound_` is infinite.

    With ``prior="naive_bayes"``, the initial variance of the weight of feature i in the vector of a
    class is

    .. math::

        v_i = \left|\log \frac{p_i}{q_i}\right|, \qquad
        p_i = \frac{n_i + \pi}{n}, \qquad q_i = \frac{m_i + 1 - \pi}{m},
        \qquad \pi = \frac{n}{n + m},

    where :math:`n_i` of the n rows of the class, and :math:`m_i` of the m other rows, have a value
    other than 0. The shares are smoothed by one more row with the feature, which is divided between
    the class and the others in proportion to their sizes. With 1 added to each count instead, the
    error on rare classes would be higher. The smallest variance is 0.001. Rows of weight 0 are not
    counted, and other weights have no effect on the counts. Features that do not occur in the
    counted rows, and the intercept, have the mean variance of the features that do.

    An initial variance of :math:`s_i^2` has the same effect as feature i multiplied by
    :math:`s_i`. The output is :math:`w \cdot x` with a prior :math:`w_i \sim N(0, s_i^2)`. With
    :math:`w_i = s_i u_i` it is :math:`u \cdot (s x)`, and the prior of :math:`u_i` is
    :math:`N(0, 1)`, that of the paper. Substituted into the steps above, this gives the steps for
    :math:`s_i x_i`. Wang and Manning [2]_ multiply the features of a linear classifier by the log
    ratio. As a prior, each class has its own variances, and rows need not be changed. The square
    root of the ratio as the factor is more accurate than the ratio itself.

    See Also
    --------
    SecondOrderPerceptron : Uses the full correlation matrix of its mistakes.

    References
    ----------
    .. [1] K. Crammer, A. Kulesza and M. Dredze. Adaptive regularization of weight vectors. Advances
       in Neural Information Processing Systems 22, 2009.
    .. [2] S. Wang and C. D. Manning. Baselines and bigrams: simple, good sentiment and topic
       classification. Proceedings of ACL 2012.

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

    spaces = (LinearSpace, VectorBlocks)

    _adaptive = True

    p: float = field(default=2.0, init=False)
    soft_margin: float = field(default=0.0, init=False)
    multi_class: Literal["ovr", "joint"] = field(default="ovr", init=False)
    kernel: Any = field(default="linear", init=False)

    r: float = parameter(
        0.5,
        real(0),
        "Regularization strength. Larger values make smaller steps, which suits data with more "
        "label noise. The paper uses 1.",
        structural=True,
    )
    max_loss: float | None = parameter(
        1.0,
        (real(0), NONE),
        "Upper limit of the loss ``1 - y w.x`` in a step. Values of 1 or less limit the effect of "
        "rows with wrong labels on the weights. None: no limit, as in the paper.",
    )
    prior: Literal["naive_bayes"] | None = parameter(
        None,
        (one_of(["naive_bayes"]), NONE),
        "Initial variances of the weights. None: 1, as in the paper. "
        '``"naive_bayes"``: computed from the shares of the rows with a feature inside and outside '
        "each class, see the notes. With `partial_fit`, the rows of the first call are counted. "
        "It lowers the error on most texts with at least 1000 rows of each class.",
        structural=True,
    )
    hypothesis: Hypothesis = parameter(
        "last",
        one_of(["average", "last"]),
        "The hypothesis used for prediction: the last weights, or the average of all weights, each "
        "weighted by the number of trials it survived.",
    )
    standardize: bool = standardize_parameter()  # type: ignore[misc]
    normalize: bool = parameter(True)
    max_iter: float | None = parameter(1)

    _steps_by_output = True

    # A row of weight c divides r by the square root of c. If c itself divided r, the recall of rare
    # topics would be higher, but dense rows of other classes would be predicted as rare ones.
    _weight_root = 2

    @property
    def counts_first_rows(self) -> bool:  # type: ignore[override]
        return self.prior is not None

    def prior_of(
        self, rows: Rows, targets: Targets, classes: np.ndarray, counted: np.ndarray | None
    ) -> NaiveBayesPrior | None:
        if self.prior is None:
            return None
        n_vectors = count_vectors(classes, isinstance(targets, Positives))
        return NaiveBayesPrior.of(rows, targets, n_vectors, counted)

    def _ends_by_itself(self) -> bool:
        return False

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        return FirstOrderRule.arow(self.r, self.max_loss, bool(self.normalize))
