"""The options of ``sparsemargin train``, and the files and objects that they specify."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import click

from sparsemargin import genomes
from sparsemargin.cli.files import (
    InputKind,
    ReadingOptions,
    check_apart,
    check_dictionary,
    check_output,
    input_kind,
    is_normalizer,
)
from sparsemargin.cli.parameters import ALL_PARAMETERS, option_name
from sparsemargin.files.distinct import Named
from sparsemargin.files.sources import Source, files_named, open_sources
from sparsemargin.models import Learner
from sparsemargin.saving.model_files import load_learner
from sparsemargin.streaming.checkpoints import check_free
from sparsemargin.streaming.learn_texts import vectorizer_for

# Texts can have at most 2**31 - 1 columns.
_TOO_MANY_BITS = 31


@dataclass(frozen=True)
class TrainOptions:
    """The options of the command, as they were given.

    `parameters` are the texts of the algorithm's parameters, by name; None if not given.
    """

    files: tuple[str, ...]
    output: str
    reading: ReadingOptions
    parameters: dict[str, Any]
    init_model: str | None
    readable: str | None
    dictionary: str | None
    resume: bool
    algo: str | None
    n_features: int | None
    hash_bits: int | None
    positive: str | None
    multilabel: bool
    classes: str | None
    single: bool
    target_sum: float | None
    batch: str | None
    cache: str | None
    memory_limit: int
    dask: str | None
    mixing: str | None
    min_rows: int | None
    as_json: bool

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Take the options from the values of all parameters of the command."""
        known = {each.name for each in fields(cls)} & values.keys()
        parameters = {name: values[name] for name in ALL_PARAMETERS}
        reading = ReadingOptions.of(values)
        return cls(**{name: values[name] for name in known}, reading=reading, parameters=parameters)

    @property
    def epochs(self) -> str | None:
        return self.parameters["max_iter"]

    @property
    def cell_form(self) -> Any:
        """Settings for reading cells. A new model's normalizer decides how values are read."""
        form = self.reading.cell_form()
        is_open = self.init_model is None and form.values is not None
        return replace(form, values="auto") if is_open else form


@dataclass(frozen=True)
class Job:
    """The input files, and the objects with which a model is trained on them.

    `sources` is empty with --dask, where workers open the files. `step` is the vectorizer or the
    normalizer before the classifier; None for svmlight text. `checkpoint` is None if the run can't
    be resumed from a file, because a source can be read only once or workers read the files.
    `reading` are the options for reading, which the initial model completes.
    """

    names: list[str]
    sources: list[Source]
    kind: InputKind
    init: Learner | None
    reading: ReadingOptions
    step: Any
    checkpoint: str | None


def check_options(options: TrainOptions) -> None:
    """Raise a UsageError for options that exclude or need each other."""
    if options.dictionary is not None and options.readable is None:
        raise click.UsageError(
            "--dictionary needs --readable, whose file has the names. Pass --readable FILE, too."
        )
    if options.classes is not None and "" in options.classes.split(","):
        raise click.UsageError(
            "--classes has an empty label. Pass the labels with single commas between them, such "
            "as --classes ham,spam."
        )
    for name, value in {"--mixing": options.mixing, "--min-rows": options.min_rows}.items():
        if options.dask is None and value is not None:
            raise click.UsageError(
                f"{name} is for training on several machines. Pass --dask ADDRESS, too."
            )
    # These options need a single process that reads all files.
    alone = options.init_model, options.reading.n_jobs, options.batch
    for name, value in zip(("--init-model", "--n-jobs", "--batch"), alone, strict=True):
        if options.dask is not None and value:
            raise click.UsageError(f"{name} can't be combined with --dask. Leave one of them out.")
    if options.init_model is None:
        return
    fixed = {
        "algo": options.algo, "n_features": options.n_features, "hash_bits": options.hash_bits,
        "target_sum": options.target_sum, "batch": options.batch,
        "float32": options.single or None, **options.parameters, "max_iter": None,
    }  # fmt: skip
    for name, value in fixed.items():
        if value is not None and value != ():
            raise click.UsageError(
                f"{option_name(name)} can't be changed: --init-model {options.init_model} keeps "
                "the settings of the model."
            )


def job_of(options: TrainOptions) -> Job:
    """Find the files and their kind, and load the initial model."""
    sources = list[Source]()
    if options.dask is None:
        sources = open_sources(options.files)
        names = [source.name for source in sources]
    else:
        names = [name for each in options.files for name in files_named(each)]
    once = [source.name for source in sources if not source.rereadable]
    if once and options.resume:
        raise click.UsageError(
            f"{once[0]} can be read only once, so its run can't be resumed. Name a file, or leave "
            "--resume out."
        )
    checkpoint = f"{options.output}.checkpoint" if sources and not once else None
    # The output may replace the model of --init-model, which is then trained further in place.
    outputs = [Named("the checkpoint", checkpoint)]
    check_apart(sources or names, outputs, {("-o", "--init-model")})
    reading = options.reading
    kind = input_kind(sources or names, reading.format, encoding=reading.encoding)
    reading.check_kind(
        kind, names[0], target_sum=options.target_sum, batch=options.batch,
        n_features=options.n_features, float32=options.single or None,
    )  # fmt: skip
    init, steps = None, None
    if options.init_model is not None:
        init, steps, wrappers = load_learner(options.init_model)
        reading = reading.as_model(wrappers, kind)
        if options.reading.zero_based != "auto" and init.fitted.reading is not None:
            raise click.UsageError(
                f"--zero-based can't be changed: --init-model {options.init_model} was trained on "
                "files, and stores whether their indices start at 0. Leave it out."
            )
    step = _step_of(options, kind, None if steps is None else steps[-1], sources)
    return Job(names, sources, kind, init, reading, step, checkpoint)


def _step_of(options: TrainOptions, kind: InputKind, step: Any, sources: list[Source]) -> Any:
    """Return the vectorizer of texts or the normalizer of cells: `step` of the initial model, or a
    new one. None for svmlight text."""
    init = options.init_model
    if kind == "svmlight":
        if step is not None:
            raise click.UsageError(
                f"{init} was trained on texts or cells, and {options.files[0]} would be read as "
                "svmlight text. Pass --format, such as --format tsv."
            )
        return None
    if kind == "cells":
        if init is not None and not is_normalizer(step):
            raise click.UsageError(f"{init} was not trained on cells. Leave --init-model out.")
        return step or _new_normalizer(options)
    if options.hash_bits == _TOO_MANY_BITS:
        raise click.UsageError(
            f"--hash-bits {_TOO_MANY_BITS} is for svmlight text. For texts, pass at most "
            f"{_TOO_MANY_BITS - 1}."
        )
    if init is None:
        return vectorizer_for(sources, options.hash_bits)
    if step is None:
        raise click.UsageError(
            f"{init} was not trained on texts. Leave --init-model out, or pass a model of texts."
        )
    if not hasattr(step, "n_features"):
        raise click.UsageError(
            f"The features of {init} are not hashed, and it can't be trained on files further. Fit "
            "it with features='hashed', or leave --init-model out."
        )
    return step


def _new_normalizer(options: TrainOptions) -> Any:
    values = options.reading.cell_form().values
    return genomes.CellNormalizer(
        normalize="log1p" if values == "auto" else values, target_sum=options.target_sum or "auto"
    )


def check_outputs(options: TrainOptions, job: Job) -> None:
    """Raise an error for files that can't be written, or for an unreadable dictionary."""
    check_output(options.output)
    if options.readable is not None:
        check_output(options.readable)
    # An existing cache is only read, so its folder need not be writable. Workers write their own.
    if job.sources and options.cache and not os.path.isfile(options.cache):
        check_output(options.cache)
    if options.dictionary is not None:
        check_dictionary(options.dictionary)
    if job.checkpoint is not None:
        check_free(job.checkpoint)
