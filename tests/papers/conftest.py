"""Few rows in the place of the papers' data."""

import pytest
from sklearn.datasets import make_blobs

from papers import alma_figures, ho_kernels, kernels


@pytest.fixture
def rows(monkeypatch):
    """Rows of three classes that recipes load under the names of the papers' digits."""
    X, y = make_blobs(160, centers=3, n_features=4, cluster_std=4.0, random_state=0)
    found = kernels.Data(X[:120], y[:120], X[120:], y[120:])
    for module in alma_figures, ho_kernels, kernels:
        monkeypatch.setattr(module, "load", lambda name: found)
    return found
