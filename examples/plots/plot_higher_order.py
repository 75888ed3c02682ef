"""
Higher-order Perceptrons, with a margin and without
===================================================

With ``alpha`` a Higher-order Perceptron corrects where the margin is small, too, and not at
mistakes alone. It makes more corrections, and needs fewer epochs; p says whether few features
decide or many.
"""

# %%
# 50 of 500 features decide. ``alpha=None`` is the paper's algorithm, 0.9 is the default. Three runs
# each in different orders; bars are the standard errors of their means.
import matplotlib.pyplot as plt

from sparsemargin import HigherOrderPerceptron
from sparsemargin.datasets import make_ho_target
from sparsemargin.plotting import EpochCurvesDisplay

X, y, X_test, y_test, _ = make_ho_target(random_state=0)

rivals = {
    f"p = {p}, {told}": HigherOrderPerceptron(p=p, alpha=alpha)
    for p in (2, 7)
    for told, alpha in (("at mistakes", None), ("alpha = 0.9", 0.9))
}

# %%
# With either p the margin errs less after the same number of epochs.
EpochCurvesDisplay.from_estimator(
    rivals, X, y, X_test, y_test, epochs=(1, 2, 3, 4, 5), n_repeats=3, random_state=0
)
plt.show()
