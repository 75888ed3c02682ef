"""Data of the kernel tables: MNIST whole and by single classes, USPS, Letter."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from papers.data import load_letter, load_mnist, load_usps

LOADERS: dict[str, Callable[..., Any]] = {
    "mnist": load_mnist,
    "usps": load_usps,
    "letter": load_letter,
}


class Data(NamedTuple):
    """Rows to train on and to test on, as published."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


@lru_cache
def _whole(name: str) -> Data:
    load = LOADERS[name]
    return Data(*load("train", return_X_y=True), *load("test", return_X_y=True))


def load(name: str) -> Data:
    """Load a data set, or, of ``"mnist 9"``, that class against the rest.

    Raises
    ------
    FileNotFoundError
        If its files are not at hand; the message says how to get them.
    """
    whole, _, positive = name.partition(" ")
    data = _whole(whole)
    if not positive:
        return data
    y, y_test = (np.where(y == int(positive), 1, -1) for y in (data.y, data.y_test))
    return data._replace(y=y, y_test=y_test)
