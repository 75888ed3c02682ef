"""Input and output files of the commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import click
from click.core import ParameterSource

from sparsemargin.cli.options import CELL_LEARNING, CELL_OPTIONS, File
from sparsemargin.cli.parameters import option_name
from sparsemargin.files.atomic import (
    check_replaceable,
    descriptor_of,
    is_stream,
    replacing,
)
from sparsemargin.files.distinct import Named, SameFileError, check_distinct
from sparsemargin.files.sources import STANDARD_INPUT, Source, open_sources
from sparsemargin.models import Learner
from sparsemargin.readers.cell_files import is_cells
from sparsemargin.readers.kinds import KIND_NAMES, Kind, kind_of
from sparsemargin.readers.label_tables import named_table
from sparsemargin.readers.reading import columns_of, threads_for
from sparsemargin.readers.text_forms import DocumentForm, form_of
from sparsemargin.readers.text_lines import LABEL
from sparsemargin.saving.model_files import load_learner
from sparsemargin.saving.readable import read_dictionary
from sparsemargin.streaming.predict import OpenCorpus, documents_of, svmlight_of

#: Path that stands for standard output.
STANDARD_OUTPUT = STANDARD_INPUT

# Advice for files of kinds that the commands cannot read.
_WAYS_OUT: dict[Kind, str] = {
    "cache": " Name the text it was made of: train with --cache {name} takes the rows from here.",
    "npz": " Fit it in Python: sparsemargin.fit_csr(scipy.sparse.load_npz({name!r}), y)",
    "model": "",
}


def text_sources(files: Iterable[str]) -> list[Source]:
    """Return the sources of the named files.

    A missing file, or a file of another kind than text and cells, raises an error.
    """
    sources = open_sources(files)
    for source in sources:
        kind = kind_of(source)
        if kind not in ("svmlight", "cells"):
            raise ValueError(
                f"{source.name} is {KIND_NAMES[kind]}, not svmlight text."
                f"{_WAYS_OUT[kind].format(name=source.name)}"
            )
    return sources


#: Function that returns the form of a file by its name. See `form_elsewhere`.
Told = Callable[[str], str | None]


def document_form(
    sources: Sequence[Source], form: str | None, text: str, label: str, *, told: Told | None = None
) -> DocumentForm | None:
    """Return how to read sources that are texts, or None for svmlight text.

    The form follows from `told`, if given. Otherwise it follows from the names of the files and,
    for ambiguous names, from their first lines.
    """
    forms = {
        source.name: form or (_form_of(source) if told is None else told(source.name))
        for source in sources
    }
    if len({each is None for each in forms.values()}) > 1:
        named = ", ".join(f"{name} ({each or 'svmlight'})" for name, each in forms.items())
        raise click.UsageError(f"Texts and svmlight text can't be read together: {named}.")
    if None in forms.values():
        return None
    return DocumentForm(form, text, label)  # type: ignore[arg-type]


def _form_of(source: Source) -> str | None:
    """Return the form by the extension. For .txt, which may be svmlight text, read first lines."""
    form = form_of(source.name)
    if form != "fasttext" or not source.rereadable:
        return form
    with closing(source.blocks([])) as blocks:
        labelled = any(each.buffer.find(LABEL, 0, each.stop) >= 0 for each in islice(blocks, 1))
    return form if labelled else None


def cell_form(sources: Sequence[Source], options: dict[str, Any], told: Told | None = None) -> Any:
    """Return how to read cells, or None if the sources are not files of cells.

    The options for cells are removed from `options`. Cells are recognised by `told`, if given,
    otherwise by the first bytes of the files.
    """
    names = [name for name in (*CELL_OPTIONS, *CELL_LEARNING) if options.get(name) is not None]
    given = {name: options.pop(name) for name in CELL_OPTIONS}
    kinds = {is_cells(each) if told is None else told(each.name) == "cells" for each in sources}
    if len(kinds) > 1:
        raise click.UsageError("Files of cells and of text can't be read together.")
    if True not in kinds:
        if names:
            raise click.UsageError(f"{option_name(names[0])} is for files of cells: .h5ad, .h5.")
        return None
    from sparsemargin.cells.genes import CellForm

    values: Any = given["cell_values"] or "auto"
    return CellForm(
        given["layer"], given["var"], given["match"] or "exact",
        None if values == "none" else values,
    )  # fmt: skip


def has_normalizer(before: Any) -> bool:
    """Return whether the last of these steps of a pipeline is a normalizer of cells."""
    return hasattr(before and before[-1], "deviations_")


def opened_model(
    model: str,
    sources: list[Source],
    options: dict[str, Any],
    *,
    labelled: bool = True,
    has_labels: bool | None = None,
) -> tuple[Learner, OpenCorpus, Any]:
    """Return the learner of a model, a function that opens files for it, and the earlier steps.

    The steps are None if the model is not a pipeline. Options for reading are removed from
    `options`. `labelled` and `has_labels` are as for `DocumentForm`.
    """
    learner, before = load_learner(model)
    n_threads, zero_based = threads_for(options.pop("n_jobs")), options.pop("zero_based")
    named = [options.pop(name) for name in ("format", "text", "label")]
    cells = cell_form(sources, options)
    if cells is not None or has_normalizer(before):
        label = named[2] if labelled else None
        return learner, cells_for(model, before, sources, cells, label), before
    if before is None:
        opened = svmlight_of(learner, sources, zero_based=zero_based, n_threads=n_threads)
        return learner, opened, None
    how = document_form(sources, *named, told=form_of)
    if how is None:
        raise click.UsageError(
            f"{model} has learned from texts, and {sources[0].name} would be read as svmlight "
            "text. Pass --format, such as --format tsv."
        )
    how = replace(how, labelled=labelled, has_labels=has_labels)
    return learner, documents_of(learner, before, sources, how, n_threads), before


def cells_for(
    model: str, before: Any, sources: Sequence[Source], form: Any, label: Any
) -> OpenCorpus:
    """Return a function that opens files of cells for the steps of a pipeline."""
    if form is None or not has_normalizer(before):
        what = "files of cells" if form is None else "a model that has learned from cells"
        raise click.UsageError(f"{model} and {sources[0].name} do not go together: {what} needed.")
    from sparsemargin.cells.source import corpus_for

    opened = form.open([source.name for source in sources])
    cells = click.get_current_context().with_resource(opened)
    return lambda _: corpus_for(cells, before[-1], form, label)


def check_apart(
    sources: Sequence[Source], outputs: Sequence[Named] = (),
    in_place: Container[tuple[str, str]] = (),
) -> None:  # fmt: skip
    """Raise a UsageError if an output would replace another output or an input file.

    The files are those of the command's options (by their roles), those that the sources consist
    of, and further `outputs`. Two options in `in_place` may name the same file. Standard output is
    an output of each command.
    """
    context = click.get_current_context()
    inputs, written = list[Named](), list[Named]()
    for param in context.command.params:
        value = context.params.get(param.name or "")
        if not isinstance(param.type, File) or value is None:
            continue
        name = param.opts[0] if isinstance(param, click.Option) else (param.name or "").upper()
        named = [Named(name, each) for each in ([value] if isinstance(value, str) else value)]
        if param.type.role == "output":
            written += [each for each in named if not os.path.isdir(each.path)]
        elif param.type.role == "input":
            inputs += [] if name == "FILES" else named
        elif _is_given(context, param) and (table := named_table(value)) is not None:
            inputs.append(Named(name, table[0]))
    for source in sources:
        name = "standard input" if source.files == [STANDARD_INPUT] else "FILE"
        inputs += [Named(name, each) for each in source.files]
    written += outputs
    if not any(map(_is_standard_output, written)) and _is_process_output():
        written.append(Named("standard output", STANDARD_OUTPUT))
    try:
        check_distinct(written, inputs, in_place)
    except SameFileError as error:
        raise click.UsageError(str(error)) from None


def _is_given(context: click.Context, param: click.Parameter) -> bool:
    """Return whether the value of an option is not its default."""
    return context.get_parameter_source(param.name or "") is not ParameterSource.DEFAULT


def _is_standard_output(output: Named) -> bool:
    return output.path == STANDARD_OUTPUT or (
        output.path is not None and descriptor_of(output.path) == 1
    )


def _is_process_output() -> bool:
    """Return whether `sys.stdout` is the standard output of the process."""
    with suppress(OSError, ValueError):
        return sys.stdout.fileno() == 1
    return False


def check_output(path: str) -> None:
    """Raise an error before the work starts if `path` can't be created or replaced."""
    if path == STANDARD_OUTPUT:
        raise click.UsageError("Standard output can't take this: name a file.")
    check_replaceable(path)


@contextmanager
def opened_output(path: str) -> Iterator[BinaryIO]:
    """Open standard output, a stream or a file for bytes. A file is written atomically."""
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
    elif is_stream(path):
        # The descriptor is duplicated, because opening by name would truncate the file.
        descriptor = descriptor_of(path)
        with open(path if descriptor is None else os.dup(descriptor), "wb") as file:
            yield file
    else:
        with replacing(path) as file:
            yield file


def is_on_terminal(path: str) -> bool:
    """Return whether output to `path` appears on a terminal."""
    return sys.stdout.isatty() and (path == STANDARD_OUTPUT or descriptor_of(path) == 1)


class Indices(Sequence[str]):
    """Sequence of the indices of all features as names. They are computed on access."""

    def __init__(self, n_features: int, first: int) -> None:
        self._numbers = range(first, first + n_features)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, i: Any) -> Any:
        return list(map(str, self._numbers[i])) if isinstance(i, slice) else str(self._numbers[i])


def check_dictionary(path: str) -> None:
    """Raise an error before the work starts if a dictionary is unreadable or malformed."""
    # A pipe is not checked, because it can be read only once.
    if not Path(path).is_fifo():
        read_dictionary(path)


def feature_names(
    learner: Learner, dictionary: str | None, known: Sequence[str] | None = None
) -> Sequence[str]:
    """Return a name for each feature.

    The first available source is used: the dictionary, the names `known` from a pipeline, the names
    that the model was fitted with, the indices in files.
    """
    n_features = learner.n_features_in_
    if dictionary is not None:
        return read_dictionary(dictionary, n_features)
    if known is None:
        known = vars(learner).get("feature_names_in_")
    if known is not None:
        return known if isinstance(known, Sequence) else list(map(str, known))
    columns = columns_of(learner)
    hashed = columns.get("hash_bits") is not None
    return Indices(n_features, 0 if hashed or columns["zero_based"] else 1)
