"""Parts that several docstrings share."""

from collections.abc import Callable
from inspect import cleandoc
from string import Template
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def shares(**parts: str) -> Callable[[Function], Function]:
    """Return a decorator that replaces each ``$name`` in a docstring by the part of that name."""
    clean = {name: cleandoc(part) for name, part in parts.items()}

    def fill(function: Function) -> Function:
        # Python strips docstrings with the option -OO.
        if function.__doc__ is not None:
            function.__doc__ = Template(cleandoc(function.__doc__)).substitute(clean)
        return function

    return fill


#: Sections for the docstrings of dataset loaders. "returns" fits datasets of two classes only.
LOADER = {
    "parameters": """
        return_X_y : bool, default=False
            Whether to return ``(data, target)`` instead of a Bunch.
        data_home : str or path, default=None
            The folder that is searched first. The folder in the environment variable
            SPARSEMARGIN_DATA and the cache are searched next. Files are not downloaded.
        """,
    "returns": """
        Returns
        -------
        bunch : sklearn.utils.Bunch
            ``data``, ndarray of shape (n_samples, n_features), float64; ``target``, ndarray of
            shape (n_samples,), int64, -1 and +1; ``target_names``, ndarray of their names in this
            order; ``feature_names``, list of str, if the file contains them; ``frame``, None;
            ``DESCR``, source, licence and citation.
        """,
    "raises": """
        (data, target) : tuple
            With ``return_X_y=True``.

        Raises
        ------
        FileNotFoundError
            If a file is in none of the folders. The message explains how to download it.
        ValueError
            If an argument is invalid, or the size or SHA-256 of a file is not the registered one.
        """,
}
