"""
A margin with a certificate
===========================

No weight vector can have a larger margin than the sum of the corrected rows allows. So a fit knows,
after every pass, between which two numbers the largest margin lies, and ``tol`` stops it when they
are near each other.
"""

# %%
# `MaxMarginClassifier` closes the gap in a few passes, in any p-norm.
import matplotlib.pyplot as plt

from sparsemargin import MarginPerceptron, MaxMarginClassifier
from sparsemargin.datasets import make_alma_target
from sparsemargin.plotting import CertificateDisplay

X, y, *_ = make_alma_target(400, 1, random_state=0)

# %%
# The Perceptron with margin takes nothing back. Its certificate closes more slowly, but it, too,
# needs no other program to say how far from the largest margin it can be at most.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for model, ax in zip(
    (MaxMarginClassifier(p=6), MarginPerceptron(p=6, margin=1e4)), axes, strict=True
):
    CertificateDisplay.from_estimator(model, X, y, n_passes=60, ax=ax)
    ax.set_title(type(model).__name__)
plt.show()
