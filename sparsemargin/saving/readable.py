"""Weights as text, with the names of the features, or of a kernel's rows."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TextIO

import numpy as np

from sparsemargin._engine.numerics.norms import vectors_of
from sparsemargin.files.atomic import replacing
from sparsemargin.files.remote import fetched, is_url
from sparsemargin.models import Learner
from sparsemargin.models.pipelines import check_names, is_choosing, model_and_names
from sparsemargin.saving.model_files import summarise

#: What the intercept's line is called.
INTERCEPT = "(intercept)"
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def write_readable(
    path_or_stream: str | os.PathLike[str] | TextIO, model: Any, names: Any = None
) -> None:
    r"""Write a fitted classifier's weights as text.

    The first lines begin with ``#`` and tell of the model. Every line after them is a weight that
    is not 0: ``name<TAB>weight`` for two classes, above 0 where it speaks for the second, and
    ``class<TAB>name<TAB>weight`` for more, or many labels a row, class after class. The intercept
    comes first, named ``(intercept)``, then the features by falling magnitude. A weight has all
    its digits: ``float(text)`` is what the model has. Tabs, line ends and backslashes in names are
    escaped, as ``\t``, ``\n``, ``\r`` and ``\\``, bytes that are not UTF-8 as ``\udcXX``; so is a
    name's beginning where it looks like another line's.

    Of a model with a kernel the lines are `dual_coef_` in place of weights: the rows' numbers, as
    `support_` has them, in place of the features' names.

    Parameters
    ----------
    path_or_stream : path or text stream
        A file is UTF-8, and replaced as a whole.
    model : classifier, or pipeline that ends in one
        With ``hypothesis="average"`` or ``"last"``.
    names : sequence of str of length n_features, fitted vectorizer or None
        Names of the features, or what has them as ``get_feature_names_out()``. None: those that
        the pipeline's other steps tell, or `feature_names_in_`, else their numbers from 0. None
        only for a model with a kernel.

    Raises
    ------
    ValueError
        If the model is none of this library, has no single weight vector or is not fitted,
        or the names are not those of its features.
    OSError
        If the file can't be written; names it.
    """
    lines = _lines(model, names)
    if not isinstance(path_or_stream, str | os.PathLike):
        path_or_stream.writelines(lines)
        return
    with replacing(path_or_stream) as file:
        file.writelines(line.encode("utf-8") for line in lines)


def _lines(model: Any, names: Any) -> Iterator[str]:
    """All lines; what can't be written is refused here, before the first is asked for."""
    model, known = model_and_names(model, names)
    if not isinstance(model, Learner):
        if is_choosing(model):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(model)
        raise ValueError(
            "model must be a classifier of sparsemargin, or a pipeline that ends in one, got "
            f"{type(model).__name__}. The file comes before it."
        )
    fitted = model.fitted
    has_pool = fitted.space.has_support
    try:
        weights = model.dual_coef_ if has_pool else fitted.weights()[:, : model.n_features_in_]
        intercepts = fitted.intercept()
    except AttributeError as error:
        raise ValueError(str(error)) from None
    if not has_pool:
        return _written(model, weights, intercepts, check_names(known, model.n_features_in_))
    if names is not None:
        raise ValueError(
            "names are those of features; a model with a kernel has coefficients of rows. Pass "
            "names=None."
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
    from sparsemargin._version import __version__

    told = summarise(model)
    yield f"# sparsemargin {__version__}, {told.pop('class')}\n"
    for name, value in {**told.pop("settings"), **told}.items():
        yield f"# {name}: {str(value).translate(_ESCAPES)}\n"


def escaped(name: str, taken: Collection[str] = (INTERCEPT,)) -> str:
    """The name in one field of UTF-8, which no other kind of line begins with, and that is none of
    those taken."""
    text = name.translate(_ESCAPES).encode("utf-8", "backslashreplace").decode()
    return ("\\" if name in taken or name.startswith("#") else "") + text


def read_dictionary(path: str | os.PathLike[str], n_features: int | None = None) -> list[str]:
    """Names of features from UTF-8 text, one a line, the first line's being that of feature 0.

    A line that is empty or not UTF-8, a name that comes twice, or another number of names than that
    of the features, unless this is None, is a ValueError that names the file.
    """
    lines: dict[str, int] = {}
    with fetched(str(path)) if is_url(path) else open(path, "rb") as file:
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
            f"{os.fspath(path)} has {len(lines)} names for {n_features} features: one a line is "
            "wanted, from feature 0 on."
        )
    return list(lines)
