"""The corrections which Gentile (2001), section 4.4, quotes for the artificial data of Table 6."""

import numpy as np
import pytest

from sparsemargin import ALMAClassifier
from sparsemargin.datasets import make_alma_target


@pytest.mark.parametrize(
    ("p", "alpha", "noise", "quoted"),
    [
        (2.0, 1.0, 0.0, 142),
        (2.0, 0.5, 0.0, 2720),
        (10.0, 0.5, 0.0, 1050),
        (10.0, 1.0, 0.15, 2656),
        (10.0, 0.5, 0.15, 3594),
    ],
)
def test_corrections_on_three_relevant_features(p, alpha, noise, quoted):
    n_corrections = []
    for seed in range(3):
        X, y, *_ = make_alma_target(n_test=1, n_relevant=3, noise=noise, random_state=seed)
        estimator = ALMAClassifier(p=p, alpha=alpha, hypothesis="last", max_iter=1, shuffle=False)
        n_corrections.append(estimator.fit(X, y).n_corrections_)
    assert np.mean(n_corrections) == pytest.approx(quoted, rel=0.1)
