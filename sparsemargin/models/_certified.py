"""What a fitted model tells of its margin."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin._engine.first_order.labels import FirstOrderRule
from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.fitting.epochs import FitResult
from sparsemargin._engine.kernel.loop import KernelSpace
from sparsemargin.models._learner import Learner


class CertifiedLearner(Learner):
    """The margin reached, what bounds the largest one, and how the two drew together."""

    _space: LinearSpace | KernelSpace
    _outcome: FitResult | None
    _rule: FirstOrderRule
    # Of the last fit.
    _trials_per_epoch: int

    @property
    def margin_upper_bound_(self) -> float | np.ndarray:
        """What no vector's margin can exceed on the rows learned from: a float for two classes,
        and for many under ``multi_class="joint"``; else an array of shape (n_classes,).

        The least ``||theta||_p / L`` so far, L being the sum of the multipliers of which theta is
        made. With the last hypothesis only. Units are those of `margin_`. After `partial_fit`,
        and under `warm_start`, for the rows of all calls together.
        """
        self._check_fitted()
        if self._structure["hypothesis"] != "last" or self._space.t.dtype != np.float64:
            raise AttributeError(
                "margin_upper_bound_ needs hypothesis='last', and float64 rows where the "
                "classifier is not made to seek a margin and tol and max_iter don't ask for one."
            )
        return self._by_label(self._space.per_label("bound"))

    def _certified(self) -> Any:
        self._check_fitted()
        if self._outcome is None or self._outcome.margin is None:
            raise AttributeError(
                "The margin was not taken: that needs fit with hypothesis='last' and, for "
                "classifiers not made to seek a margin, tol or max_iter=None; and a model that has "
                "learned from no other rows. "
                "sparsemargin.evaluation.margins gives the margins of any model on any rows."
            )
        return self._outcome

    @property
    def margin_(self) -> float | np.ndarray:
        """The least ``y w.x / ||w||_q`` of the last vector on the rows of `fit`: a float for two
        classes, and for many under ``multi_class="joint"``; else an array of shape (n_classes,).

        Rows are divided by their own p-norm where the algorithm does so; otherwise the margin is
        in the units of X. Under ``multi_class="joint"`` it is the least output of a row's class
        less the largest other one, over the norm of all vectors as one; where rows are divided by
        their norm, by ``2**(1/p) ||x||_p``, that of x in one place and -x in another. With
        `soft_margin`, rows have their own coordinates. Rows that are zero
        or of weight 0 are left out.
        """
        return self._by_label(self._certified().margin)

    def _softened(self) -> Any:
        soft_margin = self._certified().soft_margin
        if soft_margin is None:
            raise AttributeError("Defined for p = 2 with a soft_margin.")
        return soft_margin

    @property
    def objective_(self) -> float | np.ndarray:
        """What the soft margin minimises, for p = 2: ``J = 1 / gamma^2 + (D / (Delta gamma))^2``.

        With u the unit weight vector in the instance space, gamma the margin aimed at there and D
        the root of ``sum_i max(0, gamma - y_i u.x_i)^2``: Tsampouka & Shawe-Taylor (2006),
        section 4, eq. 20. Rows that the algorithm divides by their norms have slacks times those.
        """
        return self._by_label(self._softened().objective)

    @property
    def relative_deviation_(self) -> float | np.ndarray:
        """``(D' - D) / D``, an estimate of how far, relatively, the extended margin is from the
        largest: Tsampouka & Shawe-Taylor (2006), sections 4 and 5. Zero at the optimum."""
        return self._by_label(self._softened().deviation)

    @property
    def history_(self) -> dict[str, np.ndarray]:
        """What every epoch came to: arrays ``n_iter`` of shape (n_epochs,), ``n_corrections``,
        ``margin`` and ``margin_upper_bound`` of shape (n_epochs,) or (n_epochs, n_classes)."""
        history = self._certified().history
        if not history:
            raise AttributeError("history_ needs fit with keep_history=True.")
        names = ("n_iter", "n_corrections", "margin", "margin_upper_bound")
        columns = (np.array(column) for column in zip(*history, strict=True))
        lone = not self._has_many_labels
        return {
            name: column[:, 0] if lone and column.ndim == 2 and column.shape[1] == 1 else column
            for name, column in zip(names, columns, strict=True)
        }
