"""Modules that take long to import, loaded on first use.

Training on svmlight files and their prediction by the command line do not need them.
"""

from typing import Any


def scipy_sparse() -> Any:
    """Return the module `scipy.sparse`."""
    # It takes 0.2 s to import.
    import scipy.sparse

    return scipy.sparse


def sklearn_exceptions() -> Any:
    """Return the module `sklearn.exceptions`."""
    # It imports all of scikit-learn, which takes a second.
    import sklearn.exceptions

    return sklearn.exceptions
