"""Options for training on files, shared by `fit_svmlight`, fits over shards and the commands."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self

import numpy as np

from sparsemargin.models import Algorithm
from sparsemargin.readers.reading import Reading
from sparsemargin.streaming.report import Progress

#: Default limit, in bytes, of the size of the weights, or of the support set of a kernel.
WEIGHT_MEMORY = 1 << 30

# Least number of bytes per feature: one float32 weight vector.
_LEAST_PER_FEATURE = 4


@dataclass
class FitOptions:
    """Arguments that all fits of files take, with their defaults; see `fit_svmlight`.

    `checkpoint` is the path of a file that is written during training; `resume` continues an
    interrupted fit from it. `report` is called with a `Progress` after each block. The checkpoint
    is as private as the training files and the files in `made_from`.
    """

    algo: Algorithm | None = None
    max_iter: int | None = 1
    classes: Any = None
    positive: Any = None
    multilabel: bool = False
    n_features: int | None = None
    hash_bits: int | None = None
    zero_based: bool | Literal["auto"] = "auto"
    dtype: Any = np.float64
    memory_limit: int = WEIGHT_MEMORY
    checkpoint: str | os.PathLike[str] | None = None
    resume: bool = False
    made_from: tuple[str | os.PathLike[str], ...] = ()
    report: Callable[[Progress], None] | None = None
    #: Parameters of the classifier other than `max_iter`.
    params: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """Make options from keyword arguments. Arguments that are not fields become `params`."""
        names = {each.name for each in fields(cls)} - {"params"}
        params = {name: value for name, value in given.items() if name not in names}
        return cls(**{name: given[name] for name in names & given.keys()}, params=params)

    @property
    def max_index(self) -> int:
        """Largest feature index whose weights fit in memory with a single vector."""
        return self.memory_limit // _LEAST_PER_FEATURE

    def reading(self) -> Reading:
        """Return the settings with which the files are read."""
        return Reading(
            self.dtype, self.zero_based, self.multilabel or self.positive is not None,
            n_features=self.n_features, hash_bits=self.hash_bits,
        )  # fmt: skip

    @property
    def balanced(self) -> bool:
        """True for balanced class weights, which need the number of rows of each class."""
        return self.params.get("class_weight") == "balanced"


@dataclass
class StreamOptions(FitOptions):
    """Arguments of `fit_svmlight`."""

    cache: bool | str | os.PathLike[str] = False
    #: Minimum number of epochs if the first rows determine the number of epochs, as for rows in
    #: memory. None: `max_iter` is the number of epochs.
    least_epochs: int | None = None
    #: True if rows have the default features of texts, for which another algorithm is the default.
    of_texts: bool = False
    init_model: Any = None
    #: True if `init_model` takes new classes, as it does for hashed texts.
    adds_classes: bool = False
    n_jobs: int | None = None
