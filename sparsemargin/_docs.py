"""What docstrings have in common, said once."""

from collections.abc import Callable
from inspect import cleandoc
from string import Template
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def shares(**parts: str) -> Callable[[Function], Function]:
    """Decorate a function whose docstring says ``$name`` where the part of that name belongs."""
    clean = {name: cleandoc(part) for name, part in parts.items()}

    def fill(function: Function) -> Function:
        # There is none where Python was told to strip them.
        if function.__doc__ is not None:
            function.__doc__ = Template(cleandoc(function.__doc__)).substitute(clean)
        return function

    return fill


#: What is said of all loaders; of `returns`, those of two classes.
LOADER = {
    "parameters": """
        return_X_y : bool, default=False
            Return ``(data, target)`` in place of a Bunch.
        data_home : str or path, default=None
            The folder to look in first; then come the one that the environment variable
            SPARSEMARGIN_DATA names, and the cache. Nothing is fetched.
        """,
    "returns": """
        Returns
        -------
        bunch : sklearn.utils.Bunch
            ``data``, ndarray of shape (n_samples, n_features), float64; ``target``, ndarray of
            shape (n_samples,), int64, -1 and +1; ``target_names``, ndarray of their names in this
            order; ``feature_names``, list of str, where the file has them; ``frame``, None;
            ``DESCR``, source, licence and citation.
        """,
    "raises": """
        (data, target) : tuple
            With ``return_X_y=True``.

        Raises
        ------
        FileNotFoundError
            If a file is in none of the folders; the message tells how to get it.
        ValueError
            If an argument is wrong, or a file is not the registered one, by size and sha256.
        """,
}
