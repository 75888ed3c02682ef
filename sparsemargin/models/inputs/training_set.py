"""Training rows with their targets, the data that a new model is initialized with, and the weights
of the steps of each vector, computed from `class_weight`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.first_order.prior import NaiveBayesPrior
from sparsemargin._engine.fitting.epochs import FitResult
from sparsemargin._engine.fitting.task import Positives, Task
from sparsemargin.models.inputs.label_table import label_text, number_of, word_of
from sparsemargin.models.inputs.multilabel_targets import TargetFormat
from sparsemargin.models.inputs.rows import Rows

#: Number of first rows of a stream that are counted for a prior.
ROWS_COUNTED = 10_000

#: The code of each row's class, shape (n_rows,), or the labels of each row (multilabel).
Targets = np.ndarray | Positives


def count_vectors(classes: np.ndarray, many: bool) -> int:
    """Return the number of vectors: one per class, or a single one for two exclusive classes."""
    return 1 if len(classes) == 2 and not many else len(classes)


class TrainingSet(NamedTuple):
    """Training rows and their encoded targets. Both are valid, except for the entries of the rows,
    which are checked before they are used."""

    rows: Rows
    targets: Targets
    classes: np.ndarray
    form: TargetFormat | None  # format of multilabel targets; None: one class per row
    weights: np.ndarray | None  # sample weights; None: all are 1
    sparse: bool  # True if X was sparse, so that a callable kernel gets sparse rows


@dataclass(frozen=True)
class Beginning:
    """The data that a new model is initialized with."""

    rows: Rows  # the first rows
    classes: np.ndarray
    form: TargetFormat | None = None  # format of multilabel targets; None: one class per row
    counts: np.ndarray | None = None  # result of `rows_by_class`; None: not all rows are known
    blocks: Sequence[Rows] = ()  # `rows` and the rows that follow; empty: only `rows`
    grows: bool = False  # True if the number of features may increase
    sparse: bool = True  # True if X was sparse, so that a callable kernel gets sparse rows
    # Counts of the known rows, see `Learner.prior_of`; None: the learner has no such prior.
    prior: NaiveBayesPrior | None = None

    @property
    def n_vectors(self) -> int:
        return count_vectors(self.classes, self.form is not None)


class Training(NamedTuple):
    """The result of `Learner.train`, with which `Learner.finish` completes a fit."""

    task: Task
    result: FitResult
    seed: int | None  # seed of the shuffling; None: the order of the rows
    first: Beginning | None  # data that the model was initialized with; None: the fit resumed


def rows_by_class(
    targets: Targets, n_classes: int, counted: np.ndarray | None = None
) -> np.ndarray:
    """Return the numbers of rows without and with each class, shape (2, n_classes). `counted`
    selects the rows; None: all rows."""
    if isinstance(targets, Positives):
        n_rows, labels = len(targets.starts) - 1, targets.labels
        of_vectors = None if counted is None else np.repeat(counted, np.diff(targets.starts))
    else:
        n_rows, labels, of_vectors = len(targets), targets, counted
    if counted is not None:
        n_rows, labels = int(np.count_nonzero(counted)), labels[of_vectors]
    counts = np.bincount(labels, minlength=n_classes)
    return np.vstack([n_rows - counts, counts])


def counted_rows(
    class_weight: Any, classes: np.ndarray, targets: Targets, weights: np.ndarray | None
) -> np.ndarray | None:
    """Return whether each row and its class both have a weight above 0, shape (n_rows,). None: all
    rows do. The other rows are ignored in training."""
    counted = None if weights is None else weights > 0
    if isinstance(class_weight, Mapping) and not isinstance(targets, Positives):
        of_rows = named_weights(class_weight, classes)[targets] > 0
        counted = of_rows if counted is None else counted & of_rows
    return None if counted is None or counted.all() else counted


def steps_by_class(
    class_weight: Any, first: Beginning, influence: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return the weights of the steps of each vector's negative and positive rows, shape (2,
    n_vectors). `influence` converts class weights to weights of steps.

    With more than two classes, negative rows have weight 1, as in scikit-learn's one-vs-rest. In
    multilabel problems, "balanced" gives the negative and positive rows of each vector the same
    total weight.
    """
    classes, many = first.classes, first.form is not None
    if class_weight != "balanced":
        weight = _checked(named_weights(class_weight, classes))
        weight = np.vstack([np.ones_like(weight), _to_scale(weight)]) if many else weight
    elif first.counts is not None:
        counts = first.counts
        weight = _balanced_sides(counts) if many else _balanced(counts[1])
    else:
        raise ValueError(
            "class_weight='balanced' needs all labels at once and can't be used with "
            "partial_fit. Pass the weights as a dict."
        )
    weight = influence(_to_scale(weight))
    if many:
        return weight
    return weight[:, np.newaxis] if len(classes) == 2 else np.vstack([weight**0, weight])


def _balanced(counts: np.ndarray) -> np.ndarray:
    """Return weights that give all classes the same total weight, and 1 for classes without rows,
    such as those whose rows all have weight 0. `counts` are rows per class."""
    occurs = counts > 0
    weights = np.ones(len(counts))
    return np.divide(counts.sum(), occurs.sum() * counts, out=weights, where=occurs)


def _balanced_sides(counts: np.ndarray) -> np.ndarray:
    """Return weights that give the positive and negative rows of each label the same total weight,
    shape (2, n_vectors); 1 for labels that have only one of the two."""
    weights = np.ones(counts.shape)
    return np.divide(counts.sum(axis=0), 2 * counts, out=weights, where=counts.all(axis=0))


def _to_scale(weight: np.ndarray) -> np.ndarray:
    """Scale weights so that the harmonic mean of those above 0 is 1, which class_weight='balanced'
    fulfils by definition. Equal weights become exactly 1."""
    counts = weight > 0
    with np.errstate(over="ignore"):
        weight = weight / np.where(counts, weight, inf).min(axis=0)
    weight = np.minimum(weight, np.finfo(np.float64).max)
    inverse = np.divide(1.0, weight, out=np.zeros_like(weight), where=counts)
    return weight * (inverse.sum(axis=0) / np.maximum(counts.sum(axis=0), 1))


def _checked(weight: np.ndarray) -> np.ndarray:
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(f"class_weight must be finite and not negative, got {weight}.")
    if not weight.any():
        raise ValueError(
            "class_weight is 0 for every class: there is nothing to learn from. Give two classes "
            "or more a weight above 0."
        )
    return weight


def refuse_no_rows(targets: Targets, steps: np.ndarray, weights: np.ndarray | None) -> None:
    """Raise a ValueError if every row has weight 0 or a class of weight 0. `steps` is the result of
    `steps_by_class`. Multilabel targets are not checked."""
    if isinstance(targets, Positives) or steps.all():
        return
    counted = (steps[:, 0] if steps.shape[1] == 1 else steps[1])[targets] > 0
    if not (counted if weights is None else counted & (weights > 0)).any():
        beside = "" if weights is None else "sample_weight and "
        raise ValueError(
            f"{beside}class_weight leave no row to learn from: every row has weight 0, or a class "
            "of weight 0. Give rows of two classes or more a weight above 0."
        )


def weights_by_class(class_weight: Any, classes: np.ndarray) -> Any:
    """Return `class_weight` with the classes that its names stand for, if they are labels of files.
    Names of no class are kept. Classes that are floats are those of svmlight text, where labels
    that are equal as numbers are the same. A ValueError is raised for two weights of a class."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    known = {word_of(label_text(each)): each for each in classes.tolist()}

    def class_named(name: Any) -> Any:
        number = number_of(name) if classes.dtype.kind == "f" else nan
        return known.get(word_of(label_text(name)), name if isnan(number) else number)

    found = {class_named(name): weight for name, weight in class_weight.items()}
    if len(found) < len(class_weight):
        raise ValueError(
            f"class_weight={class_weight!r} has several weights for one class. Pass one of them."
        )
    return found


def named_weights(weights: Mapping[Any, float], classes: np.ndarray) -> np.ndarray:
    """Return the weight of each class, shape (n_classes,); 1 for classes that are not named."""
    known = dict.fromkeys(classes.tolist())
    unknown = [label for label in weights if label not in known]
    if unknown and any(label not in weights for label in known):
        raise ValueError(
            f"class_weight names {unknown}, which is not among the classes {list(known)}. Leave it "
            "out."
        )
    return np.array([weights.get(label, 1.0) for label in known], dtype=np.float64)
