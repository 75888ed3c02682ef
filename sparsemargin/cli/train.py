"""``sparsemargin train``: from svmlight files to a model file."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import numpy as np

from sparsemargin.cli.errors import INTERRUPTED
from sparsemargin.cli.feature_names import dictionary_option, feature_names
from sparsemargin.cli.options import FILES, JSON, Option, Size, command, is_quiet
from sparsemargin.cli.outputs import check_output
from sparsemargin.cli.parameters import DEFAULTS, algorithm_options, chosen_parameters
from sparsemargin.cli.progress import learning_progress
from sparsemargin.cli.reading import HASH_BITS, N_FEATURES, POSITIVE, SINGLE, THREADS, ZERO_BASED
from sparsemargin.cli.tables import facts_in_lines, size_in_words
from sparsemargin.io.fit import learn_svmlight
from sparsemargin.io.labels import label_text
from sparsemargin.io.model_files import load_learner, save_model
from sparsemargin.io.readable import write_readable
from sparsemargin.io.report import bytes_read, one_step_ahead, speed
from sparsemargin.io.sources import open_sources
from sparsemargin.io.stream import Interruption, Moment
from sparsemargin.learners import ALGORITHMS, DEFAULT_ALGORITHM, Learner

_EXAMPLES = """
sparsemargin train train.svm -o news.model
sparsemargin train 'day-*.svm.gz' -o news.model --algo pnorm --p 6 --epochs 5
zcat train.svm.gz | sparsemargin train - -o news.model --hash-bits 20 --float32
sparsemargin train topics.svm -o c15.model --positive C15 --readable c15.txt
sparsemargin train more.svm -o news.model --init news.model
"""

_LEARNING, _MODEL = "Learning", "Model"


@command("train", _EXAMPLES)
@FILES
@click.option(
    "-o", "--output", cls=Option, section=_MODEL, required=True, metavar="MODEL",
    help="Where the model goes; one that is there is replaced.",
)
@click.option(
    "--init", cls=Option, section=_MODEL, metavar="MODEL",
    help="Go on from this model, with its algorithm, settings and features.",
)
@click.option(
    "--readable", cls=Option, section=_MODEL, metavar="FILE", help="Write the weights as text, too."
)
@dictionary_option(_MODEL)
@click.option(
    "--algo", cls=Option, section=_LEARNING, type=click.Choice(list(ALGORITHMS)),
    help=f"The algorithm.  [default: {DEFAULT_ALGORITHM}, with an intercept of a tenth of the rows' "
    "norm]",
)
@algorithm_options
@ZERO_BASED
@N_FEATURES
@HASH_BITS
@POSITIVE
@click.option(
    "--classes", cls=Option, section="Reading", metavar="A,B,...",
    help="All labels there are; needed where standard input has one late.",
)
@SINGLE
@click.option(
    "--cache", cls=Option, section="Reading", metavar="FILE",
    help="Keep the rows in binary here, for further epochs and runs; beside the first file where "
    "there is more than one epoch.",
)
@click.option(
    "--cache-beside", is_flag=True, cls=Option, section="Reading",
    help="Keep them beside the first file in any case.",
)
@click.option(
    "--memory-limit", cls=Option, section="Reading", type=Size(), default="1G", show_default=True,
    metavar="SIZE", help="What the weights may take.",
)
@THREADS
@JSON
def command(
    files: tuple[str, ...],
    output: str,
    readable: str | None,
    dictionary: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn from svmlight files, once through for each epoch.

    FILE may be compressed, a pattern in quotes, or - for standard input. While it goes on, the
    error tells how many rows were predicted wrongly just before they were learned from. Ctrl-C
    ends it and saves what has been learned.
    """
    if dictionary is not None and readable is None:
        raise click.UsageError("--dictionary names the features in --readable FILE, which is missing.")
    sources = open_sources(files)
    for path in filter(None, (output, readable)):
        check_output(path, sources)
    settings = _settings(options)
    with learning_progress() as shown, _noting_interruption() as interrupted:
        watch = _Watch(shown)
        learner = learn_svmlight(files, report=watch, **settings)
    save_model(learner, output)
    if readable is not None:
        write_readable(readable, learner, feature_names(learner, dictionary))
    _tell(_figures(learner, watch.moment, output, interrupted=bool(interrupted)), as_json)
    if interrupted:
        click.get_current_context().exit(INTERRUPTED)


class _Watch:
    """Keeps the last moment."""

    moment: Moment

    def __init__(self, shown: Callable[[Moment], None]) -> None:
        self._shown = shown

    def __call__(self, moment: Moment) -> None:
        self.moment = moment
        self._shown(moment)


@contextmanager
def _noting_interruption() -> Iterator[list[Any]]:
    """A list that is empty unless learning has been interrupted."""
    noted: list[Any] = []
    show = warnings.showwarning

    def note(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
        if issubclass(category, Interruption):
            noted.append(message)
        show(message, category, *rest, **named)

    warnings.showwarning = note
    try:
        yield noted
    finally:
        warnings.showwarning = show


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """What `learn_svmlight` is to be told."""
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
        "classes": None if classes is None else as_labels_given(classes.split(",")),
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
    fixed = {**given, "algo": algo, **{name: options.pop(name) for name in ("n_features", "hash_bits")}}
    for name, value in fixed.items():
        if value is not None and value != ():
            raise click.UsageError(
                f"{option_name(name)} can't be changed: --init {init} goes on with the model's own "
                "settings."
            )
    return {"init_model": load_learner(init), **chosen_parameters(None, {"max_iter": epochs})}


def _figures(
    learner: Learner, moment: Moment, output: str, *, interrupted: bool
) -> dict[str, Any]:
    mistakes = moment.mistakes
    return {
        "model": output,
        "model_bytes": os.path.getsize(output),
        "classifier": learner.classifier,
        "classes": [label_text(label) for label in learner.classes_.tolist()],
        "rows": moment.rows,
        "features": learner.n_features_in_,
        "corrections": moment.corrections,
        "mistakes": mistakes,
        "one_step_ahead_error": None if mistakes is None else mistakes / moment.rows,
        "epochs": moment.epoch,
        "seconds": moment.seconds,
        "bytes": bytes_read(moment),
        "mb_per_second": speed(moment),
        "interrupted": interrupted,
    }


def _tell(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(figures))
    elif not is_quiet():
        click.echo(facts_in_lines(_facts(figures)), err=True)


def _facts(figures: dict[str, Any]) -> dict[str, str]:
    seconds, megabytes = figures["seconds"], figures["bytes"] / 1e6
    return {
        "rows": f"{figures['rows']:,}, read {figures['epochs']:,} times" ,
        "features": f"{figures['features']:,}",
        "classes": some(figures["classes"]),
        "corrections": f"{figures['corrections']:,}",
        "one-step-ahead error": percent(figures["one_step_ahead_error"]),
        "time": f"{seconds:.2f} s, {megabytes / max(seconds, 1e-9):.0f} MB/s",
        "model": f"{figures['model']}, {size_in_words(figures['model_bytes'])}",
    }
