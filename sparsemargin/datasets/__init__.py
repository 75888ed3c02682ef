"""Loaders of public data and generators of problems; none of them imports the engine.

Loaders read local copies only; ``python -m sparsemargin.datasets download`` fetches the files, or
makes them of what public addresses serve.
"""

import warnings
from typing import Any

from ._microarrays import load_breast_er, load_colon, load_leukemia, load_lymphoma
from ._rcv1 import BROTTO_TOPICS, load_rcv1
from ._targets import make_alma_target, make_genotypes, make_ho_target
from ._text import make_zipf_text

__all__ = [
    "BROTTO_TOPICS",
    "load_breast_er",
    "load_colon",
    "load_leukemia",
    "load_lymphoma",
    "load_rcv1",
    "make_alma_target",
    "make_genotypes",
    "make_ho_target",
    "make_zipf_text",
]

_MOVED = ("load_letter", "load_mnist", "load_sonar", "load_usps", "load_wbc")


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        told = (
            f"{name} is in papers.data now, which stands beside the package in a checkout of the "
            f"project: from papers.data import {name}"
        )
        # Python's own error of ``from sparsemargin.datasets import`` does not tell it.
        warnings.warn(told, FutureWarning, stacklevel=2)
        raise AttributeError(told)
    raise AttributeError(f"module 'sparsemargin.datasets' has no attribute {name!r}")
