"""What the learners share whose classes can be learned jointly."""

from __future__ import annotations

from typing import Literal, NoReturn, get_args

import numpy as np

from sparsemargin._engine.first_order.linear_space import JointSpace, LinearSpace
from sparsemargin._engine.kernel.loop import KernelSpace
from sparsemargin.models._first_order import FirstOrderLearner
from sparsemargin.models._rows import Rows
from sparsemargin.models.parameters import declared, one_of, parameter

MultiClass = Literal["ovr", "joint"]


@declared
class JointLearner(FirstOrderLearner):
    """Base of the learners with `multi_class`; not for use by itself."""

    spaces = (*FirstOrderLearner.spaces, JointSpace)

    multi_class: MultiClass = parameter(
        "ovr",
        one_of(get_args(MultiClass)),
        'How more than two classes are learned; ``"ovr"``: a vector for each, that tells its rows '
        'from the rest, ``"joint"``: one vector made of one for each class. There a correction '
        "moves those of the true class and of its strongest rival alone (Gentile 2001, section 5, "
        "item 4): the instance is x at the place of the one and -x at that of the other, its "
        "p-norm ``2**(1/p)`` times that of x, its output the difference of theirs, and "
        "`n_corrections_`, `margin_` and `margin_upper_bound_` are single numbers; `class_weight` "
        "weighs the true class. For the average and the last vector, without kernel and soft "
        "margin; `n_jobs` has no effect. Two classes are learned by the lone vector either way: w "
        "at one place and -w at the other is the joint one, up to a factor, and for rows divided "
        "by their norms they make the same corrections.",
        structural=True,
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.multi_class != "joint":
            return
        if self.hypothesis in ("vote", "random"):
            self._refuse_joint("hypothesis", "'average' or 'last'")
        if not self._is_linear:
            self._refuse_joint("kernel", "'linear'")
        if self.soft_margin:
            self._refuse_joint("soft_margin", "0")

    def _refuse_joint(self, name: str, instead: str) -> None:
        raise ValueError(
            f"multi_class='joint' learns all classes as one vector of weights and has no {name}="
            f"{getattr(self, name)!r}. Pass {name}={instead}, or multi_class='ovr'."
        )

    # ------------------------------------------------------------------------------- learning

    def _is_joint(self) -> bool:
        """Whether what is opened now is a joint machine: two classes have no need of one."""
        return self.multi_class == "joint" and self._n_labels() > 1

    @property
    def _takes_many_labels(self) -> bool:
        return super()._takes_many_labels and self.multi_class != "joint"

    def _refuse_many_labels(self) -> NoReturn:
        if self.multi_class == "joint":
            raise ValueError(
                "multi_class='joint' tells classes apart of which each row has one, and y may "
                "have several labels a row. Pass multi_class='ovr'."
            )
        super()._refuse_many_labels()

    def _new_space(self, rows: Rows) -> LinearSpace | KernelSpace:
        if not self._is_joint():
            return super()._new_space(rows)
        return JointSpace(
            rows.n_features, self._n_labels(), self._p(rows.n_features), self._state_type(rows),
            bias=self._bias(rows), averaged=self.hypothesis == "average",
            normalized=self.normalize_hypotheses,
        )  # fmt: skip

    def _bytes_per_feature(self, dtype: np.dtype, n_labels: int, n_features: int) -> int:
        if self.multi_class != "joint":
            return super()._bytes_per_feature(dtype, n_labels, n_features)
        return n_labels * super()._bytes_per_feature(dtype, 1, n_features)
