"""Base classes of commands and options, and the options that several commands share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Container, Sequence
from typing import Any, Literal

import click

from sparsemargin.files.kinds import FORMS

# Keys of `click.Context.meta` for the values of options that all commands have.
QUIET = "sparsemargin.quiet"
TRACEBACK = "sparsemargin.traceback"
_ALL = "sparsemargin.help_all"

# Brief --help: width of the first column in characters, and largest number of examples.
_BRIEF_COLUMN = 24
_MOST_EXAMPLES = 3

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Option(click.Option):
    """Option that belongs to a section of --help.

    `parameter` is the name of the library's parameter, if it differs from that of the option.
    Errors are translated only for values that this option has, because another option may have the
    name of the parameter.
    """

    def __init__(
        self, *args: Any, section: str = "General", parameter: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.section, self.parameter = section, parameter

    def takes(self, parameter: str, value: str | None) -> bool:
        """Return whether this option, under another name, is `parameter` and can have `value`."""
        choices = getattr(self.type, "choices", ())
        return parameter == self.parameter and word_for((value or "").strip("'")) in choices


class Command(click.Command):
    """Command with sections in --help, and with options instead of parameters in errors.

    If `brief` is given, --help lists only the options for these parameters, so that it fits on a
    screen. --help-all lists all options.
    """

    def __init__(
        self, *args: Any, examples: Sequence[str], brief: Container[str | None] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.brief, self.examples = brief, examples
        if brief:
            n_options = sum(isinstance(param, click.Option) for param in self.params)
            self.params.append(click.Option(
                ["--help-all"], is_flag=True, is_eager=True, expose_value=False,
                callback=_show_all, help=f"Show all {n_options} options and exit.",
            ))  # fmt: skip

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ValueError as error:
            # Imported here because NumPy takes 0.1 s, and the help does not need it.
            from sparsemargin.readers.reading import SettingsError

            if isinstance(error, SettingsError) and not ctx.meta.get(TRACEBACK):
                raise click.UsageError(self.in_options(str(error)), ctx) from None
            raise

    def in_options(self, text: str) -> str:
        """Return the text with the library's parameters replaced by the command's options."""
        options = {each.name: each for each in self.params if isinstance(each, click.Option)}
        given = [each.parameter for each in self.params if isinstance(each, Option)]
        names = "|".join(map(re.escape, filter(None, [*options, *given])))
        value = r"'[^']*'|\"[^\"]*\"|\[[^]]*\]|[\w.,+-]*\w"
        # The pattern does not match parts of paths, or text that is quoted from a file.
        pattern = rf"(?<![\w./'\"-])({names})(?:=({value}))?(?![\w/=]|\.\w)"

        def replaced(found: re.Match[str]) -> str:
            # A name without value and underscore may be an ordinary word.
            if found[2] is None and "_" not in found[1]:
                return found[0]
            others = (each for each in self.params if isinstance(each, Option))
            takes = (each for each in others if each.takes(found[1], found[2]))
            option: click.Option | None = next(takes, options.get(found[1]))
            return found[0] if option is None else _in_command_line(option, found[2])

        return re.sub(pattern, replaced, text)

    def _is_brief(self, ctx: click.Context) -> bool:
        return bool(self.brief) and _ALL not in ctx.meta

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        text = inspect.cleandoc(self.help or "")
        if self._is_brief(ctx):
            text = "\n\n".join(text.split("\n\n")[:2])
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        brief = self._is_brief(ctx)
        for param in sorted(self.get_params(ctx), key=lambda each: _section_of(each) == "General"):
            record = param.get_help_record(ctx)
            if not isinstance(param, click.Option) or record is None:
                continue
            if not brief:
                sections.setdefault(_section_of(param), []).append(record)
            elif param.name in self.brief or param.name == "help_all":
                sections.setdefault("Options", []).append(_in_short(param, *record))
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records, col_max=_BRIEF_COLUMN if brief else 30)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shown = self.examples[:_MOST_EXAMPLES] if self._is_brief(ctx) else self.examples
        with formatter.section("Examples"):
            for example in shown:
                formatter.write(f"  {example}\n")


def _section_of(param: click.Parameter) -> str:
    return param.section if isinstance(param, Option) else "General"


def _in_short(option: click.Option, names: str, text: str) -> tuple[str, str]:
    """Return a short form of an option for the brief --help.

    It consists of the option's last name, the first form of its value, the first clause of its
    help, and its defaults if they are short.
    """
    short = [each for each in option.opts if not each.startswith("--")]
    value = names.split(" ")[-1] if " " in names and not names.endswith(option.opts[-1]) else ""
    if not value.startswith("["):
        value = value.partition("|")[0]
    notes = re.findall(r"\[(required|(?:default|texts): (?!none)[^;\]]{1,12})[;\]]", text)
    clause = re.split(r"[;:]\s|\.\s|\s*\[", text)[0].rstrip(".")
    head = f"{', '.join([*short, option.opts[-1]])} {value}".rstrip()
    return head, "  ".join([f"{clause}.", *(f"[{note}]" for note in notes)])


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


class Size(click.ParamType):
    """A number of bytes, with K, M or G for powers of 1024."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        number, unit = value.upper().removesuffix("B"), ""
        if number[-1:] in _UNITS:
            number, unit = number[:-1], number[-1:]
        try:
            size = int(float(number) * _UNITS[unit])
        except (ValueError, OverflowError):
            size = 0
        if size < 1:
            self.fail(f"{value} is not a size such as 512M or 2G.", param, ctx)
        return size


def _in_command_line(option: click.Option, value: str | None) -> str:
    """Return an option and its value in the notation of the command line."""
    name = option.opts[-1]
    if value is None or (option.is_flag and value == "True"):
        return name
    if option.is_flag:
        return option.secondary_opts[-1] if option.secondary_opts else f"no {name}"
    if option.multiple and value.startswith("["):
        return " ".join(f"{name} {each}" for each in re.findall(r"'([^']*)'", value))
    return f"{name} {word_for(value.strip('[]'))}".replace("'", "")


def word_for(value: str) -> str:
    """Return the command line's word for a value of the library, such as "none" for "None"."""
    return {"None": "none", "True": "yes", "False": "no"}.get(value, value)


def option(section: str, *names: str, **settings: Any) -> Decorator:
    """Return a decorator that adds an option to a section of --help."""
    return click.option(*names, cls=Option, section=section, **settings)


def _remember(key: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        ctx.meta[key] = value

    return callback


def is_quiet() -> bool:
    """Return whether the running command was called with --quiet."""
    return click.get_current_context().meta.get(QUIET, False)


_GENERAL = (
    click.option(
        "--traceback", is_flag=True, is_eager=True, expose_value=False,
        callback=_remember(TRACEBACK), envvar="SPARSEMARGIN_TRACEBACK",
        help="Show the Python traceback of an error.",
    ),
    click.option(
        "-q", "--quiet", is_flag=True, is_eager=True, expose_value=False,
        callback=_remember(QUIET), help="Print only errors and results.",
    ),
)  # fmt: skip


def make_command(
    name: str, examples: str, brief: Container[str | None] = ()
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a function a command with the general options.

    `brief` is as for `Command`.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        for general in _GENERAL:
            function = general(function)
        lines = examples.strip().splitlines()
        return click.command(name, cls=Command, examples=lines, brief=brief)(function)

    return decorate


class File(click.Path):
    """Type of options that name a file, which shells complete.

    `role` says whether the command reads or writes the file. The value of a "table" is a file or,
    if there is no such file, the name of a column. Files are checked when they are opened.
    """

    def __init__(self, role: Literal["input", "output", "table"]) -> None:
        super().__init__(readable=False)
        self.role = role


INPUT, WRITTEN, TABLE = File("input"), File("output"), File("table")

FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=INPUT)
MODEL = click.argument("model", metavar="MODEL", type=INPUT)
JSON = click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")


def dictionary_option(section: str) -> Decorator:
    """Return the option --dictionary in a section of --help."""
    return option(
        section, "--dictionary", metavar="FILE", type=INPUT,
        help="File with the names of the features, one per line, in the order of their indices.",
    )  # fmt: skip


READING, OUTPUT = "Reading", "Output"


OUTPUT_FILE = option(
    OUTPUT, "-o", "--output", default="-", metavar="FILE", type=WRITTEN,
    help="Output file.  [default: standard output]",
)  # fmt: skip


class _Threshold(click.ParamType):
    """Type of an option whose value is a number or "f1"."""

    name = "threshold"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return value if value == "f1" else click.FLOAT.convert(value, param, ctx)


THRESHOLD = option(
    OUTPUT, "--threshold", type=_Threshold(), metavar="X",
    help="Least score of a predicted label, for multilabel models and the second of two classes. "
    "f1: the threshold with the largest expected F1.  [default: 0, or none with --top-k]",
)  # fmt: skip
TOP_K = option(
    OUTPUT, "--top-k", type=click.IntRange(min=1), metavar="K",
    help="Predict the K labels with the highest scores of each row, highest first.",
)  # fmt: skip

_ZERO_BASED = {"auto": "auto", "yes": True, "no": False}


def _zero_based(auto: str) -> Decorator:
    return option(
        READING, "--zero-based", type=click.Choice(list(_ZERO_BASED)), default="auto",
        show_default=True, callback=lambda ctx, param, value: _ZERO_BASED[value],
        help=f"Whether feature indices start at 0. auto: {auto}",
    )  # fmt: skip


ZERO_BASED = _zero_based("yes if index 0 occurs.")

#: --zero-based for commands with a model, which stores how features are numbered.
ZERO_BASED_UNLESS_KNOWN = _zero_based(
    "as in the training files; no for a model that was trained on a matrix."
)

POSITIVE = option(
    READING, "--positive", metavar="LABEL",
    help="Use this label and all others as the two classes.",
)  # fmt: skip
N_JOBS = option(
    READING, "--n-jobs", "--threads", "n_jobs", type=click.IntRange(min=1), metavar="N",
    help="Number of threads that read files.  [default: 2]",
)  # fmt: skip


def _all_of(*options: Decorator) -> Decorator:
    """Return a decorator that adds several options."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for each in reversed(options):
            function = each(function)
        return function

    return decorate


#: Names of the options for reading files of cells.
CELL_OPTIONS = "layer", "var", "match", "cell_values"

cell_options = _all_of(
    option(
        READING, "--layer", metavar="NAME",
        help="Layer of cells, raw, or none for X.  [default: that of the model, or X]",
    ),
    option(
        READING, "--var", metavar="COLUMN",
        help="Column of var with the names of the genes, or none for the index.  [default: that of "
        "the model, or the index]",
    ),
    option(
        READING, "--match", type=click.Choice(["exact", "case", "version"]),
        help="Comparison of gene names: exact, ignoring case, or ignoring Ensembl versions.",
    ),
    option(
        READING, "--cell-values", parameter="normalize",
        type=click.Choice(["auto", "counts", "none"]),
        help="Type of the values of cells. auto: counts are normalised, and other scales are "
        "recognised; counts: all values are counts, even if they are not integers; none: values "
        "are not changed.  [default: auto]",
    ),
)  # fmt: skip

document_options = _all_of(
    option(
        READING, "--format", type=click.Choice(["svmlight", *FORMS]),
        help="Format of the files.  [default: given by the file suffix; otherwise svmlight]",
    ),
    option(
        READING, "--text", metavar="COLUMN", multiple=True,
        help="Column with the texts, in a table (csv, jsonl, parquet, tsv with a header). If it is "
        "repeated, the texts of all these columns are joined.  [default: the columns of the model, "
        "or text]",
    ),
    option(
        READING, "--missing", type=click.Choice(["error", "empty", "drop"]),
        help="Treatment of missing texts in a table. empty: a missing text is an empty text; drop: "
        "rows without a text are left out of training and evaluation.  [default: as in the "
        "training of the model, or error]",
    ),
    option(
        READING, "--encoding", default="utf-8", show_default=True, metavar="NAME",
        help="Encoding of files of texts, such as latin-1, cp1252 or utf-16.",
    ),
    option(
        READING, "--label", metavar="COLUMN", type=TABLE,
        help="Column with the labels. The default is that of the model, or label. For cells: a "
        "column of obs, a table of barcodes and labels, or TABLE.csv:COLUMN.",
    ),
)  # fmt: skip

#: The options for reading files that a model is applied to.
model_reading_options = _all_of(
    MODEL, FILES, ZERO_BASED_UNLESS_KNOWN, document_options, cell_options, N_JOBS
)
