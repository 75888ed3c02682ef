"""Estimators around a fitted pipeline or classifier, such as `Rejector`, in model files.

A wrapper is an estimator of this library with two methods:

- ``saved_wrapper()`` returns the fitted estimator inside, and a dict of plain values from which the
  wrapper is restored: its parameters and learned attributes. Plain values are those that `Encoder`
  encodes. It raises a `NotFittedError` if the wrapper is not fitted.
- The class method ``restored(inner, values)`` returns the wrapper around the loaded estimator. The
  values may come from a stranger: it checks them, and raises a ValueError if they are not sound.

The document has a list ``wrappers`` of classes and values, the outermost wrapper first. The table
of classes is in `sparsemargin.tasks.load_model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparsemargin._engine.state import instance, part, require
from sparsemargin.models.pipelines import is_of_library
from sparsemargin.saving.values import Decoder

# Largest number of wrappers around each other. Deeply nested ones would exhaust Python's stack.
_MOST = 4


def unwrapped(model: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return the estimator inside all wrappers and searches, and the wrappers to be saved."""
    wrappers = []
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "saved_wrapper") and is_of_library(model, type(model).__name__):
            name = type(model).__name__
            model, values = model.saved_wrapper()
            wrappers.append({"class": name, "values": values})
        else:
            return model, wrappers


def decoded_wrappers(document: Any, decoder: Decoder) -> list[dict[str, Any]]:
    """Return the wrappers in a document. Their values are checked by `rewrapped`."""
    entries = document.get("wrappers", [])
    require(isinstance(entries, list) and len(entries) <= _MOST, "'wrappers' is of another type")
    wrappers = [decoder.decode_named(each) for each in entries]
    for each in wrappers:
        instance(each, "class", str)
        instance(each, "values", dict)
    return wrappers


def rewrapped(model: Any, wrappers: list[dict[str, Any]], classes: Mapping[str, Any]) -> Any:
    """Return a loaded pipeline or classifier in its wrappers, from the innermost to the outermost.

    `classes` has the class of each wrapper by its name. Other names raise a ValueError.
    """
    for each in reversed(wrappers):
        name = part(each, "class")
        require(name in classes, f"there is no estimator {name!r}")
        model = classes[name].restored(model, part(each, "values"))
    return model
