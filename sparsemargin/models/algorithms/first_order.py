"""Base classes of the first-order learners, which apply an update rule to weight vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal, NoReturn, get_args

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin._engine.core.log import CorrectionLog
from sparsemargin._engine.core.vectors import FirstOrderRule
from sparsemargin._engine.first_order.linear_space import JointSpace, LinearSpace
from sparsemargin._engine.first_order.vector_blocks import VectorBlocks, resized, vectors_at_once
from sparsemargin._engine.fitting.epochs import FitResult, StoppingRule
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.kernel.loop import KernelSpace
from sparsemargin._engine.messages import warn_of_convergence, warn_user
from sparsemargin.models.inputs.rows import check_rows
from sparsemargin.models.inputs.training_set import Beginning
from sparsemargin.models.learner import Learner
from sparsemargin.models.parameters import FLAG, declared, one_of, parameter, real
from sparsemargin.models.shared_parameters import Hypothesis

# Minimum number of bytes per feature and vector that a kernel needs for products of sparse rows.
_BYTES_PER_PRODUCT = 4

MultiClass = Literal["ovr", "joint"]


@dataclass
class Sample:
    """Properties of the training data that a rule may use: the number of rows with a weight above
    0, and a function that computes their largest p-norm."""

    n_rows: int
    largest_norm: Callable[[], float]


@declared
class FirstOrderLearner(Learner):
    """Base class of the learners that correct a row if ``y w.x <= threshold``."""

    spaces: ClassVar[tuple[type, ...]] = (LinearSpace, VectorBlocks, JointSpace, KernelSpace)

    hypothesis: Hypothesis = parameter(
        "average",
        more='``"vote"`` and ``"random"`` log corrections (56 bytes per correction and, without a '
        "kernel, 16 bytes per nonzero of every corrected row) and replay the log to predict.",
    )
    normalize: bool = parameter(
        False,
        FLAG,
        "Whether instances are divided by their p-norm, including the intercept and soft-margin "
        "coordinates.",
        structural=True,
    )
    soft_margin: float = parameter(
        0.0,
        real(0, closed="left"),
        "Delta, the value of an additional coordinate for each row in training. The coordinates "
        "make any data separable (Freund & Schapire 1999, section 3.2).",
        structural=True,
    )
    multi_class: MultiClass = parameter(
        "ovr",
        one_of(get_args(MultiClass)),
        'How more than two classes are learned; ``"ovr"``: one vector per class against the rest, '
        '``"joint"``: one vector, the concatenation of the vectors of all classes. With '
        '``"joint"``, a correction changes only the vectors of the true class and of the other '
        "class with the largest output (Gentile 2001, section 5, item 4). The instance has x in "
        "the block of the former and -x in the block of the latter. Its p-norm is ``2**(1/p)`` "
        "times that of x, and its output is the difference of the two outputs. `n_corrections_`, "
        "`margin_` and `margin_upper_bound_` are single numbers, and `class_weight` applies to the "
        'true class. ``"joint"`` supports the average and last hypotheses without a kernel or a '
        "soft margin; `n_jobs` has no effect. With two classes, both settings train a single "
        "vector w, which is equivalent to the joint vector (w, -w) up to a factor. If rows are "
        "divided by their norms, both make the same corrections.",
        structural=True,
    )

    @property
    def supports_multilabel(self) -> bool:
        return self.is_linear and self.multi_class != "joint"

    def refuse_multilabel(self) -> NoReturn:
        if self.multi_class == "joint":
            raise ValueError(
                "multi_class='joint' tells classes apart of which each row has one, and y may "
                "have several labels a row. Pass multi_class='ovr'."
            )
        super().refuse_multilabel()

    # This is a parameter of the margin seekers only.
    tol: ClassVar[float | None] = None

    # True if each weight has a variance, as in AROW.
    _adaptive: ClassVar[bool] = False

    @abstractmethod
    def _make_rule(self, p: float, sample: Sample | None) -> FirstOrderRule:
        """Return the engine's rule; `sample` is None in a stream."""

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.multi_class == "joint":
            self._check_joint()
        if self.standardize and not self.is_linear:
            self.refuse_standardize("kernel", "'linear'")
        if self.standardize and self.hypothesis_name in ("vote", "random"):
            self.refuse_standardize("hypothesis", "'average' or 'last'")
        if self.tol and self.hypothesis_name != "last":
            raise ValueError(
                f"tol={self.tol!r} needs hypothesis='last', whose vector the certificate is for; "
                f"got hypothesis={self.hypothesis!r}. Pass that, or leave tol out."
            )

    def _check_joint(self) -> None:
        for name, instead, has in (
            ("hypothesis", "'average' or 'last'", self.hypothesis in ("vote", "random")),
            ("kernel", "'linear'", not self.is_linear),
            ("soft_margin", "0", self.soft_margin),
        ):
            if has:
                raise ValueError(
                    "multi_class='joint' learns all classes as one vector of weights and has no "
                    f"{name}={getattr(self, name)!r}. Pass {name}={instead}, or multi_class='ovr'."
                )

    def _stream_faults(self, grows: bool) -> Iterator[str]:
        yield from super()._stream_faults(grows)
        if self.soft_margin:
            yield self._fault("soft_margin", "gives every row a coordinate of its own", "0")
        if self.tol:
            yield self._fault("tol", "needs passes over all rows", "None")
        if not self.is_linear and self.kernel_object.max_support is None:
            yield (
                "max_support=None keeps every row that makes a correction, and a stream is learned "
                "in memory that doesn't grow with its rows. Pass max_support=1000, say, to the "
                "kernel, or load the file and fit: fit_csr(*load_svmlight(path), ...)."
            )

    @property
    def _checks_on_the_way(self) -> bool:  # type: ignore[override]
        all_used = self.max_corrections is None and (self.max_iter is None or self.max_iter >= 1)
        return all_used and self.takes_repeats

    @property
    def _needs_exact_products(self) -> bool:  # type: ignore[override]
        # With a kernel, norms are computed from products of rows. The bound on the margin depends
        # on these norms, and float32 is not exact enough for it.
        return not self.is_linear and self._is_certified()

    # True if the length of a step depends on the output for the row. Duplicate columns must then be
    # summed first, because they change the rounding errors of the output.
    _steps_by_output: ClassVar[bool] = False

    @property
    def takes_repeats(self) -> bool:  # type: ignore[override]
        return self.is_linear and not (self._steps_by_output or self.standardize)

    def _begin(self, task: Task) -> StoppingRule:
        provable = self._is_provable(
            task, task.codes, task.weights, task.class_weight, *(task.positives or ())
        )

        def largest_norm() -> float:
            rows = task.rows if task.distinct else check_rows(task.rows)
            return float(self.space.largest_norm(rows, task.weights))

        sample, fitted = Sample(task.n_trials, largest_norm), self.fitted
        fitted.rule = self._make_rule(self.p_for(task.rows.n_features), sample)
        fitted.trials_per_epoch = task.n_trials
        return StoppingRule(
            self.max_iter, self.tol, certified=self._is_certified() and provable,
            patience=self.patience,
        )  # fmt: skip

    def _is_provable(self, task: Task, *others: Any) -> bool:
        """Resume with the rows of the last fit under `warm_start`, see `Fitted.recall_rows`.

        Return whether the margin can be certified, which requires that the model was trained on no
        other rows. If it was, and `tol` is set, raise a ValueError.
        """
        same = self.fitted.recall_rows(task, self.warm_start, *others)
        if self.space.trials == 0:
            return True
        if same:
            return bool(self.space.t.dtype == np.float64)
        if self.tol:
            raise ValueError(
                f"tol={self.tol!r} can't be had from a fit that goes on from other rows, or from a "
                "fit without warm_start: what the model begins with is part of no proof for these "
                "rows. Begin anew, or pass tol=None."
            )
        self.fitted.last_rows = None
        return False

    def _ends_by_itself(self) -> bool:
        """Return whether a fit should end before `max_iter` epochs."""
        seeks = self.seeks_margin and self.hypothesis_name == "last"
        return seeks or self.max_iter is None or self.tol is not None

    def _is_certified(self) -> bool:
        return self.hypothesis_name == "last" and self._ends_by_itself()

    def _warn_of_shortfall(self, result: FitResult) -> None:
        """Warn if the fit stopped before it reached its goal."""
        if result.proven or not self._ends_by_itself() or (self.tol is None and result.converged):
            return
        over = self.n_iter_ >= (self.max_iter or inf) or self.space.exhausted().any()
        if self.tol is None and self.patience and not over:
            return  # early stopping ended the fit
        done = f"{self.n_iter_:g} epochs and {np.sum(self.n_corrections_)} corrections"
        if result.converged and self.tol is not None:
            share = np.min(np.divide(self.margin_, self.margin_upper_bound_))
            message = (
                f"After {done} no row is left to correct, at a margin proven to be {share:.3g} of "
                f"the largest; tol={self.tol:g} asks for {1 - self.tol:g}. Set the parameters "
                "for a larger margin, or use MaxMarginClassifier."
            )
        else:
            goal = "a pass made no correction"
            if self.tol is not None:
                goal = f"tol={self.tol:g} was reached"
            message = (
                f"Stopped after {done}, before {goal}. Raise max_iter={self.max_iter} or "
                f"max_corrections={self.max_corrections}, or pass None or early_stopping=False; "
                "data that are not separable need soft_margin."
            )
        warn_of_convergence(message)

    def _conclude(self, result: FitResult) -> None:
        self.fitted.result = result
        self._warn_of_shortfall(result)
        if self.space.full:
            space, made = self.space, np.sum(self.n_corrections_)
            missed, trials = int(space.passed_over.sum()), max(1, space.trials_per_vector.sum())
            warn_user(
                f"The pool was full at max_support={space.max_support} rows: {missed} trials "
                f"({100 * missed / trials:.2g} % of all) that would have corrected were passed "
                f"over; {made} corrections were made. n_passed_over_ has them label by label."
            )

    def _warn_of_full(self) -> None:
        warn_user(
            f"The pool holds max_support={self.space.max_support} rows, and takes no more: trials "
            "that would have corrected with another row are passed over. n_passed_over_ counts "
            "them."
        )

    def open_stream(self, first: Beginning, slice_seed: int) -> None:
        super().open_stream(first, slice_seed)
        self.fitted.rule = self._make_rule(self.p_for(first.rows.n_features), None)

    def loop(self, task: Task) -> AbstractContextManager:
        skips = not self.is_linear and self.kernel_object.when_full == "skip"
        return self.space.loop(task, self.fitted.rule, skips=skips)

    def new_space(self, first: Beginning) -> LinearSpace | KernelSpace:
        rows, n_vectors = first.rows, first.n_vectors
        n_features = rows.n_features
        logs = self.hypothesis_name in ("vote", "random")
        how: dict[str, Any] = {
            "averaged": self.hypothesis_name == "average", "normalized": self.normalize_hypotheses
        }  # fmt: skip
        # A certificate assumes that theta is the sum of all steps, so float32 is not exact enough.
        dtype = np.float64 if self._is_certified() else rows.data.dtype
        vectors = n_features, n_vectors, self.p_for(n_features), dtype
        if self.multi_class == "joint" and n_vectors > 1:  # two classes have a single vector
            return JointSpace(*vectors, bias=self._bias(first), **how)
        how |= {"slack": float(self.soft_margin), "log": CorrectionLog() if logs else None}
        if not self.is_linear:
            bias, kernel = self._bias(first), self.kernel_object
            return KernelSpace(
                kernel.for_model(bias, first), n_features, n_vectors, bias=bias,
                max_support=kernel.max_support, **how,
            )  # fmt: skip
        how["adaptive"] = self._adaptive
        at_once = self._vectors_at_once(dtype, n_vectors, n_features)
        kind = LinearSpace if at_once == n_vectors else VectorBlocks  # depending on the memory
        if logs and kind is VectorBlocks:
            self._refuse_log_of_blocks(n_vectors, n_features)
        space = kind(*vectors, bias=self._bias(first), **how)
        if first.prior is not None:
            space.take_prior(first.prior)
        return space

    def _refuse_log_of_blocks(self, n_vectors: int, n_features: int) -> NoReturn:
        raise ValueError(
            f"hypothesis={self.hypothesis!r} is replayed from a log of all labels' corrections, "
            f"and the weights of {n_vectors:,} labels and {n_features:,} features are too "
            "many to be learned together. Pass hypothesis='average', or fewer features (files: "
            "hash_bits), or fit some of the labels at a time."
        )

    def resize(self, n_features: int, first: int = 0) -> None:
        if first or n_features != self.space.n_features:
            self.fitted.space = resized(self.space.unpacked(), n_features, first)

    def _bytes_per_number(self, dtype: DTypeLike) -> int:
        """Bytes per coordinate of a vector: theta, the weight if p > 2, the variance, and for the
        averaged hypothesis the sum and 2 bytes of state."""
        linked = self.p != 2
        kind = np.dtype(np.float64 if linked or self._is_certified() else dtype)
        size = kind.itemsize * (1 + linked + self._adaptive)
        if self.hypothesis_name == "average":
            size += kind.itemsize + np.dtype(np.uint16).itemsize
        return size

    def _vectors_at_once(self, dtype: DTypeLike, n_vectors: int, n_features: int) -> int:
        """Return the number of vectors trained together: all, or those of one block."""
        if n_vectors == 1:
            return 1
        size = self._bytes_per_number(dtype)
        return vectors_at_once(n_features + self.fit_intercept, n_vectors, size)

    def bytes_per_feature(self, dtype: DTypeLike, n_vectors: int, n_features: int) -> int:
        if not self.is_linear:
            return n_vectors * _BYTES_PER_PRODUCT
        if self.multi_class != "joint":
            n_vectors = self._vectors_at_once(dtype, n_vectors, n_features)
        return n_vectors * self._bytes_per_number(dtype)

    @property
    def n_passed_over_(self) -> int | np.ndarray:
        """Number of trials that were skipped because the pool was full, in the epochs that were
        run: an int for two classes, else an array of shape (n_classes,)."""
        self.fitted.check_kernel("n_passed_over_")
        return self.fitted.by_vector(self.space.passed_over)

    @property
    def theta_(self) -> Any:
        """Dual vectors, an array of shape (n_vectors, n_features), or CSR if they are trained in
        blocks. If there is an intercept, its coordinate is an additional last column. The weights
        of the last hypothesis are ``link_p(theta)``; with ``multi_class="joint"``, the link applies
        to the concatenation of all vectors."""
        self.fitted.check_linear("theta_")
        return self.space.theta()

    @property
    def theta_norm_(self) -> np.ndarray:
        """``||theta||_p`` of each vector, shape (n_vectors,), including soft-margin coordinates.
        With ``multi_class="joint"``, the norm of the concatenation of all vectors, shape (1,)."""
        return self.space.theta_norm()

    @property
    def margin_upper_bound_(self) -> float | np.ndarray:
        """Upper bound of the margin of any vector on the training rows: a float for two classes and
        with ``multi_class="joint"``, else an array of shape (n_classes,).

        This is the smallest ``||theta||_p / L`` so far, where L is the sum of the multipliers of
        the rows in theta. Its rounding error is about 1e-14 of the largest row norm. With a kernel,
        norms are computed from products, and the bound is at least 1e-8 of the largest row norm so
        that rounding errors can't make it too small. It exists only for the last hypothesis, in the
        unit of `margin_`. After `partial_fit` and with `warm_start`, it holds for the rows of all
        calls together.
        """
        if self.fitted.hypothesis != "last" or self.space.t.dtype != np.float64:
            raise AttributeError(
                "margin_upper_bound_ needs hypothesis='last', and float64 rows where the "
                "classifier is not made to seek a margin and max_iter doesn't ask for one."
            )
        return self.fitted.by_vector(self.space.per_vector("bound"))

    def _certified(self) -> Any:
        result = self.fitted.result
        if result is None or result.margin is None:
            raise AttributeError(
                "The margin was not taken: that needs fit with hypothesis='last' and, for "
                "classifiers not made to seek a margin, max_iter=None; and a model that has "
                "learned from no other rows. "
                "sparsemargin.evaluation.margins gives the margins of any model on any rows."
            )
        return result

    @property
    def margin_(self) -> float | np.ndarray:
        """Smallest ``y w.x / ||w||_q`` of the last vector on the rows of `fit`: a float for two
        classes and with ``multi_class="joint"``, else an array of shape (n_classes,).

        Rows are divided by their p-norm if the algorithm does so. Otherwise the margin is in the
        units of X. With ``multi_class="joint"``, it is the smallest difference between the output
        of a row's class and the largest other output, divided by the norm of the concatenation of
        all vectors. Rows that the algorithm normalizes are then divided by ``2**(1/p) ||x||_p``,
        the norm of an instance with x in one block and -x in another. With `soft_margin`, rows
        include their additional coordinates. Zero rows and rows of weight 0 are ignored.
        """
        return self.fitted.by_vector(self._certified().margin)

    @property
    def relative_deviation_(self) -> float | np.ndarray:
        """``(D' - D) / D``, an estimate of the relative deviation of the extended margin from the
        largest one (Tsampouka & Shawe-Taylor 2006, sections 4 and 5). It is 0 at the optimum and
        exists for p = 2 with a `soft_margin`."""
        soft_margin = self._certified().soft_margin
        if soft_margin is None:
            raise AttributeError("Defined for p = 2 with a soft_margin.")
        return self.fitted.by_vector(soft_margin.deviation)

    @property
    def history_(self) -> dict[str, np.ndarray]:
        """Results at the checks of `tol`, after every epoch at first and then less often, and at
        the end: arrays ``n_iter`` of shape (n_checks,), and ``n_corrections``, ``margin`` and
        ``margin_upper_bound`` of shape (n_checks,) or (n_checks, n_classes)."""
        history = self._certified().history
        names = ("n_iter", "n_corrections", "margin", "margin_upper_bound")
        columns = (np.array(column) for column in zip(*history, strict=True))
        lone = not self.fitted.many
        return {
            name: column[:, 0] if lone and column.ndim == 2 and column.shape[1] == 1 else column
            for name, column in zip(names, columns, strict=True)
        }
