"""The root command: the list of commands, their exit codes, and the format of errors."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import click

from sparsemargin._shown import folded, shown
from sparsemargin.cli.options import QUIET, TRACEBACK, Command
from sparsemargin.cli.signals import exit_code_of, heeding_signals, words_for

_COMMANDS = ("train", "predict", "annotate", "evaluate", "inspect", "info")

# Exit code after a closed pipe, as shells report it for SIGPIPE (128 + 13).
_PIPE_CLOSED = 141

_REMEDIES = {
    errno.ENOSPC: "Free some space, or name another folder. Existing files are unchanged.",
    errno.EFBIG: "The file is too large for this file system. Existing files are unchanged.",
    errno.EBADF: "The stream is closed. Open it, or name a file.",
    errno.EROFS: "The file system is read-only. Name another folder.",
    errno.EACCES: "Change its permissions, or name another file.",
}

_FIRST_STEPS = """\
Classify texts, cells and other sparse data, from files of any length.
First steps, for files with lines "LABEL<tab>text":
  sparsemargin train reviews.tsv -o reviews.model      train a model
  sparsemargin evaluate reviews.model test.tsv         test it on other texts
  sparsemargin predict reviews.model new.tsv           predict labels

svmlight files, such as news.svm or news.svm.gz, are used in the same way.
sparsemargin --help lists the commands, sparsemargin train --help the options.
"""

_NOTES = """\b
Examples:
  sparsemargin train reviews.tsv -o reviews.model
  sparsemargin evaluate news.model test.svm
  zcat new.svm.gz | sparsemargin predict news.model - | head

\b
Exit codes: 0 success; 1 error in a file or a model; 2 wrong usage;
130 Ctrl-C; 143 SIGTERM; 129 SIGHUP; 141 the reader of a pipe closed it.
SPARSEMARGIN_TRACEBACK=1 shows the Python traceback of an error.

\b
Tab completion of commands, options and files in bash (or zsh, fish):
  eval "$(_SPARSEMARGIN_COMPLETE=bash_source sparsemargin)"
"""


class _Failure(click.ClickException):
    def show(self, file: Any = None) -> None:
        click.echo(folded(f"Error: {self.format_message()}", sys.stderr, 2), file=file, err=True)


def failure_of(error: Exception, command: click.Command | None = None) -> click.ClickException:
    """Return the exception that click reports for an error: one line, including its notes."""
    text = " ".join([_message_of(error), *getattr(error, "__notes__", ())])
    return _Failure(shown(_in_options(text, command)))


def _in_options(text: str, command: click.Command | None) -> str:
    return command.in_options(text) if isinstance(command, Command) else text


def _message_of(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}. {_REMEDIES.get(error.errno, '')}".rstrip()
    if isinstance(error, OSError | ValueError | ImportError):
        return str(error)
    if isinstance(error, MemoryError):
        return (
            "There is not enough memory. To train with less, pass a lower --memory-limit, or fewer "
            "--hash-bits."
        )
    return (
        f"Internal error of sparsemargin, {type(error).__name__}: {error}. Please report it with "
        "the output of --traceback."
    )


class _Commands(click.Group):
    """Group of commands that imports a command on first use and reports errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        return import_module(f"sparsemargin.cli.{name}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            # Imported here because NumPy takes 0.1 s.
            from sparsemargin._checks import did_you_mean

            ctx.fail(f"No such command {args[0]!r}.{did_you_mean(args[0], _COMMANDS)}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # --help and --version print while the options are parsed.
        with _errors_in_a_line(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        _open_outputs()
        with _errors_in_a_line(ctx), heeding_signals(ctx), _warnings_in_a_line(ctx):
            super().invoke(ctx)
            # A closed pipe can be handled here, but not when the interpreter exits.
            sys.stdout.flush()
            sys.stderr.flush()


def _invoked(ctx: click.Context) -> click.Command | None:
    """Return the running command, or None."""
    group, name = ctx.command, ctx.invoked_subcommand
    return group.get_command(ctx, name) if isinstance(group, click.Group) and name else None


@contextmanager
def _errors_in_a_line(ctx: click.Context) -> Iterator[None]:
    """Turn errors, closed pipes and signals into messages and exit codes."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except BrokenPipeError:
        _forget_output()
        ctx.exit(_PIPE_CLOSED)
    except KeyboardInterrupt:
        # The terminal may have been closed.
        with suppress(OSError):
            click.echo(words_for(ctx), err=True)
        _forget_output()
        ctx.exit(exit_code_of(ctx))
    except Exception as error:
        _forget_output()
        if ctx.meta.get(TRACEBACK):
            raise
        raise failure_of(error, _invoked(ctx)) from None


@contextmanager
def _warnings_in_a_line(ctx: click.Context) -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not ctx.meta.get(QUIET):
            text = _in_options(str(message), _invoked(ctx))
            # A warning that cannot be printed must not stop the command.
            with suppress(OSError):
                # click.echo would write into a progress line, so print is used.
                print(folded(f"Warning: {shown(text)}", sys.stderr, 2), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in (UserWarning, RuntimeWarning):
            warnings.simplefilter("always", kind)
        warnings.showwarning = show
        yield


def _open_outputs() -> None:
    """Replace closed standard streams, and let standard output print any label."""
    # If standard output is closed, only printing must fail, not writing to files.
    for name, flags in ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), "w"))
    if isinstance(sys.stdout.buffer, io.RawIOBase):
        # With PYTHONUNBUFFERED, it is a raw file, whose `write` may write only a part.
        whole = io.BufferedWriter(sys.stdout.buffer, buffer_size=1)
        sys.stdout = io.TextIOWrapper(whole, sys.stdout.encoding, write_through=True)
    sys.stdout.reconfigure(errors=_ESCAPING)  # type: ignore[union-attr]


def _escape(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the replacement for characters that the terminal's encoding does not have.

    Bytes that are not valid UTF-8 are written unchanged. Other characters are escaped.
    """
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.backslashreplace_errors(error)


_ESCAPING = "sparsemargin.escape"
codecs.register_error(_ESCAPING, _escape)


def _forget_output() -> None:
    """Discard buffered output that can't be written, which would raise another error at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@click.group(
    cls=_Commands, epilog=_NOTES, invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
@click.version_option(package_name="sparsemargin", prog_name="sparsemargin")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Classify texts, cells and other sparse data, from files of any length."""
    if ctx.invoked_subcommand is None:
        click.echo(_FIRST_STEPS, nl=False)
