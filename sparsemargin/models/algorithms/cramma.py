"""CRAMMA, the constant rate approximate maximum margin algorithm."""

from __future__ import annotations

from dataclasses import field
from math import sqrt

import numpy as np

from sparsemargin._engine.core.vectors import FirstOrderRule
from sparsemargin._engine.fitting.epochs import Patience
from sparsemargin.models.algorithms.first_order import Sample
from sparsemargin.models.algorithms.margin_seeker import EuclideanMarginSeeker
from sparsemargin.models.parameters import NONE, declared, parameter, real

#: Effective learning rate at ``beta=1`` if no lower bound on the margin is known, as in Table 1 of
#: the paper.
HARD_RATE = 0.001

# Factor of the learning rate in eq. 27 of the paper, with the value of its Table 4.
_TABLE_4_FACTOR = 1.7

# Early stopping waits until corrections could have turned each vector by this angle, in radians. It
# is larger than pi, so these corrections can reverse any vector.
_TURN = 5.0


@declared
class CRAMMA(EuclideanMarginSeeker):
    r"""Constant rate approximate maximum margin algorithm CRAMMA^epsilon [1]_.

    The weights u have norm 1 and start in the direction of the first row. Let t be the number of
    corrections so far plus one, and R the largest norm of a row. A trial corrects if

    .. math::

        y\, u \cdot x \le \beta R / t^\epsilon, \qquad
        \eta_{\mathrm{eff}} = \eta_0 \beta^{-\delta},

        u' = u + \frac{\eta_{\mathrm{eff}}}{R} y x, \qquad
        u \leftarrow u' / \|u'\|_2.

    On separable data, the algorithm converges after finitely many corrections if
    :math:`\eta_{\mathrm{eff}} < (\sqrt{1 + 8 \gamma^* / R} - 1) / 2` (Theorem 1). The margin tends
    to the largest one as `beta` increases and the rate decreases.

    Only p = 2 is supported. Sample weights and class weights are not supported.

    {parameters}

    {attributes}

    See Also
    --------
    ROMMAClassifier : Has no rate or threshold to set, and no guarantee.
    ALMAClassifier : Guarantees a share of the largest margin, in any p-norm.

    Notes
    -----
    The numbers of updates in the paper equal `n_corrections_` plus one, for the initial vector.

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
        "The paper's beta/R. Larger values lead to more corrections and a larger margin.",
    )
    eta0: float | None = parameter(
        None,
        (real(0), NONE),
        "The rate at ``beta=1``. None: with `soft_margin`, it follows from the margin that "
        "`soft_margin` guarantees (eq. 27 of the paper, with the factor 1.7 of its Table 4); "
        "otherwise 0.001, as in its Table 1.",
    )
    delta: float = parameter(
        1.0, real(0, closed="left"), "Exponent with which the rate decreases in `beta`."
    )
    epsilon: float = parameter(
        0.5, real(0), "Exponent with which the threshold decreases in the number of corrections."
    )
    radius: float | None = parameter(
        None,
        (real(0), NONE),
        "R, the largest 2-norm of a row with its intercept and soft-margin coordinates. Theorem 1 "
        "does not hold for smaller values. None: the largest norm in the data; in a stream, and in "
        "`partial_fit` without an earlier `fit`, the largest norm among the first row and the rows "
        "corrected so far.",
    )

    # The vectors have norm 1.
    normalize_hypotheses: bool = field(default=False, init=False)
    n_iter_no_change: int = parameter(
        20,
        more="CRAMMA's steps are small, and the number of its corrections often increases for "
        "several epochs. It therefore also waits until enough corrections were made to reverse "
        "its vector.",
    )

    @property
    def hypothesis_name(self) -> str:
        # The steps are so small that the last vector already averages over many corrections.
        return "last" if self.hypothesis == "auto" else self.hypothesis

    @property
    def patience(self) -> Patience | None:
        patience = super().patience
        if patience is not None:
            patience.corrections = self.space.n_vectors * _TURN / self.fitted.constants["eta_eff"]
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
        """Return R, or None for the running maximum in a stream."""
        if self.radius is not None:
            return float(self.radius)
        if sample is None:
            return None
        # If all rows are zero, no row is corrected, and any positive value will do.
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
