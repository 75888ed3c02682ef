"""CRAMMA, the constant rate approximate maximum margin algorithm."""

from __future__ import annotations

from sparsemargin.estimators._common_sections import with_common_sections
from sparsemargin.estimators._online import OnlineClassifier
from sparsemargin.models.cramma import CRAMMALearner


@with_common_sections
class CRAMMAClassifier(OnlineClassifier, CRAMMALearner):
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
