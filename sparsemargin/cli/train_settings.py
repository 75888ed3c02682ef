"""What the options of ``sparsemargin train`` ask of the library."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from sparsemargin.cli.parameters import (
    ALL_PARAMETERS,
    DEFAULTS,
    chosen_parameters,
    labels_given,
    option_name,
)
from sparsemargin.io.model_files import load_learner


def settings_of(options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `learn_svmlight`.

    Raises
    ------
    click.UsageError
        If options contradict each other.
    OSError, ValueError
        If the model to go on from can't be read.
    """
    given = {name: options.pop(name) for name in ALL_PARAMETERS}
    init, algo, single = options.pop("init"), options.pop("algo"), options.pop("single")
    cache, beside = options.pop("cache"), options.pop("cache_beside")
    if cache is not None and beside:
        raise click.UsageError("--cache FILE and --cache-beside are two places for one cache.")
    classes, threads = options.pop("classes"), options.pop("threads")
    return {
        **(_new(algo, given) if init is None else _going_on(init, algo, given, options)),
        **options,
        "dtype": np.float32 if single else np.float64,
        "cache": cache or beside or None,
        "classes": None if classes is None else labels_given(classes.split(",")),
        "n_jobs": threads,
    }


def _new(algo: str | None, given: dict[str, Any]) -> dict[str, Any]:
    filled = {name: DEFAULTS.get(name) if text is None else text for name, text in given.items()}
    return {"algo": algo, **chosen_parameters(algo, filled)}


def _going_on(
    init: str, algo: str | None, given: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """A model's own settings, but for the number of epochs."""
    epochs = given.pop("max_iter") or DEFAULTS["max_iter"]
    features = {name: options.pop(name) for name in ("n_features", "hash_bits")}
    for name, value in {"algo": algo, **given, **features}.items():
        if value is not None and value != ():
            raise click.UsageError(
                f"{option_name(name)} can't be changed: --init {init} goes on with the model's own "
                "settings."
            )
    learner = load_learner(init)
    if options["zero_based"] != "auto" and hasattr(learner, "_reading"):
        raise click.UsageError(
            f"--zero-based can't be changed: --init {init} has learned from files, and knows how "
            "their indices count."
        )
    return {"init_model": learner, **chosen_parameters(None, {"max_iter": epochs})}
