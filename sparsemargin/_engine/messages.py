"""Warnings that point at the line of the caller's code."""

import sys
import warnings
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

_collected = ContextVar("collected", default=None)


@contextmanager
def collected_warnings():
    """Yield a list that gets the warnings of this thread as pairs (message, category). They are not
    shown, and numpy gives none.

    ``warnings.catch_warnings`` changes the filters of all threads. If two threads leave it in the
    order in which they entered it, the changed filters stay for the rest of the process.
    """
    found = []
    before = _collected.set(found)
    try:
        with np.errstate(all="ignore"):
            yield found
    finally:
        _collected.reset(before)


def warn_user(message, category=UserWarning):
    """Warn with the location of the call into the package."""
    found = _collected.get()
    if found is not None:
        found.append((message, category))
        return
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("sparsemargin."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_of_convergence(message):
    """Warn like `warn_user`, with scikit-learn's ConvergenceWarning."""
    # Importing scikit-learn takes a second.
    from sklearn.exceptions import ConvergenceWarning

    warn_user(message, ConvergenceWarning)
