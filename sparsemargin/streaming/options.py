"""What a fit of files may be told: `fit_svmlight`, fits over shards and the command line alike."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self

import numpy as np

from sparsemargin.models import Algorithm
from sparsemargin.readers.reading import Reading
from sparsemargin.streaming.report import Progress

#: Bytes that the weights, or a kernel's pool, may take unless another limit is given.
WEIGHT_MEMORY = 1 << 30

# Of a float32 weight vector for one label.
_LEAST_PER_FEATURE = 4


@dataclass
class FitOptions:
    """The arguments that all fits of files take, with their defaults; see `fit_svmlight`.

    `checkpoint` is where what has been learned is kept on the way, from which a fit that was cut
    goes on with `resume`; `report` is told the `Progress` now and then. The checkpoint is as
    private as the files that are learned from and those of `made_from`.
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
    #: Of the estimator, but for `max_iter`.
    params: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """What a call was given by name; all that is none of the fields is the estimator's."""
        names = {each.name for each in fields(cls)} - {"params"}
        params = {name: value for name, value in given.items() if name not in names}
        return cls(**{name: given[name] for name in names & given.keys()}, params=params)

    @property
    def max_index(self) -> int:
        """The largest index that memory has room for, whatever the number of labels."""
        return self.memory_limit // _LEAST_PER_FEATURE

    def reading(self) -> Reading:
        """How the files are read."""
        return Reading(
            self.dtype, self.zero_based, self.multilabel or self.positive is not None,
            n_features=self.n_features, hash_bits=self.hash_bits,
        )  # fmt: skip

    @property
    def balanced(self) -> bool:
        """Whether the classes weigh by their rows, which are counted first."""
        return self.params.get("class_weight") == "balanced"


@dataclass
class StreamOptions(FitOptions):
    """The arguments of `fit_svmlight`."""

    cache: bool | str | os.PathLike[str] = False
    init_model: Any = None
    n_jobs: int | None = None
