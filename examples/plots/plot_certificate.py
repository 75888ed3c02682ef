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

from sparsemargin import ALMAClassifier, MaxMarginClassifier
from sparsemargin.datasets import make_alma_target
from sparsemargin.plotting import CertificateDisplay

X, y, *_ = make_alma_target(400, 1, random_state=0)

near, far = MaxMarginClassifier(p=6, normalize=True), ALMAClassifier(p=6, alpha=0.1)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
CertificateDisplay.from_estimator(near, X, y, n_passes=60, ax=axes[0])
axes[0].set_title("MaxMarginClassifier")

# %%
# ALMA learns row by row and takes nothing back. Its certificate closes more slowly, but it, too,
# needs no other program to say how far from the largest margin it can be at most.
CertificateDisplay.from_estimator(far, X, y, n_passes=60, ax=axes[1])
axes[1].set_title("ALMAClassifier, alpha = 0.1")
plt.show()
