"""CRAMMA, the constant rate approximate maximum margin algorithm."""

from __future__ import annotations

from math import sqrt

import numpy as np

from sparsemargin._engine.core.labels import FirstOrderRule
from sparsemargin._engine.fitting.epochs import Patience
from sparsemargin.models.algorithms.first_order import EuclideanMarginSeeker, Sample
from sparsemargin.models.parameters import NONE, declared, parameter, real

#: The rate at ``beta=1`` where nothing is known of the margin.
HARD_RATE = 0.001

# The multiple that Table 4 of the paper takes.
_TABLE_4_FACTOR = 1.7

# Steps along a circle, in radians, that turn any vector around and more.
_TURN = 5.0


@declared
class CRAMMA(EuclideanMarginSeeker):
    r"""Constant rate approximate maximum margin algorithm CRAMMA^epsilon [1]_.

    The weights u have norm 1 and start as the first row's direction. With t the corrections so
    far plus one and R the largest norm of a row, a trial corrects where

    .. math::

        y\, u \cdot x \le \beta R / t^\epsilon, \qquad
        \eta_{\mathrm{eff}} = \eta_0 \beta^{-\delta},

        u' = u + \frac{\eta_{\mathrm{eff}}}{R} y x, \qquad
        u \leftarrow u' / \|u'\|_2.

    On separable data it ends after finitely many corrections, provided that
    :math:`\eta_{\mathrm{eff}} < (\sqrt{1 + 8 \gamma^* / R} - 1) / 2` (Theorem 1), and as
    `beta` grows and the rate falls the margin tends to the largest one.

    For p = 2. Steps can't be weighted: neither `fit` nor the constructor takes weights.

    {parameters}

    {attributes}

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
    >>> model = CRAMMAClassifier(beta=16, eta0=0.1, tol=0.05, shuffle=False).fit(X, y)
    >>> bool(model.margin_ >= 0.95 * model.margin_upper_bound_)
    True
    """

    classifier = "CRAMMAClassifier"

    constants = ("eta_eff",)

    beta: float = parameter(
        1.0,
        real(0),
        "The paper's beta/R: the larger, the more corrections and the larger the margin.",
    )
    eta0: float | None = parameter(
        None,
        (real(0), NONE),
        "The rate at ``beta=1``. None: by the margin that `soft_margin` guarantees, eq. 27 of the "
        "paper with the factor 1.7 of its Table 4; without `soft_margin` 0.001, as in its Table 1.",
    )
    delta: float = parameter(1.0, real(0, closed="left"), "How fast the rate falls with `beta`.")
    epsilon: float = parameter(0.5, real(0), "How fast the threshold falls with the corrections.")
    radius: float | None = parameter(
        None,
        (real(0), NONE),
        "R, the largest 2-norm of a row with its intercept and soft-margin coordinates; Theorem 1 "
        "holds for no smaller one. None: that of the data; a stream, and `partial_fit` where no "
        "`fit` came before, take the largest among the start and the corrections so far.",
    )

    n_iter_no_change: int = parameter(
        20,
        more="CRAMMA's steps are small, and its corrections often rise for some passes: it waits "
        "for as many corrections as could turn its vector around, too.",
    )

    @property
    def hypothesis_name(self) -> str:
        # Its steps are so small that the last vector is itself a mean of many.
        return "last" if self.hypothesis == "auto" else self.hypothesis

    @property
    def patience(self) -> Patience | None:
        patience = super().patience
        if patience is not None:
            patience.corrections = self.space.n_labels * _TURN / self.fitted.constants["eta_eff"]
        return patience

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        radius = self._find_radius(sample)
        with np.errstate(over="ignore", under="ignore"):
            falling = float(np.float64(self.beta) ** -self.delta)
        rate = self._find_rate(sample, radius) * falling
        if not 0 < rate < np.inf:
            raise ValueError(
                f"eta0 * beta**-delta = {rate:g} is no rate to learn at, with "
                f"beta={self.beta} and delta={self.delta}. Pass a smaller delta."
            )
        self.fitted.constants = {"eta_eff": rate}
        return FirstOrderRule.cramma(float(self.beta), rate, float(self.epsilon), radius)

    def _find_radius(self, sample: Sample | None) -> float | None:
        """None: the running one, of a stream."""
        if self.radius is not None:
            return float(self.radius)
        if sample is None:
            return None
        # Any length will do for rows that are all zero, which never correct.
        return sample.largest_norm() or 1.0

    def _find_rate(self, sample: Sample | None, radius: float | None) -> float:
        if self.eta0 is not None:
            return float(self.eta0)
        if not self.soft_margin:
            return HARD_RATE
        if sample is None or radius is None:
            raise ValueError("No stream can know how many rows will come: pass eta0.")
        least_margin = float(self.soft_margin) / sqrt(sample.n_rows)
        return _TABLE_4_FACTOR * least_margin / radius
