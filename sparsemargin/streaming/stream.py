"""Training on files row by row, in memory that does not depend on their length."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sparsemargin._checks import check_count
from sparsemargin._engine.fitting.threads import interruptible
from sparsemargin._version import __version__
from sparsemargin.files.distinct import Named, check_distinct
from sparsemargin.files.sources import File, Source, open_sources
from sparsemargin.models import LEARNERS, Algorithm, Learner, find_algorithm, without_defaults
from sparsemargin.models.inputs.labels import (
    LabelEncoder,
    UnknownLabelError,
    encoder_of,
    told_encoder,
)
from sparsemargin.models.selection import MOST_ROWS, select, settled
from sparsemargin.readers.reading import SettingsError, columns_of, threads_for
from sparsemargin.readers.row_cache import default_cache_path
from sparsemargin.readers.rows import RowSource, join_blocks
from sparsemargin.readers.svmlight import Corpus
from sparsemargin.streaming.checkpoints import Checkpoint
from sparsemargin.streaming.options import StreamOptions
from sparsemargin.streaming.passes import Passes
from sparsemargin.streaming.run import Run, SortedRowsError
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
            options = going_on(options)
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
            f"{once[0]} can be read only once, and has no place beside it. Pass cache=PATH for a "
            "file that keeps its rows."
        )
    return replace(options, cache=default_cache_path([source.name for source in sources]))


def learn_rows(source: RowSource, options: StreamOptions) -> Learner:
    """Train on the rows of any source, as `fit_svmlight` does; `cache` is a path or False."""
    with _blaming_settings():
        _check_distinct(source, options)
        check_count("memory_limit", options.memory_limit, 1, sys.maxsize)
        make = _maker_of(options, grows=source.reading.n_columns is None)
        encoder = told_encoder(options.classes, options.positive, source.reading.multilabel)
        if options.balanced and not (options.cache or source.rereadable):
            raise ValueError(
                f"class_weight='balanced' counts the rows of each class first, and {source.names} "
                "can be read only once. Pass cache=PATH, which keeps the rows, or the weights "
                "themselves."
            )
    # If the user asked for no cache, epochs after the first read a temporary one.
    cache: Path | bool = options.max_iter != 1
    if not isinstance(options.cache, bool):
        cache = Path(options.cache)
    is_open = options.algo is None and options.init_model is None and not options.multilabel
    if is_open and source.rereadable:
        one_class = told_encoder(options.classes, options.positive, False)
        make = _selected(source, one_class, options) or make
    checkpoint, start = None, None
    # The number of vectors is not known yet, so indices are limited by the memory of one vector.
    passes = Passes(source, options.max_index, cache)
    if options.checkpoint is not None:
        files = {**source.identity(), "reading": source.reading.settings()}
        made_by = {"library": __version__, "files": files, "positive": options.positive}
        made_from = *source.files, *options.made_from
        checkpoint = Checkpoint(os.fspath(options.checkpoint), made_by, made_from=made_from)
        if options.resume:
            start = checkpoint.read(make())
            passes.mixing = start[1]["mixing"]
    while True:
        try:
            return Run(StreamLabels(passes, encoder), make, options, checkpoint).learn(start)
        except NewClassError:
            # The model was trained with too few classes. Start again with all of them.
            with interruptible():
                labels = source.all_labels()
            encoder = encoder_of(labels, source.names, source.reading.multilabel)
        except SortedRowsError as found:
            passes.mixing = found.seed
        start = None


def _check_distinct(source: RowSource, options: StreamOptions) -> None:
    """Refuse a row cache or a checkpoint that would replace a file that is read."""
    cache = None if isinstance(options.cache, bool) else options.cache
    outputs = Named("cache", cache), Named("checkpoint", options.checkpoint)
    check_distinct(outputs, [Named("the file", name) for name in source.files])


@contextmanager
def _blaming_settings() -> Iterator[None]:
    """Turn a ValueError into a SettingsError, which says that an argument is wrong."""
    try:
        yield
    except ValueError as error:
        raise SettingsError(*error.args) from None


def going_on(options: StreamOptions) -> StreamOptions:
    """Return the options, completed with the form of labels and features of `init_model`."""
    if options.algo is not None or options.params or options.n_features or options.hash_bits:
        raise ValueError(
            "init_model goes on with its own algorithm, parameters and features: pass none with it."
        )
    earlier = _copy(options.init_model, options.max_iter)
    if options.multilabel and not earlier.fitted.many:
        raise ValueError(
            "init_model has learned one class a row, and can't go on with multilabel=True. Leave "
            "one of the two out."
        )
    columns = columns_of(earlier, options.zero_based)
    return replace(options, multilabel=earlier.fitted.many, **columns)


def _maker_of(options: StreamOptions, grows: bool) -> MakeLearner:
    """Return a function that creates the learner. Refuse wrong parameters before files are read."""
    multilabel, positive = options.multilabel, options.positive
    if multilabel and positive is not None:
        raise ValueError(
            f"positive={positive!r} is told from all other labels, and a model of many labels "
            "learns each of them. Leave one of the two out."
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
        raise ValueError("init_model has not learned anything yet. Pass a fitted model, or None.")
    earlier = deepcopy(model)
    learner = LEARNERS[model.classifier](**earlier.parameters()).take_over(earlier)
    learner.max_iter = max_iter
    learner.check_structure("init_model")
    learner.check_streams(grows=False)
    return learner


def _selected(
    source: RowSource, encoder: LabelEncoder | None, options: StreamOptions
) -> MakeLearner | None:
    """Select a learner by progressive validation on the first rows, and return its constructor.

    Return None if the parameters settle the algorithm, or the rows do not allow a comparison.
    """
    given = {**options.params, "max_iter": options.max_iter, "n_jobs": options.n_jobs}
    params = without_defaults(given)
    if settled(params) is not None:
        return None
    passes, some, n_rows = Passes(source, options.max_index), [], 0
    with interruptible(), closing(passes.first()) as blocks:
        for block in blocks:
            some.append(block.copy())
            n_rows += block.n_rows
            if n_rows >= MOST_ROWS:
                break
    if encoder is None and len(passes.table.texts) > 1:
        encoder = encoder_of(passes.table.values(), source.names, False)
    if encoder is None or not n_rows:
        return None  # training raises the error
    first = join_blocks(some)
    try:
        codes = encoder.transform_ids(passes.table, first.labels, first.label_start)
    except UnknownLabelError:
        return None
    rows = first.with_columns(max(1, source.reading.columns_up_to(passes.highest)))
    # `class_weight` may name a class that does not occur in the first rows.
    of_race = dict(params)
    if isinstance(weight := params.get("class_weight"), Mapping):
        known = encoder.classes.tolist()
        of_race["class_weight"] = {name: weight[name] for name in weight if name in known}
    return partial(select(rows, codes, encoder.classes, of_race).learner, params)
