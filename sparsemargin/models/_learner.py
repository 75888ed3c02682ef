"""What all learners share: parameters, the learned state, and what is read off it.

A learner does the work of a classifier without being one: it needs numpy and the engine alone,
so that training from a file starts at once. The scikit-learn classes of
`sparsemargin.models.classifiers` add what people expect of those.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from functools import partial
from math import frexp, inf, sqrt
from typing import Any, ClassVar, Literal, NoReturn, Self, get_args

import numpy as np

from sparsemargin._engine.first_order.spaces import MAX_P
from sparsemargin._engine.fitting.epochs import FitResult, StoppingRule, learn, learn_once
from sparsemargin._engine.fitting.task import Positives, Space, Task, part_of
from sparsemargin._engine.fitting.threads import run_together
from sparsemargin._engine.rows.csr import any_repeats, summed
from sparsemargin.models._in_use import asks, refuse_while_learning
from sparsemargin.models._rows import Rows, check_rows, open_rows, refusing
from sparsemargin.models.labels import Choice, Form, joined, positives_of
from sparsemargin.models.parameters import (
    FLAG,
    MAPPING,
    NONE,
    SEED,
    VERBOSITY,
    declarations,
    declared,
    integer,
    one_of,
    parameter,
    real,
)

#: Seeds are drawn below it.
LARGEST_SEED = 2**31 - 1

#: So few that a stream has them at its beginning.
ROWS_MEASURED = 100

Hypothesis = Literal["last", "average", "vote", "random"]

#: The place of each row's class, shape (n_rows,), or the labels of rows that may have several.
Targets = np.ndarray | Positives


def count_labels(classes: np.ndarray, many: bool) -> int:
    """Vectors learned side by side: one for each class; one for two, unless rows may have many."""
    return 1 if len(classes) == 2 and not many else len(classes)


def first_infinite(outputs: np.ndarray) -> int | None:
    """The first row that has an output which no float64 holds; None: there is none."""
    finite = np.isfinite(outputs)
    return None if finite.all() else int(finite.all(axis=1).argmin())


def _require_finite(outputs: np.ndarray, first_row: int) -> None:
    row = first_infinite(outputs)
    if row is not None:
        raise ValueError(f"The output for row {first_row + row} of X exceeds a float64. Rescale X.")


@declared
class SharedParameters:
    """What every algorithm has, or makes a constant."""

    p: float | Literal["log"] = parameter(
        2.0,
        (real(2, MAX_P, "both", remark=" (p > 2 ln n_features gains nothing)"), one_of(["log"])),
        'p of the norm of the instances; ``"log"`` is ``max(2, 2 ln n_features)``. Weights are '
        "measured by the dual norm. Large p pays where few features are relevant.",
        structural=True,
    )
    hypothesis: Hypothesis = parameter(
        "average",
        one_of(get_args(Hypothesis)),
        "What predicts: the average of all weight vectors, each counted for the trials it lasted; "
        "the last one; their weighted majority vote; or the one of a random moment (Freund & "
        "Schapire 1999, section 5).",
        structural=True,
    )
    normalize_hypotheses: bool = parameter(
        False,
        FLAG,
        "Whether each weight vector is divided by its dual norm before it counts.",
        structural=True,
    )
    max_iter: float | None = parameter(
        5,
        (real(0), NONE),
        "Epochs; None: until a pass makes no correction. Data that are not separable never come to "
        "that; such a fit says every ten seconds where it is, and Ctrl-C ends it with the model as "
        "it then is. A fraction ends within an epoch. Where they end a fit short of a margin that "
        "it was to reach, a `ConvergenceWarning` says so.",
    )
    max_corrections: int | None = parameter(
        None,
        (integer(1), NONE),
        "Stop learning after that many corrections, those of earlier fits under `warm_start` "
        "included; with many classes each label by itself, whose averages then count no further "
        "trials.",
    )
    shuffle: bool = parameter(
        True,
        FLAG,
        "Whether rows come in a new random order every epoch; False: in the given order.",
    )
    random_state: Any = parameter(
        None, SEED, 'Seed of the shuffling and of ``hypothesis="random"``.'
    )
    fit_intercept: bool = parameter(
        True,
        FLAG,
        "Whether a constant coordinate of value `intercept_scaling` is appended to every instance.",
        structural=True,
    )
    intercept_scaling: float | Literal["auto"] = parameter(
        "auto",
        (real(0), one_of(["auto"])),
        'Value of the coordinate for the intercept; ``"auto"``: a tenth of the root mean square '
        "2-norm of the first 100 rows, of those of the first call to `partial_fit`, or 0.1 where "
        "these are zero. With a kernel there is no intercept then.",
        structural=True,
    )
    class_weight: Any = parameter(
        None,
        (one_of(["balanced"]), MAPPING, NONE),
        "Multiplies the step for rows of each class. With more than two classes, and where rows "
        "may have several, each label's positive rows are so weighted, its negative ones weigh 1; "
        'in the latter case ``"balanced"`` makes both sides of each label weigh the same, but for '
        "a label that no row has, or every row.",
    )
    warm_start: bool = parameter(
        False, FLAG, "Whether `fit` goes on from the model of the last one."
    )
    n_jobs: int | None = parameter(
        None,
        (integer(high=-1), integer(1), NONE),
        "Threads that share the labels of a many-class problem, and the kernel's work; the model "
        "is the same for any number.",
    )
    verbose: int = parameter(
        0,
        VERBOSITY,
        "Whether a line is printed for every epoch of the first ten, and every half second after.",
    )


class Learner(SharedParameters):
    """Base of the learners; not for use by itself."""

    #: Name of the scikit-learn class over it.
    classifier: ClassVar[str]

    #: What it learns in.
    spaces: ClassVar[tuple[type[Space], ...]]

    classes_: np.ndarray
    n_iter_: float
    n_features_in_: int
    gamma_: float

    _space: Any
    _slice_seed: int
    _structure: dict[str, Any]
    _class_weight: np.ndarray
    _coef: Any
    # What files are read with for their columns to be the features; only where it was learned
    # from files.
    _reading: dict[str, Any]
    # How the labels were given; only where rows may have several.
    _label_form: Form
    # Whether the rows of the fit were sparse, as a callable kernel then gets them.
    _sparse_rows: bool
    # Under warm_start: what the rows of the last fit hash to, and what was kept of them.
    _learned: tuple[str, Any] | None

    # ----------------------------------------------------------------------------- parameters

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Those of the constructor, sorted."""
        return sorted(declarations(cls))

    @classmethod
    def weighs_steps(cls) -> bool:
        """Whether weights of classes and samples can multiply the steps."""
        return "class_weight" in declarations(cls)

    def _parameters(self) -> dict[str, Any]:
        """Those of the constructor, and their values."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    def _check_parameters(self) -> None:
        for name, each in sorted(declarations(self).items()):
            each.check(getattr(self, name), self.classifier)

    def _get_structure(self) -> dict[str, Any]:
        known = declarations(self)
        return {name: getattr(self, name) for name in known if known[name].structural}

    def _check_structure(self, how: str) -> None:
        """Refuse to go on, as `how` asks for, with a state that was made for other parameters."""
        # What was saved before there was a parameter was made for its default.
        made_for = {each.name: each.default for each in declarations(self).values()}
        made_for |= self._structure
        changed = [name for name, value in self._get_structure().items() if made_for[name] != value]
        if changed:
            raise ValueError(
                f"{how} can't go on with another {', '.join(changed)}. Set back what was changed, "
                "or fit anew."
            )

    def _p(self, n_features: int) -> float:
        return max(2.0, 2.0 * np.log(n_features)) if self.p == "log" else float(self.p)

    def _random(self) -> np.random.RandomState:
        """What scikit-learn's `check_random_state` gives: None is numpy's own generator."""
        if self.random_state is None:
            return np.random.mtrand._rand
        if isinstance(self.random_state, np.random.RandomState):
            return self.random_state
        return np.random.RandomState(self.random_state)

    def _bias(self, rows: Rows) -> float:
        """Value of the intercept's coordinate for a model that begins with these rows; 0: none."""
        if self._measures_rows:
            return intercept_scale(self._beginning or [rows])
        return float(self.intercept_scaling) if self._has_intercept else 0.0

    @property
    def _measures_rows(self) -> bool:
        """Whether the intercept's scale is that of the first rows."""
        return self._has_intercept and self.intercept_scaling == "auto"

    @property
    def _has_intercept(self) -> bool:
        """Whether the parameters ask for one."""
        # In a feature space rows have other lengths: a Gaussian's, 1, would drown in 200.
        measurable = getattr(self, "kernel", "linear") == "linear"
        return self.fit_intercept and (self.intercept_scaling != "auto" or measurable)

    def _n_labels(self) -> int:
        """Vectors learned side by side: one for two classes, else one for each."""
        return count_labels(self.classes_, self._has_many_labels)

    @property
    def _has_many_labels(self) -> bool:
        """Whether rows may have several of the classes, or none."""
        return hasattr(self, "_label_form")

    @property
    def _takes_many_labels(self) -> bool:
        """Whether rows may have them with these parameters."""
        return False

    def _refuse_many_labels(self) -> NoReturn:
        kernel = getattr(self, "kernel", "linear")
        how = "" if kernel == "linear" else f" with kernel={kernel!r}"
        raise ValueError(
            f"{self.classifier}{how} learns from rows of one class each, and y may have several "
            "labels a row. Fit a model for each: "
            "sklearn.multiclass.OneVsRestClassifier(model).fit(X, Y), Y being an indicator."
        )

    def _expand_class_weight(self, targets: Targets | None) -> np.ndarray:
        """Weights of each label's negative and positive rows, shape (2, n_labels); targets is
        None in a stream.

        With many classes a label's negatives weigh 1, as in scikit-learn's one-versus-rest; where
        rows may have many, "balanced" makes its two sides weigh the same.
        """
        classes = self.classes_
        if self.class_weight is None:
            return np.ones((2, self._n_labels()))
        if self.class_weight != "balanced":
            weight = _named(self.class_weight, classes)
        elif isinstance(targets, Positives):
            return _balanced_sides(targets, len(classes))
        elif targets is not None:
            weight = _balanced(targets, classes)
        else:
            raise ValueError(
                "class_weight='balanced' needs all labels at once and can't be used with "
                "partial_fit. Pass the weights as a dict."
            )
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError(f"class_weight must be finite and not negative, got {weight}.")
        if len(classes) == 2 and not self._has_many_labels:
            return weight[:, np.newaxis]
        return np.vstack([np.ones_like(weight), weight])

    def _n_threads(self) -> int:
        if self.n_jobs is None:
            return 1
        import joblib

        return joblib.effective_n_jobs(self.n_jobs)

    # ------------------------------------------------------------------------------- learning

    # While a stream is opened: whether features may come that are not known yet.
    _grows = False

    # While a stream of blocks is opened: those of its first rows.
    _beginning: Sequence[Any] = ()

    @abstractmethod
    def _new_space(self, rows: Rows) -> Space:
        """An empty one, for rows like these."""

    def _open(self, rows: Rows) -> None:
        """Make what a stream that begins with these rows is learned in."""
        self._space = self._new_space(rows)

    def _loop(self, task: Task) -> AbstractContextManager:
        """The loop over a task."""
        return self._space.loop(task)  # type: ignore[no-any-return]

    @property
    def _checks_on_the_way(self) -> bool:
        """Whether a fit checks rows as they are first used, as all of them will be."""
        return False

    def _learn_afresh(self, X: Any, targets: Targets, weights: Any, seed: int | None) -> Self:
        """Open a space and learn."""
        rows, check = open_rows(X), self._checks_on_the_way
        if not check:
            rows = check_rows(rows)
        elif self._measures_rows and any_repeats(part_of(rows, 0, ROWS_MEASURED)):
            rows = summed(rows)
        with refusing(rows):
            self._space = self._new_space(rows)
            self._structure = self._get_structure()
            return self._learn_task(self._task(rows, targets, weights, check=check), seed)

    def _learn_on(self, X: Any, targets: Targets, weights: Any, seed: int | None) -> Self:
        """Go on with the space there is; all rows are checked before the first is used."""
        rows = check_rows(open_rows(X))
        with refusing(rows):
            return self._learn_task(self._task(rows, targets, weights), seed)

    def _learn_task(self, task: Task, seed: int | None) -> Self:
        stopping = self._begin(task)
        result = learn(self._loop(task), stopping, seed=seed, verbose=int(self.verbose))
        self._space.number_on(task)
        if self._learned is not None:
            self._learned = self._learned[0], task.row_state
        self.n_iter_ = result.n_iter
        self._conclude(result)
        return self

    @abstractmethod
    def _begin(self, task: Task) -> StoppingRule:
        """Get ready for a fit; when it is done."""

    @abstractmethod
    def _conclude(self, result: FitResult) -> None:
        """Take what came of a fit, and warn of what it did not come to."""

    def _recall_rows(self, task: Task, *others: Any) -> bool:
        """Let rows that the last fit learned from, with all that was to be learned of them, go on
        where they were, under warm_start; whether they are those."""
        earlier: Any = getattr(self, "_learned", None)
        self._learned = None
        if self.warm_start:
            import joblib

            rows = task.rows
            what = rows.data, rows.indices, rows.indptr, *others
            self._learned = joblib.hash(what), None
        same = earlier is not None and self._learned is not None and earlier[0] == self._learned[0]
        if same:
            task.row_state = earlier[1]
        self._space.number(task, same)
        return same

    def _check_streams(self, *, grows: bool) -> None:
        """Refuse what can't learn from a file row by row, in memory that doesn't depend on the
        file's length; grows: the number of features is not known beforehand.

        Raises
        ------
        ValueError
            Says why, and what can be done.
        """
        self._check_parameters()
        if self.hypothesis in ("vote", "random"):
            self._refuse_to_stream("hypothesis", "keeps a log of all corrections", "'average'")
        if self.max_corrections is not None:
            self._refuse_to_stream("max_corrections", "ends a fit, not a stream", "None")
        if self.max_iter is not None and self.max_iter % 1:
            self._refuse_to_stream("max_iter", "ends within rows not yet counted", "a whole number")
        if self.p == "log" and grows:
            raise ValueError("p='log' is 2 ln n_features: pass n_features, or hash_bits.")

    def _refuse_to_stream(self, name: str, why: str, instead: str) -> None:
        raise ValueError(
            f"{name}={getattr(self, name)!r} {why}, and a stream is learned in memory that doesn't "
            f"grow with its rows. Pass {name}={instead}, or load the file and fit: "
            "fit_csr(*load_svmlight(path), ...)."
        )

    def _open_stream(
        self, rows: Rows, classes: np.ndarray, slice_seed: int, *, grows: bool = False,
        beginning: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        """Get ready for a stream that begins with these rows; grows: their number of features may
        turn out larger; beginning: blocks of rows, these first, if more are known."""
        self.classes_ = classes
        self._class_weight = self._expand_class_weight(None)
        self._grows, self._beginning = grows, beginning
        try:
            self._open(rows)
        finally:
            del self._grows, self._beginning
        self._structure = self._get_structure()
        self._slice_seed, self._coef = slice_seed, None

    def _resize(self, n_features: int, first: int = 0) -> None:
        """Let what is learned have so many features, those it has from `first` on."""
        self._space.resize(n_features, first)

    @abstractmethod
    def _bytes_per_feature(self, dtype: np.dtype, n_labels: int, n_features: int) -> int:
        """What each of so many features takes of the state before the first correction, with rows
        of that type."""

    def _learn_stream(self, task: Task, order: np.ndarray | None = None) -> int | None:
        """Take the checked rows as the next trials, in the given order; how many were predicted
        wrongly before they were learned from, where known."""
        self._learned, was_full = None, self._space.full
        try:
            mistakes = learn_once(self._loop(task), order)
        finally:
            self._space.number_on(task)
        if self._space.full and not was_full:
            self._warn_of_full()
        return mistakes

    def _warn_of_full(self) -> None:
        """Say in a stream what a bound on memory costs from now on."""

    def _task(self, rows: Rows, targets: Targets, weights: Any, *, check: bool = False) -> Task:
        """What a fit learns from."""
        self._class_weight = self._expand_class_weight(targets)
        return self._stream_task(
            rows, targets, weights, check=check,
            max_corrections=self.max_corrections, n_threads=self._n_threads(),
        )  # fmt: skip

    def _stream_task(self, rows: Rows, targets: Targets, weights: Any, **how: Any) -> Task:
        """What a stream learns from next, with the class weights it was opened with."""
        if isinstance(targets, Positives):
            how["positives"] = targets
            targets = np.zeros(len(rows.indptr) - 1, dtype=np.int64)
        return Task(rows, targets, weights, self._class_weight, **how)

    # ------------------------------------------------------------------------------ prediction

    def _outputs_of_rows(self, rows: Rows) -> np.ndarray:
        """Outputs of checked rows, shape (n_rows, n_labels)."""
        outputs: np.ndarray = self._space.outputs_by(
            self._structure["hypothesis"], rows, self._slice_seed, self._n_threads()
        )
        return outputs

    def _finite_outputs(self, rows: Rows) -> np.ndarray:
        """Outputs of checked rows, shape (n_rows, n_labels)."""
        with refusing(rows):
            result = self._outputs_of_rows(rows)
        _require_finite(result, 0)
        return result

    def _predicted(self, rows: Rows, told_by: Callable[[np.ndarray], Any]) -> list[Any]:
        """What the outputs of checked rows tell, part by part: there are never many of them."""
        n_rows = len(rows.indptr) - 1
        with refusing(rows):
            of_part, step = self._space.outputs_in_parts(
                self._structure["hypothesis"], rows, self._slice_seed, self._n_threads()
            )

            def tell(start: int) -> Any:
                outputs = of_part(start, min(start + step, n_rows))
                _require_finite(outputs, start)
                return told_by(outputs)

            calls = [partial(tell, start) for start in range(0, n_rows, step)]
            return run_together(calls, self._n_threads() if len(calls) > 1 else 1)

    def _codes_of_outputs(self, outputs: np.ndarray) -> np.ndarray:
        """Place of the predicted class: the sign of the output, 0 being positive, or the
        largest one; shape (n_rows,)."""
        if outputs.shape[1] == 1:
            return (outputs[:, 0] >= 0).astype(np.intp)
        return outputs.argmax(axis=1)

    def _choose_labels(self, rows: Rows, choice: Choice) -> Positives:
        """The labels predicted for checked rows, which may be several."""

        def chosen(outputs: np.ndarray) -> Positives:
            return positives_of(choice.of(outputs))

        return joined(self._predicted(rows, chosen))

    # ------------------------------------------------------------------------ fitted attributes

    def _check_fitted(self) -> None:
        refuse_while_learning(self)
        if not hasattr(self, "classes_"):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self)

    @property
    def _has_pool(self) -> bool:
        """Whether the vectors are combinations of a pool of rows, not vectors of weights."""
        self._check_fitted()
        return hasattr(self._space, "support")

    def _check_has_weights(self) -> None:
        if self._structure["hypothesis"] in ("vote", "random"):
            raise AttributeError(
                f"hypothesis={self._structure['hypothesis']!r} has no single weight vector. "
                "Fit with hypothesis='average' or 'last'."
            )

    def _weights(self) -> Any:
        """Weights of the hypothesis, shape (n_labels, n_coordinates): an array, or CSR where the
        space holds them sparsely."""
        self._check_fitted()
        self._check_has_weights()
        coef = self._space.weights() if self._coef is None else self._coef
        self._coef = coef
        return coef

    def _hypothesis_norms(self) -> np.ndarray:
        """Dual norm of each label's hypothesis, in feature space if it is there, shape
        (n_labels,)."""
        self._check_fitted()
        self._check_has_weights()
        norms: np.ndarray = self._space.norms(self._n_threads())
        return norms

    def _row_lengths(self, rows: Rows) -> np.ndarray:
        """Norm of checked rows there, the intercept's coordinate included, shape (n_rows,).

        Raises
        ------
        ValueError
            With a precomputed kernel, which does not tell them.
        """
        with refusing(rows):
            lengths: np.ndarray = self._space.row_lengths(rows)
        return lengths

    @property
    def intercept_(self) -> np.ndarray:
        """Intercept of each label, shape (1,) or (n_classes,); zero without `fit_intercept`."""
        weights = self._weights()
        if not self._space.bias:
            return np.zeros(weights.shape[0], dtype=weights.dtype)
        column = weights[:, -1:]
        if not isinstance(column, np.ndarray):
            column = column.toarray()
        return column.ravel() * weights.dtype.type(self._space.bias)

    @property
    def intercept_scaling_(self) -> float:
        """Value of the intercept's coordinate; 0 where there is none."""
        self._check_fitted()
        return float(self._space.bias)

    @property
    def n_corrections_(self) -> int | np.ndarray:
        """Corrections made: an int for two classes and under ``multi_class="joint"``, else an array
        of shape (n_classes,)."""
        return self._counts("corrections")

    def _counts(self, name: str) -> int | np.ndarray:
        self._check_fitted()
        return self._by_label(self._space.per_label(name))

    def _by_label(self, values: np.ndarray) -> Any:
        """What each label has: a number for two classes, else an array of shape (n_labels,)."""
        scalar = len(values) == 1 and not self._has_many_labels
        return values[0].item() if scalar else values.copy()

    @property
    def p_(self) -> float:
        """The p of the norm that instances are measured with."""
        self._check_fitted()
        return self._space.p

    @asks
    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        fresh = object.__new__(type(self))
        memo[id(self)] = fresh
        vars(fresh).update(deepcopy(self.__getstate__(), memo))
        return fresh

    def __getstate__(self) -> dict:
        refuse_while_learning(self)
        return {**self.__dict__, "_coef": None} if "_coef" in self.__dict__ else self.__dict__


def _balanced(codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Weights with which all classes weigh the same."""
    counts = np.bincount(codes, minlength=len(classes))
    if not counts.all():
        missing = classes[counts == 0].tolist()
        raise ValueError(
            f"class_weight='balanced' needs rows of every class; there are none of {missing}."
        )
    return counts.sum() / (len(classes) * counts)


def _balanced_sides(targets: Positives, n_labels: int) -> np.ndarray:
    """Weights with which each label's positive rows weigh as much as its negative ones; 1 where it
    has no others."""
    n_rows = len(targets.starts) - 1
    positive = np.bincount(targets.labels, minlength=n_labels)
    counts = np.vstack([n_rows - positive, positive])
    weights = np.ones(counts.shape)
    return np.divide(n_rows, 2 * counts, out=weights, where=counts.all(axis=0))


def _named(weights: dict[Any, float], classes: np.ndarray) -> np.ndarray:
    """The weights by class; 1 for those left out."""
    known = classes.tolist()
    unknown = [label for label in weights if label not in known]
    if unknown and any(label not in weights for label in known):
        raise ValueError(
            f"class_weight names {unknown}, which is not among the classes {known}. Leave it out."
        )
    return np.array([weights.get(label, 1.0) for label in known], dtype=np.float64)


def intercept_scale(blocks: Iterable[Any]) -> float:
    """A tenth of the root mean square 2-norm of the first 100 rows; 0.1 where they are zero.

    Parameters
    ----------
    blocks : iterable of Rows or of the like
        Without repeated columns, else unchecked. No more are taken than are needed.
    """
    values, n_rows = [], 0
    for rows in blocks:
        n = min(len(rows.indptr) - 1, ROWS_MEASURED - n_rows)
        values.append(rows.data[: rows.indptr[n]])
        n_rows += n
        if n_rows == ROWS_MEASURED:
            break
    # In one sum: where a block ends is to change no bit.
    scale = 0.1 * _two_norm(np.concatenate(values)) / sqrt(max(n_rows, 1))
    return scale if 0.0 < scale < inf else 0.1


def _two_norm(values: np.ndarray) -> float:
    """Safe against squares too large or too small; a power of two goes through it to the bit."""
    peak = float(np.abs(values).max(initial=0.0))
    if not 0.0 < peak < inf:
        return peak
    exponent = frexp(peak)[1] - 1
    scaled = np.ldexp(values.astype(np.float64), -exponent)
    return sqrt(float(np.einsum("i,i->", scaled, scaled))) * 2.0**exponent
