"""What all learners share: parameters, the learned state, and what is read off it.

A learner does the work of a classifier without being one: it needs numpy and the engine alone,
so that training from a file starts at once. The scikit-learn classes of
`sparsemargin.models.classifiers` add what people expect of those.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from functools import partial
from math import inf, sqrt
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin._checks import check_count
from sparsemargin._engine.core.labels import FirstOrderRule
from sparsemargin._engine.fitting.epochs import FitResult, Patience, StoppingRule, learn, learn_once
from sparsemargin._engine.fitting.task import (
    Positives,
    Space,
    Task,
    norm,
    part_of,
    rows_at,
    warn_user,
)
from sparsemargin._engine.fitting.threads import run_together
from sparsemargin._engine.kernel.functions import (
    CallableKernel,
    Kernel,
    PolyKernel,
    PrecomputedKernel,
    RBFKernel,
    keeps_zeros,
)
from sparsemargin._engine.rows.csr import any_repeats, row_norms, summed
from sparsemargin._shown import shown
from sparsemargin.models.in_use import asks, refuse_while_learning
from sparsemargin.models.labels import Choice, Form, joined, label_text
from sparsemargin.models.parameters import SharedParameters, declarations
from sparsemargin.models.rows import Rows, check_rows, open_rows, refusing

#: Seeds are drawn below it.
LARGEST_SEED = 2**31 - 1

#: So few that a stream has them at its beginning.
ROWS_MEASURED = 100

#: By so many rows it is seen whether a model predicts one class only, where labels are not too many
#: for that to be cheap; said where it is wrong for at least so many of them.
ROWS_TOLD, LEAST_TOLD, MOST_LABELS_TOLD = 100, 5, 100

#: What is worth another value where a model tells no classes apart.
_TUNED = ("alpha", "r", "eta0", "a")

_PRECOMPUTED = (
    "kernel='precomputed' needs the kernel of all pairs of rows, which no stream can know. Call "
    "fit, or pass the kernel as a function."
)

#: The place of each row's class, shape (n_rows,), or the labels of rows that may have several.
Targets = np.ndarray | Positives

#: Some of them, and their classes' codes.
SampledRows = tuple[Rows, np.ndarray]


def _spread(n_rows: int) -> np.ndarray:
    """Numbers of rows, spread evenly, as many as it is told by."""
    return np.linspace(0, n_rows - 1, min(n_rows, ROWS_TOLD)).astype(np.intp)


def most_frequent(codes: np.ndarray) -> int:
    """The class that most rows have."""
    return int(np.bincount(codes.astype(np.intp)).argmax())


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


class Learner(SharedParameters):
    """Base of the learners; not for use by itself."""

    #: Name of the scikit-learn class over it.
    classifier: ClassVar[str]

    #: What it learns in.
    spaces: ClassVar[tuple[type[Space], ...]]

    # Whether a fit is meant to reach a margin, and says so where it did not.
    _seeks_margin: ClassVar[bool] = False

    classes_: np.ndarray
    n_iter_: float
    n_features_in_: int
    gamma_: float

    _space: Any
    _slice_seed: int
    _structure: dict[str, Any]
    # What multiplies the steps of each label's negative and positive rows.
    _class_weight: np.ndarray
    # The sample weight at which a row counts as one of no weight; where it is known.
    _typical_weight: float
    # Rows learned from without and with each class, shape (2, n_classes); where they are known.
    _seen: np.ndarray
    # Of a fit under warm_start, and of files after init_model: trials made before.
    _trials_before: int
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
    # Of learners of first order, what they learn by, and what came of the last fit.
    _rule: FirstOrderRule
    _outcome: FitResult | None
    _trials_per_epoch: int

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
        if not self._is_linear and self.p != 2:
            raise ValueError(
                f"kernel={self.kernel!r} needs p=2, whose dot products a kernel takes the place "
                f"of; got p={self.p!r}. Pass p=2 or kernel='linear'."
            )

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    @property
    def _takes_gamma(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel in ("poly", "rbf", "polyrbf")

    def _get_structure(self) -> dict[str, Any]:
        known = declarations(self)
        structure = {name: getattr(self, name) for name in known if known[name].structural}
        return {**structure, "hypothesis": self._hypothesis}

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
        if not self._has_intercept:
            return 0.0
        if self.intercept_scaling == "auto":
            return intercept_scale(self._beginning or [rows], self._p(rows.n_features))
        return float(self.intercept_scaling)

    @property
    def _has_intercept(self) -> bool:
        """Whether the parameters ask for one."""
        # In a feature space rows have other lengths: a Gaussian's, 1, would drown in 200.
        return self.fit_intercept and (self.intercept_scaling != "auto" or self._is_linear)

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
        how = "" if self._is_linear else f" with kernel={self.kernel!r}"
        raise ValueError(
            f"{self.classifier}{how} learns from rows of one class each, and y may have several "
            "labels a row. Fit a model for each: "
            "sklearn.multiclass.OneVsRestClassifier(model).fit(X, Y), Y being an indicator; from "
            "files with positive=LABEL."
        )

    @staticmethod
    def _influence(weight: np.ndarray) -> np.ndarray:
        """What multiplies the steps of rows of that weight."""
        return np.cbrt(weight)

    def _expand_class_weight(self, counts: np.ndarray | None) -> np.ndarray:
        """What multiplies the steps of each label's negative and positive rows, shape (2,
        n_labels); counts as of `rows_by_class`, None where they are not known.

        With many classes a label's negatives weigh 1, as in scikit-learn's one-versus-rest; where
        rows may have many, "balanced" makes its two sides weigh the same.
        """
        classes, many = self.classes_, self._has_many_labels
        if self.class_weight is None:
            return np.ones((2, self._n_labels()))
        if self.class_weight != "balanced":
            weight = _checked(named_weights(self.class_weight, classes))
            weight = np.vstack([np.ones_like(weight), _to_scale(weight)]) if many else weight
        elif counts is not None:
            weight = _balanced_sides(counts) if many else _balanced(counts[1], classes)
        else:
            raise ValueError(
                "class_weight='balanced' needs all labels at once and can't be used with "
                "partial_fit. Pass the weights as a dict."
            )
        weight = self._influence(_to_scale(weight))
        if many:
            return weight
        return weight[:, np.newaxis] if len(classes) == 2 else np.vstack([weight**0, weight])

    @property
    def _patience(self) -> Patience | None:
        """How long a new fit waits for a pass with fewer corrections; None: they are not looked
        at."""
        return Patience(self.n_iter_no_change) if self.early_stopping else None

    @property
    def _hypothesis(self) -> str:
        """What predicts, with these parameters."""
        return self.hypothesis

    def _n_threads(self) -> int:
        if self.n_jobs is None:
            return 1
        import joblib

        return joblib.effective_n_jobs(self.n_jobs)

    # While a stream is opened: whether features may come that are not known yet.
    _grows = False

    # While a stream of blocks is opened: those of its first rows.
    _beginning: Sequence[Rows] = ()

    @abstractmethod
    def _new_space(self, rows: Rows) -> Space:
        """An empty one, for rows like these."""

    def _open(self, rows: Rows) -> None:
        """Make what a stream that begins with these rows is learned in."""
        for fault in self._needs_of_all_rows():
            raise ValueError(fault)
        self._space = self._new_space(rows)

    def _make_kernel(self, rows: Any) -> Kernel:
        """The kernel, for rows like these."""
        bias, dense = self._bias(rows), not self._grows and keeps_zeros(rows)
        if callable(self.kernel):
            given = getattr(self, "_sparse_rows", True)
            return CallableKernel(bias, dense=not given, function=self.kernel)
        if self.kernel == "precomputed":
            return PrecomputedKernel(bias)
        if self._is_linear:
            return PolyKernel(bias, dense=dense, degree=1, gamma=1.0, coef0=0.0)
        self.gamma_ = self._find_gamma(rows)
        if self.kernel == "rbf":
            return RBFKernel(bias, dense=dense, gamma=self.gamma_)
        if self.kernel == "polyrbf":
            return RBFKernel(bias, dense=dense, gamma=self.gamma_, degree=int(self.degree))
        degree, coef0 = int(self.degree), float(self.coef0)
        return PolyKernel(bias, dense=dense, degree=degree, gamma=self.gamma_, coef0=coef0)

    def _needs_of_all_rows(self) -> Iterator[str]:
        """What is wrong with a kernel that is known only when all rows are."""
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            yield _PRECOMPUTED
        known = hasattr(self, "gamma_")  # to a model that goes on
        if self._takes_gamma and self.gamma == "scale" and not known:
            yield (
                "gamma='scale' needs the variance of all rows, which no stream can know. Pass "
                "gamma as a number, or 'auto'."
            )

    def _find_gamma(self, rows: Any) -> float:
        if self.gamma == "auto":
            return 1.0 / rows.n_features
        if self.gamma != "scale":
            return float(self.gamma)
        variance = _variance(rows)
        return 1.0 / (rows.n_features * variance) if variance > 0 else 1.0

    @abstractmethod
    def _loop(self, task: Task) -> AbstractContextManager:
        """The loop over a task."""

    # Whether a fit checks rows as they are first used, as all of them will be.
    _checks_on_the_way = False

    # Whether a fit has to know the products of rows better than float32 rows tell them.
    _needs_exact_products = False

    def _learn(
        self, X: Any, targets: Targets, weights: Any, seed: int | None, *, afresh: bool,
        start: dict[str, Any] | None = None,
    ) -> Self:  # fmt: skip
        """Fit, in a space of its own, which begins at `start`, or, all rows checked, in the one
        there is."""
        rows, check = open_rows(X), afresh and self._checks_on_the_way
        check = check and (weights is None or bool(weights.all()))
        if self._needs_exact_products:
            rows = rows.with_data(rows.data.astype(np.float64, copy=False))
        if not check:
            rows = check_rows(rows)
        elif (
            self._has_intercept and self.intercept_scaling == "auto"
            and any_repeats(part_of(rows, 0, ROWS_MEASURED))
        ):  # fmt: skip
            rows = summed(rows)
        with refusing(rows):
            if afresh:
                self._space = self._new_space(rows)
                self._structure = self._get_structure()
            self._trials_before = self._space.trials
            if start:
                self._begin_at(start)
            balanced = self.class_weight == "balanced"
            counts = rows_by_class(targets, len(self.classes_)) if balanced else None
            self._class_weight = self._expand_class_weight(counts)
            self.__dict__.pop("_typical_weight", None)
            task = self._stream_task(
                rows, targets, weights, check=check,
                max_corrections=self.max_corrections, n_threads=self._n_threads(),
            )  # fmt: skip
            stopping = self._begin(task)
            result = learn(self._loop(task), stopping, seed=seed, verbose=int(self.verbose))
        if afresh:
            self.__dict__.pop("_seen", None)
        self._count_classes(task)
        self._space.number_on(task)
        if self._learned is not None:
            self._learned = self._learned[0], task.row_state
        self.n_iter_ = result.n_iter
        self._conclude(result)
        # Of an epoch that was cut short, some rows have not been checked.
        if not result.interrupted and self.n_iter_ >= 1:
            sample = self._sampled(rows, targets, weights)
            if sample is not None:
                self._warn_of_one_class([sample])
        return self

    def _sampled(
        self, rows: Any, targets: Targets, weights: np.ndarray | None = None,
        frequent: int | None = None,
    ) -> SampledRows | None:  # fmt: skip
        """Some of the rows, as many again not of the most frequent class, and their classes, by
        which to see whether the model tells classes apart; only these where that class is known by
        now. None: it costs too much, or rows have no class."""
        told = self._is_linear and self._hypothesis in ("last", "average")
        told = told and bool(self._class_weight.all())
        if not told or isinstance(targets, Positives) or self._n_labels() > MOST_LABELS_TOLD:
            return None
        counted = None if weights is None else np.flatnonzero(weights)
        codes = targets if counted is None else targets[counted]
        if not len(codes):
            return None
        evenly = _spread(0)
        if frequent is None:
            evenly = _spread(len(codes))
            frequent = most_frequent(codes[evenly])
        others = np.flatnonzero(codes != frequent)
        chosen = np.union1d(evenly, others[_spread(len(others))])
        if not len(chosen):
            return None
        chosen = chosen if counted is None else counted[chosen]
        return check_rows(rows_at(rows, chosen)), targets[chosen]

    def _warn_of_one_class(self, samples: list[SampledRows]) -> None:
        """Say so where a model predicts one class for rows it has learned from."""
        if not samples:
            return
        told = [self._codes_of_outputs(self._outputs_of_rows(rows)) for rows, _ in samples]
        predicted = np.unique(np.concatenate(told))
        if len(predicted) > 1:
            return
        codes = np.concatenate([codes for _, codes in samples])
        others = int(np.sum(codes != predicted[0]))
        if others < LEAST_TOLD:
            return
        from sklearn.exceptions import ConvergenceWarning

        label = label_text(self.classes_[predicted].tolist()[0])
        weighs = self.weighs_steps() and self.class_weight is None
        tried = ["to weigh the other classes more (class_weight)"] if weighs else []
        tried.append("more epochs")
        settings = self._parameters()
        numbers = {name: each for name, each in settings.items() if isinstance(each, int | float)}
        tried += ["a smaller p"] if numbers.get("p", 2.0) > 2.0 else []
        tried += [f"another {name}" for name in _TUNED if name in numbers]
        warn_user(
            f"The model predicts class {shown(label)} for every one of {len(codes)} rows it was "
            f"tried on, of those it has learned from; {others} have another. If rows are dense, "
            "bring the features to a common scale around 0 (StandardScaler); else try "
            f"{', '.join(tried)}.",
            ConvergenceWarning,
        )  # fmt: skip

    def _begin_at(self, start: dict[str, Any]) -> None:
        """Let the new space begin at the weights given as coef_init, intercept_init or both."""
        self._refuse_start(start, "its vectors are made of a matrix, which weights don't tell of")

    def _refuse_start(self, start: dict[str, Any], why: str) -> NoReturn:
        raise ValueError(
            f"{self.classifier} can't begin at {next(iter(start))}: {why}. Leave it out; "
            "warm_start=True goes on from what the model itself has learned."
        )

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
        if isinstance(getattr(self._space, "kernel", None), PrecomputedKernel):
            if self._space.trials and not same:
                raise ValueError(
                    "warm_start with kernel='precomputed' goes on with the very X and y of the "
                    "last fit; these are others. Pass warm_start=False."
                )
            self._space.kernel.check(task.rows)
        return same

    def _check_streams(self, *, grows: bool) -> None:
        """Refuse what can't learn from a file row by row, in memory that doesn't depend on the
        file's length; grows: the number of features is not known beforehand."""
        self._check_parameters()
        faults = " ".join(self._stream_faults(grows))
        if faults:
            raise ValueError(faults)

    def _stream_faults(self, grows: bool) -> Iterator[str]:
        """What is in the way of that, each with what to do instead."""
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
        """Those of the kernel."""
        yield from self._needs_of_all_rows()
        if self._takes_gamma and self.gamma == "auto" and grows:
            yield "gamma='auto' needs the number of features: pass n_features, or hash_bits."

    def _fault(self, name: str, why: str, instead: str) -> str:
        return (
            f"{name}={getattr(self, name)!r} {why}, and a stream is learned in memory that doesn't "
            f"grow with its rows. Pass {name}={instead}, or load the file and fit: "
            "fit_csr(*load_svmlight(path), ...)."
        )

    def _open_stream(
        self, rows: Rows, classes: np.ndarray, slice_seed: int, *, grows: bool = False,
        beginning: Sequence[Rows] = (), counts: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Get ready for a stream that begins with these rows; grows: their number of features may
        turn out larger; beginning: blocks of rows, these first, if more are known; counts: those of
        `rows_by_class`, if all rows are."""
        self.classes_ = classes
        self._class_weight = self._expand_class_weight(counts)
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
    def _bytes_per_feature(self, dtype: DTypeLike, n_labels: int, n_features: int) -> int:
        """What each of so many features takes of the state before the first correction, with rows
        of that type."""

    def _learn_stream(self, task: Task, order: np.ndarray | None = None) -> int | None:
        """Take the checked rows as the next trials, in the given order; how many were predicted
        wrongly before they were learned from, where known."""
        if not self._space.tells_lengths:
            raise ValueError(_PRECOMPUTED)
        self._learned = self._outcome = None
        was_full, opened = self._space.full, self._loop(task)
        try:
            mistakes = learn_once(opened, order)
        finally:
            self._space.number_on(task)
        self._count_classes(task)
        if self._space.full and not was_full:
            self._warn_of_full()
        return mistakes

    def _warn_of_full(self) -> None:
        """Say in a stream what a bound on memory costs from now on."""

    def _stream_task(self, rows: Rows, targets: Targets, weights: Any, **how: Any) -> Task:
        """What is learned from next, with the class weights there are."""
        if isinstance(targets, Positives):
            how["positives"] = targets
            targets = np.zeros(len(rows.indptr) - 1, dtype=np.int64)
        if not hasattr(self, "_typical_weight"):
            # Of the first rows, as a stream can't know those to come.
            known = np.ones(1) if weights is None else weights[weights > 0]
            if len(known):
                largest = known.max()  # by which the mean of one number is that number
                self._typical_weight = float(largest * (known / largest).mean())
        if weights is not None and weights.any():
            weights = self._influence(weights) / self._influence(np.array(self._typical_weight))
        return Task(rows, targets, weights, self._class_weight, **how)

    def _count_classes(self, task: Task) -> None:
        """Count the rows that a task had of each class."""
        labels = task.codes if task.positives is None else task.positives.labels
        if task.weights is not None:
            trials = task.weights > 0
            if task.positives is not None:
                trials = np.repeat(trials, np.diff(task.positives.starts))
            labels = labels[trials]
        counts = np.bincount(labels, minlength=len(self.classes_))
        counts = np.vstack([task.n_trials - counts, counts])
        self._seen = getattr(self, "_seen", 0) + counts

    def _at_zero(self) -> np.ndarray:
        """Whether an output of 0 predicts each class, shape (n_classes,): that half of the rows
        have it, or nothing is known of them."""
        if not hasattr(self, "_seen"):
            return np.ones(len(self.classes_), dtype=bool)
        return self._seen[1] >= self._seen[0]

    def _outputs_of_rows(self, rows: Rows) -> np.ndarray:
        """Outputs of checked rows, shape (n_rows, n_labels)."""
        return self._space.outputs_by(
            self._structure["hypothesis"], rows, self._slice_seed, self._n_threads()
        )

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
        """Place of the predicted class: the sign of the output, or the largest one; of 0 the more
        frequent class; shape (n_rows,)."""
        if outputs.shape[1] == 1:
            least = 0.0 if self._at_zero()[1] else np.nextafter(0.0, 1.0)
            return (outputs[:, 0] >= least).astype(np.intp)
        codes = outputs.argmax(axis=1)
        tied = np.flatnonzero(outputs[np.arange(len(codes)), codes] == 0)
        if len(tied) and hasattr(self, "_seen"):
            frequent = np.argsort(-self._seen[1], kind="stable")
            codes[tied] = frequent[(outputs[tied][:, frequent] == 0).argmax(axis=1)]
        return codes

    def _choice(self, threshold: Any = None, top_k: Any = None) -> Choice:
        """Which labels are predicted, as `Choice` says."""
        if threshold is None and top_k is None:
            threshold = np.where(self._at_zero(), 0.0, np.nextafter(0.0, 1.0))
        return Choice(len(self.classes_), threshold, top_k)

    def _ranked(self, outputs: np.ndarray, top_k: Any) -> np.ndarray:
        """Places of the `top_k` classes of largest output, the largest first; of equal ones the
        predicted one, then those that come first; shape (n_rows, top_k), or fewer if there are."""
        top_k = check_count("top_k", top_k, 1, sys.maxsize)
        predicted = self._codes_of_outputs(outputs)
        if outputs.shape[1] == 1:
            outputs = np.hstack([-outputs, outputs])
        others = np.arange(outputs.shape[1]) != predicted[:, np.newaxis]
        return np.lexsort((others, -outputs), axis=1)[:, :top_k]

    def _choose_labels(self, rows: Rows, choice: Choice) -> Positives:
        """The labels predicted for checked rows, which may be several."""
        return joined(self._predicted(rows, choice.labels))

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

    def _with_kernel(self, name: str) -> None:
        """Refuse what only a model with a kernel has."""
        if not self._has_pool:
            raise AttributeError(f"{name} is of models with a kernel; this one has coef_.")

    def _check_linear(self, name: str) -> None:
        if self._has_pool:
            raise AttributeError(
                f"A model with a kernel has no {name}: its vectors lie in feature space. It has "
                "support_ and dual_coef_; one with kernel='linear' has weights."
            )

    def _check_has_weights(self) -> None:
        if self._structure["hypothesis"] in ("vote", "random"):
            raise AttributeError(
                f"hypothesis={self._structure['hypothesis']!r} has no single weight vector. "
                "Fit with hypothesis='average' or 'last'."
            )

    def _weights(self) -> Any:
        """Weights of the hypothesis, shape (n_labels, n_coordinates): an array, or CSR where the
        space holds them sparsely."""
        self._check_linear("coef_")
        self._check_has_weights()
        if self._coef is None:
            self._coef = self._space.weights()
        return self._coef

    def _weights_of(self, columns: np.ndarray) -> np.ndarray:
        """Those of these coordinates, shape (n_labels, n_columns)."""
        self._check_linear("coef_")
        self._check_has_weights()
        weights: np.ndarray = self._space.weights(columns)
        return weights

    def _hypothesis_norms(self) -> np.ndarray:
        """Dual norm of each label's hypothesis, in feature space if it is there, shape
        (n_labels,)."""
        self._check_fitted()
        self._check_has_weights()
        return self._space.norms(self._n_threads())

    def _row_lengths(self, rows: Rows) -> np.ndarray:
        """Norm of checked rows there, the intercept's coordinate included, shape (n_rows,); a
        ValueError with a precomputed kernel, which does not tell them."""
        with refusing(rows):
            return self._space.row_lengths(rows)

    @property
    def intercept_(self) -> np.ndarray:
        """Intercept of each label, shape (1,) or (n_classes,); zero without `fit_intercept`."""
        if self._has_pool:
            self._check_has_weights()
            return self._space.coefficients().sum(axis=1) * self._space.bias**2
        bias = self._space.bias
        weights = self._weights_of(np.array([self._space.n_features if bias else 0]))
        if not bias:
            return np.zeros(len(weights), dtype=weights.dtype)
        return weights[:, 0] * weights.dtype.type(bias)

    @property
    def support_(self) -> np.ndarray:
        """Rows of the pool, in the order in which they joined it: an int64 array of shape
        (n_support,). In `fit`, rows of its X; in `partial_fit`, and in a fit under `warm_start`
        with other rows, counted on from call to call."""
        self._with_kernel("support_")
        return self._space.origin.copy()

    @property
    def dual_coef_(self) -> np.ndarray:
        """What each row of the pool is multiplied by in the hypothesis, shape (n_labels,
        n_support): outputs are ``dual_coef_ @ K(support, x)`` plus the intercept."""
        self._with_kernel("dual_coef_")
        self._check_has_weights()
        return self._space.coefficients()

    @property
    def n_support_(self) -> int | np.ndarray:
        """Rows that a label's hypothesis is made of: an int for two classes, else an array of
        shape (n_classes,)."""
        self._with_kernel("n_support_")
        return self._by_label(self._space.count_support())

    @property
    def pool_bytes_(self) -> int:
        """Bytes of the pool's rows and coefficients, and of the matrices over them if there are
        any."""
        self._with_kernel("pool_bytes_")
        return self._space.nbytes

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

    @property
    def t_(self) -> int:
        """Trials of the last `fit` and of the calls of `partial_fit` since, and 1; epochs that a
        pass without a correction spared are counted."""
        self._check_fitted()
        return 1 + self._space.trials - getattr(self, "_trials_before", 0)

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


def rows_by_class(targets: Targets, n_classes: int) -> np.ndarray:
    """Rows that don't have each class, and those that do, shape (2, n_classes)."""
    if isinstance(targets, Positives):
        n_rows, labels = len(targets.starts) - 1, targets.labels
    else:
        n_rows, labels = len(targets), targets
    counts = np.bincount(labels, minlength=n_classes)
    return np.vstack([n_rows - counts, counts])


def _balanced(counts: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Weights with which all classes weigh the same, by the rows of each."""
    if not counts.all():
        missing = classes[counts == 0].tolist()
        raise ValueError(
            f"class_weight='balanced' needs rows of every class; there are none of {missing}."
        )
    return counts.sum() / (len(classes) * counts)


def _balanced_sides(counts: np.ndarray) -> np.ndarray:
    """Weights with which each label's positive rows weigh as much as its negative ones; 1 where it
    has no others."""
    weights = np.ones(counts.shape)
    return np.divide(counts.sum(axis=0), 2 * counts, out=weights, where=counts.all(axis=0))


def _to_scale(weight: np.ndarray) -> np.ndarray:
    """Weights whose harmonic mean, of those that are not 0, is 1, as with "balanced"; 1 where all
    are the same."""
    counts = weight > 0
    with np.errstate(over="ignore"):
        weight = weight / np.where(counts, weight, inf).min(axis=0)
    weight = np.minimum(weight, np.finfo(np.float64).max)
    inverse = np.divide(1.0, weight, out=np.zeros_like(weight), where=counts)
    return weight * (inverse.sum(axis=0) / np.maximum(counts.sum(axis=0), 1))


def _checked(weight: np.ndarray) -> np.ndarray:
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(f"class_weight must be finite and not negative, got {weight}.")
    return weight


def named_weights(weights: Mapping[Any, float], classes: np.ndarray) -> np.ndarray:
    """The weights by class; 1 for those left out."""
    known = dict.fromkeys(classes.tolist())
    unknown = [label for label in weights if label not in known]
    if unknown and any(label not in weights for label in known):
        raise ValueError(
            f"class_weight names {unknown}, which is not among the classes {list(known)}. Leave it "
            "out."
        )
    return np.array([weights.get(label, 1.0) for label in known], dtype=np.float64)


def first_rows(blocks: Iterable[Rows]) -> Iterator[Rows]:
    """The first 100 rows of all blocks, of which no more are taken than are needed."""
    left = ROWS_MEASURED
    for rows in blocks:
        first = part_of(rows, 0, left)
        yield first
        left -= first.n_rows
        if not left:
            return


def intercept_scale(blocks: Iterable[Rows], p: float) -> float:
    """A third of the root mean square p-norm of the first 100 rows, in blocks without repeated
    columns; 1/3 where they are zero."""
    # In one sum: where a block ends is to change no bit.
    norms = np.concatenate([row_norms(rows, p) for rows in first_rows(blocks)])
    scale = norm(norms, 2) / (3 * sqrt(max(len(norms), 1)))
    return scale if 0.0 < scale < inf else 1 / 3


def _variance(rows: Any) -> float:
    """Of all entries, zeros included, as scikit-learn's SVC has it."""
    n = (len(rows.indptr) - 1) * rows.n_features
    mean = float(np.sum(rows.data, dtype=np.float64)) / n
    rest = rows.data - np.float64(mean)
    return float(np.dot(rest, rest) + (n - len(rest)) * mean * mean) / n
