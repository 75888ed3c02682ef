"""ROMMA, the relaxed online maximum margin algorithm."""

from __future__ import annotations

from sparsemargin._engine.core.labels import FirstOrderRule
from sparsemargin.models.algorithms.first_order import EuclideanMarginSeeker, Sample
from sparsemargin.models.parameters import FLAG, declared, parameter


@declared
class ROMMA(EuclideanMarginSeeker):
    r"""Relaxed online maximum margin algorithm [1]_.

    On a mistake the weights become the shortest vector that gives the row a margin of 1,
    :math:`y\, w' \cdot x \ge 1`, and lies in the half-space
    :math:`\{v : v \cdot w \ge \|w\|^2\}`, which holds all that was asked for before:

    .. math::

        w \leftarrow
        \frac{\|x\|^2 \|w\|^2 - y\, w \cdot x}{\|x\|^2 \|w\|^2 - (w \cdot x)^2}\, w +
        \frac{\|w\|^2 (y - w \cdot x)}{\|x\|^2 \|w\|^2 - (w \cdot x)^2}\, x,

    and :math:`y x / \|x\|^2` from :math:`w = 0`. The aggressive variant also moves where
    :math:`0 < y\, w \cdot x < 1`, and then starts again from :math:`y x / \|x\|^2` where that
    alone does.

    For p = 2. Steps can't be weighted: neither `fit` nor the constructor takes weights.

    {parameters}

    {attributes}

    Notes
    -----
    On data that are not separable the weights grow without end: a margin of 1 then asks for ever
    longer vectors. Once their norm exceeds ``2**40 / ||x||`` they start again from the row at
    hand. Such data need `soft_margin`.

    See Also
    --------
    CRAMMAClassifier : Comes as near to the largest margin as one likes.

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
        "Whether margins below 1 are mistakes too. It then tends to the largest margin, which a "
        "fit seldom reaches exactly: pass `tol`.",
    )

    _steps_by_output = True

    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        return FirstOrderRule.romma(bool(self.aggressive))
