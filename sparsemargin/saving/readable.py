"""Weights as text with the names of the features, or coefficients with the rows of a kernel."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TextIO

import numpy as np

import sparsemargin
from sparsemargin._engine.numerics.norms import vectors_of
from sparsemargin.files.atomic import replacing
from sparsemargin.files.remote import downloaded, is_url
from sparsemargin.models import Learner
from sparsemargin.models.pipelines import check_names, is_choosing, model_and_names
from sparsemargin.saving.model_files import summarise

#: Name of the intercept in the text.
INTERCEPT = "(intercept)"
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def write_readable(
    path_or_stream: str | os.PathLike[str] | TextIO, model: Any, names: Any = None
) -> None:
    r"""Write a fitted classifier's weights as text.

    The first lines begin with ``#`` and describe the model. Each line after them holds a nonzero
    weight. The line is ``name<TAB>weight`` for two classes, where a positive weight favours the
    second class. It is ``class<TAB>name<TAB>weight``, class by class, for more classes and for
    multilabel models. The intercept comes first with the name ``(intercept)``, followed by the
    features in order of decreasing magnitude. Weights are written with all digits, so that
    ``float(text)`` is the exact weight. Tabs, line ends and backslashes in names are escaped as
    ``\t``, ``\n``, ``\r`` and ``\\``, and bytes that are not UTF-8 as ``\udcXX``. A backslash is
    put before a name that begins with ``#`` or is ``(intercept)``.

    For a model with a kernel, the lines hold `dual_coef_` in place of weights, and the numbers of
    the rows (see `support_`) in place of the names of features.

    Parameters
    ----------
    path_or_stream : path or text stream
        A file is encoded as UTF-8 and written atomically.
    model : classifier, or pipeline that ends in one
        Fitted, with ``hypothesis="average"`` or ``"last"``.
    names : sequence of str of length n_features, fitted vectorizer or None
        Names of the features, or an object whose ``get_feature_names_out()`` returns them. None:
        the names that the other steps of the pipeline return, or `feature_names_in_`, otherwise
        the numbers of the features from 0. It must be None for a model with a kernel.

    Raises
    ------
    ValueError
        If the model does not belong to this library, has no single vector per class or is not
        fitted, or if the names do not match its features.
    OSError
        If the file can't be written. The message names the file.
    """
    lines = _lines(model, names)
    if not isinstance(path_or_stream, str | os.PathLike):
        path_or_stream.writelines(lines)
        return
    with replacing(path_or_stream) as file:
        file.writelines(line.encode("utf-8") for line in lines)


def _lines(model: Any, names: Any) -> Iterator[str]:
    """Return an iterator over all lines. Raise errors here, before the first line is written."""
    model, known = model_and_names(model, names)
    if not isinstance(model, Learner):
        if is_choosing(model):
            # Imported here because scikit-learn takes a second; the commands have no such models.
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(model)
        raise ValueError(
            "model must be a classifier of sparsemargin, or a pipeline that ends in one, got "
            f"{type(model).__name__}. The file is the first argument, the model the second."
        )
    fitted = model.fitted
    has_pool = fitted.space.has_support
    try:
        weights = model.dual_coef_ if has_pool else fitted.weights()[:, : model.n_features_in_]
        intercepts = fitted.intercept()
    except AttributeError as error:
        raise ValueError(str(error)) from None
    if not has_pool:
        known = check_names(known, model.n_features_in_, "names")
        return _written(model, weights, intercepts, known)
    if names is not None:
        raise ValueError(
            "A model with a kernel has coefficients of rows, which have no names. Pass names=None."
        )
    return _written(model, weights, intercepts, [str(row) for row in model.support_.tolist()])


def _written(
    model: Any, weights: Any, intercepts: np.ndarray, names: Sequence[str] | None
) -> Iterator[str]:
    yield from _header(model)
    lone = len(intercepts) < len(model.classes_)
    vectors = vectors_of(weights)
    for label, (of_label, intercept) in enumerate(zip(vectors, intercepts, strict=True)):
        before = "" if lone else f"{escaped(str(model.classes_[label]))}\t"
        if intercept:
            yield f"{before}{INTERCEPT}\t{float(intercept)!r}\n"
        nonzero = np.flatnonzero(of_label)
        for feature in nonzero[np.argsort(-np.abs(of_label[nonzero]), kind="stable")].tolist():
            name = str(feature) if names is None else escaped(str(names[feature]))
            yield f"{before}{name}\t{float(of_label[feature])!r}\n"


def _header(model: Any) -> Iterator[str]:
    summary = summarise(model)
    yield f"# sparsemargin {sparsemargin.__version__}, {summary.pop('class')}\n"
    for name, value in {**summary.pop("settings"), **summary}.items():
        yield f"# {name}: {str(value).translate(_ESCAPES)}\n"


def escaped(name: str, taken: Collection[str] = (INTERCEPT,)) -> str:
    """Return the name escaped as one field of UTF-8 text. A backslash is put before it if it begins
    like a comment or is in `taken`."""
    text = name.translate(_ESCAPES).encode("utf-8", "backslashreplace").decode()
    return ("\\" if name in taken or name.startswith("#") else "") + text


def read_dictionary(path: str | os.PathLike[str], n_features: int | None = None) -> list[str]:
    """Read names of features from UTF-8 text with one name per line, from feature 0 on.

    Raises a ValueError that names the file if a line is empty, has a tab or is not UTF-8, if a name
    is repeated, or if the number of names is not `n_features`. None accepts any number.
    """
    lines: dict[str, int] = {}
    with downloaded(str(path)) if is_url(path) else open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            where = f"{os.fspath(path)}: line {number}"
            try:
                name = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise ValueError(f"{where} is not UTF-8: {error}.") from None
            if not name or "\t" in name:
                raise ValueError(f"{where} reads {name!r}: expected a name without a tab.")
            if name in lines:
                raise ValueError(f"{where} has the name {name!r} of line {lines[name]}.")
            lines[name] = number
    if n_features not in (None, len(lines)):
        raise ValueError(
            f"{os.fspath(path)} has {len(lines)} names for {n_features} features. It must have one "
            "name in each line, from feature 0 on."
        )
    return list(lines)
