"""Probabilities of models trained on few rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsemargin import AROWClassifier, PNormPerceptron


@pytest.mark.parametrize(("n_rows", "most"), [(12, 0.80), (24, 0.74), (40, 0.74)])
def test_probabilities_for_random_labels_are_class_frequencies(n_rows, most):
    losses = []
    for seed in range(8):
        random = np.random.RandomState(seed)
        X = sp.random(n_rows + 500, 300, 0.1, format="csr", random_state=random)
        y = np.append(random.permutation(np.arange(n_rows) % 2), random.randint(0, 2, 500))
        for model in AROWClassifier(random_state=0), PNormPerceptron(random_state=0):
            told = model.fit(X[:n_rows], y[:n_rows]).predict_proba(X[n_rows:])
            losses.append(-np.log(told[np.arange(500), y[n_rows:]]).mean())
    # For comparison: the class shares have a log loss of 0.69, CalibratedClassifierCV up to 0.76.
    assert np.mean(losses) < most
