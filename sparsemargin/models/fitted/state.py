"""The state of a trained model, which model files store, and the attributes computed from it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from sparsemargin._engine.core.vectors import FirstOrderRule
from sparsemargin._engine.first_order.packed import WeightSpace
from sparsemargin._engine.first_order.spaces import JointState
from sparsemargin._engine.fitting.epochs import FitResult
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.fitting.task import Task
from sparsemargin._heavy import sklearn_exceptions
from sparsemargin.models.fitted.in_use import asks, refuse_while_learning
from sparsemargin.models.fitted.probabilities import (
    COUNTED,
    LEARNED_AGAIN,
    LEAST_AFTER_COUNTING,
    LEAST_TRIALS,
    NO_OUTPUTS,
    Calibration,
    Window,
)
from sparsemargin.models.inputs.multilabel_targets import TargetFormat
from sparsemargin.models.inputs.rows import Rows
from sparsemargin.models.inputs.standardized import standardized, unscaled_space

#: Maximum number of bits of hashed feature indices.
MOST_HASH_BITS = 31


@dataclass
class Fitted:
    """The complete state of a trained model, as stored in a model file."""

    classes: np.ndarray
    form: TargetFormat | None  # format of multilabel targets; None: one class per row
    space: Any  # a `Space`, with weights or with a support set
    structure: dict[str, Any]  # the parameters on which the layout of the state depends
    class_weight: np.ndarray  # weights of the steps of negative and positive rows, (2, n_vectors)
    slice_seed: int  # seed of the random hypothesis
    rows_by_class: np.ndarray  # training rows without and with each class, shape (2, n_classes)
    # Outputs for rows before training on them; None: not available with these parameters.
    progress: ProgressiveOutputs | None = None
    rule: FirstOrderRule | None = None  # None: a matrix learner
    constants: dict[str, float] = field(default_factory=dict)  # constants computed by the rule
    n_iter: float = 0.0  # number of epochs in the last training call
    # Mean sample weight of the first rows; steps are relative to the steps of a row with this
    # weight. None before the first row.
    typical_weight: float | None = None
    # Number of trials before the last fit under warm_start, or before the stream under init_model.
    trials_before: int = 0
    trials_per_epoch: int = 0  # number in the last fit; 0: no fit yet
    result: FitResult | None = None  # result of the last fit; None: no fit, or a stream after it
    # Under warm_start: hash of the rows of the last fit, and their `row_state`.
    last_rows: tuple[str, Any] | None = None
    # Settings with which files must be read to get the same features; None: trained on a matrix.
    reading: dict[str, Any] | None = None
    sparse_coef: bool = False  # True if `coef_` is sparse
    # Result of `scaling_of`, if rows are standardized for `space`; None: they are used unchanged.
    scaling: np.ndarray | None = None
    # True if only prediction is possible, see `keep_predictions`.
    predicts_only: bool = field(default=False, init=False)
    # Caches of the weights and of `predictor`; not stored in files.
    coef: Any = field(default=None, init=False)
    unscaled: Any = field(default=None, init=False)
    # Cache of the calibration, and the number of trials of `progress` when it was fitted.
    calibration: tuple[int, Calibration | None] = field(default=(-1, None), init=False)

    @property
    def many(self) -> bool:
        """True if rows may have any number of labels (multilabel)."""
        return self.form is not None

    @property
    def hypothesis(self) -> str:
        """Name of the hypothesis used for prediction."""
        return str(self.structure["hypothesis"])

    @property
    def predictor(self) -> Any:
        """The space with the outputs and weights for rows that are not standardized."""
        if self.scaling is None:
            return self.space
        if self.unscaled is None:
            self.unscaled = unscaled_space(self.space, self.scaling)
        return self.unscaled

    def for_training_rows(self) -> Fitted:
        """Return the state for rows of a task, which are already standardized if necessary."""
        return self if self.scaling is None else replace(self, scaling=None)

    def row_lengths(self, rows: Rows) -> np.ndarray:
        """Return the norms of checked rows with the intercept's coordinate, shape (n_rows,). The
        rows are standardized first if necessary."""
        if self.scaling is not None:
            rows = standardized(rows, self.scaling)
        lengths: np.ndarray = self.space.row_lengths(rows)
        return lengths

    @property
    def at_zero(self) -> np.ndarray:
        """True for each class that an output of 0 predicts, shape (n_classes,): at least half of
        the training rows have the class, or there are no rows yet."""
        without, having = self.rows_by_class
        at_zero: np.ndarray = having >= without
        return at_zero

    def by_vector(self, values: np.ndarray) -> Any:
        """Return values of the vectors: a number for two classes, else an array (n_vectors,)."""
        return values[0].item() if len(values) == 1 and not self.many else values.copy()

    def count_classes(self, task: Task) -> None:
        """Add the rows of a task to the numbers of rows with and without each class."""
        labels = task.codes if task.positives is None else task.positives.labels
        if task.weights is not None:
            trials = task.weights > 0
            if task.positives is not None:
                trials = np.repeat(trials, np.diff(task.positives.starts))
            labels = labels[trials]
        counts = np.bincount(labels, minlength=len(self.classes))
        self.rows_by_class = self.rows_by_class + np.vstack([task.n_trials - counts, counts])

    def skip_outputs(self, task: Task) -> None:
        """Store no outputs of the rows of a task. This is for rows that were counted for the prior,
        because their outputs depend on their own labels."""
        kept, task.progress = task.progress, None
        if kept is not None:
            kept.spoiled |= kept.fingerprints.add_rows(task.rows, task.order())

    def recall_rows(self, task: Task, warm_start: bool, *others: Any) -> bool:
        """Under `warm_start`, resume with the state of the rows if they are those of the last fit.

        `others` are targets and weights, which must also be equal. Return whether all are equal.
        """
        earlier, hashed = self.last_rows, None
        if warm_start:
            import joblib  # takes 0.1 s, and other fits do not need it

            hashed = joblib.hash((task.rows.data, task.rows.indices, task.rows.indptr, *others))
        self.last_rows = None if hashed is None else (hashed, None)
        same = earlier is not None and earlier[0] == hashed
        if earlier is not None and same:
            task.row_state, task.progress = earlier[1], None
        self.space.number(task, same)
        if not self.space.has_row_lengths:  # the kernel is precomputed
            if self.space.trials and not same:
                raise ValueError(
                    "warm_start with kernel='precomputed' goes on with the very X and y of the "
                    "last fit; these are others. Pass warm_start=False."
                )
            self.space.kernel.check(task.rows)
        return same

    def influence_of(self, weights: np.ndarray | None, influence: Any) -> np.ndarray | None:
        """Return the factors of the steps for sample weights; None: all are 1."""
        if self.typical_weight is None:
            # Only the first rows are averaged, because a stream does not know its later rows.
            known = np.ones(1) if weights is None else weights[weights > 0]
            if len(known):
                largest = known.max()  # dividing by it makes the mean of equal weights exact
                self.typical_weight = float(largest * (known / largest).mean())
        if weights is None or not weights.any():
            return weights
        shares: np.ndarray = influence(weights) / influence(np.array(self.typical_weight))
        return shares

    # ------------------------------------------------------------------------------ probabilities

    @property
    def tells_probabilities(self) -> bool:
        """True if enough outputs from before training are stored, and no row was used twice."""
        kept = self.progress
        if kept is None or kept.n_trials == 0 or kept.spoiled:
            return False
        # A stream stores no outputs for the rows that a prior counts.
        counted = self.structure.get("prior") is not None and not kept.n_held_out
        return not counted or kept.n_trials >= LEAST_AFTER_COUNTING

    def why_no_probabilities(self, name: str) -> str:
        """Return why a classifier with this name has no probabilities, and a remedy."""
        if self.progress is None:
            return NO_OUTPUTS.format(name)
        if not self.progress.spoiled and self.rows_by_class.any():
            return COUNTED.format(name)
        if not self.progress.spoiled:
            return f"{name} has no probabilities, as it has learned no row yet. Learn rows first."
        return LEARNED_AGAIN.format(name)

    def window(self) -> Window:
        """Return the latest outputs for rows before the model was trained on them."""
        assert self.progress is not None
        return Window.of(self.progress)

    def calibrated(self) -> Calibration:
        """Return the calibration, which converts outputs to probabilities."""
        n_trials, calibration = 0 if self.progress is None else self.progress.n_trials, None
        if self.calibration[0] == n_trials:
            calibration = self.calibration[1]
        if calibration is None:
            joint = isinstance(self.space, JointState)
            calibration = Calibration(self.window(), not self.many, joint)
            self.calibration = n_trials, calibration
        return calibration

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, shape (n_rows, n_classes), for outputs of shape
        (n_rows, n_vectors). A ValueError is raised if the model has no probabilities."""
        if not self.tells_probabilities:
            raise ValueError(self.why_no_probabilities("The model"))
        return self.calibrated()(outputs)

    def require_outputs(self, what: str) -> None:
        """Raise a ValueError if there are too few outputs from before training; `what` names the
        setting that needs them."""
        if not self.tells_probabilities:
            why = self.why_no_probabilities("The model")
            raise ValueError(f"{what} needs probabilities. {why}")
        assert self.progress is not None
        if self.progress.n_trials < LEAST_TRIALS:
            raise ValueError(
                f"{what} needs {LEAST_TRIALS} rows; the model has learned from "
                f"{self.progress.n_trials}. Learn from more rows."
            )

    def f1_thresholds(self) -> np.ndarray:
        """Return the thresholds of the outputs that maximize the expected F1 of each label, shape
        (n_vectors,)."""
        if len(self.classes) != self.space.n_vectors + 1 - self.many:
            raise ValueError("threshold='f1' is for two classes, or several labels a row.")
        self.require_outputs("threshold='f1'")
        return self.calibrated().sigmoids.f1_thresholds(self.window())

    # -------------------------------------------------------------------------------- the vectors

    def check_kernel(self, name: str) -> None:
        """Raise an AttributeError if the model has no kernel; `name` is the attribute."""
        if not self.space.has_support:
            raise AttributeError(f"{name} is of models with a kernel; this one has coef_.")

    def check_linear(self, name: str) -> None:
        """Raise an AttributeError if the model has a kernel; `name` is the attribute."""
        if self.space.has_support:
            raise AttributeError(
                f"A model with a kernel has no {name}: its vectors lie in feature space. It has "
                "support_ and dual_coef_; one with kernel='linear' has weights."
            )

    def check_lone_vector(self) -> None:
        """Raise an AttributeError if the hypothesis consists of many vectors."""
        if self.hypothesis in ("vote", "random"):
            raise AttributeError(
                f"hypothesis={self.hypothesis!r} has no single weight vector. "
                "Fit with hypothesis='average' or 'last'."
            )

    def weights(self) -> Any:
        """Return the weights of the hypothesis, shape (n_vectors, n_coordinates): an array, or CSR
        if the space stores them sparsely."""
        self.check_linear("coef_")
        self.check_lone_vector()
        if self.coef is None:
            self.coef = self.predictor.weights()
        return self.coef

    def weights_of(self, columns: np.ndarray) -> Any:
        """Return the weights of some coordinates, shape (n_vectors, n_columns)."""
        self.check_linear("coef_")
        self.check_lone_vector()
        return self.predictor.weights(columns)

    def norms(self, n_threads: int) -> np.ndarray:
        """Return the dual norm of each vector of the hypothesis, shape (n_vectors,). With a kernel,
        this is the norm in feature space, and with `standardize` that of standardized features."""
        self.check_lone_vector()
        return self.space.norms(n_threads)

    def intercept(self) -> np.ndarray:
        """Return the intercept of each vector, shape (n_vectors,)."""
        space = self.predictor
        if space.has_support:
            self.check_lone_vector()
            return space.coefficients().sum(axis=1) * space.bias**2
        weights = self.weights_of(np.array([space.n_features if space.bias else 0]))
        if not space.bias:
            return np.zeros(len(weights), dtype=weights.dtype)
        return weights[:, 0] * weights.dtype.type(space.bias)

    # ---------------------------------------------------------------------------------- in a file

    def copied(self) -> Fitted:
        """Return a copy that can be trained without a change of this state."""
        function = getattr(getattr(self.space, "kernel", None), "function", None)
        return deepcopy(self, {id(each): each for each in (self.structure, function)})

    def keep_predictions(self) -> None:
        """Drop what only training needs. The predictions stay the same bit for bit."""
        if self.scaling is None:
            self.space = WeightSpace.of(self.space)
        self.last_rows, self.predicts_only = None, True

    def require_all(self, what: str) -> None:
        """Raise a ValueError if parts of the state were dropped; `what` names what needs them."""
        if self.predicts_only:
            raise ValueError(
                f"This model was loaded with predict_only=True and can't be {what}. Load it again "
                "without predict_only."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "coef": None, "unscaled": None, "calibration": (-1, None)}

    def saved(self) -> dict[str, Any]:
        """Return the fields that model files store."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init}


class Attributes:
    """Base class of the learners with the attributes of a trained model."""

    #: State of the trained model; None before training.
    _learned: Fitted | None = None

    n_features_in_: int

    @property
    def state(self) -> Fitted | None:
        """State of the trained model; None before training."""
        return self._learned

    def restore(self, state: Fitted | None) -> Self:
        """Set the state, such as that of a model file, and return the learner."""
        self._learned = state
        return self

    @property
    def fitted(self) -> Fitted:
        """State of the trained model; a NotFittedError before training."""
        refuse_while_learning(self)
        if self._learned is None:
            raise sklearn_exceptions().NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with "
                "appropriate arguments before using this estimator."
            )
        return self._learned

    @property
    def space(self) -> Any:
        """The engine's space, which contains the trained vectors."""
        return self.fitted.space

    def take_over(self, other: Attributes) -> Self:
        """Take the trained state of another model."""
        for name in ("_learned", "n_features_in_", "feature_names_in_"):
            if name in vars(other):
                setattr(self, name, vars(other)[name])
        return self

    @property
    def classes_(self) -> np.ndarray:
        """The classes, sorted."""
        return self.fitted.classes

    @property
    def n_iter_(self) -> float:
        """Number of epochs in the last training call."""
        return self.fitted.n_iter

    @property
    def gamma_(self) -> float:
        """The kernel's gamma."""
        if not hasattr(self.fitted.structure.get("kernel"), "gamma"):
            raise AttributeError("gamma_ is of the kernels Polynomial, RBF and PolynomialRBF.")
        return float(self.space.kernel.gamma)

    @property
    def intercept_(self) -> np.ndarray:
        """Intercept of each vector, shape (1,) or (n_classes,); zero without `fit_intercept`."""
        return self.fitted.intercept()

    @property
    def support_(self) -> np.ndarray:
        """Row numbers of the pool, in the order in which the rows joined it: an int64 array of
        shape (n_support,). After `fit`, these are rows of X. In `partial_fit`, and in a fit under
        `warm_start` with other rows, the numbers continue from call to call."""
        self.fitted.check_kernel("support_")
        return self.space.origin.copy()

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the rows of the pool in the hypothesis, shape (n_vectors, n_support):
        outputs are ``dual_coef_ @ K(support, x)`` plus the intercept."""
        self.fitted.check_kernel("dual_coef_")
        self.fitted.check_lone_vector()
        return self.space.coefficients()

    @property
    def n_support_(self) -> int | np.ndarray:
        """Number of rows in the hypothesis of each vector: an int for two classes, else an array of
        shape (n_classes,)."""
        self.fitted.check_kernel("n_support_")
        return self.fitted.by_vector(self.space.count_support())

    @property
    def intercept_scaling_(self) -> float:
        """Value of the intercept's coordinate; 0 if there is none."""
        return float(self.space.bias)

    @property
    def n_corrections_(self) -> int | np.ndarray:
        """Number of corrections: an int for two classes and with ``multi_class="joint"``, else an
        array of shape (n_classes,)."""
        return self._counts("corrections")

    @property
    def t_(self) -> int:
        """Number of trials in the last `fit` and in later calls of `partial_fit`, plus 1. Epochs
        that were skipped after an epoch without a correction are counted."""
        return 1 + self.space.trials - self.fitted.trials_before

    def _counts(self, name: str) -> int | np.ndarray:
        return self.fitted.by_vector(self.space.per_vector(name))

    @property
    def p_(self) -> float:
        """The p of the norm of the instances."""
        return self.space.p

    @asks
    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        fresh = object.__new__(type(self))
        memo[id(self)] = fresh
        vars(fresh).update(deepcopy(self.__getstate__(), memo))
        return fresh

    def __getstate__(self) -> dict:
        refuse_while_learning(self)
        return self.__dict__
