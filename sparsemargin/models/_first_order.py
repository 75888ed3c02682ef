"""What all first-order learners share: a rule over the linear space."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NoReturn, Self

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin._engine.first_order.label_blocks import (
    BlockLoop,
    BlockOutputs,
    LabelBlocks,
    labels_at_once,
    resized,
)
from sparsemargin._engine.first_order.labels import FirstOrderRule
from sparsemargin._engine.first_order.linear_loop import LinearLoop, linear_loop
from sparsemargin._engine.first_order.linear_outputs import LinearOutputs
from sparsemargin._engine.first_order.spaces import LinearSpace
from sparsemargin._engine.fitting.epochs import FitResult, StoppingRule, learn
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.hypotheses.log import CorrectionLog
from sparsemargin._engine.kernel.functions import Kernel, PrecomputedKernel
from sparsemargin._engine.kernel.loop import SupportFull, kernel_loop
from sparsemargin._engine.kernel.outputs import hypothesis_outputs
from sparsemargin._engine.kernel.space import KernelSpace
from sparsemargin._engine.rows.csr import BadRow, any_repeats, row_norms, summed
from sparsemargin.models import _pools as pools
from sparsemargin.models import _rows as border
from sparsemargin.models._certified import CertifiedLearner
from sparsemargin.models._kernels import BYTES_PER_FEATURE, KernelLearner
from sparsemargin.models._learner import ROWS_MEASURED, Hypothesis, Targets
from sparsemargin.models._replays import random_outputs, votes
from sparsemargin.models.parameters import (
    FLAG,
    NONE,
    declared,
    integer,
    one_of,
    parameter,
    real,
)

# Outputs that stay in a near cache until they have been looked at.
_OUTPUTS_PER_PART = 1 << 17
# The same where weights must be unpacked for each part.
_OUTPUTS_PER_UNPACKING = 1 << 23


@dataclass
class Sample:
    """What a rule may ask about the data of a fit.

    Attributes
    ----------
    n_rows : int
        Rows that are trials.
    largest_norm : callable
        Their largest p-norm.
    """

    n_rows: int
    largest_norm: Callable[[], float]


@declared
class FirstOrderLearner(CertifiedLearner, KernelLearner):
    """Base of the learners whose trials test ``y w.x <= threshold``; not for use by itself."""

    # Whether a fit is meant to reach a margin, and says so where it did not.
    _seeks_margin: ClassVar[bool] = False

    hypothesis: Hypothesis = parameter(
        "average",
        more="The last two log the corrections (56 bytes each and, without a kernel, 16 bytes a "
        "nonzero of every row that made one) and replay them to predict.",
    )
    warm_start: bool = parameter(
        False,
        more="With other rows than the last one had it knows no margin, and `tol` is refused: "
        "there would be no proof.",
    )
    normalize: bool = parameter(
        False,
        FLAG,
        "Whether instances are divided by their p-norm, intercept and soft-margin coordinates "
        "included.",
        structural=True,
    )
    soft_margin: float = parameter(
        0.0,
        real(0, closed="left"),
        "Delta: every example gets a coordinate of its own of that value while learning, which "
        "makes any data separable (Freund & Schapire 1999, section 3.2).",
        structural=True,
    )
    tol: float | None = parameter(
        None,
        (real(0, 1), NONE),
        "Stop where `margin_` is at least ``(1 - tol) * margin_upper_bound_``: a proven share of "
        'the largest margin there is. Needs ``hypothesis="last"``, whose vector the proof is for.',
    )
    max_support: int | None = parameter(
        None, (integer(1), NONE), "Rows that the pool of a kernel may hold.", structural=True
    )
    when_full: Literal["error", "skip"] = parameter(
        "error",
        one_of(["error", "skip"]),
        "What is done where a row would join a full pool: the fit ends in an error; or the trial "
        "is passed over, and a warning at the end says how many were.",
    )
    keep_history: bool = parameter(
        False,
        FLAG,
        "Whether `history_` tells the margin after every epoch, at the cost of a pass over the "
        'rows each; needs ``hypothesis="last"``.',
    )

    @property
    def _takes_many_labels(self) -> bool:
        return self._is_linear

    @abstractmethod
    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        """The engine's rule; `sample` is None in a stream."""

    # ------------------------------------------------------------------------------- learning

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.hypothesis == "last":
            return
        for name in ("tol", "keep_history"):
            if getattr(self, name):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} needs hypothesis='last', whose vector the "
                    f"certificate is for; got hypothesis={self.hypothesis!r}. Pass that, or leave "
                    f"{name} out."
                )

    def _check_streams(self, *, grows: bool) -> None:
        super()._check_streams(grows=grows)
        if not self._is_linear and self.max_support is None:
            self._refuse_to_stream(
                "max_support", "keeps every row that makes a correction", "1000, say"
            )
        if self.soft_margin:
            self._refuse_to_stream("soft_margin", "gives every row a coordinate of its own", "0")
        for name in ("tol", "keep_history"):
            if getattr(self, name):
                self._refuse_to_stream(name, "needs passes over all rows", "None")

    def _learn_afresh(self, X: Any, targets: Targets, weights: Any, seed: int | None) -> Self:
        """Open a space and learn; rows are checked as they are first used, if all will be."""
        rows = border.open_rows(X)
        all_used = self.max_corrections is None and (self.max_iter is None or self.max_iter >= 1)
        as_used = all_used and self._is_linear
        if not as_used:
            rows = border.check_rows(rows)
        elif self._measures_rows and any_repeats(border.part_of(rows, 0, ROWS_MEASURED)):
            rows = summed(rows)
        try:
            self._open_fit(rows, X, weights)
            return self._learn_rows(rows, targets, weights, seed, check=as_used)
        except BadRow as bad:
            border.refuse_row(rows, bad.status, bad.row)
        except SupportFull as full:
            pools.refuse_full(self, f"{full.epochs:.3g} epochs")

    def _open_fit(self, rows: border.Rows, X: Any, weights: Any) -> None:
        """Make what a fit of these rows learns in."""
        if self._is_linear:
            self._space = self._open_space(rows)
            self._rule = self._open_rule(rows, X, weights)
        else:
            kernel = self._make_kernel(rows, streams=False)
            self._space = pools.open_space(self, kernel, rows.n_features)
            self._rule = self._open_rule(rows, X, weights, kernel)
        self._structure = self._get_structure()

    def _learn_on(self, X: Any, targets: Targets, weights: Any, seed: int | None) -> Self:
        """Go on with the space there is; all rows are checked before the first is used."""
        rows = border.check_rows(border.open_rows(X))
        try:
            kernel = getattr(self._space, "kernel", None)
            if isinstance(kernel, PrecomputedKernel):
                kernel.check(rows)
            self._rule = self._open_rule(rows, X, weights, kernel)
            return self._learn_rows(rows, targets, weights, seed, check=False)
        except BadRow as bad:
            border.refuse_row(rows, bad.status, bad.row)
        except SupportFull as full:
            pools.refuse_full(self, f"{full.epochs:.3g} epochs")

    def _learn_rows(
        self, rows: border.Rows, targets: Targets, weights: Any, seed: int | None, *, check: bool
    ) -> Self:
        task = self._task(rows, targets, weights, check=check)
        self._trials_per_epoch = task.n_trials
        provable = self._recall_rows(task)
        if isinstance(self._space, KernelSpace):
            pools.number(self._space, task)
        stopping = StoppingRule(
            self.max_iter, self.tol, history=self.keep_history,
            certified=self._is_certified() and provable,
        )  # fmt: skip
        self._outcome = learn(self._loop(task), stopping, seed=seed, verbose=int(self.verbose))
        if self._learned is not None:
            self._learned = self._learned[0], task.row_state
        self.n_iter_ = self._outcome.n_iter
        if not self._outcome.interrupted:
            self._warn_of_shortfall(self._outcome)
        if isinstance(self._space, KernelSpace):
            pools.warn_of_full(self, self._space)
            pools.number_on(self._space, task)
        return self

    def _recall_rows(self, task: Task) -> bool:
        """Let rows that were learned from before go on where they were; whether the model has
        learned from no others, as a certificate needs."""
        earlier = getattr(self, "_learned", None)
        self._learned = None
        if self.warm_start:
            import joblib

            rows = task.rows
            what = (
                rows.data, rows.indices, rows.indptr, task.codes, task.weights, task.class_weight,
                *(task.positives or ()),
            )  # fmt: skip
            self._learned = joblib.hash(what), None
        if self._space.trials == 0:
            return True
        if earlier is not None and self._learned is not None and earlier[0] == self._learned[0]:
            task.row_state = earlier[1]
            return self._space.t.dtype == np.float64
        for name in ("tol", "keep_history"):
            if getattr(self, name):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} can't be had from a fit that goes on from "
                    "other rows, or from a fit without warm_start: what the model has learned "
                    f"there is part of no proof for these rows. Pass warm_start=False, or "
                    f"{name}=None."
                )
        if isinstance(getattr(self._space, "kernel", None), PrecomputedKernel):
            raise ValueError(
                "warm_start with kernel='precomputed' goes on with the very X and y of the last "
                "fit; these are others. Pass warm_start=False."
            )
        self._learned = None
        return False

    def _has_aim(self) -> bool:
        """Whether a fit is to end by itself, not only by `max_iter`."""
        return self._seeks_margin or self.max_iter is None or self.tol is not None

    def _is_certified(self) -> bool:
        return self.hypothesis == "last" and (self._has_aim() or self.keep_history)

    def _warn_of_shortfall(self, result: FitResult) -> None:
        """Say so where the fit did not come to its aim."""
        if result.proven or not self._has_aim() or (self.tol is None and result.converged):
            return
        done = f"{self.n_iter_:g} epochs and {np.sum(self.n_corrections_)} corrections"
        if result.converged and self.tol is not None:
            share = np.min(np.divide(self.margin_, self.margin_upper_bound_))
            message = (
                f"After {done} no row is left to correct, at a margin proven to be {share:.3g} of "
                f"the largest; tol={self.tol:g} asks for {1 - self.tol:g}. Ask the algorithm for a "
                "larger margin, or take MaxMarginClassifier."
            )
        else:
            aim = "a pass made no correction"
            if self.tol is not None:
                aim = f"tol={self.tol:g} was reached"
            message = (
                f"Stopped after {done}, before {aim}. Raise max_iter={self.max_iter} or "
                f"max_corrections={self.max_corrections}, or pass None; data that are not "
                "separable need soft_margin."
            )
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(message, ConvergenceWarning, stacklevel=6)

    def _open(self, rows: border.Rows) -> None:
        self._rule = self._open_rule(rows)
        if self._is_linear:
            self._space = self._open_space(rows)
        else:
            kernel = self._make_kernel(rows, streams=True)
            self._space = pools.open_space(self, kernel, rows.n_features)

    def _loop(self, task: Task) -> AbstractContextManager:
        if isinstance(self._space, KernelSpace):
            return kernel_loop(self._space, self._rule, task, skips=self.when_full == "skip")
        kind = BlockLoop if isinstance(self._space, LabelBlocks) else LinearLoop
        return linear_loop(self._space, self._rule, task, kind)

    def _learn_stream(self, task: Task, order: np.ndarray | None = None) -> int | None:
        self._outcome = self._learned = None
        take = partial(super()._learn_stream, task, order)
        if isinstance(self._space, KernelSpace):
            return pools.learn_stream(self, self._space, task, take)
        return take()

    def _open_rule(
        self, rows: border.Rows, X: Any = None, weights: Any = None, kernel: Kernel | None = None
    ) -> FirstOrderRule:
        """The rule; X is None in a stream."""
        p = self._p(rows.n_features)
        if X is None:
            return self._make_rule(p, None)

        def largest_norm() -> float:
            if kernel is not None:
                return pools.largest_length(kernel, rows, weights, float(self.soft_margin))
            checked = border.check_rows(rows)
            norms = row_norms(checked, p, self._space.bias, float(self.soft_margin))
            norms *= self._stretch(p)
            return float(norms.max() if weights is None else norms[weights > 0].max())

        n_rows = X.shape[0] if weights is None else int(np.count_nonzero(weights))
        return self._make_rule(p, Sample(n_rows, largest_norm))

    def _stretch(self, p: float) -> float:
        """The p-norm of an instance over that of its row."""
        return 1.0

    def _open_space(self, rows: border.Rows) -> LinearSpace:
        """An empty space."""
        n_labels, logs = self._n_labels(), self.hypothesis in ("vote", "random")
        kind = LinearSpace
        if self._labels_at_once(self._state_type(rows), n_labels, rows.n_features) < n_labels:
            kind = LabelBlocks
            if logs:
                self._refuse_log_of_blocks(rows.n_features)
        return kind(
            rows.n_features, n_labels, self._p(rows.n_features), self._state_type(rows),
            bias=self._bias(rows), slack=float(self.soft_margin),
            averaged=self.hypothesis == "average", normalized=self.normalize_hypotheses,
            log=CorrectionLog() if logs else None,
        )  # fmt: skip

    def _refuse_log_of_blocks(self, n_features: int) -> NoReturn:
        raise ValueError(
            f"hypothesis={self.hypothesis!r} is replayed from a log of all labels' corrections, "
            f"and the weights of {self._n_labels():,} labels and {n_features:,} features are too "
            "many to be learned together. Pass hypothesis='average', or fewer features (files: "
            "hash_bits), or fit some of the labels at a time."
        )

    def _resize(self, n_features: int, first: int = 0) -> None:
        self._space = resized(self._space, n_features, first)

    def _state_type(self, rows: border.Rows) -> DTypeLike:
        # A proof takes theta for the very sum of what was added to it.
        return np.float64 if self._is_certified() else rows.data.dtype

    def _bytes_per_feature(self, dtype: np.dtype, n_labels: int, n_features: int) -> int:
        if not self._is_linear:
            return n_labels * BYTES_PER_FEATURE
        # Of labels that are learned block by block, those of a block.
        return self._label_bytes(dtype) * self._labels_at_once(dtype, n_labels, n_features)

    def _label_bytes(self, dtype: DTypeLike) -> int:
        """What a feature takes of a label's state."""
        linked = self.p != 2
        kind = np.dtype(np.float64 if linked or self._is_certified() else dtype)
        # theta, its link where that is another vector, the sum of the weights and its state.
        size = kind.itemsize * (2 if linked else 1)
        if self.hypothesis == "average":
            size += kind.itemsize + np.dtype(np.uint16).itemsize
        return size

    def _labels_at_once(self, dtype: DTypeLike, n_labels: int, n_features: int) -> int:
        return labels_at_once(n_features + self.fit_intercept, n_labels, self._label_bytes(dtype))

    # ------------------------------------------------------------------------------ prediction

    def _outputs_of_rows(self, rows: border.Rows) -> np.ndarray:
        if self._structure["hypothesis"] == "vote":
            return votes(self, rows)
        if self._structure["hypothesis"] == "random":
            return random_outputs(self, rows)
        if isinstance(self._space, KernelSpace):
            return hypothesis_outputs(self._space, rows, self._n_threads())
        return self._linear_outputs(rows).all(self._n_threads())

    def _outputs_are_parts(self) -> bool:
        replayed = self._structure["hypothesis"] in ("vote", "random")
        return not replayed and not isinstance(self._space, KernelSpace | LabelBlocks)

    def _output_parts(self, rows: border.Rows) -> tuple[Callable[[int, int], np.ndarray], int]:
        if not self._outputs_are_parts():
            of_part, step = super()._output_parts(rows)
            if isinstance(self._space, LabelBlocks):
                step = max(1, _OUTPUTS_PER_UNPACKING // self._space.n_labels)
            return of_part, step
        outputs = self._linear_outputs(rows)
        return outputs.part, max(1, _OUTPUTS_PER_PART // self._space.n_labels)

    def _linear_outputs(self, rows: border.Rows) -> LinearOutputs:
        kind = BlockOutputs if isinstance(self._space, LabelBlocks) else LinearOutputs
        return kind(self._space, rows)

    # ------------------------------------------------------------------------ fitted attributes

    @property
    def n_passed_over_(self) -> int | np.ndarray:
        """Trials that would have corrected, had the pool had room, in the epochs swept: an int for
        two classes, else an array of shape (n_classes,)."""
        self._with_kernel("n_passed_over_")
        return self._by_label(self._space.passed_over)  # type: ignore[union-attr]

    @property
    def theta_(self) -> Any:
        """Dual vector of each label, shape (n_labels, n_features), the intercept's coordinate last
        if there is one: ``w = link_p(theta)`` for the last hypothesis, all labels as one vector
        under ``multi_class="joint"``. An array, or CSR where labels are learned in blocks."""
        self._check_linear("theta_")
        return self._space.theta()  # type: ignore[union-attr]

    @property
    def theta_norm_(self) -> np.ndarray:
        """``||theta||_p`` of each label, shape (n_labels,), as the engine keeps it; soft-margin
        coordinates included. Of all labels as one vector, shape (1,), under
        ``multi_class="joint"``."""
        self._check_fitted()
        return self._space.theta_norm()
