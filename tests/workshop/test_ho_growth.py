"""How the benchmark takes the growth of the time of Higher-order Perceptrons."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from sparsemargin.datasets import make_zipf_text

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import ho_growth


def test_exponent_of_growth():
    mistakes, nonzeros = np.arange(1, 31) * 100, np.geomspace(1e3, 1e6, 30)
    seconds = np.where(mistakes < ho_growth.FITTED_FROM, 1.0, 1e-9 * nonzeros**1.5)
    growth = ho_growth.Growth(mistakes, nonzeros, seconds)
    assert growth.exponent.slope == pytest.approx(1.5)


def test_growth_counts_the_nonzeros_of_the_mistakes():
    X, y = make_zipf_text(1500, 2000, mean_nnz=20, random_state=0)
    y = np.where(y == y[0], 1, -1)
    growths = ho_growth.measure_growth(X, y, n_rounds=1, part=0.1)
    assert list(growths) == list(ho_growth.GROWING)
    for name, growth in growths.items():
        estimator, most_mistakes = ho_growth.GROWING[name]
        model, most = clone(estimator), 0.1 * most_mistakes
        assert most - ho_growth.ROWS_A_CALL < growth.mistakes[-1] < most + ho_growth.ROWS_A_CALL
        assert (np.diff(growth.nonzeros) > 0).all()
        n_first = 2 * growth.nonzeros[0]
        model.partial_fit(X[:250], ho_growth.flip(y)[:250], classes=(-1, 1))
        assert n_first == np.diff(X.indptr)[model.mistakes_].sum()
