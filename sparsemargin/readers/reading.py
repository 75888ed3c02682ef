"""The settings with which svmlight text is read, and the number of threads that read it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any, Literal, TypeVar

import numpy as np

from sparsemargin._checks import check_count, check_flag, check_float_dtype
from sparsemargin._engine.svmlight.scan import Scanner
from sparsemargin.models.fitted.state import MOST_HASH_BITS

LARGEST_INDEX = 2**63 - 1

Key = TypeVar("Key")


class SettingsError(ValueError):
    """Arguments are invalid or exclude each other, regardless of the files' contents."""


def threads_for(n_jobs: int | None, *, beside: int = 0) -> int:
    """Return the number of threads that read text. A positive `n_jobs` is that number; -1 means all
    cores, -2 all but one. None means two, or fewer if `beside` other busy threads leave fewer
    cores."""
    n_cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    if n_jobs is None:
        return max(1, min(2, n_cores - beside))
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number but 0, or None; got {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else max(1, n_cores + 1 + int(n_jobs))


def run_ahead(
    n_threads: int, calls: Iterable[tuple[Key, Callable[[], Any]]]
) -> Generator[tuple[Key, Future[Any]]]:
    """Run calls in threads while the consumer works. Yield their keys and futures in order.

    An error of the iterable itself is raised after the results of all earlier calls.
    """
    pool, under_way = ThreadPoolExecutor(n_threads), deque[tuple[Key, Future[Any]]]()
    try:
        try:
            for key, call in calls:
                under_way.append((key, pool.submit(call)))
                if len(under_way) > n_threads:
                    yield under_way.popleft()
        except Exception:
            yield from under_way
            raise
        yield from under_way
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass
class Reading:
    """Settings for reading svmlight text. A ValueError names an invalid one. See
    `load_svmlight`."""

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
        """Number that is subtracted from an index: 1 if all indices are known to count from 1."""
        return 1 if self.zero_based is False else 0

    @property
    def max_index(self) -> int:
        """The largest valid index, as written."""
        if self.hash_bits is not None:
            return LARGEST_INDEX
        if self.n_features is None:
            # The number of columns, which is greater by 1, must be representable.
            return LARGEST_INDEX - 1
        return self.n_features - 1 if self.zero_based is True else self.n_features

    def scanner(self, *, base: int | None = None, max_index: int | None = None) -> Scanner:
        """Return a new scanner with these settings. `base` replaces the property `base`.
        `max_index` lowers the limit for indices, unless they are hashed."""
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
        """Number of columns at the beginning of a stream; None if it grows with the indices."""
        return self.n_features if self.hash_bits is None else 1 << self.hash_bits

    def columns_up_to(self, highest: int) -> int:
        """Return the number of columns for indices up to `highest`."""
        if self.hash_bits is not None:
            return 1 << self.hash_bits
        return max(highest + 1 - self.base, 0)

    def drops_column_0(self, lowest: int) -> bool:
        """Return whether column 0 is unused, because `lowest` shows that indices count from 1."""
        return self.zero_based == "auto" and self.hash_bits is None and 0 < lowest < LARGEST_INDEX

    def resolved(self, lowest: int) -> dict[str, Any]:
        """Return the settings with which later files have the same columns as this one."""
        from_one = self.zero_based is False or self.drops_column_0(lowest)
        return {"zero_based": not from_one, "hash_bits": self.hash_bits}

    def settings(self) -> dict[str, Any]:
        """Return all settings, by which row caches and checkpoints are compared with a source."""
        return {**asdict(self), "dtype": np.dtype(self.dtype).name}


def columns_of(model: Any, zero_based: bool | Literal["auto"] = "auto") -> dict[str, Any]:
    """Return the settings of `Reading` with which the columns of a file are the model's
    features."""
    if model.fitted.reading is not None:
        return model.fitted.reading
    # By default, indices count from 1, as in svmlight itself and in most files.
    return {"zero_based": False if zero_based == "auto" else zero_based}
