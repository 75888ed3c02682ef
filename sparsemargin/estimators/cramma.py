"""CRAMMA, the constant rate approximate maximum margin algorithm."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from sparsemargin._engine._rules import FirstOrderRule
from sparsemargin.estimators._common_sections import with_common_sections
from sparsemargin.estimators._cramma_rate import automatic_rate
from sparsemargin.estimators._first_order import FirstOrderClassifier, Sample
from sparsemargin.estimators._online import Hypothesis

#: The rate at ``beta=1`` where nothing is known of the margin.
HARD_RATE = 0.001


@with_common_sections
class CRAMMAClassifier(FirstOrderClassifier):
    r"""Constant rate approximate maximum margin algorithm CRAMMA^epsilon [1]_.

    The weights u have norm 1 and start as the first row's direction. With t the corrections so
    far plus one and R the largest norm of a row, a trial corrects where

    .. math::

        y\, u \cdot x \le \beta R / t^\epsilon, \qquad
        u' = u + \frac{\eta_{\mathrm{eff}}}{R} y x, \qquad
        u \leftarrow u' / \|u'\|_2, \qquad
        \eta_{\mathrm{eff}} = \eta_0 \beta^{-\delta}.

    On separable data it ends after finitely many corrections, provided that
    :math:`\eta_{\mathrm{eff}} < (\sqrt{1 + 8 \gamma^* / R} - 1) / 2` (Theorem 1), and as
    `beta` grows and the rate falls the margin tends to the largest one.

    For p = 2. Steps can't be weighted: neither `fit` nor the constructor takes weights.

    Parameters
    ----------
    beta : float, default=1.0
        The paper's beta/R: the larger, the more corrections and the larger the margin.
    eta0 : float or None, default=None
        The rate at ``beta=1``. None: by the margin that `soft_margin` guarantees, eq. 27 of the
        paper with the factor 1.7 of its Table 4; without `soft_margin` 0.001, as in its Table 1.
    delta : float, default=1.0
        How fast the rate falls with `beta`.
    epsilon : float, default=0.5
        How fast the threshold falls with the corrections.
    radius : float or None, default=None
        R, the largest 2-norm of a row with its intercept and soft-margin coordinates; Theorem 1
        holds for no smaller one. None: that of the data, which `partial_fit` can't know.
    {common parameters}

    {common attributes}
    radius_ : float
        R.
    eta_eff_ : float
        The effective rate.

    See Also
    --------
    ROMMAClassifier : Without parameters, and without a guarantee.
    ALMAClassifier : A guaranteed share of the largest margin, in any p-norm.

    Notes
    -----
    The counts of updates that the paper prints are `n_corrections_` plus one, the start.

    References
    ----------
    .. [1] P. Tsampouka and J. Shawe-Taylor. Constant rate approximate maximum margin algorithms.
       ECML 2006: Figure 1, section 3.

    Examples
    --------
    >>> from sparsemargin import CRAMMAClassifier
    >>> X, y = [[2.0, 1.0], [1.0, -1.0], [0.0, -2.0]], [1, 0, 0]
    >>> model = CRAMMAClassifier(tol=0.01).fit(X, y)
    >>> bool(model.margin_ >= 0.99 * model.margin_upper_bound_)
    True
    """

    _seeks_margin = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **FirstOrderClassifier._parameter_constraints,
        "beta": [Interval(Real, 0, None, closed="neither")],
        "eta0": [Interval(Real, 0, None, closed="neither"), None],
        "delta": [Interval(Real, 0, None, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
    }

    radius_: float
    eta_eff_: float

    def __init__(
        self,
        *,
        beta: float = 1.0,
        eta0: float | None = None,
        delta: float = 1.0,
        epsilon: float = 0.5,
        radius: float | None = None,
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
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        keep_history: bool = False,
    ):
        self._keep(locals())

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        self.radius_ = self._find_radius(sample)
        with np.errstate(over="ignore", under="ignore"):
            falling = float(np.float64(self.beta) ** -self.delta)
        self.eta_eff_ = self._find_rate(sample) * falling
        if not 0 < self.eta_eff_ < np.inf:
            raise ValueError(
                f"eta0 * beta**-delta = {self.eta_eff_:g} is no rate to learn at, with "
                f"beta={self.beta} and delta={self.delta}. Pass a smaller delta."
            )
        return FirstOrderRule.cramma(
            float(self.beta), self.eta_eff_, float(self.epsilon), self.radius_
        )

    def _find_radius(self, sample: Sample | None) -> float:
        if self.radius is not None:
            return float(self.radius)
        if sample is None:
            raise ValueError(
                "partial_fit can't know the largest norm of all the data: pass it as radius."
            )
        # Any length will do for rows that are all zero, which never correct.
        return sample.largest_norm() or 1.0

    def _find_rate(self, sample: Sample | None) -> float:
        if self.eta0 is not None:
            return float(self.eta0)
        if not self.soft_margin:
            return HARD_RATE
        if sample is None:
            raise ValueError("partial_fit can't know how many rows will come: pass eta0.")
        return automatic_rate(float(self.soft_margin), self.radius_, sample.n_rows)
