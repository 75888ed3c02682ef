"""Calls side by side in threads."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Condition, current_thread, main_thread

# To start a thread takes some 50 us.
PRODUCTS_PER_THREAD = 1 << 15


def threads_worth(n_threads, products):
    """How many of the threads are worth their start for so many multiplications."""
    return max(1, min(n_threads, products // PRODUCTS_PER_THREAD))


def run_together(calls, n_threads):
    """Results of the calls, made by so many threads.

    An error, or Ctrl-C, leaves only when no call runs any more: what they write to may be gone
    thereafter.
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
    """Let Ctrl-C wait until the end: what happens here happens as a whole. Yields the list of calls
    that wait; whoever empties it has dealt with them.

    Only the main thread hears Ctrl-C; in others there is nothing to wait for.
    """
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(before):
        yield []
        return
    ears = before if isinstance(before, _Ears) else _Ears(before)
    were_open, ears.are_open = ears.are_open, False
    signal.signal(signal.SIGINT, ears)
    try:
        yield ears.held
    finally:
        signal.signal(signal.SIGINT, before)
        ears.turn(were_open)


@contextmanager
def interruptible():
    """Within `uninterrupted`: the first Ctrl-C gets through at once, later ones wait, so that
    nothing breaks the tidying up."""
    ears = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not isinstance(ears, _Ears):
        yield
        return
    were_open = ears.are_open
    try:
        ears.turn(True)
        yield
    finally:
        ears.are_open = were_open


class _Ears:
    """A handler of Ctrl-C that passes it on to the one before while open, and else keeps it."""

    def __init__(self, handler):
        self.handler, self.are_open, self.held = handler, True, []

    def __call__(self, *call):
        if not self.are_open:
            self.held.append(call)
            return
        self.are_open = False
        self.handler(*call)
        self.are_open = True

    def turn(self, are_open):
        """Open them, for what was kept as well, or close them."""
        self.are_open = are_open
        if are_open and self.held:
            call = self.held[0]
            self.held.clear()
            self(*call)


class _Gate:
    """Counts the calls under way, and lets no more begin once it is closed.

    A pool does not know of a thread whose start Ctrl-C interrupted, and waits for it in vain.
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
    """Take all steps, however often Ctrl-C comes between, and only then let it out."""
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
