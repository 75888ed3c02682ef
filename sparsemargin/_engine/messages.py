"""Warnings that point at the line of the caller's code."""

import sys
import warnings


def warn_user(message, category=UserWarning):
    """Warn with the location of the call into the package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("sparsemargin."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_of_convergence(message):
    """Warn like `warn_user`, with scikit-learn's ConvergenceWarning."""
    # Importing scikit-learn takes a second.
    from sklearn.exceptions import ConvergenceWarning

    warn_user(message, ConvergenceWarning)
