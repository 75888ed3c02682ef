"""Base class of all learners: parameters, the steps of a fit, and training on streams.

A learner trains a model and needs only NumPy and the engine, so that training from a file starts
without delay. The classes in `sparsemargin.estimators.classifiers` add the interface of
scikit-learn.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin._engine.first_order.spaces import JointState
from sparsemargin._engine.fitting.epochs import FitResult, Patience, StoppingRule, learn, learn_once
from sparsemargin._engine.fitting.progressive import (
    ProgressiveOutputs,
    count_places,
    storing_outputs,
)
from sparsemargin._engine.fitting.protocol import Space
from sparsemargin._engine.fitting.task import Positives, Task
from sparsemargin._engine.messages import collected_warnings
from sparsemargin._engine.rows.csr import BadRow
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin.models.fitted.held_out import FEW_ROWS, held_out_outputs
from sparsemargin.models.fitted.outputs import sample_of, warn_of_one_class
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.inputs.rows import (
    ROWS_MEASURED,
    Rows,
    check_rows,
    intercept_scale,
    naming_bad_rows,
)
from sparsemargin.models.inputs.standardized import scaling_of, standardized
from sparsemargin.models.inputs.training_set import (
    Beginning,
    Targets,
    Training,
    TrainingSet,
    counted_rows,
    refuse_no_rows,
    rows_by_class,
    steps_by_class,
)
from sparsemargin.models.kernels import Kernel, kernel_of
from sparsemargin.models.parameters import declarations
from sparsemargin.models.stream_checks import PRECOMPUTED, StreamChecks

#: Upper limit, exclusive, of random seeds.
LARGEST_SEED = 2**31 - 1


class Learner(StreamChecks):
    """Base class of the learners."""

    #: Types of spaces for training, and names of constants that the rule computes from the data.
    spaces: ClassVar[tuple[type, ...]]
    constants: ClassVar[tuple[str, ...]] = ()

    # True if the last vector tends to the largest margin. A fit then warns if it ends too early.
    seeks_margin: ClassVar[bool] = False

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of the constructor's parameters, sorted."""
        return sorted(declarations(cls))

    @classmethod
    def weighs_steps(cls) -> bool:
        """Return whether the learner supports class weights and sample weights."""
        return "class_weight" in declarations(cls)

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's parameters and their values."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    def check_parameters(self) -> None:
        for name, each in sorted(declarations(self).items()):
            each.check(getattr(self, name), self.classifier)
        if not self.is_linear and self.p != 2:
            raise ValueError(
                f"kernel={self.kernel!r} needs p=2, whose dot products a kernel takes the place "
                f"of; got p={self.p!r}. Pass p=2 or kernel='linear'."
            )

    @property
    def is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    @property
    def kernel_object(self) -> Kernel:
        """The kernel; for ``"linear"``, the polynomial of degree 1."""
        return kernel_of(self.kernel)

    @property
    def _structure(self) -> dict[str, Any]:
        """The parameters on which the layout of the trained state depends."""
        known = declarations(self)
        structure = {name: getattr(self, name) for name in known if known[name].structural}
        kernel = "linear" if self.is_linear else self.kernel_object
        return {**structure, "hypothesis": self.hypothesis_name, "kernel": kernel}

    def check_structure(self, how: str) -> None:
        """Raise a ValueError if training can't resume because parameters differ from those of the
        trained state. `how` is the way of resuming, for the message."""
        self.fitted.require_all("trained")
        made_for, wanted = self.fitted.structure, self._structure
        changed = [name for name, value in wanted.items() if made_for.get(name) != value]
        if changed:
            raise ValueError(
                f"{how} can't go on with another {', '.join(changed)}. Set back what was changed, "
                "or fit anew."
            )

    def p_for(self, n_features: int) -> float:
        return max(2.0, 2.0 * np.log(n_features)) if self.p == "log" else float(self.p)

    def random_generator(self) -> np.random.RandomState:
        """Return the generator for `random_state`; None: NumPy's global generator."""
        if self.random_state is None:
            return np.random.mtrand._rand
        if isinstance(self.random_state, np.random.RandomState):
            return self.random_state
        return np.random.RandomState(self.random_state)

    @property
    def has_intercept(self) -> bool:
        """True if the model has an intercept."""
        # With a kernel, "auto" means no intercept. The norms in feature space differ from those of
        # the rows in X: a Gaussian kernel has norms of 1, and an intercept of 200 would dominate.
        return self.fit_intercept and (self.intercept_scaling != "auto" or self.is_linear)

    def _bias(self, first: Beginning) -> float:
        """Return the value of the intercept's coordinate for a new model; 0 without intercept."""
        if not self.has_intercept:
            return 0.0
        if self.intercept_scaling == "auto":
            return intercept_scale(first.blocks or [first.rows], self.p_for(first.rows.n_features))
        return float(self.intercept_scaling)

    @property
    def supports_multilabel(self) -> bool:
        """True if these parameters support multilabel problems."""
        return False

    # The steps of a row are multiplied by the cube root (3) or square root (2) of its weight.
    _weight_root: ClassVar[int] = 3

    @classmethod
    def _influence(cls, weight: np.ndarray) -> np.ndarray:
        """Return the factors of the steps for weights of rows."""
        return np.cbrt(weight) if cls._weight_root == 3 else np.sqrt(weight)

    # Largest number of rows that `held_out_outputs` uses, which limits its time.
    _most_rows_held_out: ClassVar[int] = 30_000

    @property
    def keeps_outputs(self) -> bool:
        """True if the output for each row is stored before the model is trained on the row."""
        return self.is_linear and self.hypothesis_name in ("last", "average")

    def _steps(self, first: Beginning) -> np.ndarray:
        """Return the weights of the steps of each vector's negative and positive rows, shape (2,
        n_vectors)."""
        if self.class_weight is None:
            return np.ones((2, first.n_vectors))
        return steps_by_class(self.class_weight, first, self._influence)

    @property
    def patience(self) -> Patience | None:
        """The state of early stopping for a new fit; None without early stopping."""
        return Patience(self.n_iter_no_change) if self.early_stopping else None

    @property
    def hypothesis_name(self) -> str:
        """Name of the hypothesis used for prediction with these parameters."""
        return self.hypothesis

    def n_threads(self) -> int:
        if self.n_jobs is None:
            return 1
        import joblib  # takes 0.1 s, and one thread does not need it

        return joblib.effective_n_jobs(self.n_jobs)

    # ------------------------------------------------------------------------------------- a fit

    @abstractmethod
    def new_space(self, first: Beginning) -> Space:
        """Return an empty space for a new model."""

    @abstractmethod
    def loop(self, task: Task) -> AbstractContextManager:
        """Return a context that opens the training loop over a task."""

    @abstractmethod
    def _begin(self, task: Task) -> StoppingRule:
        """Prepare a fit and return its stopping rule."""

    @abstractmethod
    def _conclude(self, result: FitResult) -> None:
        """Store the result of a fit, and warn if it did not reach its goal."""

    # True if a fit uses all rows, so that it can check each row when it is first used.
    _checks_on_the_way = False
    # True if rows may have duplicate columns. The loop then sums them if necessary.
    takes_repeats = False
    # True if a fit needs products of rows with more precision than float32.
    _needs_exact_products = False

    def _open(self, first: Beginning, slice_seed: int, steps: np.ndarray | None = None) -> None:
        """Create the state of a new model. `steps` are the weights of the steps, shape (2,
        n_vectors); None: they are computed from `class_weight`."""
        space, progress = self.new_space(first), None
        if self.keeps_outputs:
            averaged, joint = self.hypothesis_name == "average", isinstance(space, JointState)
            n_places = count_places(space.n_vectors, averaged, joint)
            progress = ProgressiveOutputs(space.n_vectors, n_places, self._weight_root)
        if steps is None:
            steps = self._steps(first)
        self._learned = Fitted(
            first.classes, first.form, space, self._structure, steps, slice_seed,
            np.zeros((2, len(first.classes)), dtype=np.int64), progress,
        )  # fmt: skip

    def measured_rows(self, rows: Rows, counted: np.ndarray | None) -> Rows:
        """Return the rows that a model is initialized with. `counted` selects rows; None: all."""
        if counted is None:
            return rows
        return rows_at(rows, np.flatnonzero(counted)[: ROWS_MEASURED if self.is_linear else None])

    def train(self, data: TrainingSet, *, resume: bool = False) -> Training:
        """Train on the rows, from scratch or from the current state. `finish` completes the fit."""
        random = self.random_generator()
        seed = random.randint(LARGEST_SEED) if self.shuffle else None
        rows, targets, weights = data.rows, data.targets, data.weights
        if weights is not None and not weights.any():
            raise ValueError("sample_weight is zero for every row: nothing to learn from.")
        check = not resume and self._checks_on_the_way
        # Training checks a row when it first uses it. If some rows have weight 0, all rows are
        # checked here instead.
        named = self.class_weight if isinstance(self.class_weight, dict) else {}
        check = check and (weights is None or bool(weights.all())) and 0 not in named.values()
        if self._needs_exact_products:
            rows = rows.with_data(rows.data.astype(np.float64, copy=False))
        if not check:
            rows = check_rows(rows, repeats_allowed=self.takes_repeats)
        counted = counted_rows(self.class_weight, data.classes, targets, weights)
        # The prior counts nonzero entries, so it is computed before features are standardized.
        prior = None if resume else self.prior_of(rows, targets, data.classes, counted)
        scaling = self.fitted.scaling if resume else None
        if self.standardize and not resume and (counted is None or counted.any()):
            scaling = scaling_of(rows, counted, weights)
        if scaling is not None:
            rows = standardized(rows, scaling)
        balanced = self.class_weight == "balanced"
        counts = rows_by_class(targets, len(data.classes), counted) if balanced else None
        first = Beginning(
            self.measured_rows(rows, counted), data.classes, data.form, counts,
            sparse=data.sparse, prior=prior,
        )  # fmt: skip
        with naming_bad_rows(rows):
            if resume:
                self._learned = replace(
                    self.fitted, class_weight=self._steps(first), typical_weight=None,
                    trials_before=self.space.trials,
                )  # fmt: skip
            else:
                self._open(first, random.randint(LARGEST_SEED))
                self.fitted.scaling = scaling
            refuse_no_rows(targets, self.fitted.class_weight, weights)
            task = self.make_task(
                rows, targets, weights, check=check,
                max_corrections=self.max_corrections, n_threads=self.n_threads(),
            )  # fmt: skip
            result = self._train(task, seed, int(self.verbose))
        self.fitted.n_iter = result.n_iter
        self.fitted.count_classes(task)
        return Training(task, result, seed, None if resume else first)

    def _train(self, task: Task, seed: int | None, verbose: int) -> FitResult:
        """Train on the rows of a task until the stopping rule ends the fit."""
        stopping = self._begin(task)
        with storing_outputs(task, self.space):
            return learn(self.loop(task), stopping, seed=seed, verbose=verbose)

    def finish(self, training: Training, norm: str | None = None) -> Self:
        """Complete a fit: hold rows out for probabilities if necessary, and warn of problems.

        `norm` is the norm of the rows, "l1" or "l2", if a vectorizer took its vocabulary from them,
        else None. The stored outputs for rows of such a vectorizer are always replaced.
        """
        task, result, _, first = training
        fitted = self.fitted
        if fitted.progress is not None:
            # After several epochs, outputs have another scale than those stored in the first epoch.
            fitted.progress.spoiled |= first is None or result.n_iter > 1
            # With a prior, the outputs depend on the labels of the rows that were counted.
            fitted.progress.spoiled |= first is not None and first.prior is not None
            unusable = fitted.progress.spoiled or task.n_trials < FEW_ROWS
            if first is not None and (unusable or norm is not None):
                self.hold_out(task, first, training.seed, norm=norm)
        fitted.space.number_on(task)
        if fitted.last_rows is not None:
            fitted.last_rows = fitted.last_rows[0], task.row_state
        self._conclude(result)
        # Rows are sampled after a complete epoch only, because it has checked all of them.
        if result.n_iter >= 1:
            targets = task.codes if task.positives is None else task.positives
            known = fitted.for_training_rows()
            sample = sample_of(known, task.rows, targets, task.weights)
            warn_of_one_class(known, [sample] if sample else [], self.parameters, self.n_threads())
        return self

    def hold_out(
        self, task: Task, first: Beginning, seed: int | None, groups: np.ndarray | None = None,
        norm: str | None = None,
    ) -> None:  # fmt: skip
        """Replace the stored outputs by outputs for held-out rows, if `held_out_outputs` finds any.

        `first` is the data that the model was initialized with, and `seed` the seed of the
        shuffling. Rows of equal `groups`, shape (n_rows,), are held out together. For `norm`, see
        `finish`.
        """
        kept, fit_part = self.fitted.progress, partial(self._fit_part, task, first, seed)
        fitted, most_rows = self.fitted.for_training_rows(), self._most_rows_held_out
        found = held_out_outputs(fitted, task, fit_part, most_rows, self.n_threads(), groups, norm)
        if found is not None and kept is not None:
            self.fitted.progress = kept.held_out(*found)

    def _fit_part(
        self, task: Task, first: Beginning, seed: int | None, part: Task
    ) -> Fitted | None:
        """Return the state of a model with the same settings, fitted to a part of the task without
        warnings; None if the fit fails. The part may have fewer columns."""
        similar, fitted = copy(self), self.fitted
        similar.restore(None).warm_start = False
        similar.p = self.p_for(task.rows.n_features)  # 'log' depends on the number of features
        if fitted.n_iter and (similar.max_iter is None or similar.max_iter > fitted.n_iter):
            similar.max_iter = fitted.n_iter
        targets = part.codes if part.positives is None else part.positives
        counted = None if part.weights is None else part.weights > 0
        prior = self.prior_of(part.rows, targets, fitted.classes, counted)
        first = replace(first, rows=part.rows, blocks=(), prior=prior)
        similar._open(first, fitted.slice_seed, fitted.class_weight)
        similar.fitted.progress = None
        try:
            with collected_warnings():
                similar._train(part, seed, 0)
        except (BadRow, ValueError):  # the steps for these rows are too large or too small
            return None
        return similar.fitted

    def make_task(self, rows: Rows, targets: Targets, weights: Any, **how: Any) -> Task:
        """Unpack the space of the current state, and return a task with training rows and the class
        weights of the state."""
        if isinstance(targets, Positives):
            how["positives"] = targets
            targets = np.zeros(len(rows.indptr) - 1, dtype=np.int64)
        fitted = self.fitted
        fitted.require_all("trained")
        fitted.space = fitted.space.unpacked()
        if not fitted.class_weight.all() and not fitted.many:
            # Rows of a class of weight 0 are skipped, like rows of weight 0.
            steps = fitted.class_weight
            of_classes = steps[:, 0] if self.space.n_vectors == 1 else steps[1]
            counted = (of_classes[targets] > 0).astype(np.float64)
            weights = counted if weights is None else weights * counted
        weights = fitted.influence_of(weights, self._influence)
        how.setdefault("progress", fitted.progress)
        how.setdefault("distinct", not self.takes_repeats)
        return Task(rows, targets, weights, fitted.class_weight, **how)

    # ------------------------------------------------------------------------------------ streams

    def open_stream(self, first: Beginning, slice_seed: int) -> None:
        """Create the state of a new model for training on a stream."""
        for fault in self._needs_of_all_rows():
            raise ValueError(fault)
        self._open(first, slice_seed)

    def resize(self, n_features: int, first: int = 0) -> None:
        """Keep the features from `first` on and change their number to n_features."""
        self.space.resize(n_features, first)

    @abstractmethod
    def bytes_per_feature(self, dtype: DTypeLike, n_vectors: int, n_features: int) -> int:
        """Return the memory of the initial state per feature, in bytes, for rows of type dtype."""

    def learn_stream(self, task: Task, order: np.ndarray | None = None) -> int | None:
        """Train on checked rows for one epoch, in the given order (None: the order of the rows).
        Return how many were predicted wrongly before training on them, or None if unknown."""
        fitted, space = self.fitted, self.space
        if not space.has_row_lengths:
            raise ValueError(PRECOMPUTED)
        fitted.last_rows = fitted.result = fitted.coef = fitted.unscaled = None
        was_full, opened = space.full, self.loop(task)
        try:
            with storing_outputs(task, space):
                mistakes = learn_once(opened, order)
        finally:
            space.number_on(task)
        fitted.count_classes(task)
        if space.full and not was_full:
            self._warn_of_full()
        return mistakes

    def train_once(self, data: TrainingSet) -> None:
        """Train on the rows once, in the given order, as `partial_fit` does."""
        rows = check_rows(data.rows, repeats_allowed=self.takes_repeats)
        is_new = self._learned is None
        if is_new:
            seed = self.random_generator().randint(LARGEST_SEED)
            counted = counted_rows(self.class_weight, data.classes, data.targets, data.weights)
            measured = self.measured_rows(rows, counted)
            prior = self.prior_of(rows, data.targets, data.classes, counted)
            first = Beginning(measured, data.classes, data.form, sparse=data.sparse, prior=prior)
            self.open_stream(first, seed)
        if self.fitted.scaling is not None:
            rows = standardized(rows, self.fitted.scaling)
        task = self.make_task(rows, data.targets, data.weights, n_threads=self.n_threads())
        if is_new and self.counts_first_rows:
            self.fitted.skip_outputs(task)
        with naming_bad_rows(rows):
            self.learn_stream(task)
        self.fitted.n_iter = 1.0

    def _warn_of_full(self) -> None:
        """Warn in a stream that a memory limit has been reached, and what this means."""
