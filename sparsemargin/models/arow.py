"""AROW, adaptive regularization of weights, with a variance for each weight."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin._engine.first_order.label_blocks import LabelBlocks, labels_at_once
from sparsemargin._engine.first_order.labels import FirstOrderRule
from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.race import RacedSpace
from sparsemargin._engine.fitting.epochs import FitResult
from sparsemargin.models.first_order import FirstOrderLearner, Sample
from sparsemargin.models.parameters import NONE, Hypothesis, declared, one_of, parameter, real
from sparsemargin.models.rows import Rows

#: What `r` and `max_loss` are raced, of equal ones the first being preferred.
RACED = [(0.3, 1.0), (1.0, 1.0), (3.0, 1.0), (0.1, 0.1)]


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
    enough. A trial costs O(nnz(x)). A row of weight c counts as one with r / c would.

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

    n_raced = len(RACED)

    spaces = (LinearSpace, LabelBlocks, RacedSpace)

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

    r: float | Literal["auto"] = parameter(
        1.0,
        (real(0), one_of(["auto"])),
        "How little a row is trusted: the larger, the more labels are wrong. "
        '``"auto"``: several are raced in the first pass, each with a `max_loss` of its own, and '
        "each label keeps the one that errs least one step ahead; see `candidates_`.",
        structural=True,
    )
    max_loss: float | None = parameter(
        None,
        (real(0), NONE),
        "The most that the loss of a row, ``1 - y w.x``, counts for; None: as much as it is. Where "
        "labels are wrong, 1 and less keep those from moving the weights far.",
    )
    hypothesis: Hypothesis = parameter(
        "last",
        one_of(["average", "last"]),
        "What predicts: the last weights, or the average of all, each counted for the trials it "
        "lasted.",
    )
    normalize: bool = parameter(True)
    max_iter: float | None = parameter(1)

    @staticmethod
    def _influence(weight: np.ndarray) -> np.ndarray:
        return weight

    def _has_aim(self) -> bool:
        return False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.r == "auto" and self.max_loss is not None:
            raise ValueError(
                f"r='auto' races values of max_loss, too; got max_loss={self.max_loss!r}. Leave it "
                "out, or name one r: algo='arow', r=1.0."
            )

    def _make_rule(self, p: float, sample: Sample | None) -> Any:
        if self.r != "auto":
            return FirstOrderRule.arow(self.r, self.max_loss, bool(self.normalize))
        chosen = RACED
        if not isinstance(self._space, RacedSpace):
            raced = getattr(self, "_raced", None)
            best = [0] * self._space.n_labels if raced is None else raced["best"]
            chosen = [RACED[each] for each in best]
        return [FirstOrderRule.arow(*each, bool(self.normalize)) for each in chosen]

    def _open(self, rows: Rows) -> None:
        self._raced = None
        super()._open(rows)

    def _kind_of_space(self, dtype: DTypeLike, n_labels: int, n_features: int) -> Any:
        if self.r == "auto" and self._is_race(dtype, n_labels, n_features + self.fit_intercept):
            return partial(RacedSpace, n_settings=len(RACED))
        return super()._kind_of_space(dtype, n_labels, n_features)

    def _is_race(self, dtype: DTypeLike, n_labels: int, n_coordinates: int) -> bool:
        """Whether the vectors of all settings may be laid out at once."""
        n_candidates = n_labels * len(RACED)
        size = super()._bytes_per_feature(dtype, 1, n_coordinates)
        return labels_at_once(n_coordinates, n_candidates, size) == n_candidates

    def _bytes_per_feature(self, dtype: DTypeLike, n_labels: int, n_features: int) -> int:
        size = super()._bytes_per_feature(dtype, n_labels, n_features)
        if self.r == "auto" and self._is_race(dtype, n_labels, n_features + self.fit_intercept):
            return size * (1 + len(RACED))
        return size

    def _conclude(self, result: FitResult) -> None:
        super()._conclude(result)
        if not result.interrupted or self._space.trials:
            self._settle()

    def _end_pass(self) -> None:
        self._settle()

    def _settle(self) -> None:
        """Let the best go on alone."""
        if isinstance(self._space, RacedSpace):
            self._raced = self._state_of(self._space)
            self._space.settle()
            self._rule = self._make_rule(2.0, None)

    @staticmethod
    def _state_of(space: RacedSpace) -> dict[str, np.ndarray]:
        tried = np.where(space.tried > 0, space.tried, 1.0)
        return {"best": space.best, "errors": space.errors / tried[:, np.newaxis]}

    @property
    def candidates_(self) -> dict[str, np.ndarray]:
        """What was raced: arrays ``r`` and ``max_loss`` of shape (n_candidates,), and
        ``progressive_error``, of shape (n_candidates,) or (n_classes, n_candidates): of the trials,
        each counted by its weight and as many times as there were until it, the share that had the
        wrong sign one step ahead. ``best`` is each label's candidate."""
        self._check_fitted()
        raced = getattr(self, "_raced", None)
        if isinstance(self._space, RacedSpace):
            raced = self._state_of(self._space)
        if raced is None:
            raise AttributeError("candidates_ needs r='auto'.")
        best, errors = raced["best"], raced["errors"]
        r, max_loss = (np.array(column, dtype=float) for column in zip(*RACED, strict=True))
        lone = len(best) == 1 and not self._has_many_labels
        return {
            "r": r, "max_loss": max_loss, "progressive_error": errors[0] if lone else errors,
            "best": best[0] if lone else best,
        }  # fmt: skip
