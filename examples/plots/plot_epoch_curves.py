"""
How many epochs are enough?
===========================

An online learner pays for each correction, and stops paying when it makes no more. Corrections
and test error over the epochs, side by side, show when another pass is not worth its time. This
is the form of Figure 2 of Brotto, Gentile & Vitale (2007).
"""

# %%
# Three Perceptrons on the same noisy rows, three runs each in different orders; bars are the
# standard errors of their means.
import matplotlib.pyplot as plt

from sparsemargin import HigherOrderPerceptron, PNormPerceptron
from sparsemargin.datasets import make_alma_target
from sparsemargin.plotting import EpochCurvesDisplay

X, y, X_test, y_test, _ = make_alma_target(400, 1000, noise=0.05, random_state=0)

rivals = {
    "Perceptron, p = 2": PNormPerceptron(p=2),
    "Perceptron, p = 6": PNormPerceptron(p=6),
    "Higher-order, c = 0.4": HigherOrderPerceptron(c=0.4),
}

# %%
# The number of corrections levels off once the training rows are separated.
EpochCurvesDisplay.from_estimator(
    rivals, X, y, X_test, y_test, epochs=(1, 2, 4, 7, 10), n_repeats=3, random_state=0
)
plt.show()
