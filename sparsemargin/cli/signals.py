"""Signals that end a command: Ctrl-C (SIGINT), SIGTERM and SIGHUP, which do the same."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

import click

# Batch systems and containers end a process by SIGTERM, a terminal that is closed by SIGHUP.
_LIKE_CTRL_C = signal.SIGTERM, signal.SIGHUP
_TOLD = {signal.SIGTERM: "Terminated.", signal.SIGHUP: "Hangup."}
_CAME = "sparsemargin.signals"


class Terminated(KeyboardInterrupt):
    """A signal came that ends a command as Ctrl-C does."""


@contextmanager
def heeding_signals(context: click.Context) -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, but for the exit code. One that was ignored when
    the command began, as by ``nohup``, stays ignored.

    Code that lets Ctrl-C wait by a handler of its own, lets them wait, too.
    """
    came: list[int] = []
    context.meta[_CAME] = came
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_LIKE_CTRL_C)}

    def interrupt(number: int, frame: Any) -> None:
        if number != signal.SIGINT:
            raise Terminated
        # Shells have commands in the background ignore Ctrl-C.
        ordinary = before[signal.SIGINT]
        if callable(ordinary):
            ordinary(number, frame)

    def pass_on(number: int, frame: Any) -> None:
        came.append(number)
        current = signal.getsignal(signal.SIGINT)
        (current if callable(current) else interrupt)(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    for number in _LIKE_CTRL_C:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            # None is a handler that was not installed by Python, and can't be set.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def exit_code_of(context: click.Context) -> int:
    """Return what a shell reports of a process that the signal which came has ended."""
    return 128 + _number(context)


def words_for(context: click.Context) -> str:
    """Return what a shell prints of the signal that came."""
    return _TOLD.get(signal.Signals(_number(context)), "Interrupted.")


def _number(context: click.Context) -> int:
    came = context.meta.get(_CAME)
    return came[0] if came else signal.SIGINT
