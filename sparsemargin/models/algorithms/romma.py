"""ROMMA, the relaxed online maximum margin algorithm."""

from __future__ import annotations

from sparsemargin._engine.core.vectors import FirstOrderRule
from sparsemargin.models.algorithms.first_order import Sample
from sparsemargin.models.algorithms.margin_seeker import EuclideanMarginSeeker
from sparsemargin.models.parameters import FLAG, declared, parameter


@declared
class ROMMA(EuclideanMarginSeeker):
    r"""Relaxed online maximum margin algorithm [1]_.

    On a mistake, the weights become the shortest vector that gives the row a margin of 1,
    :math:`y\, w' \cdot x \ge 1`, and lies in the half-space
    :math:`\{v : v \cdot w \ge \|w\|^2\}`, which contains all vectors that meet the earlier
    constraints:

    .. math::

        w \leftarrow
        \frac{\|x\|^2 \|w\|^2 - y\, w \cdot x}{\|x\|^2 \|w\|^2 - (w \cdot x)^2}\, w +
        \frac{\|w\|^2 (y - w \cdot x)}{\|x\|^2 \|w\|^2 - (w \cdot x)^2}\, x,

    The first correction sets w to :math:`y x / \|x\|^2`. The aggressive variant also corrects if
    :math:`0 < y\, w \cdot x < 1`. It restarts from :math:`y x / \|x\|^2` if that vector lies in the
    half-space.

    Only p = 2 is supported. Sample weights and class weights are not supported.

    {parameters}

    {attributes}

    Notes
    -----
    On data that are not separable, the norm of the weights grows without bound. Once it exceeds
    ``2**40 / ||x||``, the weights restart from the current row. Use `soft_margin` for such data.

    See Also
    --------
    CRAMMAClassifier : Approximates the largest margin to any accuracy.

    References
    ----------
    .. [1] Y. Li and P. M. Long. The relaxed online maximum margin algorithm. Machine Learning 46,
       2002: section 2.

    Examples
    --------
    >>> from sparsemargin import ROMMAClassifier
    >>> X, y = [[2.0, 1.0], [1.0, -1.0], [0.0, -2.0]], [1, 0, 0]
    >>> model = ROMMAClassifier(aggressive=True, tol=0.01, shuffle=False).fit(X, y)
    >>> bool(model.margin_ >= 0.99 * model.margin_upper_bound_)
    True
    """

    classifier = "ROMMAClassifier"

    aggressive: bool = parameter(
        False,
        FLAG,
        "Whether rows with a margin below 1 are corrected, too. The margin then tends to the "
        "largest one but seldom reaches it exactly, so also pass `tol`.",
    )

    _steps_by_output = True

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        return FirstOrderRule.romma(bool(self.aggressive))
