"""
Choosing p and alpha
====================

ALMA has two parameters worth a thought: ``p`` says in which norm margins are measured, ``alpha``
how much less than the largest margin is good enough. A correction is what costs time, so accuracy
is drawn against corrections: the settings to choose lie above and to the left.
"""

# %%
# Here 3 of 300 features decide. Try ``n_relevant=300`` for the other case, where p = 2 is best.
import matplotlib.pyplot as plt

from sparsemargin import ALMAClassifier
from sparsemargin.datasets import make_alma_target
from sparsemargin.plotting import TradeOffDisplay

X, y, *_ = make_alma_target(1000, 1, n_relevant=3, noise=0.05, random_state=0)

# %%
# Every setting is cross-validated; bars are standard errors over the folds.
display = TradeOffDisplay.from_estimator(
    ALMAClassifier(random_state=0), X, y, p=(2, 4, 6), alpha=(1.0, 0.9, 0.8, 0.5), cv=5
)
display.ax_.set_title("Sparse target: 3 of 300 features")
plt.show()
