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
from sparsemargin.cli.display import (
    learning_progress,
    percent,
    print_facts,
    size_in_words,
    some,
)
from sparsemargin.cli.files import (
    cell_form,
    check_apart,
    check_dictionary,
    check_output,
    document_form,
    feature_names,
    has_normalizer,
    text_sources,
)
from sparsemargin.cli.options import (
    CELL_LEARNING,
    FILES,
    HASH_BITS,
    INPUT,
    JSON,
    MULTILABEL,
    N_FEATURES,
    N_JOBS,
    POSITIVE,
    READING,
    SINGLE,
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
from sparsemargin.cli.parameters import (
    ALL_PARAMETERS,
    DEFAULTS,
    algorithm_options,
    chosen_parameters,
    labels_given,
    option_name,
)
from sparsemargin.cli.signals import exit_code_of
from sparsemargin.files.distinct import Named
from sparsemargin.files.remote import size_of
from sparsemargin.files.sources import Source, files_named
from sparsemargin.models import ALGORITHMS, Learner
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.models.pipelines import names_out_of
from sparsemargin.readers.text_forms import DocumentForm, form_elsewhere
from sparsemargin.saving.model_files import load_learner, save_model, set_aside
from sparsemargin.saving.readable import write_readable
from sparsemargin.streaming.checkpoints import check_free, remove_written, state_of
from sparsemargin.streaming.learn_texts import HASHED_BITS, hashed_pairs, learn_documents
from sparsemargin.streaming.report import Interruption, Progress, bytes_read, speed
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

# Options that need a single process which reads all files, so they exclude --dask.
_NOT_ON_DASK = {"init_model": "--init-model", "n_jobs": "--n-jobs", "batch": "--batch"}

#: Training function. Its argument `report` is called with the progress.
_Learn = Callable[..., Learner]


@make_command("train", _EXAMPLES, _BRIEF)
@FILES
@option(_MODEL, "-o", "--output", required=True, metavar="MODEL", type=WRITTEN,
        help="Where the model goes; one that is there is replaced.")  # fmt: skip
@option(_MODEL, "--init-model", "--init", "init_model", metavar="MODEL", type=INPUT,
        help="Go on from this model, with its algorithm, settings and features.")  # fmt: skip
@option(_MODEL, "--readable", metavar="FILE", type=WRITTEN, help="Write the weights as text, too.")
@dictionary_option(_MODEL)
@option(_MODEL, "--resume", is_flag=True,
        help="Go on where a run of the same files and options was cut: from MODEL.checkpoint, "
        "which is written every five minutes, and by Ctrl-C, SIGTERM and SIGHUP; with --dask from "
        "the last mixture in MODEL, if there is one.")  # fmt: skip
@option(
    _LEARNING,
    "--algo",
    type=click.Choice(list(ALGORITHMS)),
    help="Algorithm.  [default: the best on the first 10,000 rows, mostly arow]",
)
@algorithm_options
@ZERO_BASED
@N_FEATURES
@HASH_BITS
@POSITIVE
@MULTILABEL
@option(READING, "--classes", metavar="A,B,...",
        help="All labels there are; needed where standard input has one late.")  # fmt: skip
@SINGLE
@document_options
@cell_options
@option(READING, "--target-sum", type=click.FloatRange(min=0, min_open=True), metavar="X",
        help="Total of a cell before logarithms are taken.  [default: 10000]")  # fmt: skip
@option(READING, "--batch", metavar="COLUMN", type=TABLE,
        help="Column of obs with the batches of cells: probabilities are then those for another "
        "batch.")  # fmt: skip
@option(READING, "--cache", metavar="PATH", type=WRITTEN,
        help="Keep the rows in binary here, for further epochs and runs.  [default: for further "
        "epochs only, in a temporary file]")  # fmt: skip
@option(READING, "--memory-limit", type=Size(), default="1G", show_default=True, metavar="SIZE",
        help="What the weights, or a kernel's rows, may take.")  # fmt: skip
@N_JOBS
@option(_DASK, "--dask", metavar="ADDRESS",
        help="Learn on the workers of this Dask scheduler: such as tcp://host:8786; an epoch on "
        "each FILE, read where the worker is, then a mixture of what they came to, which is "
        "written to MODEL. --cache is then a folder on each worker.")  # fmt: skip
@option(_DASK, "--mixing", type=click.Choice(["auto", "ring", "uniform"]),
        help="Whether all files weigh the same in a mixture, or as much as the corrections they "
        "made; or labels visit one file after the other, which auto does where they are as many as "
        "files.  [default: auto]")  # fmt: skip
@option(_DASK, "--mixes-per-epoch", type=click.IntRange(1),
        help="Mixtures of an epoch, each after a part of the rows.  [default: 16]")  # fmt: skip
@JSON
def command(
    files: tuple[str, ...], output: str, readable: str | None, dictionary: str | None,
    as_json: bool, dask: str | None, **options: Any,
) -> None:  # fmt: skip
    """Train a model on files, with one pass for each epoch.

    Files are texts in .tsv (LABEL<tab>text), .txt (fastText), .vw, .csv, .jsonl or .parquet, whose
    features are words and word pairs, or cells in .h5ad, .zarr, 10x's .h5 or matrix.mtx. All other
    files are svmlight text. FILE may be compressed, a pattern in quotes, or - for standard input.
    The error that is shown is the share of rows predicted wrongly just before training on them.
    Ctrl-C, SIGTERM or SIGHUP saves the model trained so far.
    """
    if dictionary is not None and readable is None:
        raise click.UsageError("--dictionary names the features of --readable FILE: pass that too.")
    _check_dask(dask, options)
    resume, is_told = options["resume"], options["max_iter"] is not None
    until = options["max_iter"] == "until"
    mixing = {name: options.pop(name) for name in ("mixing", "mixes_per_epoch", "resume")}
    sources = [] if dask is not None else text_sources(files)
    named = [options.pop(name) for name in ("format", "text", "label")]
    found, by_name = sources, None
    if dask is not None:
        names = [name for each in files for name in files_named(each)]
        found = [Source(name, None, None, None, plain=False) for name in names]
        by_name = partial(form_elsewhere, form=named[0])
    checkpoint = _checkpoint_of(output, sources, resume)
    # The output may replace the model of --init-model, which is then trained further in place.
    check_apart(found, [Named("the checkpoint", checkpoint)], {("-o", "--init-model")})
    cells = cell_form(found, options, by_name)
    how = None if cells is not None else document_form(found, *named, told=by_name)
    normalizing = {name: options.pop(name) for name in CELL_LEARNING}
    init, settings = options["init_model"], _settings(options)
    if cells is None:
        vectorizer = _vectorizer(settings, how, init)
    else:
        vectorizer = _normalizer(settings, cells.values, normalizing, is_told=is_told)
        if init is None and cells.values is not None:
            cells = replace(cells, values="auto")
    # Without sources (--dask), the workers read the files and write the caches.
    cache = (settings["cache"] or None) if sources else None
    _check_files(output, readable, cache, dictionary)
    if checkpoint is not None:
        check_free(checkpoint)
    found_there = None if checkpoint is None or resume else state_of(checkpoint)
    first = settings.get("init_model")
    before = 0 if first is None else int(np.sum(first.n_corrections_))
    private = tuple(each for each in (output, init) if each is not None)
    resuming = {"checkpoint": checkpoint, "resume": resume, "made_from": private}
    learn: _Learn = partial(learn_svmlight, files, **resuming, **settings)
    if how is not None:
        learn = partial(learn_documents, files, vectorizer, how, **resuming, **settings)
    if cells is not None:
        from sparsemargin.cells.learn import learn_cells

        learn = partial(
            learn_cells, list(files), named[-1], cells, vectorizer, batch=normalizing["batch"],
            **resuming, **settings,
        )  # fmt: skip
    if dask is not None:
        if not is_told:
            settings.pop("max_iter", None)
        making = _making(how, cells, named[-1], vectorizer, settings)
        given = {"client": dask, "checkpoint": output, "making": making, **mixing, **settings}
        learn = _learn_on_dask([each.name for each in found], given)
    # From here on, Ctrl-C only takes effect during training. The model is saved in any case.
    click.get_current_context().with_resource(uninterrupted())
    with learning_progress() as show, _noting_interruption() as interrupted:
        moments: dict[int, Progress] = {}

        def report(moment: Progress) -> None:
            moments[moment.epoch] = moment
            show(moment)

        learner = learn(report=report)
    if not moments:
        if not resume or interrupted:
            raise KeyboardInterrupt
        click.echo(_nothing_to_resume(output, learner), err=True)
        return
    # With --dask, each mixture of the workers' models has already been saved.
    if dask is None:
        try:
            save_model(model := _with_steps(learner, vectorizer), output)
        except OSError as error:
            set_aside(partial(save_model, model), output, error)
            raise
    if checkpoint is not None and not interrupted:
        remove_written(checkpoint, found_there)
    if readable is not None:
        with _noting_model(output), interruptible():
            write_readable(readable, learner, _names(learner, dictionary, vectorizer))
    told = list(moments.values())
    figures = _figures(learner, told, output, before=before, interrupted=bool(interrupted))
    if cache is not None and os.path.isfile(cache):
        figures |= {"row_cache": cache, "row_cache_bytes": os.path.getsize(cache)}
    _tell(figures, as_json, until)
    if interrupted:
        context = click.get_current_context()
        context.exit(exit_code_of(context))


def _checkpoint_of(output: str, sources: Sequence[Source], resume: bool) -> str | None:
    """Return the path of the checkpoint.

    None means no checkpoint, because a file can be read only once or workers read the files.
    """
    once = [source.name for source in sources if not source.rereadable]
    if once and resume:
        raise click.UsageError(
            f"{once[0]} can be read only once, and no run over it can be resumed. Name a file, or "
            "leave --resume out."
        )
    return f"{output}.checkpoint" if sources and not once else None


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `learn_svmlight` that the options stand for."""
    given = {name: options.pop(name) for name in ALL_PARAMETERS}
    init, algo, single = options.pop("init_model"), options.pop("algo"), options.pop("single")
    cache, classes = options.pop("cache"), options.pop("classes")
    return {
        **(_new(algo, given) if init is None else _going_on(init, algo, given, options)),
        **options,
        "dtype": np.float32 if single else np.float64,
        "cache": cache or False,
        "classes": None if classes is None else labels_given(classes.split(",")),
    }


def _new(algo: str | None, given: dict[str, Any]) -> dict[str, Any]:
    filled = {name: DEFAULTS.get(name) if text is None else text for name, text in given.items()}
    return {"algo": algo, **chosen_parameters(algo, filled)}


def _vectorizer(settings: dict[str, Any], how: DocumentForm | None, init: str | None) -> Any:
    """Return the vectorizer of texts, or None for svmlight text.

    The settings for the vectorizer are removed from `settings`.
    """
    vectorizer, path = settings.pop("vectorizer", None), init or ""
    if how is None:
        if vectorizer is not None:
            raise click.UsageError(
                f"{path} has learned from texts, and the files would be read as svmlight text. "
                "Pass --format, such as --format tsv."
            )
        return None
    if settings.pop("zero_based") != "auto" or settings.pop("n_features", None) is not None:
        raise click.UsageError("--zero-based and --n-features are of svmlight text, not of texts.")
    hash_bits = settings.pop("hash_bits", None)
    if init is None:
        return hashed_pairs(hash_bits or HASHED_BITS)
    if vectorizer is None or not hasattr(vectorizer, "n_features"):
        raise click.UsageError(
            f"{path} has learned from svmlight text, or from all texts at once: it can't go on "
            "with files of texts."
        )
    return vectorizer


def _normalizer(
    settings: dict[str, Any], values: Any, normalizing: dict[str, Any], *, is_told: bool
) -> Any:  # fmt: skip
    """Return the normalizer of cells, and remove settings that do not apply to cells."""
    from sparsemargin.genomes import CellNormalizer

    del settings["dtype"]
    if not is_told and settings.get("init_model") is None:
        del settings["max_iter"]
    return settings.pop("vectorizer", None) or CellNormalizer(
        normalize="log1p" if values == "auto" else values,
        target_sum=normalizing["target_sum"] or 1e4,
    )


def _with_steps(learner: Learner, vectorizer: Any) -> Any:
    """Return the model to save: the learner, or a pipeline if there is a vectorizer."""
    if vectorizer is None:
        return learner
    from sklearn.pipeline import Pipeline

    from sparsemargin.estimators.classifiers import as_classifier

    name = "normalizer" if has_normalizer([vectorizer]) else "vectorizer"
    return Pipeline([(name, vectorizer), ("classifier", as_classifier(learner))])


def _going_on(
    init: str, algo: str | None, given: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Return the settings for training a model further: only the number of epochs is new."""
    epochs = given.pop("max_iter") or DEFAULTS["max_iter"]
    features = {name: options.pop(name) for name in ("n_features", "hash_bits")}
    for name, value in {"algo": algo, **given, **features}.items():
        if value is not None and value != ():
            raise click.UsageError(
                f"{option_name(name)} can't be changed: --init-model {init} goes on with the "
                "model's own settings."
            )
    learner, before = load_learner(init)
    if options["zero_based"] != "auto" and learner.fitted.reading is not None:
        raise click.UsageError(
            f"--zero-based can't be changed: --init-model {init} has learned from files, and knows "
            "how their indices count."
        )
    found = {"init_model": learner, "vectorizer": None if before is None else before[-1]}
    return {**found, **chosen_parameters(None, {"max_iter": epochs})}


def _check_files(
    output: str, readable: str | None, cache: str | None, dictionary: str | None
) -> None:
    """Raise an error for files that can't be created or read."""
    # An existing cache is only read, so its folder need not be writable.
    made = cache if cache is not None and not os.path.isfile(cache) else None
    for path in (output, readable, made):
        if path is not None:
            check_output(path)
    if dictionary is not None:
        check_dictionary(dictionary)


def _check_dask(dask: str | None, options: dict[str, Any]) -> None:
    """Raise a UsageError for options that exclude each other."""
    for name in "mixing", "mixes_per_epoch":
        if dask is None and options[name]:
            raise click.UsageError(
                f"{option_name(name)} is of learning on several machines: pass --dask ADDRESS."
            )
    for key, name in _NOT_ON_DASK.items():
        if dask is not None and options[key]:
            raise click.UsageError(f"{name} can't be had with --dask. Leave one of the two out.")


def _making(
    how: DocumentForm | None, cells: Any, label: str, step: Any, settings: dict[str, Any]
) -> Any:
    """Return the object that makes rows on the workers, or None for svmlight text."""
    from sparsemargin.distributed.row_makers import Texts

    if cells is None:
        return None if how is None else Texts(how, step)
    from sparsemargin.cells.learn import mixing_seed
    from sparsemargin.distributed.cell_shards import CellRows

    return CellRows(label, cells, step, seed=mixing_seed(settings))


def _learn_on_dask(shards: list[str], settings: dict[str, Any]) -> _Learn:
    """Return the function that trains a model on the workers of a cluster."""
    from sparsemargin.distributed.fit import learn_distributed

    settings["cache_dir"] = settings.pop("cache") or None
    del settings["n_jobs"]
    for name in "mixing", "mixes_per_epoch":
        if settings[name] is None:
            del settings[name]
    learn = partial(learn_distributed, shards, **settings)
    # Ctrl-C may stop it at any time, because each mixture is saved atomically.
    return interruptible()(learn)


def _nothing_to_resume(output: str, learner: Learner) -> str:
    """Return the message for a fit that was already complete before --resume."""
    has_settled = learner.max_iter is None or learner.n_iter_ < learner.max_iter
    why = "The last made no correction." if has_settled else "Pass more --epochs."
    return f"{output} has made its {learner.n_iter_:g} epochs: nothing is left to resume. {why}"


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
    learner: Learner, told: list[Progress], output: str, *, before: int, interrupted: bool
) -> dict[str, Any]:
    """Return the figures of a finished run as a dict for JSON.

    `before` is the number of corrections of the initial model. Mistakes are those of the first
    epoch, in which the rows are new. The number of rows is that of the last epoch.
    """
    first, last = told[0], told[-1]
    mistakes, before = first.mistakes, told[-2].corrections if len(told) > 1 else before
    support = {}
    if learner.space.has_support:
        support["support_rows"] = learner.space.n_support
        support["passed_over"] = int(np.sum(learner.space.passed_over))
    return {
        "model": output,
        "model_bytes": size_of(output),
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
        "mistakes": mistakes,
        "one_step_ahead_error": None if mistakes is None else mistakes / first.rows,
        "epochs": last.epoch,
        "seconds": last.seconds,
        "bytes": bytes_read(last),
        "mb_per_second": speed(last),
        "interrupted": interrupted,
    }


def _tell(figures: dict[str, Any], as_json: bool, until: bool) -> None:
    """Print the figures as JSON, or as text unless --quiet is given."""
    if as_json:
        click.echo(json.dumps(figures))
        return
    if is_quiet():
        return
    counts = ("rows", "epochs", "features", "corrections", "support_rows", "passed_over")
    facts = {name.replace("_", " "): f"{figures[name]:,}" for name in counts if name in figures}
    if figures["epochs"] > 1:
        facts["corrections"] += f", {figures['corrections_of_last_epoch']:,} in the last epoch"
        facts["epochs"] += _ending(figures, until)
    facts["classes"] = some(figures["classes"])
    if figures["one_step_ahead_error"] is not None:
        facts["one-step-ahead error"] = percent(figures["one_step_ahead_error"]) + (
            " in the first epoch" if figures["epochs"] > 1 else ""
        )
    facts["time"] = f"{figures['seconds']:.2f} s, {figures['mb_per_second']:.0f} MB/s"
    facts["model"] = f"{figures['model']}, {size_in_words(figures['model_bytes'])}"
    if "row_cache" in figures:
        size = size_in_words(figures["row_cache_bytes"])
        facts["row cache"] = f"{figures['row_cache']}, {size}; for further runs, or to be deleted"
    print_facts(facts, err=True)


def _ending(figures: dict[str, Any], until: bool) -> str:
    """Return why training ended, or "" after Ctrl-C or the requested number of epochs."""
    if figures["interrupted"]:
        return ""
    if figures["stopped_early"]:
        return ", as corrections became no fewer"
    if not figures["corrections_of_last_epoch"]:
        return ", the last without a correction"
    return ", the most there are: pass fewer --epochs, or --early-stopping" if until else ""
