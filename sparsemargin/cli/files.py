"""Input and output files of the commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, Self

import click
from click.core import ParameterSource

from sparsemargin.cli.options import CELL_OPTIONS, File
from sparsemargin.cli.parameters import option_name
from sparsemargin.files.atomic import check_replaceable, descriptor_of, is_stream, replacing
from sparsemargin.files.compression import encoding_named
from sparsemargin.files.distinct import Named, SameFileError, check_distinct
from sparsemargin.files.kinds import Kind, check_readable, kind_of
from sparsemargin.files.sources import STANDARD_INPUT, Source, open_sources
from sparsemargin.models import Learner
from sparsemargin.models.fitted.rejecting import Rejection
from sparsemargin.readers.label_tables import is_column, named_table
from sparsemargin.readers.reading import columns_of, threads_for
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.saving.model_files import load_learner, rejection_of
from sparsemargin.saving.readable import read_dictionary
from sparsemargin.streaming.predict import OpenCorpus, documents_of, svmlight_of

#: Path that stands for standard output.
STANDARD_OUTPUT = STANDARD_INPUT

#: Kinds of input that differ in how they are trained on.
InputKind = Literal["svmlight", "texts", "cells"]

# The kinds of input that have an option, for the options that not all kinds have.
_KINDS_WITH: dict[str, tuple[InputKind, ...]] = {
    **dict.fromkeys(("text", "missing", "keep", "encoding"), ("texts",)),
    **dict.fromkeys((*CELL_OPTIONS, "target_sum", "batch"), ("cells",)),
    **dict.fromkeys(("zero_based", "float32", "n_features"), ("svmlight",)),
    "label": ("texts", "cells"), "format": ("svmlight", "texts"),
}  # fmt: skip

# The files of each kind, and one of them, in words.
_FILES_OF: dict[InputKind, str] = {
    "svmlight": "svmlight text",
    "texts": "files of texts",
    "cells": "files of cells (.h5ad, .zarr, .h5 or .mtx)",
}
_FILE_OF: dict[InputKind, str] = {
    "svmlight": "read as svmlight text", "texts": "a file of texts", "cells": "a file of cells",
}  # fmt: skip


@dataclass(frozen=True)
class ReadingOptions:
    """The options for reading files, which several commands have. Empty options were not given."""

    format: Any = None
    text: tuple[str, ...] = ()
    label: str | None = None
    missing: Any = None
    keep: tuple[str, ...] = ()
    encoding: str = "utf-8"
    layer: str | None = None
    var: str | None = None
    match: Any = None
    cell_values: Any = None
    zero_based: bool | Literal["auto"] = "auto"
    n_jobs: int | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Take the options from the values of all parameters of a command."""
        return cls(**{each.name: values[each.name] for each in fields(cls) if each.name in values})

    @property
    def label_column(self) -> str:
        """The column or the table with the labels of cells."""
        return self.label or "label"

    def check_kind(
        self, kind: InputKind, name: str, *, is_fixed: bool = False, **others: Any
    ) -> None:
        """Raise a UsageError for an option that was given, but that files of this kind do not have.

        `name` is that of the first file. `is_fixed` says that --format can't change the kind.
        `others` are further options of the command; None if they were not given.
        """
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        given = {each.name for each in fields(self) if values[each.name] != each.default}
        if encoding_named(self.encoding) == "utf-8":
            given.discard("encoding")
        given |= {option for option, value in others.items() if value is not None}
        for option, kinds in _KINDS_WITH.items():
            if option not in given or kind in kinds:
                continue
            needed = " or ".join(_FILES_OF[each] for each in kinds)
            has_other = kind == "svmlight" and "texts" in kinds and not is_fixed
            advice = ", or pass --format, such as --format tsv" if has_other else ""
            raise click.UsageError(
                f"{option_name(option)} needs {needed}, and {name} is {_FILE_OF[kind]}. Leave it "
                f"out{advice}."
            )

    def as_model(self, wrappers: Mapping[str, Mapping[str, Any]], kind: InputKind) -> Self:
        """Return the options; those that were not given are taken from a model's estimators."""
        settings = {name: value for each in wrappers.values() for name, value in each.items()}
        text = settings.get("text") or ()
        text = (text,) if isinstance(text, str) else tuple(text)
        label = settings.get("label")
        if kind == "cells" and not is_column(label):
            # A table of labels that a model names is not opened.
            label = None
        named = [label, *map(settings.get, ("missing", "layer", "var", "match"))]
        if not all(isinstance(each, str | None) for each in (*text, *named)):
            raise ValueError("The parameters of the model's estimator are damaged.")
        label, missing, layer, var, match = named
        return replace(
            self, text=self.text or text, label=self.label or label,
            missing=self.missing or missing,
            layer=self.layer or layer, var=self.var or var, match=self.match or match,
        )  # fmt: skip

    def document_form(self, **how: Any) -> DocumentForm:
        """Return the settings for reading texts."""
        return DocumentForm(
            self.format, self.text or ("text",), self.label or "label",
            missing=self.missing or "error", keep=self.keep, encoding=self.encoding, **how,
        )  # fmt: skip

    def cell_form(self) -> Any:
        """Return the settings for reading cells."""
        # Imported here because scipy takes 0.2 s, and only cells need it.
        from sparsemargin.cells.genes import CellForm

        layer, var = (None if each == "none" else each for each in (self.layer, self.var))
        values: Any = None if self.cell_values == "none" else self.cell_values or "auto"
        return CellForm(layer, var, self.match or "exact", values)


def input_kind(
    files: Sequence[Source | str], form: Any, *, texts: bool = False, encoding: str = "utf-8"
) -> InputKind:
    """Return the kind of all input files of a command. Files of several kinds raise a UsageError.

    `form` and `texts` are as for `kind_of`. With another `encoding` than UTF-8, files are texts,
    unless they are cells. Raise a ValueError for models, row caches and archives.
    """
    kinds: dict[str, Kind] = {}
    encoded = encoding_named(encoding) != "utf-8"
    for each in files:
        name = each if isinstance(each, str) else each.name
        kinds[name] = kind = kind_of(each, form, texts=texts or encoded)
        check_readable(name, kind)
    # An empty file, such as a .txt without the labels of fastText, can be read as any kind.
    empty = {each.name for each in files if isinstance(each, Source) and each.size == 0}
    kinds = {name: kind for name, kind in kinds.items() if name not in empty} or kinds
    found = set(kinds.values())
    if "cells" in found and len(found) > 1:
        raise click.UsageError(
            "Files of cells and of text can't be read together. Pass files of one kind."
        )
    if "svmlight" in found and len(found) > 1:
        named = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
        raise click.UsageError(
            f"Texts and svmlight text can't be read together: {named}. Pass files of one kind."
        )
    return "cells" if "cells" in found else "svmlight" if "svmlight" in found else "texts"


def is_normalizer(step: Any) -> bool:
    """Return whether a step of a pipeline is a normalizer of cells."""
    return hasattr(step, "deviations_")


def check_model(model: str, sources: Sequence[Source]) -> None:
    """Raise a UsageError if MODEL is not a model, and one of the files is one."""
    found = next((each.name for each in sources if kind_of(each) == "model"), None)
    if found is not None and kind_of(open_sources(model)[0]) != "model":
        command = click.get_current_context().info_name
        raise click.UsageError(
            f"{model} is not a model. MODEL comes first: sparsemargin {command} {found} {model}"
        )


class OpenedModel(NamedTuple):
    """The learner of a model, a function that opens files for it, the earlier steps (None if it is
    not a pipeline), and the values of a Rejector around it (None if there is none)."""

    learner: Learner
    opened: OpenCorpus
    before: Any
    rejection: Rejection | None


def opened_model(
    model: str, sources: list[Source], options: ReadingOptions, *,
    labelled: bool = True, has_labels: bool | None = None,
) -> OpenedModel:  # fmt: skip
    """Open a model for files. `labelled` and `has_labels` are as for `DocumentForm`."""
    check_model(model, sources)
    learner, steps, wrappers = load_learner(model)
    rejection = rejection_of(model, learner, wrappers)
    step = None if steps is None else steps[-1]
    if step is None and options.format not in (None, "svmlight"):
        raise click.UsageError(
            f"--format {options.format} needs a model of texts, and {model} was trained on "
            "svmlight text. Leave it out."
        )
    # A model of svmlight text reads all text files as svmlight text, regardless of their names.
    form = "svmlight" if step is None else options.format
    kind = input_kind(sources, form, texts=True, encoding=options.encoding)
    if kind == "cells" or is_normalizer(step):
        if kind != "cells" or not is_normalizer(step):
            trained, other = ("not ", "is") if kind == "cells" else ("", "is not")
            raise click.UsageError(
                f"{model} was {trained}trained on cells, but {sources[0].name} {other} a file of "
                "cells. Pass a model and files of the same kind."
            )
        options.check_kind(kind, sources[0].name)
        opened = _cells_of(sources, step, options.as_model(wrappers, kind), labelled)
        return OpenedModel(learner, opened, steps, rejection)
    options.check_kind(kind, sources[0].name, is_fixed=step is None)
    n_threads = threads_for(options.n_jobs)
    if step is None:
        zero_based = options.zero_based
        opened = svmlight_of(learner, sources, zero_based=zero_based, n_threads=n_threads)
        return OpenedModel(learner, opened, None, rejection)
    if kind == "svmlight":
        raise click.UsageError(
            f"{model} was trained on texts, and {sources[0].name} would be read as svmlight text. "
            "Pass --format, such as --format tsv."
        )
    read_as = options.as_model(wrappers, kind)
    how = read_as.document_form(labelled=labelled, has_labels=has_labels)
    opened = documents_of(learner, steps, sources, how, n_threads)
    return OpenedModel(learner, opened, steps, rejection)


def _cells_of(
    sources: list[Source], normalizer: Any, options: ReadingOptions, labelled: bool
) -> OpenCorpus:
    """Return a function that opens files of cells for a fitted normalizer."""
    # Imported here because scipy takes 0.2 s, and only cells need it.
    from sparsemargin.cells.source import corpus_for

    form, label = options.cell_form(), options.label_column if labelled else None
    cells = click.get_current_context().with_resource(form.open(sources))
    return lambda _: corpus_for(cells, normalizer, form, label)


def check_apart(
    files: Iterable[Source | str], outputs: Iterable[Named] = (),
    in_place: Container[tuple[str, str]] = (),
) -> None:  # fmt: skip
    """Raise a UsageError if an output would replace another output or an input file.

    The files are those of the command's options (by their roles), the input `files`, and further
    `outputs`. Two options in `in_place` may name the same file. Standard output is an output of
    each command.
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
        elif context.get_parameter_source(param.name or "") is not ParameterSource.DEFAULT:
            table = named_table(value)
            inputs += [] if table is None else [Named(name, table[0])]
    for each in files:
        for path in [each] if isinstance(each, str) else each.files:
            inputs.append(Named("standard input" if path == STANDARD_INPUT else "FILE", path))
    written += outputs
    paths = [each.path for each in written if each.path is not None]
    is_used = any(path == STANDARD_OUTPUT or descriptor_of(path) == 1 for path in paths)
    # `sys.stdout` may be closed, or no file of the system.
    with suppress(OSError, ValueError):
        if not is_used and sys.stdout.fileno() == 1:
            written.append(Named("standard output", STANDARD_OUTPUT))
    try:
        check_distinct(written, inputs, in_place)
    except SameFileError as error:
        raise click.UsageError(str(error)) from None


def check_output(path: str) -> None:
    """Raise an error before the work starts if `path` can't be created or replaced."""
    if path == STANDARD_OUTPUT:
        raise click.UsageError("This output can't be written to standard output. Name a file.")
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
