"""Parallel calls in threads, and the handling of Ctrl-C."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, current_thread, main_thread
from typing import Any

# Least number of multiplications for each thread. Starting a thread takes about 50 us.
PRODUCTS_PER_THREAD = 1 << 15


def threads_worth(n_threads, products):
    """Number of threads that are worth starting for so many multiplications."""
    return max(1, min(n_threads, products // PRODUCTS_PER_THREAD))


def run_together(calls, n_threads):
    """Results of the calls, made by n_threads threads.

    An error or Ctrl-C is raised only after all running calls have ended, because the memory they
    write to may be freed afterwards.
    """
    if min(n_threads, len(calls)) <= 1:
        return [call() for call in calls]
    gate = _Gate()
    pool = ThreadPoolExecutor(n_threads)
    try:
        runs = [pool.submit(gate.run, call) for call in calls]
        return [run.result() for run in runs]
    finally:
        _in_any_case(gate.close, pool.shutdown)


@contextmanager
def uninterrupted():
    """Delay Ctrl-C until the end of the block, so that the block runs as a whole.

    Yields the list of delayed calls of the handler; a caller that empties it suppresses them. Only
    the main thread handles Ctrl-C; other threads are not affected.
    """
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(before):
        yield []
        return
    handler = before if isinstance(before, _DelayableHandler) else _DelayableHandler(before)
    was_open, handler.is_open = handler.is_open, False
    signal.signal(signal.SIGINT, handler)
    try:
        yield handler.delayed
    finally:
        signal.signal(signal.SIGINT, before)
        handler.set_open(was_open)


@contextmanager
def interruptible():
    """Inside `uninterrupted`, let the first Ctrl-C through at once. Later ones are delayed, so that
    cleanup is not interrupted."""
    handler = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not isinstance(handler, _DelayableHandler):
        yield
        return
    was_open = handler.is_open
    try:
        handler.set_open(True)
        yield
    finally:
        handler.is_open = was_open


@dataclass
class _DelayableHandler:
    """A handler of Ctrl-C that calls the previous handler while open, and stores calls
    otherwise."""

    handler: Any
    is_open: bool = True
    delayed: list = field(default_factory=list)

    def __call__(self, *call):
        if not self.is_open:
            self.delayed.append(call)
            return
        self.is_open = False
        self.handler(*call)
        self.is_open = True

    def set_open(self, is_open):
        """Open or close the handler. When opened, it handles one of the stored calls, if any."""
        self.is_open = is_open
        if is_open and self.delayed:
            call = self.delayed[0]
            self.delayed.clear()
            self(*call)


class _Gate:
    """Counts the running calls, and prevents new ones after it is closed.

    It is needed because a thread pool loses track of a thread if Ctrl-C interrupts its start.
    """

    def __init__(self):
        self.change = Condition()
        self.closed, self.running = False, 0

    def run(self, call):
        with self.change:
            if self.closed:
                return None
            self.running += 1
        try:
            return call()
        finally:
            with self.change:
                self.running -= 1
                self.change.notify_all()

    def close(self):
        with self.change:
            self.closed = True
            self.change.wait_for(lambda: self.running == 0)


def _in_any_case(*steps):
    """Run all steps despite repeated Ctrl-C, and raise KeyboardInterrupt only afterwards."""
    interrupt = None
    for step in steps:
        while True:
            try:
                step()
                break
            except KeyboardInterrupt as again:
                interrupt = again
    if interrupt is not None:
        raise interrupt
