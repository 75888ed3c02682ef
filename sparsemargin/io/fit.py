"""From svmlight files to a learner."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sparsemargin.io.passes import Corpus
from sparsemargin.io.reading import Reading, threads_for
from sparsemargin.io.row_cache import default_cache_path
from sparsemargin.io.sources import Source, open_sources
from sparsemargin.io.stream import WEIGHT_MEMORY, MakeLearner, Moment, learn_from
from sparsemargin.models import (
    DEFAULT_ALGORITHM,
    LEARNERS,
    Algorithm,
    Learner,
    find_algorithm,
)


def learn_svmlight(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    algo: Algorithm | None = None,
    *,
    classes: Any = None,
    positive: Any = None,
    multilabel: bool = False,
    n_features: int | None = None,
    hash_bits: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: Any = np.float64,
    cache: bool | str | os.PathLike[str] | None = None,
    memory_limit: int = WEIGHT_MEMORY,
    init_model: Any = None,
    n_jobs: int | None = None,
    max_iter: int | None = 1,
    report: Callable[[Moment], None] | None = None,
    **params: Any,
) -> Learner:
    """`sparsemargin.fit_svmlight` without scikit-learn: gives a learner.

    Parameters
    ----------
    report : callable, default=None
        Is told the `Moment` whenever a block of rows has been learned from.
    """
    sources = open_sources(path)
    features: dict[str, Any] = {
        "zero_based": zero_based,
        "n_features": n_features,
        "hash_bits": hash_bits,
    }
    if init_model is None:
        make = _new_learner(algo, {"max_iter": max_iter, "n_jobs": n_jobs, **params}, multilabel)
    else:
        if algo is not None or params or n_features or hash_bits:
            raise ValueError(
                "init_model goes on with its own algorithm, parameters and features: pass none "
                "with it."
            )
        earlier = _copy(init_model, max_iter)
        if multilabel and not earlier._has_many_labels:
            raise ValueError(
                "init_model has learned one class a row, and can't go on with multilabel=True. "
                "Leave one of the two out."
            )
        multilabel = earlier._has_many_labels
        features = columns_of(earlier, zero_based)

        def make() -> Learner:
            return earlier

    if multilabel and positive is not None:
        raise ValueError(
            f"positive={positive!r} is told from all other labels, and a model of many labels "
            "learns each of them. Leave one of the two out."
        )
    reading = Reading(dtype=dtype, multilabel=multilabel or positive is not None, **features)
    # The caller's thread reads and learns.
    n_threads = threads_for(n_jobs, beside=1)
    corpus = Corpus(sources, reading, n_threads, _cache_path(cache, sources, max_iter))
    return learn_from(
        corpus, make, classes=classes, positive=positive, memory_limit=memory_limit, report=report
    )


def _new_learner(algo: Any, params: dict[str, Any], multilabel: bool) -> MakeLearner:
    # Wrong names and values are told of before a file is read.
    learner, known = find_algorithm(algo or DEFAULT_ALGORITHM, params)
    unopened = learner(**known)
    unopened._check_streams(grows=False)
    if multilabel and not unopened._takes_many_labels:
        unopened._refuse_many_labels()

    return lambda: learner(**known)


def _copy(model: Any, max_iter: int | None) -> Learner:
    """A learner that goes on where the model is, which stays as it is."""
    if not hasattr(model, "classes_"):
        raise ValueError("init_model has not learned anything yet. Pass a fitted model, or None.")
    learner = object.__new__(LEARNERS[model.classifier])
    learner.__dict__.update(deepcopy(model.__getstate__()))
    learner.max_iter = max_iter
    learner._check_structure("init_model")
    learner._check_streams(grows=False)
    return learner


def columns_of(model: Any, zero_based: bool | Literal["auto"] = "auto") -> dict[str, Any]:
    """What `Reading` needs to know for the columns of a file to be the model's features."""
    if hasattr(model, "_reading"):
        return model._reading
    # svmlight's own convention, which most files keep to.
    return {"zero_based": False if zero_based == "auto" else zero_based}


def _cache_path(
    cache: bool | str | os.PathLike[str] | None, sources: list[Source], max_iter: int | None
) -> Path | None:
    if not isinstance(cache, bool) and cache is not None:
        return Path(cache)
    if cache is False and max_iter != 1:
        raise ValueError(
            f"max_iter={max_iter} epochs read the rows from a cache. Pass cache=PATH, or leave "
            "cache out: it is then made beside the file."
        )
    if not cache and max_iter == 1:
        return None
    once = [source.name for source in sources if not source.rereadable]
    if once:
        raise ValueError(
            f"{once[0]} can be read only once. Pass cache=PATH for a file that keeps its rows for "
            f"max_iter={max_iter} epochs."
        )
    return default_cache_path([source.name for source in sources])
