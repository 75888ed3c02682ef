"""Docstrings and signatures of the classifiers, which are generated from those of the learners."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from sparsemargin.models.learner import Learner
from sparsemargin.models.parameters import declarations, documented, indented


def without_weights(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method without the parameter `sample_weight`, for algorithms without weighted steps.

    The parameter is also removed from the signature and from the docstring.
    """
    signature = inspect.signature(method)
    parameters = [each for each in signature.parameters.values() if each.name != "sample_weight"]
    shown = signature.replace(parameters=parameters)

    @wraps(method)
    def unweighted(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = shown.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(args[0]).__name__}.{method.__name__}(): {error}") from None
        return method(*bound.args, **bound.kwargs)

    unweighted.__signature__ = shown  # type: ignore[attr-defined]
    # Python removes the indentation of docstrings from version 3.13 on.
    doc = inspect.cleandoc(method.__doc__ or "")
    unweighted.__doc__ = re.sub(r"\nsample_weight : .*?(?=\n\n)", "", doc, flags=re.DOTALL)
    return unweighted


def docstring_for(classifier: type, model: type[Learner]) -> str:
    """Return the docstring of a classifier: that of its learner, with the sections on parameters
    and attributes filled in."""
    doc = documented(inspect.getdoc(model) or "", declarations(model), model.__mro__[1])
    return doc.replace("{attributes}", _attributes(classifier, model))


# Attributes that exist only for classifiers with these parameters.
_NEEDED = {
    **dict.fromkeys(("gamma_", "support_", "dual_coef_", "n_support_", "n_passed_over_"), "kernel"),
    "relative_deviation_": "soft_margin",
}


def _attributes(classifier: type, model: type[Learner]) -> str:
    """Return the section on attributes, with the first sentence of each property's docstring."""
    found = {
        "classes_": "classes_ : ndarray of shape (n_classes,)",
        "n_iter_": "n_iter_ : float\n    Number of epochs in the last training call.",
        "n_features_in_": "n_features_in_ : int",
    }
    without = {name for name, needed in _NEEDED.items() if needed not in declarations(model)}
    for kind in (*classifier.__mro__, *reversed(model.__mro__)):
        for name, each in vars(kind).items():
            shown = re.fullmatch(r"[a-z]\w*_", name) and name not in without
            if isinstance(each, property) and shown:
                kinds = each.fget.__annotations__["return"].replace(" | ", " or ")
                head = name if kinds == "Any" else f"{name} : {kinds.replace('np.', '')}"
                first = re.match(r".*?[.](?=\s|$)", inspect.getdoc(each) or "", re.DOTALL)
                found.setdefault(name, f"{head}\n{indented(first[0] if first else '')}")
    return "Attributes\n----------\n" + "\n".join(found.values())
