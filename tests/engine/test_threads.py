"""Calls side by side: nothing runs any more when an interruption gets out."""

import threading
import time

import pytest

from sparsemargin._engine.fitting.threads import run_together


def test_results_come_in_the_order_of_the_calls():
    calls = [lambda i=i: i**2 for i in range(7)]
    for n_threads in 1, 2, 20:
        assert run_together(calls, n_threads) == [i**2 for i in range(7)]


def test_an_error_gets_out():
    with pytest.raises(ZeroDivisionError):
        run_together([lambda: 1, lambda: 1 // 0, lambda: 3], 2)


def test_no_call_runs_after_ctrl_c_in_the_start_of_a_thread(monkeypatch):
    """The thread is then on its way, and the pool doesn't know it."""
    start, begun, ended = threading.Thread.start, [], []

    def interrupted(thread):
        start(thread)
        if len(begun) > 0:
            raise KeyboardInterrupt

    def call(i):
        begun.append(i)
        time.sleep(0.05)
        ended.append(i)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_together([lambda i=i: call(i) for i in range(20)], 10)
    n_begun = len(begun)
    assert 0 < n_begun == len(ended)
    time.sleep(0.2)
    assert len(begun) == n_begun
