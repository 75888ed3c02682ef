"""
Last, average, vote: which weights to predict with?
===================================================

A Perceptron passes through thousands of weight vectors. The last one is whatever the last mistake
left; averaging all of them, or letting them vote, is steadier on noisy data. One fit with
``hypothesis="vote"`` keeps the log that all of them are replayed from, as in Figure 2 of Freund &
Schapire (1999).
"""

# %%
# A tenth of the labels is wrong, so the last vector never comes to rest.
import matplotlib.pyplot as plt

from sparsemargin import PNormPerceptron
from sparsemargin.datasets import make_alma_target
from sparsemargin.plotting import HypothesisErrorsDisplay

X, y, X_test, y_test, _ = make_alma_target(1000, 600, noise=0.1, random_state=0)
model = PNormPerceptron(hypothesis="vote", max_iter=4, random_state=0).fit(X, y)

# %%
# Nothing is fitted again: the errors at every tenth of an epoch come from the log.
display = HypothesisErrorsDisplay.from_estimator(model, X_test, y_test)
display.ax_.set_title("One run of the Perceptron, four ways to predict")
plt.show()
