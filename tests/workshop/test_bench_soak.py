"""The long soak tells what has gone wrong: its reference, its stream, and its verdict."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from soak import faults
from soak_fit import make_estimator
from soak_memory import Samples
from soak_reference import Reference, norms_of

RIGHT = {
    "memory": {"early_bytes": 10**8, "late_bytes": 10**8, "peak_bytes": 2 * 10**8},
    "drift": {"parted_at": None, "norm": 1e-16, "average": 1e-14, "same_bits": True,
              "trials_right": True},
}  # fmt: skip


def noisy_rows():
    rng = np.random.default_rng(0)
    X = sp.random(3000, 80, 0.1, "csr", random_state=rng)
    X = X[np.diff(X.indptr) > 0]
    y = np.where(X @ rng.normal(size=80) > 0, 1, -1)
    return X, np.where(rng.random(len(y)) < 0.1, -y, y)


@pytest.mark.parametrize("alpha", [None, 0.5])
@pytest.mark.parametrize("p", [2, 6])
def test_reference_is_the_algorithm(p, alpha):
    X, y = noisy_rows()
    reference, estimator = Reference(80, p, alpha), make_estimator(p, alpha=alpha)
    for part in (slice(0, 1000), slice(1000, None)):
        reference.learn(X[part], y[part], norms_of(X[part], p))
        estimator.partial_fit(X[part], y[part], classes=[-1, 1])
    assert reference.n_corrections == estimator.n_corrections_ > 300
    expected = estimator.coef_[0][reference.watched]
    assert np.abs(reference.average - expected).max() <= 1e-12 * np.abs(expected).max()
    assert abs(reference.theta_norm / estimator.theta_norm_[0] - 1) <= 1e-14


def test_average_of_two_million_hypotheses_of_one_scale():
    """Equal terms are rounded the same way: summed up without a break they are 1.4e-11 off."""
    rng = np.random.default_rng(0)
    columns = rng.integers(32, size=(400_000, 2)) + np.array([0, 32])
    values = rng.uniform(0.1, 1, columns.size)
    X = sp.csr_matrix((values, columns.ravel().astype(np.int32), np.arange(0, 800_001, 2)))
    y = rng.choice([-1, 1], 400_000)
    norms = norms_of(X, 2)
    reference, estimator = Reference(64, 2, 0.3), make_estimator(2, alpha=0.3)
    for _ in range(5):
        reference.learn(X, y, norms)
        estimator.partial_fit(X, y, classes=[-1, 1])
    assert reference.n_corrections == estimator.n_corrections_ > 1_500_000
    expected = estimator.coef_[0][reference.watched]
    assert np.abs(reference.average - expected).max() <= 1e-11 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("part", "change", "told"),
    [
        ("memory", {"late_bytes": 105 * 10**6}, "grown by 4.8 MB"),
        ("drift", {"parted_at": 7}, "part from"),
        ("drift", {"norm": 1e-6}, "norm"),
        ("drift", {"average": 1e-6}, "average"),
        ("drift", {"same_bits": False}, "bits"),
        ("drift", {"trials_right": False}, "trials"),
    ],
)
def test_what_is_wrong_is_told(part, change, told):
    assert faults("ALMA", RIGHT) == []
    (fault,) = faults("ALMA", {**RIGHT, part: {**RIGHT[part], **change}})
    assert told in fault


def test_growth_is_seen_after_the_first_tenth(monkeypatch):
    held = iter([10, 500, 100, 100, 90, 120, 110])
    monkeypatch.setattr("soak_memory.resident", lambda process: next(held))
    samples = Samples(0)
    for done in (5, 9, 15, 20, 60, 95, 100):
        samples.take(done)
    assert samples.summary() == {"early_bytes": 100, "late_bytes": 120, "peak_bytes": 500}
