"""
A margin with a certificate
===========================

The sum of the corrected rows gives an upper bound for the margin of every weight vector. After each
epoch, the largest margin is known to lie between two numbers. ``tol`` ends the fit when they are
close to each other.
"""

# %%
# `MaxMarginClassifier` closes the gap in a few epochs, in any p-norm.
import matplotlib.pyplot as plt

from sparsemargin import MarginPerceptron, MaxMarginClassifier
from sparsemargin.datasets import make_alma_target
from sparsemargin.plotting import CertificateDisplay

X, y, *_ = make_alma_target(400, 1, random_state=0)

# %%
# The Perceptron with margin never decreases a multiplier, so its gap closes more slowly. Its upper
# bound needs no other solver either.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for model, ax in zip(
    (MaxMarginClassifier(p=6), MarginPerceptron(p=6, margin=1e4)), axes, strict=True
):
    CertificateDisplay.from_estimator(model, X, y, n_passes=60, ax=ax)
    ax.set_title(type(model).__name__)
plt.show()
