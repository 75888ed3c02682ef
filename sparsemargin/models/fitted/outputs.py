"""Outputs of a fitted model, the predictions that follow from them, and a check for models that
predict a single class."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from math import ulp
from typing import Any

import numpy as np

from sparsemargin._checks import check_count, check_real
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.fitting.threads import run_together
from sparsemargin._engine.messages import warn_of_convergence, warn_user
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin._shown import shown
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.inputs.labels import Choice, label_text
from sparsemargin.models.inputs.rows import Rows, check_rows, naming_bad_rows
from sparsemargin.models.inputs.training_set import Targets

#: The check for models that predict a single class: number of sampled rows, smallest number of
#: wrong predictions for a warning, and largest number of vectors (the check is slow with more).
ROWS_SAMPLED, LEAST_WRONG, MOST_LABELS_CHECKED = 100, 5, 100

# Least relative gap by which the probability of the predicted class exceeds all others, so that
# `predict` and `predict_proba` agree; and the least probability.
_TRACE, _NONE = 1e-5, 1e-300

# numpy's nextafter would underflow, which is an error under np.errstate(all="raise").
_LEAST_POSITIVE = ulp(0.0)

# Minimum number of answered rows for an estimate of the share of wrong answers.
_LEAST_ANSWERED = 10

# Parameters whose values the warning about a single predicted class suggests to change.
_TUNED = ("alpha", "r", "eta0", "a")

#: Sampled rows and the codes of their classes.
SampledRows = tuple[Rows, np.ndarray]


def first_infinite(outputs: np.ndarray) -> int | None:
    """Return the first row with an output that is not finite, or None."""
    finite = np.isfinite(outputs)
    return None if finite.all() else int(finite.all(axis=1).argmin())


def _require_finite(outputs: np.ndarray, first_row: int) -> None:
    row = first_infinite(outputs)
    if row is not None:
        raise ValueError(f"The output for row {first_row + row} of X exceeds a float64. Rescale X.")


def outputs_of(fitted: Fitted, rows: Rows, n_threads: int) -> np.ndarray:
    """Return the outputs of checked rows, shape (n_rows, n_vectors)."""
    if fitted.hypothesis in ("vote", "random"):
        return fitted.space.outputs_by(fitted.hypothesis, rows, fitted.slice_seed, n_threads)
    return fitted.predictor.outputs(rows, n_threads)


def finite_outputs(fitted: Fitted, rows: Rows, n_threads: int) -> np.ndarray:
    """Return the outputs of checked rows, or raise a ValueError if one is not finite."""
    with naming_bad_rows(rows):
        result = outputs_of(fitted, rows, n_threads)
    _require_finite(result, 0)
    return result


def predicted(
    fitted: Fitted, rows: Rows, n_threads: int, convert: Callable[[np.ndarray], Any]
) -> list[Any]:
    """Apply `convert` to the outputs of checked rows and return the results.

    The outputs are computed and converted in parts to limit the memory. A ValueError is raised if
    an output is not finite.
    """
    n_rows = len(rows.indptr) - 1
    with naming_bad_rows(rows):
        of_part, step = fitted.predictor.outputs_in_parts(
            fitted.hypothesis, rows, fitted.slice_seed, n_threads
        )

        def convert_part(start: int) -> Any:
            outputs = of_part(start, min(start + step, n_rows))
            _require_finite(outputs, start)
            return convert(outputs)

        calls = [partial(convert_part, start) for start in range(0, n_rows, step)]
        return run_together(calls, n_threads if len(calls) > 1 else 1)


def codes_of(fitted: Fitted, outputs: np.ndarray) -> np.ndarray:
    """Return the codes of the predicted classes, shape (n_rows,).

    With two classes, the sign of the output decides; with more, the largest output. If this output
    is 0, the most frequent class with an output of 0 is predicted.
    """
    if outputs.shape[1] == 1:
        least = 0.0 if fitted.at_zero[1] else _LEAST_POSITIVE
        return (outputs[:, 0] >= least).astype(np.intp)
    codes = outputs.argmax(axis=1)
    tied = np.flatnonzero(outputs[np.arange(len(codes)), codes] == 0)
    if len(tied):
        frequent = np.argsort(-fitted.rows_by_class[1], kind="stable")
        codes[tied] = frequent[(outputs[tied][:, frequent] == 0).argmax(axis=1)]
    return codes


def probabilities_of(fitted: Fitted, outputs: np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes, shape (n_rows, n_classes).

    If rows have one class each, no class is more likely than the predicted one. Larger
    probabilities are reduced to slightly less than that of the predicted class.
    """
    with np.errstate(under="ignore"):  # exp of large outputs is 0
        result = fitted.probabilities(outputs)
    if fitted.many:
        return result
    result = np.maximum(result, _NONE)
    predicted = np.arange(len(result)), codes_of(fitted, outputs)
    size = np.abs(outputs).max(axis=1, initial=0.0)
    most = result[predicted]
    result = np.minimum(result, (most * (1 - _TRACE * (1 + size / (1 + size))))[:, np.newaxis])
    result[predicted] = most
    return result / result.sum(axis=1, keepdims=True)


def confidence_of(outputs: np.ndarray) -> np.ndarray:
    """Return the confidence of the predictions, the output of the predicted class, shape
    (n_rows,)."""
    lone = outputs.shape[1] == 1
    return np.abs(outputs[:, 0]) if lone else outputs.max(axis=1, initial=-np.inf)


def rejection(fitted: Fitted, max_error: float) -> tuple[float, float]:
    """Return the minimum confidence of an answer for a maximum share of wrong answers, from 0 to 1,
    and the share of rows that are answered.

    Both are estimated from outputs for rows before the model was trained on them. See
    `least_confidence`.
    """
    check_rejection(fitted, max_error)
    fitted.require_outputs(f"max_error={max_error:g}")
    window = fitted.window()
    wrong = codes_of(fitted, window.outputs) != window.codes
    return least_confidence(confidence_of(window.outputs), wrong, window.weights, max_error)


def check_rejection(fitted: Fitted, max_error: Any) -> None:
    """Raise a ValueError if a row may have several classes, or for an invalid `max_error`."""
    if fitted.many:
        raise ValueError(
            "To leave rows without a class takes a model of one class a row; this one may have "
            "several. Pass a threshold to predict_labels."
        )
    check_real("max_error", max_error, 0, 1)


def least_confidence(
    confidence: np.ndarray, wrong: np.ndarray, weights: np.ndarray, max_error: float
) -> tuple[float, float]:
    """Return the minimum confidence of an answer for a maximum share of wrong answers, and the
    share of rows that are answered, from rows with these confidences, errors and weights.

    If no threshold that accepts at least 10 rows has a share of errors this low, the function warns
    and returns infinity and 0.
    """
    # Either all rows of equal confidence are answered, or none of them.
    known, groups = np.unique(-confidence, return_inverse=True)
    answered = np.cumsum(np.bincount(groups, weights))
    few_errors = np.cumsum(np.bincount(groups, weights * wrong)) <= max_error * answered
    allowed = np.flatnonzero(few_errors & (np.cumsum(np.bincount(groups)) >= _LEAST_ANSWERED))
    if not len(allowed):
        warn_user(
            f"No answer is sure enough for max_error={max_error:g}, and all rows are left without "
            "one. Allow more errors, or learn from more rows."
        )
        return np.inf, 0.0
    return -float(known[allowed[-1]]), float(answered[allowed[-1]] / answered[-1])


def ranked(fitted: Fitted, top_k: Any, outputs: np.ndarray) -> np.ndarray:
    """Return the codes of the `top_k` classes with the largest outputs, in decreasing order.

    Ties are resolved in favour of the predicted class, then of the lower code. The shape is
    (n_rows, top_k), or (n_rows, n_classes) if there are fewer classes.
    """
    top_k = check_count("top_k", top_k, 1, sys.maxsize)
    first = codes_of(fitted, outputs)
    if outputs.shape[1] == 1:
        outputs = np.hstack([-outputs, outputs])
    others = np.arange(outputs.shape[1]) != first[:, np.newaxis]
    return np.lexsort((others, -outputs), axis=1)[:, :top_k]


def choice_of(fitted: Fitted, threshold: Any = None, top_k: Any = None) -> Choice:
    """Return the `Choice` for a threshold and `top_k`, where "f1" selects the thresholds for F1."""
    if isinstance(threshold, str) and threshold == "f1":
        threshold = fitted.f1_thresholds()
    if threshold is None and top_k is None:
        threshold = np.where(fitted.at_zero, 0.0, _LEAST_POSITIVE)
    return Choice(fitted.space.n_vectors, threshold, top_k)


def _spread(n_rows: int) -> np.ndarray:
    """Return at most `ROWS_SAMPLED` evenly spaced row numbers below n_rows."""
    return np.linspace(0, n_rows - 1, min(n_rows, ROWS_SAMPLED)).astype(np.intp)


def most_frequent(codes: np.ndarray) -> int:
    """Return the code of the most frequent class."""
    return int(np.bincount(codes.astype(np.intp)).argmax())


def sample_of(
    fitted: Fitted, rows: Any, targets: Targets, weights: np.ndarray | None = None,
    frequent: int | None = None,
) -> SampledRows | None:  # fmt: skip
    """Return a sample of rows to check whether the model predicts more than one class.

    The sample has evenly spaced rows, and as many rows that are not in the most frequent class. If
    `frequent`, the code of that class, is given, it has only rows of other classes. The result is
    None if the check does not apply to the model, would be slow, or has no rows.
    """
    is_linear = fitted.structure.get("kernel", "linear") == "linear"
    applies = is_linear and fitted.hypothesis in ("last", "average")
    applies = applies and bool(fitted.class_weight.all())
    if (
        not applies
        or isinstance(targets, Positives)
        or fitted.space.n_vectors > MOST_LABELS_CHECKED
    ):
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
    # Duplicate columns do not affect outputs.
    return check_rows(rows_at(rows, chosen), repeats_allowed=True), targets[chosen]


def warn_of_one_class(
    fitted: Fitted, samples: list[SampledRows], parameters: Callable[[], dict[str, Any]],
    n_threads: int,
) -> None:  # fmt: skip
    """Warn if a model predicts a single class for all sampled training rows. `parameters` returns
    its parameters."""
    if not samples:
        return
    answers = [codes_of(fitted, outputs_of(fitted, rows, n_threads)) for rows, _ in samples]
    predicted = np.unique(np.concatenate(answers))
    if len(predicted) > 1:
        return
    codes = np.concatenate([codes for _, codes in samples])
    others = int(np.sum(codes != predicted[0]))
    if others < LEAST_WRONG:
        return
    label = label_text(fitted.classes[predicted].tolist()[0])
    tried = ["more epochs"]
    settings = parameters()
    if settings.get("class_weight", "") is None:
        tried.insert(0, "larger weights of the other classes (class_weight)")
    numbers = {name: each for name, each in settings.items() if isinstance(each, int | float)}
    tried += ["a smaller p"] if numbers.get("p", 2.0) > 2.0 else []
    tried += [f"another {name}" for name in _TUNED if name in numbers]
    warn_of_convergence(
        f"The model predicts class {shown(label)} for each of a sample of {len(codes)} training "
        f"rows, of which {others} have another class. If rows are dense, scale the features "
        f"(StandardScaler). Otherwise try {', '.join(tried)}."
    )
