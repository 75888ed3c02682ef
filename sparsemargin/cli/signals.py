"""Signals that end a command. SIGTERM and SIGHUP have the same effect as SIGINT (Ctrl-C)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

import click

# Batch systems and containers end a process by SIGTERM. A closed terminal ends it by SIGHUP.
_LIKE_CTRL_C = signal.SIGTERM, signal.SIGHUP
_WORDS = {signal.SIGTERM: "Terminated.", signal.SIGHUP: "Hangup."}
_RECEIVED = "sparsemargin.signals"


class Terminated(KeyboardInterrupt):
    """Raised when SIGTERM or SIGHUP has arrived, which end a command like Ctrl-C."""


@contextmanager
def heeding_signals(context: click.Context) -> Iterator[None]:
    """Let SIGTERM and SIGHUP have the effect of Ctrl-C, with their own exit codes.

    A signal that was ignored when the command started, for example by ``nohup``, stays ignored. A
    handler that delays Ctrl-C also delays these signals.
    """
    received: list[int] = []
    context.meta[_RECEIVED] = received
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_LIKE_CTRL_C)}

    def interrupt(number: int, frame: Any) -> None:
        if number != signal.SIGINT:
            raise Terminated
        # The handler is not callable if Ctrl-C is ignored, as in background jobs of shells.
        ordinary = before[signal.SIGINT]
        if callable(ordinary):
            ordinary(number, frame)

    def pass_on(number: int, frame: Any) -> None:
        received.append(number)
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
            # None stands for a handler that Python did not install. It can't be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def exit_code_of(context: click.Context) -> int:
    """Return the exit code that shells report for a process ended by the received signal."""
    return 128 + _number(context)


def words_for(context: click.Context) -> str:
    """Return the text that shells print for the received signal."""
    return _WORDS.get(signal.Signals(_number(context)), "Interrupted.")


def _number(context: click.Context) -> int:
    received = context.meta.get(_RECEIVED)
    return received[0] if received else signal.SIGINT
