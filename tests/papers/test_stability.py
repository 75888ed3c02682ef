"""Stability of the selection of the strongest features over splits, and its picture."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import ShuffleSplit
from sklearn.svm import LinearSVC

from papers.stability import SelectionStabilityDisplay, selection_stability
from sparsemargin import PNormPerceptron
from sparsemargin.datasets import make_alma_target
from sparsemargin.evaluation.vectors import strongest_features


class FirstRow(LinearSVC):
    """Classifier whose weights are the first training row."""

    def fit(self, X, y):
        self.coef_, self.classes_ = X[:1], np.array([0, 1])
        return self


def stability_of(*weights, top=2):
    """Return the stability of models with these weights, one model per split."""
    y, splits = np.zeros(len(weights)), [([k], [0]) for k in range(len(weights))]
    return selection_stability(FirstRow(), np.array(weights), y, splits, top=top)


def test_agreement_of_the_strongest_features_and_their_effective_number():
    first, second = np.array([5.0, -4, 0.1, 0]), np.array([0.1, 4, -5, 0])
    assert stability_of(first, -first).agreement == 1
    assert_allclose(stability_of(first, first, second).agreement, (1 + 1 / 3 + 1 / 3) / 3)
    # For equal weights, the effective number is the number of weights.
    weights = [2.0, -2, 0, 2, 0], [1.0, 0.1, 0, 0, 0], [1e200, 1e200, 0, 0, 0]
    equal, one, large = stability_of(*weights).effective_numbers
    assert_allclose([equal, large], [3, 2])
    assert one < 1.1


def test_frequencies_are_counts_over_the_splits_and_drawn():
    X, y, *_ = make_alma_target(200, 1, random_state=0)
    splits = list(ShuffleSplit(4, train_size=0.5, random_state=0).split(X))
    model = PNormPerceptron(p=6, shuffle=False)
    found = selection_stability(model, X, y, splits, top=5)
    weights = [model.fit(X[train], y[train]).coef_[0] for train, _ in splits]
    chosen = [strongest_features(vector, 5) for vector in weights]
    counts = np.bincount(np.concatenate(chosen), minlength=300)
    assert_array_equal(found.frequencies, counts / 4)
    assert found.agreement == stability_of(*weights, top=5).agreement
    drawn = {"feature_names": range(300), "agreement": found.agreement, "top": 5}
    display = SelectionStabilityDisplay(found.frequencies, **drawn).plot()
    widths = [bar.get_width() for bar in display.bars_]
    assert_array_equal(widths, 25 * np.sort(counts)[::-1][:5])
    assert f"{found.agreement:.2f}" in display.ax_.get_title()
    plt.close("all")
