"""``sparsemargin train``: train a model on svmlight files, texts or cells, and save it."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import click
import numpy as np

from sparsemargin._engine.fitting.threads import interruptible, uninterrupted
from sparsemargin.cli.display import learning_progress, listed, percent, print_facts, size_in_words
from sparsemargin.cli.files import feature_names
from sparsemargin.cli.options import (
    FILES,
    INPUT,
    JSON,
    N_JOBS,
    POSITIVE,
    READING,
    TABLE,
    WRITTEN,
    ZERO_BASED,
    Size,
    cell_options,
    dictionary_option,
    document_options,
    is_quiet,
    make_command,
    option,
)
from sparsemargin.cli.parameters import DEFAULTS, algorithm_options, chosen_parameters, labels_given
from sparsemargin.cli.signals import exit_code_of
from sparsemargin.cli.train_options import Job, TrainOptions, check_options, check_outputs, job_of
from sparsemargin.files.remote import size_of
from sparsemargin.models import ALGORITHMS, Learner
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.models.pipelines import names_out_of
from sparsemargin.saving.model_files import set_aside, write_model
from sparsemargin.saving.readable import write_readable
from sparsemargin.streaming.checkpoints import remove_written, state_of
from sparsemargin.streaming.learn_texts import learn_documents
from sparsemargin.streaming.report import (
    Interruption,
    Progress,
    bytes_read,
    progressive_error,
    speed,
)
from sparsemargin.streaming.stream import learn_svmlight

_EXAMPLES = """
sparsemargin train reviews.tsv -o reviews.model
sparsemargin train train.svm -o news.model --epochs 3
sparsemargin train more.svm -o news.model --init news.model
sparsemargin train 'day-*.svm.gz' -o news.model --algo pnorm --p 6 --epochs 5
zcat train.svm.gz | sparsemargin train - -o news.model --hash-bits 20
sparsemargin train cells.h5ad --label cell_type -o types.model
sparsemargin train topics.svm -o c15.model --positive C15 --readable c15.txt
sparsemargin train mail/*.parquet -o mail.model --dask tcp://head:8786
sparsemargin train topics.svm -o topics.model --multilabel --epochs 5 --cache topics.smcache
"""

# Options that --help lists. --help-all lists all options.
_BRIEF = {
    "output", "init_model", "algo", "max_iter", "p", "class_weight", "random_state",
    "hash_bits", "positive", "multilabel", "cache", "format", "label", "dask",
}  # fmt: skip

_LEARNING, _MODEL, _DASK = "Learning", "Model", "Several machines"


@make_command("train", _EXAMPLES, _BRIEF)
@FILES
@option(_MODEL, "-o", "--output", required=True, metavar="MODEL", type=WRITTEN,
        help="Output file of the model. An existing file is replaced.")  # fmt: skip
@option(_MODEL, "--init-model", "--init", "init_model", metavar="MODEL", type=INPUT,
        help="Model to train further, with its algorithm, settings and features.")  # fmt: skip
@option(_MODEL, "--readable", metavar="FILE", type=WRITTEN, help="Also write the weights as text.")
@dictionary_option(_MODEL)
@option(_MODEL, "--resume", is_flag=True,
        help="Continue an interrupted run of the same files and options from MODEL.checkpoint, "
        "which is written every five minutes and after Ctrl-C, SIGTERM and SIGHUP. With --dask, "
        "continue from the last mixture in MODEL, if it exists.")  # fmt: skip
@option(
    _LEARNING,
    "--algo",
    type=click.Choice(list(ALGORITHMS)),
    help="Algorithm.  [default: arow, unless another is more accurate on the first 10,000 rows]",
)
@algorithm_options
@ZERO_BASED
@option(READING, "--n-features", type=click.IntRange(min=1), metavar="N",
        help="Number of features. A larger index is an error.")  # fmt: skip
@option(READING, "--hash-bits", type=click.IntRange(1, 31), metavar="N",
        help="Hash the indices or names of features to 2^N features.")  # fmt: skip
@POSITIVE
@option(READING, "--multilabel", is_flag=True,
        help="Rows have any number of labels, separated by commas.")  # fmt: skip
@option(READING, "--classes", metavar="A,B,...",
        help="All labels. Required if a label first occurs late in standard input.")  # fmt: skip
@option(READING, "--float32/--float64", "single", default=False,
        help="Type of the values and the weights.  [default: float64]")  # fmt: skip
@document_options
@cell_options
@option(READING, "--target-sum", type=click.FloatRange(min=0, min_open=True), metavar="X",
        help="Sum of the counts of a cell before the logarithm.  [default: the median of the "
        "cells, at most 10,000]")  # fmt: skip
@option(READING, "--batch", metavar="COLUMN", type=TABLE,
        help="Column of obs with the batches of the cells. Probabilities are then calibrated for "
        "new batches.")  # fmt: skip
@option(READING, "--cache", metavar="PATH", type=WRITTEN,
        help="File that stores the rows in binary form for further epochs and runs.  [default: a "
        "temporary file for further epochs]")  # fmt: skip
@option(READING, "--memory-limit", type=Size(), default="1G", show_default=True, metavar="SIZE",
        help="Largest size of the weights, or of the support rows of a kernel.")  # fmt: skip
@N_JOBS
@option(_DASK, "--dask", metavar="ADDRESS",
        help="Train on the workers of this Dask scheduler, such as tcp://host:8786. Each FILE is "
        "read by one worker, and the mixture of all models is written to MODEL after each epoch. "
        "Texts are words and word pairs, and two classes have one epoch by default. --cache is "
        "then a folder on each worker.")  # fmt: skip
@option(_DASK, "--mixing", type=click.Choice(["auto", "ring", "uniform"]),
        help="uniform: all files have the same weight in a mixture; "
        "ring: each class visits one file after the other; "
        "auto: ring for n files and at least n and n*n/8 classes, else uniform.  "
        "[default: auto]")  # fmt: skip
@option(_DASK, "--min-rows", type=click.IntRange(min=1), metavar="N",
        help="Consecutive files with fewer rows are joined.  [default: 1000]")  # fmt: skip
@JSON
def command(**values: Any) -> None:
    """Train a model on files, with one pass for each epoch.

    Texts are .tsv (LABEL<tab>text), .txt (fastText), .vw, .csv, .jsonl or .parquet files. Their
    features are words, word pairs and character n-grams. Cells are .h5ad, .zarr, 10x's .h5 or
    matrix.mtx files. All other files are svmlight text. FILE may be compressed, a pattern in
    quotes, or - for standard input.

    The progressive error is the share of rows that are predicted wrongly just before training on
    them. Ctrl-C, SIGTERM or SIGHUP saves the model trained so far.
    """
    options = TrainOptions.of(values)
    check_options(options)
    job = job_of(options)
    options = replace(options, reading=job.reading)
    check_outputs(options, job)
    learn = _training_of(options, job)
    state_before = None if job.checkpoint is None or options.resume else state_of(job.checkpoint)
    # From here on, Ctrl-C only takes effect during training. The model is saved in any case.
    click.get_current_context().with_resource(uninterrupted())
    with learning_progress() as show, _noting_interruption() as interrupted:
        epochs: dict[int, Progress] = {}

        def report(progress: Progress) -> None:
            epochs[progress.epoch] = progress
            show(progress)

        learner = learn(report=report)
    if not epochs:
        if not options.resume or interrupted:
            raise KeyboardInterrupt
        click.echo(_nothing_to_resume(options.output, learner), err=True)
        return
    _save(options, job, learner)
    if job.checkpoint is not None and not interrupted:
        remove_written(job.checkpoint, state_before)
    if options.readable is not None:
        with _noting_model(options.output), interruptible():
            names = _names(learner, options.dictionary, job.step)
            write_readable(options.readable, learner, names)
    before = 0 if job.init is None else int(np.sum(job.init.n_corrections_))
    if job.init is not None and len(job.init.classes_) == 2 < len(learner.classes_):
        before *= 2  # the vector of the two classes was replaced by one vector for each
    # With --dask, an interrupted epoch is not part of the model.
    n_complete = inf if options.dask is None else learner.n_iter_
    kept = [progress for epoch, progress in epochs.items() if epoch <= n_complete]
    figures = _figures(learner, kept, before, interrupted=bool(interrupted))
    figures = {"model": options.output, "model_bytes": size_of(options.output), **figures}
    if options.dask is None and options.cache and os.path.isfile(options.cache):
        figures |= {"row_cache": options.cache, "row_cache_bytes": os.path.getsize(options.cache)}
    _print_figures(figures, options)
    if interrupted:
        context = click.get_current_context()
        context.exit(exit_code_of(context))


def _training_of(options: TrainOptions, job: Job) -> Callable[..., Learner]:
    """Return the function that trains the model. Its argument `report` receives the progress."""
    arguments = _arguments_of(options, job)
    if options.dask is not None:
        # Imported here because Dask and scipy take a second, and only --dask needs them.
        from sparsemargin.cli.train_on_dask import training_on_dask

        return training_on_dask(options, job, arguments)
    arguments |= {
        "cache": options.cache or False, "n_jobs": options.reading.n_jobs,
        "init_model": job.init, "checkpoint": job.checkpoint,
        "made_from": tuple(each for each in (options.output, options.init_model) if each),
    }  # fmt: skip
    if job.kind == "svmlight":
        return partial(learn_svmlight, job.sources, **arguments)
    if job.kind == "texts":
        how = options.reading.document_form()
        return partial(learn_documents, job.sources, job.step, how, **arguments)
    # Imported here because scipy takes 0.2 s, and only cells need it.
    from sparsemargin.cells.learn import learn_cells

    label, form = options.reading.label_column, options.cell_form
    return partial(
        learn_cells, job.sources, label, form, job.step, batch=options.batch, **arguments
    )


def _arguments_of(options: TrainOptions, job: Job) -> dict[str, Any]:
    """Return the arguments that all functions for training on files have."""
    if job.init is not None:
        given: dict[str, Any] = {"max_iter": options.epochs or DEFAULTS["max_iter"]}
    else:
        # Training on texts, cells or several machines has its own default number of epochs.
        is_open = job.kind != "svmlight" or options.dask is not None
        defaults = {name: DEFAULTS[name] for name in DEFAULTS if name != "max_iter" or not is_open}
        given = {
            name: defaults.get(name) if text is None else text
            for name, text in options.parameters.items()
        }
    classes = options.classes
    arguments = {
        **chosen_parameters(options.algo, given),
        "algo": options.algo, "positive": options.positive, "multilabel": options.multilabel,
        "classes": None if classes is None else labels_given(
            classes.split(","), numeric=job.kind == "svmlight"
        ),
        "memory_limit": options.memory_limit, "resume": options.resume,
    }  # fmt: skip
    if job.kind != "texts":
        arguments["zero_based"] = options.reading.zero_based
        arguments |= {"n_features": options.n_features, "hash_bits": options.hash_bits}
    if job.kind == "svmlight":
        arguments["dtype"] = np.float32 if options.single else np.float64
    return arguments


def _save(options: TrainOptions, job: Job, learner: Learner) -> None:
    """Save the model. With --dask, each mixture has already been saved."""
    if options.dask is not None:
        return
    parts: dict[str, Any] = {"steps": []}
    if job.step is not None:
        # Imported here because scikit-learn takes a second, and svmlight text does not need it.
        from sparsemargin.tasks.cell_classifier import CellClassifier
        from sparsemargin.tasks.text_classifier import TextClassifier

        reading = options.reading
        if job.kind == "cells":
            cells, label = reading.cell_form(), reading.label_column
            saved: Any = CellClassifier(label, layer=cells.layer, var=cells.var, match=cells.match)
        else:
            form = reading.document_form()
            text = form.texts if len(form.texts) > 1 else form.texts[0]
            saved = TextClassifier(text=text, missing=form.missing)
            saved.label_ = form.label
        parts = saved.parts_for_file(job.step, learner)
    save: Callable[[str], None] = partial(write_model, learner, **parts)
    try:
        save(options.output)
    except OSError as error:
        set_aside(save, options.output, error)
        raise


def _nothing_to_resume(output: str, learner: Learner) -> str:
    """Return the message for a fit that was already complete before --resume."""
    has_converged = learner.max_iter is None or learner.n_iter_ < learner.max_iter
    why = "The last epoch made no correction." if has_converged else "Pass more --epochs."
    return (
        f"{output} has been trained for all {learner.n_iter_:g} epochs, so there is no run to "
        f"resume. {why}"
    )


@contextmanager
def _noting_interruption() -> Iterator[list[Any]]:
    """Give a list that becomes nonempty if training is interrupted."""
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


@contextmanager
def _noting_model(output: str) -> Iterator[None]:
    """Add a note to errors that says that the model has been saved."""
    try:
        yield
    except Exception as error:
        error.add_note(f"The model has been saved: {output}")
        raise


def _names(learner: Learner, dictionary: str | None, vectorizer: Any) -> Sequence[str] | None:
    """Return the names of the features. None for a kernel without a dictionary."""
    if dictionary is None and learner.space.has_support:
        return None
    known = None if vectorizer is None else names_out_of(vectorizer)
    return feature_names(learner, dictionary, known)


def _figures(
    learner: Learner, epochs: list[Progress], before: int, *, interrupted: bool
) -> dict[str, Any]:
    """Return the figures of a finished run as a dict for JSON.

    `before` is the number of corrections of the initial model. Mistakes are those of the first
    epoch, in which the rows are new; None if they were not counted. The number of rows is that of
    the last epoch.
    """
    first, last = epochs[0], epochs[-1]
    error = progressive_error(first)
    before = epochs[-2].corrections if len(epochs) > 1 else before
    support = {}
    if learner.space.has_support:
        support["support_rows"] = learner.space.n_support
        support["passed_over"] = int(np.sum(learner.space.passed_over))
    return {
        "classifier": learner.classifier,
        "classes": [label_text(label) for label in learner.classes_.tolist()],
        "rows": last.rows,
        "features": learner.n_features_in_,
        "corrections": last.corrections,
        "corrections_of_last_epoch": last.corrections - before,
        "stopped_early": bool(
            learner.early_stopping
            and not interrupted
            and last.corrections > before
            and last.epoch < (learner.max_iter or inf)
        ),
        **support,
        "mistakes": None if error is None else first.mistakes,
        "progressive_error": error,
        "epochs": last.epoch,
        "seconds": last.seconds,
        "bytes": bytes_read(last),
        "mb_per_second": speed(last),
        "interrupted": interrupted,
    }


def _print_figures(figures: dict[str, Any], options: TrainOptions) -> None:
    """Print the figures as JSON, or as text unless --quiet is given."""
    if options.as_json:
        click.echo(json.dumps(figures))
    if options.as_json or is_quiet():
        return
    several = figures["epochs"] > 1
    counts = ("rows", "epochs", "features", "corrections", "support_rows", "passed_over")
    facts = {name.replace("_", " "): f"{figures[name]:,}" for name in counts if name in figures}
    if several:
        facts["corrections"] += f", {figures['corrections_of_last_epoch']:,} in the last epoch"
        facts["epochs"] += _why_ended(figures, until=options.epochs == "until")
    facts["classes"] = listed(figures["classes"])
    if figures["progressive_error"] is not None:
        error = percent(figures["progressive_error"])
        facts["progressive error"] = error + " in the first epoch" * several
    facts["time"] = f"{figures['seconds']:.2f} s, {figures['mb_per_second']:.0f} MB/s"
    facts["model"] = f"{figures['model']}, {size_in_words(figures['model_bytes'])}"
    if "row_cache" in figures:
        size = size_in_words(figures["row_cache_bytes"])
        facts["row cache"] = f"{figures['row_cache']}, {size}; kept for further runs"
    print_facts(facts, err=True)


def _why_ended(figures: dict[str, Any], *, until: bool) -> str:
    """Return why training ended, or "" after Ctrl-C or the requested number of epochs."""
    if figures["interrupted"]:
        return ""
    if figures["stopped_early"]:
        return ", because the number of corrections no longer decreased"
    if not figures["corrections_of_last_epoch"]:
        return ", the last one without a correction"
    return ", the maximum. Pass fewer --epochs, or --early-stopping" if until else ""
