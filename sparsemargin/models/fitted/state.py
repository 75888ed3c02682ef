"""What a fit leaves: one object, complete as soon as it exists, which model files save; and what
people read off it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from math import log2
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sparsemargin._engine import state as checks
from sparsemargin._engine.core.labels import FirstOrderRule, FirstOrderSpace
from sparsemargin._engine.first_order.spaces import JointState
from sparsemargin._engine.fitting.epochs import FitResult
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.state import MAX_TRIALS, part, require
from sparsemargin.models.fitted.in_use import asks, refuse_while_learning
from sparsemargin.models.fitted.probabilities import (
    LEARNED_AGAIN,
    LEAST_TRIALS,
    NO_OUTPUTS,
    Calibration,
    Window,
)
from sparsemargin.models.inputs.labels import FORMS, Form
from sparsemargin.models.inputs.rows import Rows

#: Features of files are hashed to a number of at most so many bits.
MOST_HASH_BITS = 31

if TYPE_CHECKING:
    from sparsemargin.models.learner import Learner

#: The kernels that have a gamma.
WITH_GAMMA = ("poly", "rbf", "polyrbf")

_LARGEST_SEED = int(np.iinfo(np.int32).max)


def count_labels(classes: np.ndarray, many: bool) -> int:
    """Vectors learned side by side: one for each class; one for two, unless rows may have many."""
    return 1 if len(classes) == 2 and not many else len(classes)


@dataclass(frozen=True)
class Beginning:
    """What is known when a model begins to learn."""

    rows: Rows  # the first ones
    classes: np.ndarray
    form: Form | None = None  # of labels, where rows may have several
    counts: np.ndarray | None = None  # as of `rows_by_class`, where all rows are known
    blocks: Sequence[Rows] = ()  # the first rows, these and more; empty: these alone
    grows: bool = False  # whether features may come that are not known yet
    sparse: bool = True  # whether rows are given so, as a callable kernel then gets them

    @property
    def n_labels(self) -> int:
        return count_labels(self.classes, self.form is not None)


@dataclass
class Fitted:
    """All that a model has learned, which a model file holds, and how."""

    classes: np.ndarray
    form: Form | None  # of labels, where rows may have several
    space: Any  # a `Space`, of which some have weights and others a support set
    structure: dict[str, Any]  # the parameters it was made for
    class_weight: np.ndarray  # what multiplies the steps of labels' negative and positive rows
    slice_seed: int  # of the time slices that a random hypothesis is drawn from
    rows_by_class: np.ndarray  # learned from, without and with each class, shape (2, n_classes)
    # What it said of rows just before it learned them; None: that can't be had.
    progress: ProgressiveOutputs | None = None
    rule: FirstOrderRule | None = None  # None: a matrix Perceptron
    constants: dict[str, float] = field(default_factory=dict)  # that the rule took from the data
    n_iter: float = 0.0  # epochs of the last call that learned
    # At which a row counts as one of no weight; None: there was no row yet.
    typical_weight: float | None = None
    # Made before the last fit under warm_start, or before files after init_model.
    trials_before: int = 0
    trials_per_epoch: int = 0  # of the last fit; 0: there was none
    result: FitResult | None = None  # of the last fit; None: a stream came after it
    # Under warm_start: what the rows of the last fit hash to, and what was kept of them.
    last_rows: tuple[str, Any] | None = None
    # What files are read with for their columns to be the features; None: it learned a matrix.
    reading: dict[str, Any] | None = None
    sparse_coef: bool = False  # whether `coef_` is to be sparse
    # The weights, once they have been asked for; no file has them.
    coef: Any = field(default=None, init=False)
    # What makes probabilities of outputs, likewise, after so many trials of `progress`.
    calibration: tuple[int, Calibration | None] = field(default=(-1, None), init=False)

    @property
    def many(self) -> bool:
        """Whether rows may have several of the classes, or none."""
        return self.form is not None

    @property
    def hypothesis(self) -> str:
        """The name of what predicts."""
        return str(self.structure["hypothesis"])

    @property
    def at_zero(self) -> np.ndarray:
        """Whether an output of 0 predicts each class, shape (n_classes,): that half of the rows
        have it, or nothing is known of them."""
        without, having = self.rows_by_class
        at_zero: np.ndarray = having >= without
        return at_zero

    def by_label(self, values: np.ndarray) -> Any:
        """What each label has: a number for two classes, else an array of shape (n_labels,)."""
        return values[0].item() if len(values) == 1 and not self.many else values.copy()

    def count_classes(self, task: Task) -> None:
        """Count the rows that a task had of each class."""
        labels = task.codes if task.positives is None else task.positives.labels
        if task.weights is not None:
            trials = task.weights > 0
            if task.positives is not None:
                trials = np.repeat(trials, np.diff(task.positives.starts))
            labels = labels[trials]
        counts = np.bincount(labels, minlength=len(self.classes))
        self.rows_by_class = self.rows_by_class + np.vstack([task.n_trials - counts, counts])

    def influence_of(self, weights: np.ndarray | None, influence: Any) -> np.ndarray | None:
        """What multiplies the steps of rows of these sample weights."""
        if self.typical_weight is None:
            # Of the first rows, as a stream can't know those to come.
            known = np.ones(1) if weights is None else weights[weights > 0]
            if len(known):
                largest = known.max()  # by which the mean of one number is that number
                self.typical_weight = float(largest * (known / largest).mean())
        if weights is None or not weights.any():
            return weights
        shares: np.ndarray = influence(weights) / influence(np.array(self.typical_weight))
        return shares

    # ------------------------------------------------------------------------------ probabilities

    @property
    def tells_probabilities(self) -> bool:
        """Whether there are outputs for rows that the model had not learned, and it has learned
        none again since."""
        kept = self.progress
        return kept is not None and kept.n_trials > 0 and not kept.spoiled

    def why_no_probabilities(self, name: str) -> str:
        """Say why a classifier of that name has none, and what helps."""
        if self.progress is None:
            return NO_OUTPUTS.format(name)
        if not self.progress.spoiled:
            return f"{name} has no probabilities, as it has learned no row yet. Learn rows first."
        return LEARNED_AGAIN.format(name)

    def window(self) -> Window:
        """What the model said of rows lately, before it learned them."""
        assert self.progress is not None
        return Window.of(self.progress)

    def calibrated(self) -> Calibration:
        """What makes probabilities of outputs."""
        n_trials, calibration = 0 if self.progress is None else self.progress.n_trials, None
        if self.calibration[0] == n_trials:
            calibration = self.calibration[1]
        if calibration is None:
            joint = isinstance(self.space, JointState)
            calibration = Calibration(self.window(), not self.many, joint)
            self.calibration = n_trials, calibration
        return calibration

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """Return those of the classes, of outputs of shape (n_rows, n_labels): shape (n_rows,
        n_classes). A ValueError where there are none."""
        if not self.tells_probabilities:
            raise ValueError(self.why_no_probabilities("The model"))
        return self.calibrated()(outputs)

    def require_outputs(self, what: str) -> None:
        """Refuse what needs enough outputs for rows that the model had not learned."""
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
        """What the output of each label must reach for the largest F1 to be expected, shape
        (n_labels,)."""
        if len(self.classes) != self.space.n_labels + 1 - self.many:
            raise ValueError("threshold='f1' is for two classes, or several labels a row.")
        self.require_outputs("threshold='f1'")
        return self.calibrated().sigmoids.f1_thresholds(self.window())

    # -------------------------------------------------------------------------------- the vectors

    def check_kernel(self, name: str) -> None:
        """Refuse what only a model with a kernel has."""
        if not self.space.has_support:
            raise AttributeError(f"{name} is of models with a kernel; this one has coef_.")

    def check_linear(self, name: str) -> None:
        """Refuse what no model with a kernel has."""
        if self.space.has_support:
            raise AttributeError(
                f"A model with a kernel has no {name}: its vectors lie in feature space. It has "
                "support_ and dual_coef_; one with kernel='linear' has weights."
            )

    def check_lone_vector(self) -> None:
        """Refuse a hypothesis of many vectors."""
        if self.hypothesis in ("vote", "random"):
            raise AttributeError(
                f"hypothesis={self.hypothesis!r} has no single weight vector. "
                "Fit with hypothesis='average' or 'last'."
            )

    def weights(self) -> Any:
        """Weights of the hypothesis, shape (n_labels, n_coordinates): an array, or CSR where the
        space holds them sparsely."""
        self.check_linear("coef_")
        self.check_lone_vector()
        if self.coef is None:
            self.coef = self.space.weights()
        return self.coef

    def weights_of(self, columns: np.ndarray) -> Any:
        """Those of these coordinates, shape (n_labels, n_columns)."""
        self.check_linear("coef_")
        self.check_lone_vector()
        return self.space.weights(columns)

    def norms(self, n_threads: int) -> np.ndarray:
        """Dual norm of each label's hypothesis, in feature space if it is there, shape
        (n_labels,)."""
        self.check_lone_vector()
        return self.space.norms(n_threads)

    def intercept(self) -> np.ndarray:
        """Intercept of each label."""
        space = self.space
        if space.has_support:
            self.check_lone_vector()
            return space.coefficients().sum(axis=1) * space.bias**2
        weights = self.weights_of(np.array([space.n_features if space.bias else 0]))
        if not space.bias:
            return np.zeros(len(weights), dtype=weights.dtype)
        return weights[:, 0] * weights.dtype.type(space.bias)

    # ---------------------------------------------------------------------------------- in a file

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "coef": None, "calibration": (-1, None)}

    def saved(self) -> dict[str, Any]:
        """What model files have of it."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init}

    @classmethod
    def restored(cls, state: dict[str, Any], learner: type[Learner]) -> Fitted:
        """What was saved so of a learner of that type; a ValueError where its parts, each sound by
        itself, don't go together."""
        classes, form = part(state, "classes"), part(state, "form")
        require(isinstance(classes, np.ndarray) and classes.ndim == 1, "'classes' are no classes")
        require(form is None or (isinstance(form, str) and form in FORMS),
                "'form' is no form of labels")  # fmt: skip
        require(len(classes) >= (2 if form is None else 1), "'classes' are too few")
        require(bool((classes[1:] > classes[:-1]).all()), "'classes' do not rise")
        n_labels, space = count_labels(classes, form is not None), part(state, "space")
        require(type(space) in learner.spaces, f"'space' is none of {learner.classifier}")
        require(space.n_labels == n_labels, f"'space' is not of {n_labels} labels")
        require(form is None or space.takes_many_labels, "'space' is of rows with one class each")
        rule_type = FirstOrderRule if isinstance(space, FirstOrderSpace) else type(None)
        fitted = cls(classes, form, space, **checks.fields(state, {
            "structure": (checks.instance, dict),
            "class_weight": (checks.array_of, np.float64, (2, n_labels)),
            "slice_seed": (checks.integer, 0, _LARGEST_SEED),
            "progress": (checks.instance, ProgressiveOutputs, type(None)),
            "rule": (checks.instance, rule_type),
            "constants": (_constants, learner.constants),
            "n_iter": (checks.real, 0, np.inf),
            "rows_by_class": (checks.array_of, np.int64, (2, len(classes)), 0, MAX_TRIALS),
            "typical_weight": (checks.optional, checks.real, 5e-324, sys.float_info.max),
            "trials_before": (checks.integer, 0, MAX_TRIALS),
            "trials_per_epoch": (checks.integer, 0, MAX_TRIALS),
            "result": (checks.instance, FitResult, type(None)),
            "last_rows": (checks.optional, _last_rows),
            "reading": (checks.optional, _reading, space.n_features),
            "sparse_coef": (checks.flag,),
        }))  # fmt: skip
        require(fitted.progress is None or fitted.progress.n_labels == n_labels,
                "'progress' is of other labels")  # fmt: skip
        # A vote needs a log to replay.
        replayed = part(fitted.structure, "hypothesis") in ("vote", "random")
        require(replayed == space.logged, "'structure' has another hypothesis than 'space'")
        return fitted


def _constants(state: Any, name: str, wanted: Sequence[str]) -> dict[str, float]:
    known = checks.instance(state, name, dict)
    return checks.fields(known, {each: (checks.real, 5e-324, np.inf) for each in wanted})


def _last_rows(state: Any, name: str) -> tuple[str, Any]:
    known: Any = part(state, name)
    require(isinstance(known, tuple) and len(known) == 2 and isinstance(known[0], str),
            f"{name!r} is of another type")  # fmt: skip
    return known


def _reading(state: Any, name: str, n_features: int) -> dict[str, Any]:
    """How files are read, by which features are hashed to as many as there are, or not at all."""
    schema = {
        "zero_based": (checks.flag,),
        "hash_bits": (checks.optional, checks.integer, 1, MOST_HASH_BITS),
    }
    known = checks.fields(part(state, name), schema)
    sound = known["hash_bits"] in (None, log2(n_features))
    require(sound and len(part(state, name)) == len(schema), f"{name!r} is of another model")
    return known


class Attributes:
    """What people read off a model that has learned; base of the learners."""

    #: All that has been learned; None: nothing.
    _learned: Fitted | None = None

    n_features_in_: int

    @property
    def state(self) -> Fitted | None:
        """What training has left; None before the first call that trains."""
        return self._learned

    def restore(self, state: Fitted | None) -> Self:
        """Set the state, such as that of a model file, and return the learner."""
        self._learned = state
        return self

    @property
    def fitted(self) -> Fitted:
        """The state. A NotFittedError before the first call that trains."""
        refuse_while_learning(self)
        if self._learned is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with "
                "appropriate arguments before using this estimator."
            )
        return self._learned

    @property
    def space(self) -> Any:
        """What has been learned in."""
        return self.fitted.space

    def take_over(self, other: Attributes) -> Self:
        """Have learned what another model has."""
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
        """Epochs swept by the last call that learned."""
        return self.fitted.n_iter

    @property
    def gamma_(self) -> float:
        """The kernel's gamma."""
        if self.fitted.structure.get("kernel") not in WITH_GAMMA:
            raise AttributeError(f"gamma_ is of the kernels {', '.join(map(repr, WITH_GAMMA))}.")
        return float(self.space.kernel.gamma)

    @property
    def intercept_(self) -> np.ndarray:
        """Intercept of each label, shape (1,) or (n_classes,); zero without `fit_intercept`."""
        return self.fitted.intercept()

    @property
    def support_(self) -> np.ndarray:
        """Rows of the pool, in the order in which they joined it: an int64 array of shape
        (n_support,). In `fit`, rows of its X; in `partial_fit`, and in a fit under `warm_start`
        with other rows, counted on from call to call."""
        self.fitted.check_kernel("support_")
        return self.space.origin.copy()

    @property
    def dual_coef_(self) -> np.ndarray:
        """What each row of the pool is multiplied by in the hypothesis, shape (n_labels,
        n_support): outputs are ``dual_coef_ @ K(support, x)`` plus the intercept."""
        self.fitted.check_kernel("dual_coef_")
        self.fitted.check_lone_vector()
        return self.space.coefficients()

    @property
    def n_support_(self) -> int | np.ndarray:
        """Rows that a label's hypothesis is made of: an int for two classes, else an array of
        shape (n_classes,)."""
        self.fitted.check_kernel("n_support_")
        return self.fitted.by_label(self.space.count_support())

    @property
    def intercept_scaling_(self) -> float:
        """Value of the intercept's coordinate; 0 where there is none."""
        return float(self.space.bias)

    @property
    def n_corrections_(self) -> int | np.ndarray:
        """Corrections made: an int for two classes and under ``multi_class="joint"``, else an array
        of shape (n_classes,)."""
        return self._counts("corrections")

    @property
    def t_(self) -> int:
        """Trials of the last `fit` and of the calls of `partial_fit` since, and 1; epochs that a
        pass without a correction spared are counted."""
        return 1 + self.space.trials - self.fitted.trials_before

    def _counts(self, name: str) -> int | np.ndarray:
        return self.fitted.by_label(self.space.per_label(name))

    @property
    def p_(self) -> float:
        """The p of the norm that instances are measured with."""
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
