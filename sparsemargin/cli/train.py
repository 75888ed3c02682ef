"""``sparsemargin train``: from svmlight files to a model file."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import click

from sparsemargin.cli.errors import INTERRUPTED, failure_of
from sparsemargin.cli.feature_names import check_dictionary, dictionary_option, feature_names
from sparsemargin.cli.options import FILES, JSON, PATH, Option, Size, make_command
from sparsemargin.cli.parameters import algorithm_options
from sparsemargin.cli.progress import learning_progress
from sparsemargin.cli.reading import (
    HASH_BITS,
    MULTILABEL,
    N_FEATURES,
    POSITIVE,
    SINGLE,
    THREADS,
    ZERO_BASED,
    read_for,
    text_sources,
)
from sparsemargin.cli.train_dask import (
    check_on_dask,
    dask_options,
    learner_on_dask,
    nothing_to_resume,
)
from sparsemargin.cli.train_files import check_cache_beside, check_files
from sparsemargin.cli.train_settings import settings_of
from sparsemargin.cli.train_summary import figures_of, tell
from sparsemargin.io.fit import learn_svmlight
from sparsemargin.io.model_files import save_model, set_aside
from sparsemargin.io.readable import write_readable
from sparsemargin.io.stream import Interruption, Moment
from sparsemargin.models import ALGORITHMS, DEFAULT_ALGORITHM, Learner

_EXAMPLES = """
sparsemargin train train.svm -o news.model
sparsemargin train 'day-*.svm.gz' -o news.model --algo pnorm --p 6 --epochs 5
zcat train.svm.gz | sparsemargin train - -o news.model --hash-bits 20 --float32
sparsemargin train train.svm -o news.model --kernel rbf --gamma 0.1 --max-support 5000
sparsemargin train topics.svm -o c15.model --positive C15 --readable c15.txt
sparsemargin train topics.svm -o topics.model --multilabel --epochs 5 --cache-beside
sparsemargin train more.svm -o news.model --init news.model
sparsemargin train part-*.svm -o news.model --dask tcp://host:8786 --algo alma
"""

_LEARNING, _MODEL = "Learning", "Model"


@make_command("train", _EXAMPLES)
@FILES
@click.option(
    "-o",
    "--output",
    cls=Option,
    section=_MODEL,
    required=True,
    metavar="MODEL",
    type=PATH,
    help="Where the model goes; one that is there is replaced.",
)
@click.option(
    "--init",
    cls=Option,
    section=_MODEL,
    metavar="MODEL",
    type=PATH,
    help="Go on from this model, with its algorithm, settings and features.",
)
@click.option(
    "--readable",
    cls=Option,
    section=_MODEL,
    metavar="FILE",
    type=PATH,
    help="Write the weights as text, too.",
)
@dictionary_option(_MODEL)
@click.option(
    "--algo",
    cls=Option,
    section=_LEARNING,
    type=click.Choice(list(ALGORITHMS)),
    help=f"[default: {DEFAULT_ALGORITHM}]",
)
@algorithm_options
@ZERO_BASED
@N_FEATURES
@HASH_BITS
@POSITIVE
@MULTILABEL
@click.option(
    "--classes",
    cls=Option,
    section="Reading",
    metavar="A,B,...",
    help="All labels there are; needed where standard input has one late.",
)
@SINGLE
@click.option(
    "--cache",
    cls=Option,
    section="Reading",
    metavar="FILE",
    type=PATH,
    help="Keep the rows in binary here, for further epochs and runs; beside the first file where "
    "there is more than one epoch.",
)
@click.option(
    "--cache-beside",
    is_flag=True,
    cls=Option,
    section="Reading",
    help="Keep them beside the first file in any case.",
)
@click.option(
    "--memory-limit",
    cls=Option,
    section="Reading",
    type=Size(),
    default="1G",
    show_default=True,
    metavar="SIZE",
    help="What the weights, or a kernel's rows, may take.",
)
@THREADS
@dask_options
@JSON
def command(
    files: tuple[str, ...],
    output: str,
    readable: str | None,
    dictionary: str | None,
    as_json: bool,
    dask: str | None,
    mixing: str | None,
    resume: bool,
    **options: Any,
) -> None:
    """Learn from svmlight files, once through for each epoch.

    FILE may be compressed, a pattern in quotes, or - for standard input. While it goes on, the
    error tells how many rows were predicted wrongly just before they were learned from. Ctrl-C
    ends it and saves what has been learned.
    """
    if dictionary is not None and readable is None:
        raise click.UsageError("--dictionary names the features of --readable FILE: pass that too.")
    check_on_dask(options, dask, mixing, resume)
    check = partial(check_files, output=output, readable=readable, dictionary=dictionary)
    if dask is None:
        learn = _learner_here(files, options, check, output, readable)
    else:
        check([], init=None, cache=None)
        learn = learner_on_dask(files, options, output, dask=dask, mixing=mixing, resume=resume)
    if dictionary is not None:
        check_dictionary(dictionary)
    with learning_progress() as shown, _noting_interruption() as interrupted:
        watch = _Watch(shown)
        learner = learn(watch)
    if watch.moment is None:
        if not resume or interrupted:
            raise KeyboardInterrupt
        click.echo(nothing_to_resume(output, learner), err=True)
        return
    # The workers' mixtures have been saved one after the other.
    if dask is None:
        output = _save(learner, output)
    if readable is not None:
        with _noting_model(output):
            write_readable(readable, learner, _names(learner, dictionary))
    tell(figures_of(learner, watch.moment, output, interrupted=bool(interrupted)), as_json)
    if interrupted:
        click.get_current_context().exit(INTERRUPTED)


def _learner_here(
    files: tuple[str, ...],
    options: dict[str, Any],
    check: Callable[..., None],
    output: str,
    readable: str | None,
) -> Callable[[Callable[[Moment], None]], Learner]:
    """What learns from files in this process, and is told whom to report to."""
    sources = text_sources(files)
    check(sources, init=options["init"], cache=options["cache"])
    settings = settings_of(options)
    check_cache_beside(sources, settings, output, readable)

    def learn(report: Callable[[Moment], None]) -> Learner:
        with read_for(settings.get("init_model")):
            return learn_svmlight(files, report=report, **settings)

    return learn


def _save(learner: Learner, output: str) -> str:
    """Where the model has been saved: where it can't be at `output`, a terminal is asked.

    Raises
    ------
    OSError
        If it is nowhere that was named; tells where it is then.
    """
    try:
        save_model(learner, output)
    except OSError as error:
        if sys.stdin.isatty() and sys.stderr.isatty():
            failure_of(error, "train").show()
            with suppress(click.Abort):
                return _save(learner, click.prompt("Another file for the model", err=True))
        set_aside(learner, output, error)
        raise
    return output


def _names(learner: Learner, dictionary: str | None) -> Sequence[str] | None:
    """Those of the features; of a kernel's rows there are none but their numbers."""
    if dictionary is None and learner._has_pool:
        return None
    return feature_names(learner, dictionary)


class _Watch:
    """Keeps the last moment; None: no block of rows has been learned from."""

    def __init__(self, shown: Callable[[Moment], None]) -> None:
        self._shown = shown
        self.moment: Moment | None = None

    def __call__(self, moment: Moment) -> None:
        self.moment = moment
        self._shown(moment)


@contextmanager
def _noting_model(output: str) -> Iterator[None]:
    """Let errors tell that the model is there all the same."""
    try:
        yield
    except Exception as error:
        error.add_note(f"The model has been saved: {output}")
        raise


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
