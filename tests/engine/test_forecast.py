"""Fits that will take minutes say so, on a clock that the test sets."""

import re
import warnings
from itertools import count

import numpy as np
import pytest

from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron
from sparsemargin._engine.matrix import loop
from sparsemargin.datasets import make_zipf_text

TOLD = r"This epoch will take some (\d+) minutes: [\d,]+ mistakes so far.*max_updates=1000"


def noisy_text(n_rows=1500):
    return make_zipf_text(n_rows, 2000, noise=0.2, random_state=0)


@pytest.fixture
def seconds_a_look(monkeypatch):
    """Let every look at the clock find it so many seconds later."""

    def set_to(seconds):
        ticks = count(0, seconds)
        monkeypatch.setattr(loop.time, "perf_counter", lambda: float(next(ticks)))

    return set_to


@pytest.mark.parametrize("estimator", [HigherOrderPerceptron, SecondOrderPerceptron])
@pytest.mark.parametrize("form", ["implicit", "dual"])
def test_a_slow_epoch_of_growing_cost_is_told_of_once_and_early(estimator, form, seconds_a_look):
    X, y = noisy_text(4000)
    seconds_a_look(4.0)
    with pytest.warns(UserWarning, match=TOLD) as told:
        estimator(solver=form, max_updates=None, random_state=0, max_iter=2).fit(X, y)
    assert len(told) == 1
    assert told[0].filename == __file__
    # The calls of the loop take as many trials as make them last alike: what is foretold at the
    # first of them is that of quadratic growth, not of 4 seconds for so many trials.
    assert int(re.match(TOLD, str(told[0].message))[1]) > 2


@pytest.mark.parametrize(
    ("seconds", "parameters"),
    [
        (1e-3, {"max_updates": None}),
        (4.0, {}),
        (4.0, {"solver": "primal", "max_updates": None}),
    ],
    ids=["soon done", "bounded", "n x n"],
)
def test_nothing_is_told_where_nothing_grows(seconds, parameters, seconds_a_look):
    X, y = noisy_text()
    if "solver" in parameters:
        X = X[:, :50]
    seconds_a_look(seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SecondOrderPerceptron(random_state=0, **parameters).fit(X, y)


def test_a_forecast_is_that_of_mistakes_at_a_steady_rate_each_as_dear_as_those_before(
    monkeypatch,
):
    class Space:
        most_updates, updates = -1, 0

    class Spaces:
        def __init__(self):
            self.spaces = [Space(), Space()]

    # 100 and 50 mistakes in each tenth of an epoch, after 300 and none; a second for each unit.
    spaces, cost = Spaces(), 0.0
    first, rates = np.array([300, 0]), np.array([1000, 500])
    clock = {"now": 0.0}
    monkeypatch.setattr(loop.time, "perf_counter", lambda: clock["now"])
    for space, before in zip(spaces.spaces, first, strict=True):
        space.updates = int(before)
    forecast = loop.Forecast(spaces)
    forecast.begin()
    for label, space in enumerate(spaces.spaces):
        space.updates = int(first[label] + rates[label] // 10)
        cost += sum(range(first[label], space.updates))
    clock["now"] = cost
    whole = sum(sum(range(a, a + r)) for a, r in zip(first.tolist(), rates.tolist(), strict=True))
    with pytest.warns(UserWarning, match=TOLD) as told:
        forecast.tell(0.1)
    assert float(re.match(TOLD, str(told[0].message))[1]) == pytest.approx(whole / 60, rel=0.01)
