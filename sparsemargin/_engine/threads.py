"""Calls side by side in threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor


def run_together(calls, n_threads):
    """Results of the calls, made by so many threads.

    An error, or Ctrl-C, leaves only when no call runs any more: what they write to may be gone
    thereafter.
    """
    if min(n_threads, len(calls)) == 1:
        return [call() for call in calls]
    pool = ThreadPoolExecutor(n_threads)
    try:
        return [run.result() for run in [pool.submit(call) for call in calls]]
    finally:
        _end(pool)


def _end(pool):
    interrupt = None
    while True:
        try:
            pool.shutdown(cancel_futures=True)
            break
        except KeyboardInterrupt as again:
            interrupt = again
    if interrupt is not None:
        raise interrupt
