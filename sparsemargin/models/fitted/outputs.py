"""What a fitted model says of rows: outputs, the classes and labels they decide for, and whether
these are more than one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemargin._checks import check_count
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.fitting.threads import run_together
from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin._shown import shown
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.inputs.class_weights import Targets
from sparsemargin.models.inputs.labels import Choice, label_text
from sparsemargin.models.inputs.rows import Rows, check_rows, refusing

if TYPE_CHECKING:
    from sparsemargin.models.learner import Learner

#: A model is tried on so many rows, unless it has more labels than that is cheap for; that it
#: predicts one class only is told where it is wrong for at least so many of them.
ROWS_TOLD, LEAST_TOLD, MOST_LABELS_TOLD = 100, 5, 100

# By how much a class must be less likely than the predicted one, and the least probability.
_TRACE, _NONE = 1e-5, 1e-300

# Of fewer rows that are answered, no share of wrong answers is known.
_LEAST_ANSWERED = 10

# What is worth another value where a model tells no classes apart.
_TUNED = ("alpha", "r", "eta0", "a")

#: Some of the rows, and their classes' codes.
SampledRows = tuple[Rows, np.ndarray]


def first_infinite(outputs: np.ndarray) -> int | None:
    """The first row that has an output which no float64 holds; None: there is none."""
    finite = np.isfinite(outputs)
    return None if finite.all() else int(finite.all(axis=1).argmin())


def _require_finite(outputs: np.ndarray, first_row: int) -> None:
    row = first_infinite(outputs)
    if row is not None:
        raise ValueError(f"The output for row {first_row + row} of X exceeds a float64. Rescale X.")


def outputs_of(fitted: Fitted, rows: Rows, n_threads: int) -> np.ndarray:
    """Outputs of checked rows, shape (n_rows, n_labels)."""
    return fitted.space.outputs_by(fitted.hypothesis, rows, fitted.slice_seed, n_threads)


def finite_outputs(fitted: Fitted, rows: Rows, n_threads: int) -> np.ndarray:
    """As `outputs_of`; a ValueError where one exceeds a float64."""
    with refusing(rows):
        result = outputs_of(fitted, rows, n_threads)
    _require_finite(result, 0)
    return result


def predicted(
    fitted: Fitted, rows: Rows, n_threads: int, told_by: Callable[[np.ndarray], Any]
) -> list[Any]:
    """What the outputs of checked rows tell, part by part: there are never many of them."""
    n_rows = len(rows.indptr) - 1
    with refusing(rows):
        of_part, step = fitted.space.outputs_in_parts(
            fitted.hypothesis, rows, fitted.slice_seed, n_threads
        )

        def tell(start: int) -> Any:
            outputs = of_part(start, min(start + step, n_rows))
            _require_finite(outputs, start)
            return told_by(outputs)

        calls = [partial(tell, start) for start in range(0, n_rows, step)]
        return run_together(calls, n_threads if len(calls) > 1 else 1)


def codes_of(fitted: Fitted, outputs: np.ndarray) -> np.ndarray:
    """Number of the predicted class: the sign of the output, or the largest one; of 0 the more
    frequent class; shape (n_rows,)."""
    if outputs.shape[1] == 1:
        least = 0.0 if fitted.at_zero[1] else np.nextafter(0.0, 1.0)
        return (outputs[:, 0] >= least).astype(np.intp)
    codes = outputs.argmax(axis=1)
    tied = np.flatnonzero(outputs[np.arange(len(codes)), codes] == 0)
    if len(tied):
        frequent = np.argsort(-fitted.rows_by_class[1], kind="stable")
        codes[tied] = frequent[(outputs[tied][:, frequent] == 0).argmax(axis=1)]
    return codes


def probabilities_of(fitted: Fitted, outputs: np.ndarray) -> np.ndarray:
    """Return those of the classes, of outputs of shape (n_rows, n_labels): shape (n_rows,
    n_classes).

    Where rows have one class, none is more likely than the predicted one: those that would be are
    as likely, but for a trace.
    """
    told = fitted.probabilities(outputs)
    if fitted.many:
        return told
    told = np.maximum(told, _NONE)
    predicted = np.arange(len(told)), codes_of(fitted, outputs)
    size = np.abs(outputs).max(axis=1, initial=0.0)
    most = told[predicted]
    told = np.minimum(told, (most * (1 - _TRACE * (1 + size / (1 + size))))[:, np.newaxis])
    told[predicted] = most
    return told / told.sum(axis=1, keepdims=True)


def confidence_of(outputs: np.ndarray) -> np.ndarray:
    """How sure the predicted classes are: their outputs, shape (n_rows,)."""
    lone = outputs.shape[1] == 1
    return np.abs(outputs[:, 0]) if lone else outputs.max(axis=1, initial=-np.inf)


def rejection(fitted: Fitted, max_error: float) -> tuple[float, float]:
    """Return the least confidence of an answer if no larger share of them is to be wrong, by rows
    that the model had not learned, and the share of these that are answered. A warning where no
    ten of them are answered with so few errors: the confidence is then infinite, the share 0."""
    if fitted.many:
        raise ValueError(
            "To leave rows without a class takes a model of one class a row; this one may have "
            "several. Pass a threshold to predict_labels."
        )
    if not 0.0 <= max_error <= 1.0:
        raise ValueError(f"max_error must be a share from 0 to 1, got {max_error!r}.")
    fitted.require_outputs(f"max_error={max_error:g}")
    window = fitted.window()
    confidence = confidence_of(window.outputs)
    # Rows of equal confidence are answered together, or none of them.
    known, groups = np.unique(-confidence, return_inverse=True)
    wrong = window.weights * (codes_of(fitted, window.outputs) != window.codes)
    answered = np.cumsum(np.bincount(groups, window.weights))
    few_errors = np.cumsum(np.bincount(groups, wrong)) <= max_error * answered
    allowed = np.flatnonzero(few_errors & (np.cumsum(np.bincount(groups)) >= _LEAST_ANSWERED))
    if not len(allowed):
        warn_user(
            f"No answer is sure enough for max_error={max_error:g}, and all rows are left without "
            "one. Allow more errors, or learn from more rows."
        )
        return np.inf, 0.0
    return -float(known[allowed[-1]]), float(answered[allowed[-1]] / answered[-1])


def ranked(fitted: Fitted, top_k: Any, outputs: np.ndarray) -> np.ndarray:
    """Numbers of the `top_k` classes of largest output, the largest first; of equal ones the
    predicted one, then those that come first; shape (n_rows, top_k), or fewer if there are."""
    top_k = check_count("top_k", top_k, 1, sys.maxsize)
    first = codes_of(fitted, outputs)
    if outputs.shape[1] == 1:
        outputs = np.hstack([-outputs, outputs])
    others = np.arange(outputs.shape[1]) != first[:, np.newaxis]
    return np.lexsort((others, -outputs), axis=1)[:, :top_k]


def choice_of(fitted: Fitted, threshold: Any = None, top_k: Any = None) -> Choice:
    """Which labels are predicted, as `Choice` says."""
    if isinstance(threshold, str) and threshold == "f1":
        threshold = fitted.f1_thresholds()
    if threshold is None and top_k is None:
        threshold = np.where(fitted.at_zero, 0.0, np.nextafter(0.0, 1.0))
    return Choice(fitted.space.n_labels, threshold, top_k)


def _spread(n_rows: int) -> np.ndarray:
    """Numbers of rows, spread evenly, as many as it is told by."""
    return np.linspace(0, n_rows - 1, min(n_rows, ROWS_TOLD)).astype(np.intp)


def most_frequent(codes: np.ndarray) -> int:
    """The class that most rows have."""
    return int(np.bincount(codes.astype(np.intp)).argmax())


def sample_of(
    learner: Learner, rows: Any, targets: Targets, weights: np.ndarray | None = None,
    frequent: int | None = None,
) -> SampledRows | None:  # fmt: skip
    """Some of the rows, as many again not of the most frequent class, and their classes, by
    which to see whether the model tells classes apart; only these where that class is known by
    now. None: it costs too much, or rows have no class."""
    fitted = learner.fitted
    told = learner.is_linear and learner.hypothesis_name in ("last", "average")
    told = told and bool(fitted.class_weight.all())
    if not told or isinstance(targets, Positives) or fitted.space.n_labels > MOST_LABELS_TOLD:
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
    # For outputs, which a column that stands twice does no harm to.
    return check_rows(rows_at(rows, chosen), repeats_allowed=True), targets[chosen]


def warn_of_one_class(learner: Learner, samples: list[SampledRows]) -> None:
    """Say so where a model predicts one class for rows it has learned from."""
    if not samples:
        return
    fitted, n_threads = learner.fitted, learner.n_threads()
    told = [codes_of(fitted, outputs_of(fitted, rows, n_threads)) for rows, _ in samples]
    predicted = np.unique(np.concatenate(told))
    if len(predicted) > 1:
        return
    codes = np.concatenate([codes for _, codes in samples])
    others = int(np.sum(codes != predicted[0]))
    if others < LEAST_TOLD:
        return
    from sklearn.exceptions import ConvergenceWarning

    label = label_text(learner.classes_[predicted].tolist()[0])
    weighs = learner.weighs_steps() and learner.class_weight is None
    tried = ["to weigh the other classes more (class_weight)"] if weighs else []
    tried.append("more epochs")
    settings = learner.parameters()
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
