"""The state of a trained model from a file, after a check of all its fields."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import log2
from typing import Any

import numpy as np

from sparsemargin._engine import state as checks
from sparsemargin._engine.core.vectors import FirstOrderRule, FirstOrderSpace
from sparsemargin._engine.fitting.epochs import FitResult
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.state import MAX_TRIALS, part, require
from sparsemargin.models.fitted.state import MOST_HASH_BITS, Fitted
from sparsemargin.models.inputs.multilabel_targets import FORMS
from sparsemargin.models.inputs.training_set import count_vectors
from sparsemargin.models.learner import LARGEST_SEED, Learner

_LARGEST = sys.float_info.max


def restored_state(state: dict[str, Any], learner: type[Learner]) -> Fitted:
    """Return the state from saved fields, for a type of learner.

    Raises
    ------
    ValueError
        If a field is invalid, or fields are inconsistent.
    """
    classes, form = part(state, "classes"), part(state, "form")
    require(isinstance(classes, np.ndarray) and classes.ndim == 1, "'classes' are no classes")
    require(form is None or (isinstance(form, str) and form in FORMS),
            "'form' is no form of labels")  # fmt: skip
    require(len(classes) >= (2 if form is None else 1), "'classes' are too few")
    require(bool((classes[1:] > classes[:-1]).all()), "'classes' do not rise")
    n_vectors, space = count_vectors(classes, form is not None), part(state, "space")
    kind = getattr(space, "saved_type", None) or type(space)
    require(kind in learner.spaces, f"'space' is none of {learner.classifier}")
    require(space.n_vectors == n_vectors, f"'space' is not of {n_vectors} vectors")
    require(form is None or space.takes_many_labels, "'space' is of rows with one class each")
    rule_type = FirstOrderRule if isinstance(space, FirstOrderSpace) else type(None)
    fitted = Fitted(classes, form, space, **checks.fields(state, {
        "structure": (checks.instance, dict),
        "class_weight": (checks.array_of, np.float64, (2, n_vectors)),
        "slice_seed": (checks.integer, 0, LARGEST_SEED),
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
        "scaling": (checks.optional, checks.array_of, np.float64, (2, space.n_features), -_LARGEST,
                    _LARGEST),
    }))  # fmt: skip
    require(fitted.progress is None or fitted.progress.n_vectors == n_vectors,
            "'progress' is of other vectors")  # fmt: skip
    require((fitted.scaling is not None) == bool(fitted.structure.get("standardize")),
            "'scaling' is of another model")  # fmt: skip
    require(fitted.scaling is None or not (space.has_support or space.logged),
            "'scaling' is of another model")  # fmt: skip
    # Voted and random hypotheses need a log of corrections.
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
    """Return the checked settings for files. If features are hashed, the hash must have as many
    values as there are features."""
    schema = {
        "zero_based": (checks.flag,),
        "hash_bits": (checks.optional, checks.integer, 1, MOST_HASH_BITS),
    }
    known = checks.fields(part(state, name), schema)
    sound = known["hash_bits"] in (None, log2(n_features))
    require(sound and len(part(state, name)) == len(schema), f"{name!r} is of another model")
    return known
