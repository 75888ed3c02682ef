"""Base class of all learners: parameters, the steps of a fit, and training on streams.

A learner trains a model and needs only NumPy and the engine, so that training from a file starts
without delay. The classes in `sparsemargin.estimators.classifiers` add the interface of
scikit-learn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar, NoReturn, Self

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
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin.models.fitted.held_out import FEW_ROWS, held_out_outputs
from sparsemargin.models.fitted.outputs import sample_of, warn_of_one_class
from sparsemargin.models.fitted.state import WITH_GAMMA, Attributes, Beginning, Fitted
from sparsemargin.models.inputs.class_weights import (
    Targets,
    counted_rows,
    refuse_no_rows,
    rows_by_class,
    steps_by_class,
)
from sparsemargin.models.inputs.rows import (
    ROWS_MEASURED,
    Rows,
    check_rows,
    intercept_scale,
    open_rows,
    refusing,
)
from sparsemargin.models.parameters import SharedParameters, declarations

#: Upper limit, exclusive, of random seeds.
LARGEST_SEED = 2**31 - 1

_PRECOMPUTED = (
    "kernel='precomputed' needs the kernel of all pairs of rows, which no stream can know. Call "
    "fit, or pass the kernel as a function."
)


class Learner(SharedParameters, Attributes):
    """Base class of the learners."""

    #: Name of its scikit-learn class.
    classifier: ClassVar[str]

    #: The types of its spaces, and the names of the constants that its rule computes from the data.
    spaces: ClassVar[tuple[type, ...]]
    constants: ClassVar[tuple[str, ...]] = ()

    # True if a fit should reach a margin, and warns if it does not.
    seeks_margin: ClassVar[bool] = False

    # ----------------------------------------------------------------------------- the parameters

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
    def _takes_gamma(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel in WITH_GAMMA

    @property
    def _structure(self) -> dict[str, Any]:
        """The parameters on which the layout of the trained state depends."""
        known = declarations(self)
        structure = {name: getattr(self, name) for name in known if known[name].structural}
        return {**structure, "hypothesis": self.hypothesis_name}

    def check_structure(self, how: str) -> None:
        """Raise a ValueError if training can't resume because parameters differ from those of the
        trained state. `how` is the way of resuming, for the message."""
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
        """Return the generator for `random_state`, like scikit-learn's `check_random_state`. None
        is NumPy's global generator."""
        if self.random_state is None:
            return np.random.mtrand._rand
        if isinstance(self.random_state, np.random.RandomState):
            return self.random_state
        return np.random.RandomState(self.random_state)

    @property
    def has_intercept(self) -> bool:
        """True if the model has an intercept."""
        # "auto" uses the norms of rows in X, but the norms in feature space differ. For example,
        # they are 1 for a Gaussian kernel, and an intercept of 200 would dominate.
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

    def refuse_multilabel(self) -> NoReturn:
        how = "" if self.is_linear else f" with kernel={self.kernel!r}"
        raise ValueError(
            f"{self.classifier}{how} learns from rows of one class each, and y may have several "
            "labels a row. Fit a model for each: "
            "sklearn.multiclass.OneVsRestClassifier(model).fit(X, Y), Y being an indicator; from "
            "files with positive=LABEL."
        )

    # Steps are proportional to this root of a row's weight.
    _weight_root: ClassVar[int] = 3

    @classmethod
    def _influence(cls, weight: np.ndarray) -> np.ndarray:
        """Return the factors of the steps for weights of rows."""
        return np.cbrt(weight) if cls._weight_root == 3 else np.sqrt(weight)

    # Maximum number of rows for `held_out_outputs`, to limit its time.
    _most_rows_held_out: ClassVar[int] = 30_000

    @property
    def keeps_outputs(self) -> bool:
        """True if outputs for rows before training on them are stored with these parameters."""
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
        import joblib

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
        """Return the rows with which a model is initialized. `counted` selects rows; None: all. A
        linear model only needs the first rows."""
        if counted is None:
            return rows
        which = np.flatnonzero(counted)
        return rows_at(rows, which[:ROWS_MEASURED] if self.is_linear else which)

    def fit_rows(
        self, matrix: Any, targets: Targets, weights: Any, seed: int | None, first: Beginning,
        slice_seed: int | None,
    ) -> Self:  # fmt: skip
        """Fit a new model if `slice_seed` is given, else resume from the current state.

        `seed` is the seed of the shuffling; None: the order of the rows.
        """
        afresh = slice_seed is not None
        rows, check = open_rows(matrix), afresh and self._checks_on_the_way
        check = check and (weights is None or bool(weights.all()))
        # Rows of weight 0 are not used in training, so they would not be checked.
        named = self.class_weight if isinstance(self.class_weight, dict) else {}
        check = check and 0 not in named.values()
        if self._needs_exact_products:
            rows = rows.with_data(rows.data.astype(np.float64, copy=False))
        if not check:
            rows = check_rows(rows, repeats_allowed=self.takes_repeats)
        balanced = self.class_weight == "balanced"
        counted = counted_rows(self.class_weight, first.classes, targets, weights)
        counts = rows_by_class(targets, len(first.classes), counted) if balanced else None
        first = replace(first, rows=self.measured_rows(rows, counted), counts=counts)
        with refusing(rows):
            if slice_seed is not None:
                self._open(first, slice_seed)
            else:
                # After an error, the caller restores the old state. It shares the space, so it
                # contains the rows used before the error, and its cached weights are outdated.
                before = self.fitted
                before.coef = None
                self._learned = replace(
                    before, class_weight=self._steps(first), typical_weight=None,
                    trials_before=before.space.trials,
                )  # fmt: skip
            refuse_no_rows(targets, self.fitted.class_weight, weights)
            task = self.make_task(
                rows, targets, weights, check=check,
                max_corrections=self.max_corrections, n_threads=self.n_threads(),
            )  # fmt: skip
            result = self._train(task, seed, int(self.verbose))
            self.fitted.n_iter = result.n_iter
            self._note_outputs(task, result, seed, first if afresh else None)
        fitted = self.fitted
        fitted.count_classes(task)
        fitted.space.number_on(task)
        if fitted.last_rows is not None:
            fitted.last_rows = fitted.last_rows[0], task.row_state
        self._conclude(result)
        # After an incomplete epoch, some rows are not checked.
        if not result.interrupted and result.n_iter >= 1:
            sample = sample_of(self, rows, targets, weights)
            warn_of_one_class(self, [] if sample is None else [sample])
        return self

    def _train(self, task: Task, seed: int | None, verbose: int) -> FitResult:
        """Train on the rows of a task until the stopping rule ends the fit."""
        stopping = self._begin(task)
        with storing_outputs(task, self.space):
            return learn(self.loop(task), stopping, seed=seed, verbose=verbose)

    def _note_outputs(
        self, task: Task, result: FitResult, seed: int | None, first: Beginning | None
    ) -> None:
        """Replace the stored outputs by outputs for held-out rows if necessary.

        Outputs from before training are too few in a short fit, and they do not have the scale of
        the model after several epochs. `first` is the data that the model was initialized with;
        None if the fit resumed, in which case outputs are only marked as invalid.
        """
        kept = self.fitted.progress
        if kept is None:
            return
        kept.spoiled |= first is None or result.n_iter > 1
        few = task.n_trials < FEW_ROWS
        if first is None or result.interrupted or not (kept.spoiled or few):
            return
        found = held_out_outputs(self, task, first, seed)
        if found is not None:
            self.fitted.progress = kept.held_out(*found)

    def make_task(self, rows: Rows, targets: Targets, weights: Any, **how: Any) -> Task:
        """Return the task for training rows, with the class weights of the current state."""
        if isinstance(targets, Positives):
            how["positives"] = targets
            targets = np.zeros(len(rows.indptr) - 1, dtype=np.int64)
        fitted = self.fitted
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

    def _recall_rows(self, task: Task, *others: Any) -> bool:
        """Under `warm_start`, resume with the state of the rows if they are those of the last fit.

        `others` are targets and weights, which must also be equal. Return whether all are equal.
        """
        fitted, space = self.fitted, self.space
        earlier, hashed = fitted.last_rows, None
        if self.warm_start:
            import joblib

            rows = task.rows
            what = rows.data, rows.indices, rows.indptr, *others
            hashed = joblib.hash(what)
        fitted.last_rows = None if hashed is None else (hashed, None)
        same = earlier is not None and earlier[0] == hashed
        if earlier is not None and same:
            task.row_state, task.progress = earlier[1], None
        space.number(task, same)
        if not space.has_row_lengths:  # the kernel is precomputed
            if space.trials and not same:
                raise ValueError(
                    "warm_start with kernel='precomputed' goes on with the very X and y of the "
                    "last fit; these are others. Pass warm_start=False."
                )
            space.kernel.check(task.rows)
        return same

    # ------------------------------------------------------------------------------------ streams

    def check_streams(self, *, grows: bool) -> None:
        """Raise a ValueError if these parameters do not support training on a stream of rows, with
        memory that does not grow with its length. `grows` is True if the number of features is not
        known in advance."""
        self.check_parameters()
        faults = " ".join(self._stream_faults(grows))
        if faults:
            raise ValueError(faults)

    def _stream_faults(self, grows: bool) -> Iterator[str]:
        """Yield a message with a remedy for each parameter that does not support streams."""
        if self.hypothesis in ("vote", "random"):
            yield self._fault("hypothesis", "keeps a log of all corrections", "'average'")
        if self.max_corrections is not None:
            yield self._fault("max_corrections", "ends a fit, not a stream", "None")
        if self.max_iter is not None and self.max_iter % 1:
            yield self._fault("max_iter", "ends within rows not yet counted", "a whole number")
        if self.p == "log" and grows:
            yield "p='log' needs the number of features: pass n_features, or hash_bits."
        yield from self._kernel_faults(grows)

    def _kernel_faults(self, grows: bool) -> Iterator[str]:
        """Yield such messages for the parameters of the kernel."""
        yield from self._needs_of_all_rows()
        if self._takes_gamma and self.gamma == "auto" and grows:
            yield "gamma='auto' needs the number of features: pass n_features, or hash_bits."

    def _needs_of_all_rows(self) -> Iterator[str]:
        """Yield such messages for a kernel that depends on all rows."""
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            yield _PRECOMPUTED
        # A model that resumes training has stored its gamma.
        if self._takes_gamma and self.gamma == "scale" and self._learned is None:
            yield (
                "gamma='scale' needs the variance of all rows, which no stream can know. Pass "
                "gamma as a number, or 'auto'."
            )

    def _fault(self, name: str, why: str, instead: str) -> str:
        return (
            f"{name}={getattr(self, name)!r} {why}, and a stream is learned in memory that doesn't "
            f"grow with its rows. Pass {name}={instead}, or load the file and fit: "
            "fit_csr(*load_svmlight(path), ...)."
        )

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
            raise ValueError(_PRECOMPUTED)
        fitted.last_rows = fitted.result = fitted.coef = None
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

    def _warn_of_full(self) -> None:
        """Warn in a stream that a memory limit has been reached, and what this means."""
