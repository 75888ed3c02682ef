"""
How sure is a classifier?
=========================

Accuracy counts the rows on the right side. The *margin* of a row says how far on that side it
lies, and its distribution shows at one glance what a smaller ``alpha`` buys: ALMA goes on
correcting rows that are right by too little, and its curve moves to the right. These are
Figures 3 to 5 of Gentile (2001).
"""

# %%
# The target depends on 3 of 300 features, which is where a large p is at home.
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
# Each curve tells which share of the test rows has at most that margin. Where it crosses the
# line at 0 is the test error: rows further to the left are on the wrong side.
display = MarginDistributionDisplay.from_estimator(models, X_test, y_test)
display.ax_.set_title("Margins on 1000 test rows")
plt.show()
