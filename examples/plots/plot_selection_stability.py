"""
Would other samples have named the same features?
=================================================

With few rows and many features, some features look strong by chance. Fitting on many random parts
of the rows tells them from those that matter: the latter are among the strongest every time.
"""

# %%
# 5 of 300 features decide; the model sees 150 rows at a time.
import matplotlib.pyplot as plt
from sklearn.model_selection import ShuffleSplit

from sparsemargin import ALMAClassifier
from sparsemargin.datasets import make_alma_target
from sparsemargin.plotting import SelectionStabilityDisplay

X, y, *_ = make_alma_target(300, 1, n_relevant=5, random_state=0)
splits = ShuffleSplit(25, train_size=150, random_state=0)
names = [f"gene {j + 1}" for j in range(300)]

# %%
# The first five genes are the ones that the labels were made from. The other places among the ten
# strongest go to whatever fits the rows at hand, so the splits agree in part only.
SelectionStabilityDisplay.from_estimator(
    ALMAClassifier(p=8, alpha=0.5, max_iter=3, random_state=0),
    X, y, splits=splits, top=10, feature_names=names,
)  # fmt: skip
plt.show()
