"""Checks of the steps of pipelines in model files: parameters, learned state, order and widths.

scikit-learn's constructors accept anything, and check some parameters only when data is
transformed. Files may come from strangers, so everything is checked when a file is loaded.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from sparsemargin._engine.state import require
from sparsemargin._shown import quoted
from sparsemargin.text.analysis import PATTERNS

#: Longest n-grams, in words or characters, that a file may ask for unless the caller trusts it.
#: Longer ones may take all memory on some texts.
LONGEST_NGRAM = 64
_MOST_JOBS = 256

# Learned attributes of steps whose `get_feature_names_out` returns one name for each column.
_NAMES_OUT = "categories_", "components_", "scores_", "statistics_"

_REMEDY = (
    "If you trust whoever made the file, load it in Python: sparsemargin.load_model(PATH, "
    "trusted=True)."
)


def check_parameters(kind: str, step: Any, trusted: bool) -> None:
    """Raise a ValueError if a newly made step has invalid parameters, or, unless the file is
    `trusted`, parameters that could make it run forever."""
    step._validate_params()
    check_jobs(kind, step)
    # In a step of two vectorizers, the parameters of both are checked.
    for each in step.vectorizers() if hasattr(step, "vectorizers") else (step,):
        if hasattr(each, "ngram_range"):
            _check_vectorizer(kind, each, trusted)


def check_jobs(kind: str, step: Any) -> None:
    """Raise a ValueError if `n_jobs` is not a plausible number of threads or processes."""
    n_jobs = getattr(step, "n_jobs", None)
    sound = n_jobs is None or (type(n_jobs) is int and 0 < abs(n_jobs) <= _MOST_JOBS)
    require(sound, f"n_jobs of {kind} is no number of jobs")


def check_weights(kind: str, parameters: dict[str, Any]) -> None:
    """Raise a ValueError unless the parameter `transformer_weights` holds numbers."""
    weights = parameters.get("transformer_weights") or {}
    sound = isinstance(weights, dict) and all(isinstance(each, Real) for each in weights.values())
    require(sound, f"the transformer_weights of {kind} are no numbers")


def _check_vectorizer(kind: str, step: Any, trusted: bool) -> None:
    lengths = step.ngram_range
    require(
        len(lengths) == 2
        and all(isinstance(n, Integral) and not isinstance(n, bool) for n in lengths)
        and 1 <= lengths[0] <= lengths[1],
        f"ngram_range of {kind} is no pair of lengths",
    )
    words = step.stop_words
    texts = words is None or isinstance(words, str) or all(isinstance(each, str) for each in words)
    require(texts, f"stop_words of {kind} are no words")
    require(_is_text_encoding(step.encoding), f"encoding of {kind} is none of text")
    pattern = step.token_pattern
    require(pattern is not None or step.analyzer != "word", f"{kind} has no token_pattern")
    if trusted:
        return
    if pattern is not None and pattern not in PATTERNS:
        raise ValueError(
            f"The token_pattern of {kind} is {quoted(pattern)}, a regular expression that may take "
            f"for ever on some texts. {_REMEDY}"
        )
    if lengths[1] > LONGEST_NGRAM:
        raise ValueError(
            f"The ngram_range of {kind} is {tuple(lengths)}: n-grams of more than {LONGEST_NGRAM} "
            f"may take all memory on some texts. {_REMEDY}"
        )


def _is_text_encoding(name: str) -> bool:
    try:
        return codecs.lookup(name)._is_text_encoding
    except (LookupError, ValueError):
        return False


def check_fixed_vocabulary(kind: str, step: Any, learned: Any) -> None:
    """Raise a ValueError if the parameter `vocabulary` differs from the vocabulary of the step."""
    if step.vocabulary is None:
        return
    fresh = type(step)(vocabulary=step.vocabulary)
    fresh._validate_vocabulary()
    own = fresh.vocabulary_
    sound = all(isinstance(each, str) for each in own) and len(own) == len(learned)
    if sound and isinstance(learned, dict):
        sound = own == learned
    require(sound, f"vocabulary of {kind} is not what it has learned")


def check_learned(kind: str, step: Any) -> None:
    """Raise a ValueError if a step lacks state that its parameters require."""
    needed = {
        "idf_": getattr(step, "use_idf", False),
        "mean_": getattr(step, "with_mean", False),
        "scale_": getattr(step, "with_std", kind == "MaxAbsScaler"),
        **dict.fromkeys(("form_", "deviations_", "means_"), kind.endswith("CellNormalizer")),
    }
    for name, is_needed in needed.items():
        owner = getattr(step, "_tfidf", step)
        found = vars(owner).get(name)
        require(not is_needed or found is not None, f"{kind} has no {name}")
    if kind.endswith("CellNormalizer"):
        require((step.deviations_ >= 0).all(), f"{kind} has a negative deviation")


def check_order(kinds: Iterable[str]) -> None:
    """Raise a ValueError if a vectorizer, which takes texts, is not the first step."""
    for kind in list(kinds)[1:]:
        require(not kind.endswith("Vectorizer"), f"{kind} comes after another step")


def check_widths(steps: Iterable[Any], n_features: int | None = None) -> None:
    """Raise a ValueError if a step returns another number of columns than the next one takes.

    `n_features` is the number of columns that the classifier takes; None: no classifier follows.
    """
    width: int | None = None
    for step in steps:
        taken = getattr(step, "n_features_in_", None)
        # A vectorizer is the first step, where `width` is None, so its `n_features_in_` is ignored.
        if width is not None and taken is not None:
            require(width == taken, f"{type(step).__name__} takes {taken} columns, not {width}")
        width = n_columns_of(step)
    require(
        n_features is None or width in (None, n_features),
        f"its steps make {width} columns, and its classifier takes {n_features}",
    )


def n_columns_of(step: Any) -> int | None:
    """Return the number of columns that a step returns; None if the step does not specify it."""
    if hasattr(step, "transformer_list"):
        widths = [n_columns_of(each) for _, each in step.transformer_list]
        return None if None in widths else sum(filter(None, widths))
    if hasattr(step, "output_indices_"):
        return max(each.stop for each in step.output_indices_.values())
    if hasattr(step, "steps"):
        return n_columns_of(step.steps[-1][1])
    if any(hasattr(step, each) for each in _NAMES_OUT):
        return len(step.get_feature_names_out())
    if hasattr(step, "ngram_range") and not hasattr(step, "n_features"):
        terms = getattr(step, "compiled_vocabulary", None)
        return len(step.vocabulary_ if terms is None else terms)
    names = "n_columns", "n_features", "n_features_in_"
    return next((getattr(step, name) for name in names if hasattr(step, name)), None)
