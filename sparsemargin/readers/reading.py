"""svmlight text made rows by threads, in the order of the text; what is wrong with it is told with
its place."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np

from sparsemargin._checks import check_count, check_flag, check_float_dtype
from sparsemargin._engine.svmlight.scan import Scanner
from sparsemargin.models.fitted.state import MOST_HASH_BITS

LARGEST_INDEX = 2**63 - 1


class SettingsError(ValueError):
    """Arguments are wrong, or don't go together, whatever the files hold."""


def threads_for(n_jobs: int | None, *, beside: int = 0) -> int:
    """How many threads read text: as many as asked for, -1 being all cores, -2 all but one; None:
    two, or as many as cores are left `beside` so many threads that are busy too."""
    n_cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    if n_jobs is None:
        return max(1, min(2, n_cores - beside))
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number but 0, or None; got {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else max(1, n_cores + 1 + int(n_jobs))


@dataclass
class Reading:
    """How svmlight text is read; a ValueError names what is wrong. See `load_svmlight`."""

    dtype: Any = np.float64
    zero_based: bool | Literal["auto"] = "auto"
    multilabel: bool = False
    n_features: int | None = None
    hash_bits: int | None = None

    def __post_init__(self) -> None:
        self.dtype = check_float_dtype(self.dtype)
        self.multilabel = check_flag("multilabel", self.multilabel)
        if isinstance(self.zero_based, bool | np.bool_):
            self.zero_based = bool(self.zero_based)
        elif not isinstance(self.zero_based, str) or self.zero_based != "auto":
            raise ValueError(f"zero_based must be True, False or 'auto', got {self.zero_based!r}")
        if self.n_features is not None and self.hash_bits is not None:
            raise SettingsError(
                f"n_features={self.n_features!r} and hash_bits={self.hash_bits!r} exclude each "
                "other: the latter alone tells how many columns there are."
            )
        if self.n_features is not None:
            self.n_features = check_count("n_features", self.n_features, 1, LARGEST_INDEX)
        if self.hash_bits is not None:
            self.hash_bits = check_count("hash_bits", self.hash_bits, 1, MOST_HASH_BITS)

    @property
    def base(self) -> int:
        """What is subtracted from an index: 0 where that is not known beforehand."""
        return 1 if self.zero_based is False else 0

    @property
    def max_index(self) -> int:
        """The largest index, as written, that may be right."""
        if self.hash_bits is not None:
            return LARGEST_INDEX
        if self.n_features is None:
            # One column more must be countable.
            return LARGEST_INDEX - 1
        return self.n_features - 1 if self.zero_based is True else self.n_features

    def scanner(self, *, base: int | None = None, max_index: int | None = None) -> Scanner:
        """A new scanner for text read in this way; `base` instead of the reading's, `max_index` a
        lower limit than the reading's, unless indices are hashed."""
        if max_index is None or self.hash_bits is not None:
            max_index = self.max_index
        return Scanner(
            self.dtype,
            base=self.base if base is None else base,
            least=1 if self.zero_based is False else 0,
            max_index=min(max_index, self.max_index),
            multilabel=self.multilabel,
            hash_bits=self.hash_bits or 0,
        )

    @property
    def n_columns(self) -> int | None:
        """How many a stream begins with; None: as many as turn up."""
        return self.n_features if self.hash_bits is None else 1 << self.hash_bits

    def columns_up_to(self, highest: int) -> int:
        """How many columns indices from the least possible to `highest` have."""
        if self.hash_bits is not None:
            return 1 << self.hash_bits
        return max(highest + 1 - self.base, 0)

    def drops_column_0(self, lowest: int) -> bool:
        """Whether index 0 turned out not to be one, the least having been `lowest`."""
        return self.zero_based == "auto" and self.hash_bits is None and 0 < lowest < LARGEST_INDEX

    def settled(self, lowest: int) -> dict[str, Any]:
        """What later files must be read with for their columns to be those of this one."""
        from_one = self.zero_based is False or self.drops_column_0(lowest)
        return {"zero_based": not from_one, "hash_bits": self.hash_bits}

    def settings(self) -> dict[str, Any]:
        """All of it, for a file to be known by."""
        return {**asdict(self), "dtype": np.dtype(self.dtype).name}


def columns_of(model: Any, zero_based: bool | Literal["auto"] = "auto") -> dict[str, Any]:
    """What `Reading` needs to know for the columns of a file to be the model's features."""
    if model.fitted.reading is not None:
        return model.fitted.reading
    # svmlight's own convention, which most files keep to.
    return {"zero_based": False if zero_based == "auto" else zero_based}
