"""Checks of the arguments of `fit_text`."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields
from typing import Any

from sparsemargin import text
from sparsemargin._checks import check_texts, columns_of_table
from sparsemargin.files.kinds import names_file
from sparsemargin.models import ALGORITHMS
from sparsemargin.models.parameters import declarations
from sparsemargin.streaming.options import StreamOptions

#: Arguments of `TextClassifier` that are parameters of its classifier.
CLASSIFIER_ARGUMENTS = "class_weight", "r", "max_iter", "random_state", "n_jobs"


def split_options(
    params: Mapping[str, Any], *, in_files: bool
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Split keyword arguments of `fit_text`: arguments of `TextClassifier`, options of a fit of
    files, and further parameters of the classifier. Texts in memory have no options."""
    own = {name: params[name] for name in CLASSIFIER_ARGUMENTS if name in params}
    names = {each.name for each in fields(StreamOptions)} if in_files else set()
    options = {name: params[name] for name in params if name in names - own.keys()}
    rest = {name: params[name] for name in params if name not in own.keys() | options.keys()}
    return own, options, rest


def check_arguments(texts: Any, y: Any, params: Mapping[str, Any]) -> None:
    """Raise a ValueError if texts in memory have no labels or are not a sequence of texts, or if a
    parameter belongs to a vectorizer. `y` is None for files."""
    kind, columns = type(texts).__name__, columns_of_table(texts)
    if y is None and columns is not None:
        names = columns if len(columns) == 2 else ["text", "label"]
        raise ValueError(
            f"texts is a {kind}, and y is missing. Name two of its columns, such as "
            f"fit_text(table, {names[1]!r}, text={names[0]!r})."
        )
    in_memory = hasattr(texts, "__array__") or hasattr(texts, "to_pylist")
    if y is None and in_memory and not isinstance(texts, str):
        raise ValueError(
            f"texts is a {kind}, and y is missing. Pass the labels: fit_text(texts, y)."
        )
    if y is not None and names_file(texts):
        column = y if isinstance(y, str) else "COLUMN"
        raise ValueError(
            f"texts={texts!r} names a file, which has the labels. Leave y out: fit_text(PATH, "
            f"label={column!r})."
        )
    if isinstance(texts, Mapping | Set) or (y is not None and columns is None):
        check_texts("texts", texts)
    _refuse_parameters_of_vectorizers(params, in_files=y is None)


def _refuse_parameters_of_vectorizers(params: Mapping[str, Any], *, in_files: bool) -> None:
    known = {each.name for each in fields(StreamOptions)}.union(
        *(declarations(learner) for learner, _ in ALGORITHMS.values())
    )
    in_memory = text.TfidfVectorizer, text.WordCharVectorizer
    hashing = text.HashingVectorizer, text.WordCharHashingVectorizer
    usable, unusable = (hashing, in_memory) if in_files else (in_memory, hashing)
    if "vectorizer" in params:
        raise ValueError("fit_text has no parameter vectorizer. Pass it as features=.")
    for name in params.keys() - known:
        for kind in usable:
            if name in kind().get_params():
                raise ValueError(
                    f"{name} is a parameter of vectorizers, not of fit_text. Pass "
                    f"features={kind.__name__}({name}=...) of sparsemargin.text."
                )
        for kind in unusable:
            if name in kind().get_params():
                raise ValueError(
                    f"{name} is a parameter of {kind.__name__}, and not of {usable[0].__name__}, "
                    f"which texts {'of files' if in_files else 'in memory'} need. Leave it out."
                )
