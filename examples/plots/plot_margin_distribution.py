"""
Distribution of margins
=======================

The *margin* of a row is its distance from the decision boundary, positive if the prediction is
correct. With a smaller ``alpha``, ALMA also corrects on rows with a small positive margin, so its
curve moves to the right. These are Figures 3 to 5 of Gentile (2001).
"""

# %%
# The labels depend on 3 of 300 features, so a large p is suitable.
import matplotlib.pyplot as plt

from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin.datasets import make_alma_target
from sparsemargin.plotting import MarginDistributionDisplay

X, y, X_test, y_test, _ = make_alma_target(2000, 1000, n_relevant=3, random_state=0)

models = {
    "Perceptron, p = 6": PNormPerceptron(p=6, random_state=0),
    "ALMA, alpha = 0.9": ALMAClassifier(p=6, alpha=0.9, random_state=0),
    "ALMA, alpha = 0.5": ALMAClassifier(p=6, alpha=0.5, random_state=0),
}
for model in models.values():
    model.fit(X, y)

# %%
# Each curve shows the share of the test rows whose margin is at most x. Its value at 0 is the test
# error.
display = MarginDistributionDisplay.from_estimator(models, X_test, y_test)
display.ax_.set_title("Margins on 1000 test rows")
plt.show()
