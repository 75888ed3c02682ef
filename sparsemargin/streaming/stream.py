"""Training on files row by row, in memory that does not depend on their length."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sparsemargin._checks import check_count
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.fitting.threads import interruptible
from sparsemargin._version import __version__
from sparsemargin.files.distinct import Named, check_distinct
from sparsemargin.files.sources import File, Source, open_sources
from sparsemargin.models import LEARNERS, Algorithm, Learner, find_algorithm
from sparsemargin.models.fitted.new_classes import with_file_labels
from sparsemargin.models.inputs.labels import (
    LabelEncoder,
    UnknownLabelError,
    encoder_of,
    given_encoder,
)
from sparsemargin.models.selection import MOST_ROWS, DefaultAlgorithm
from sparsemargin.readers.reading import SettingsError, columns_of, threads_for
from sparsemargin.readers.row_cache import default_cache_path
from sparsemargin.readers.rows import RowSource, join_blocks
from sparsemargin.readers.svmlight import Corpus
from sparsemargin.streaming.checkpoints import Checkpoint
from sparsemargin.streaming.label_order import SortedRowsError
from sparsemargin.streaming.options import StreamOptions
from sparsemargin.streaming.passes import Passes
from sparsemargin.streaming.run import Run
from sparsemargin.streaming.stream_labels import NewClassError, StreamLabels

MakeLearner = Callable[[], Learner]


def learn_svmlight(
    path: File | Iterable[File], algo: Algorithm | None = None, **given: Any
) -> Learner:
    """Train as `sparsemargin.fit_svmlight` does, without scikit-learn, and return the learner.

    Keyword arguments that are not fields of `StreamOptions` are parameters of the classifier.

    A checkpoint is written every five minutes, and when Ctrl-C ends training, after the current
    block. With `resume`, training continues from the checkpoint, and the model is bit-identical to
    that of an uninterrupted run. The files must be readable more than once.
    """
    options, sources = StreamOptions.of({"algo": algo, **given}), open_sources(path)
    with _blaming_settings():
        if options.init_model is not None:
            options = with_init_model(options)
        # One core is set aside for the calling thread, which trains.
        n_threads = threads_for(options.n_jobs, beside=1)
        corpus = Corpus(sources, options.reading(), n_threads, purpose="learning")
        options = with_cache_path(options, sources)
    return learn_rows(corpus, options)


def with_cache_path(options: StreamOptions, sources: list[Source]) -> StreamOptions:
    """Return the options, with ``cache=True`` replaced by a path next to the first source."""
    if options.cache is not True:
        return options
    once = [source.name for source in sources if not source.rereadable]
    if once:
        raise SettingsError(
            f"{once[0]} can be read only once, and a row cache can't be placed beside it. Pass "
            "cache=PATH."
        )
    return replace(options, cache=default_cache_path([source.name for source in sources]))


def learn_rows(source: RowSource, options: StreamOptions) -> Learner:
    """Train on the rows of any source, as `fit_svmlight` does; `cache` is a path or False."""
    with _blaming_settings():
        # The cache and the checkpoint must not replace a file that is read.
        cache = None if isinstance(options.cache, bool) else options.cache
        outputs = Named("cache", cache), Named("checkpoint", options.checkpoint)
        check_distinct(outputs, [Named("the file", name) for name in source.files])
        check_count("memory_limit", options.memory_limit, 1, sys.maxsize)
        make = _maker_of(options, grows=source.reading.n_columns is None)
        encoder = given_encoder(options.classes, options.positive, source.reading.multilabel)
        if options.balanced and not (options.cache or source.rereadable):
            raise ValueError(
                f"class_weight='balanced' counts the rows of each class first, and {source.names} "
                "can be read only once. Pass cache=PATH, which keeps the rows, or the weights "
                "themselves."
            )
    # If the user asked for no cache, epochs after the first read a temporary one.
    several = options.max_iter != 1 or options.least_epochs is not None
    # The number of vectors is not known yet, so indices are limited by the memory of one vector.
    passes = Passes(source, options.max_index, several if cache is None else Path(cache))
    with closing(passes):
        return _learn_passes(passes, encoder, make, options)


def _learn_passes(
    passes: Passes, encoder: LabelEncoder | None, make: MakeLearner, options: StreamOptions
) -> Learner:
    """Train on passes over a source, from the beginning or from a checkpoint."""
    source, checkpoint, start, make_selected = passes.source, None, None, make

    def select(seed: int | None) -> Learner:
        """Select the learner for rows in order, or mixed with a seed, and return a new one."""
        nonlocal make_selected
        passes.close()
        passes.shuffle_seed = seed
        make_selected = _selected(passes, encoder, options) or make
        return make_selected()

    if options.checkpoint is not None:
        files = {**source.identity(), "reading": source.reading.settings()}
        made_by = {"library": __version__, "files": files, "positive": options.positive}
        made_from = *source.files, *options.made_from
        checkpoint = Checkpoint(os.fspath(options.checkpoint), made_by, made_from=made_from)
        if options.resume:
            start = checkpoint.read(lambda position: select(position["shuffle_seed"]))
            passes.close()
    if start is None:
        select(None)
    while True:
        try:
            labels = StreamLabels(passes, encoder, adds_classes=options.adds_classes)
            return Run(labels, make_selected, options, checkpoint).learn(start)
        except NewClassError:
            # The model was trained with too few classes. Start again with all of them.
            with interruptible():
                found = source.all_labels()
            if options.init_model is None:
                encoder = encoder_of(found, source.names, source.reading.multilabel)
            else:
                known = options.init_model.classes_
                encoder = LabelEncoder.of_text(with_file_labels(known, found.tolist()))
        except SortedRowsError as error:
            select(error.seed)
        start = None


@contextmanager
def _blaming_settings() -> Iterator[None]:
    """Turn a ValueError into a SettingsError, which says that an argument is wrong."""
    try:
        yield
    except ValueError as error:
        raise SettingsError(*error.args) from None


def check_kept(names: list[str]) -> None:
    """Raise a ValueError for arguments that an `init_model` excludes."""
    if names:
        raise ValueError(
            "init_model is trained further with its own algorithm, parameters and features. Leave "
            f"out {' and '.join(names)}."
        )


def with_init_model(options: StreamOptions) -> StreamOptions:
    """Return the options, completed with the form of labels and features of `init_model`."""
    own = {"n_features": options.n_features, "hash_bits": options.hash_bits}
    given = {"algo": options.algo} | {name: each or None for name, each in own.items()}
    check_kept([*(name for name, each in given.items() if each is not None), *options.params])
    earlier = _copy(options.init_model, options.max_iter)
    if options.multilabel and not earlier.fitted.many:
        raise ValueError(
            "init_model was trained with one class per row, which excludes multilabel=True. Leave "
            "one of the two out."
        )
    columns = columns_of(earlier, options.zero_based)
    return replace(options, multilabel=earlier.fitted.many, **columns)


def _maker_of(options: StreamOptions, grows: bool) -> MakeLearner:
    """Return a function that creates the learner. Refuse wrong parameters before files are read."""
    multilabel, positive = options.multilabel, options.positive
    if multilabel and positive is not None:
        raise ValueError(
            f"positive={positive!r} makes two classes, and multilabel=True a class of each label. "
            "Leave one of the two out."
        )
    if options.init_model is not None:
        return partial(_copy, options.init_model, options.max_iter)
    params = {**options.params, "max_iter": options.max_iter, "n_jobs": options.n_jobs}
    kind, known = find_algorithm(options.algo, params)
    unopened = kind(**known)
    unopened.check_streams(grows=grows)
    if multilabel and not unopened.supports_multilabel:
        unopened.refuse_multilabel()
    return partial(kind, **known)


def _copy(model: Any, max_iter: int | None) -> Learner:
    """Return a copy of the model as a learner with which training can continue."""
    if isinstance(model, str | os.PathLike):
        raise ValueError(
            f"init_model={model!r} is a path. Pass the model: load_model of that path."
        )
    if model.state is None:
        raise ValueError("init_model is not fitted. Pass a fitted model, or None.")
    earlier = deepcopy(model)
    learner = LEARNERS[model.classifier](**earlier.parameters()).take_over(earlier)
    learner.max_iter = max_iter
    learner.check_structure("init_model")
    learner.check_streams(grows=False)
    return learner


def _selected(
    passes: Passes, encoder: LabelEncoder | None, options: StreamOptions
) -> MakeLearner | None:
    """Select a learner by progressive validation on the first rows, and return its constructor.

    Return None if the options settle the learner, or the rows do not allow a comparison.
    """
    source = passes.source
    if options.algo is not None or options.init_model is not None or not source.rereadable:
        return None
    default = DefaultAlgorithm(
        {**options.params, "max_iter": options.max_iter, "n_jobs": options.n_jobs},
        of_texts=options.of_texts,
    )
    if options.least_epochs is None:
        if options.multilabel:
            return None
        if default.settled is not None:
            return partial(default.settled.learner, default.params)
    with interruptible():
        blocks = passes.peek(MOST_ROWS)
    if encoder is None and len(passes.table.texts) > 1:
        encoder = encoder_of(passes.table.values(), source.names, options.multilabel)
    if encoder is None or not any(block.n_rows for block in blocks):
        return None  # training raises the error
    first = join_blocks(blocks)
    try:
        codes = encoder.transform_ids(passes.table, first.labels, first.label_start)
    except UnknownLabelError:
        return None
    rows = first.with_columns(max(1, source.reading.columns_up_to(passes.highest)))
    params = default.params
    # A prior is tried only if several epochs follow. The outputs of rows that it counts are not
    # stored, and only several epochs are followed by held-out outputs, which probabilities need.
    prior = options.least_epochs is not None
    candidate = default.candidate(rows, codes, encoder.classes, prior=prior, checked=True)
    if options.least_epochs is not None:
        share, counts = passes.share_of(blocks), None
        if not isinstance(codes, Positives):
            counts = np.bincount(codes, minlength=len(encoder.classes)) / share
        n_epochs = candidate.epochs_of(int(first.n_rows / share), counts)
        params = {**params, "max_iter": max(n_epochs, options.least_epochs)}
    return partial(candidate.learner, params)
