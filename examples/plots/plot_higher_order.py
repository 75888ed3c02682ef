"""
Higher-order Perceptrons with and without a margin
==================================================

With ``alpha``, a Higher-order Perceptron also corrects on rows with a small margin, not only on
mistakes. It makes more corrections and needs fewer epochs. A large p suits few informative
features.
"""

# %%
# 50 of 500 features are informative. ``alpha=None`` is the paper's algorithm, 0.9 is the default.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import sem
from sklearn.base import clone
from sklearn.utils import shuffle

from sparsemargin import HigherOrderPerceptron
from sparsemargin.datasets import make_ho_target

X, y, X_test, y_test, _ = make_ho_target(random_state=0)


def errors_by_epoch(model, seed):
    """Return the test error in percent after each of five epochs with new random orders."""
    model, random = clone(model), np.random.RandomState(seed)
    errors = []
    for _ in range(5):
        model.partial_fit(*shuffle(X, y, random_state=random), classes=[-1, 1])
        errors.append(100 * (1 - model.score(X_test, y_test)))
    return errors


# %%
# For both values of p, the margin lowers the test error after the same number of epochs. Each curve
# is the mean of three runs with different orders of the rows. Bars are standard errors.
for p in (2, 7):
    for alpha in (None, 0.9):
        model = HigherOrderPerceptron(p=p, alpha=alpha)
        runs = [errors_by_epoch(model, seed) for seed in range(3)]
        label = f"p = {p}, alpha = {alpha}"
        plt.errorbar(range(1, 6), np.mean(runs, axis=0), sem(runs), label=label, capsize=2)
plt.xlabel("epochs")
plt.ylabel("test error (%)")
plt.xticks(range(1, 6))
plt.legend()
plt.show()
