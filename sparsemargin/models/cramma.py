"""CRAMMA, the constant rate approximate maximum margin algorithm."""

from __future__ import annotations

from dataclasses import field
from math import inf, sqrt
from typing import Any, Literal

import numpy as np

from sparsemargin._engine.first_order.labels import FirstOrderRule
from sparsemargin.models.first_order import FirstOrderLearner, Sample
from sparsemargin.models.parameters import NONE, Hypothesis, declared, parameter, real

#: The rate at ``beta=1`` where nothing is known of the margin.
HARD_RATE = 0.001

# The multiple that Table 4 of the paper takes.
_TABLE_4_FACTOR = 1.7


@declared
class CRAMMA(FirstOrderLearner):
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
    radius_ : float
        R, where it is one number.
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
    >>> model = CRAMMAClassifier(beta=16, eta0=0.1, tol=0.05).fit(X, y)
    >>> bool(model.margin_ >= 0.95 * model.margin_upper_bound_)
    True
    """

    classifier = "CRAMMAClassifier"

    _seeks_margin = True

    p: float = field(default=2.0, init=False)
    normalize: bool = field(default=False, init=False)
    class_weight: Any = field(default=None, init=False)
    multi_class: Literal["ovr"] = field(default="ovr", init=False)

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
    hypothesis: Hypothesis = "last"
    max_iter: float | None = 1000
    shuffle: bool = False

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        radius = self._find_radius(sample)
        if radius is not None:
            self.radius_ = radius
        with np.errstate(over="ignore", under="ignore"):
            falling = float(np.float64(self.beta) ** -self.delta)
        self.eta_eff_ = self._find_rate(sample) * falling
        if not 0 < self.eta_eff_ < np.inf:
            raise ValueError(
                f"eta0 * beta**-delta = {self.eta_eff_:g} is no rate to learn at, with "
                f"beta={self.beta} and delta={self.delta}. Pass a smaller delta."
            )
        return FirstOrderRule.cramma(float(self.beta), self.eta_eff_, float(self.epsilon), radius)

    def _find_radius(self, sample: Sample | None) -> float | None:
        """None: the running one, of a stream."""
        if self.radius is not None:
            return float(self.radius)
        if sample is None:
            return None
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


def least_soft_margin(soft_margin: float, n_samples: int) -> float:
    r"""Least value of the maximal margin in the soft margin's extended space.

    :math:`\Gamma_{\Delta,\mathrm{opt}} \ge |\Delta| / \sqrt{m}`, whatever the data: Tsampouka &
    Shawe-Taylor (2006), section 4, eq. 27.

    Parameters
    ----------
    soft_margin : float
        Delta, the value of each row's own coordinate; in the units of the rows.
    n_samples : int
        m, the rows learned from.

    Returns
    -------
    float
        In the units of the rows.

    Raises
    ------
    ValueError
        If `soft_margin` is not a positive number, or `n_samples` is less than 1.

    Examples
    --------
    >>> least_soft_margin(2.0, 100)
    0.2
    """
    if not 0 < soft_margin < inf:
        raise ValueError(
            f"soft_margin must be a positive number, got {soft_margin!r}. Without one nothing is "
            "known of the margin beforehand; pass the rate (eta0) itself."
        )
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples!r}. Count the rows of X.")
    return soft_margin / sqrt(n_samples)


def automatic_rate(soft_margin: float, radius: float, n_samples: int) -> float:
    r"""Effective learning rate of CRAMMA at ``beta=1`` from the soft margin alone.

    :math:`\eta_{\mathrm{eff}} = 1.7\,|\Delta| / (R \sqrt{m})`: Tsampouka & Shawe-Taylor (2006),
    section 5, Table 4. With the margin of eq. 27 (`least_soft_margin`) it meets the condition of
    their Theorem 1 wherever :math:`R \sqrt{m} > 9.64\,|\Delta|`, so for 93 rows or more always.

    Parameters
    ----------
    soft_margin : float
        Delta, in the units of the rows.
    radius : float
        R, the largest 2-norm of the rows with their intercept and soft-margin coordinates.
    n_samples : int
        m, the rows learned from.

    Returns
    -------
    float
        Without unit.

    Raises
    ------
    ValueError
        If `soft_margin` or `radius` is not a positive number, or `n_samples` is less than 1.

    Examples
    --------
    >>> round(automatic_rate(1.0, 917**0.5, 683), 6)
    0.002148
    """
    if not 0 < radius < inf:
        raise ValueError(
            f"radius must be a positive number, got {radius!r}. Pass the largest norm of the rows."
        )
    return _TABLE_4_FACTOR * least_soft_margin(soft_margin, n_samples) / radius
