"""
Which setting won the race?
===========================

`fit_csr` learns four settings of AROW side by side, and each class keeps the one that errs least
one step ahead: before a row is learned from, all four have predicted it.
"""

# %%
# Text of three classes, and the same with labels that are wrong.
import matplotlib.pyplot as plt

from sparsemargin import fit_csr
from sparsemargin.datasets import make_zipf_text
from sparsemargin.plotting import CandidatesDisplay

figure, panels = plt.subplots(2, 1, figsize=(9, 5), layout="constrained")
for panel, noise in zip(panels, (0, 0.3), strict=True):
    X, y = make_zipf_text(20_000, n_classes=3, noise=noise, random_state=0)
    model = fit_csr(X, y, random_state=0)
    CandidatesDisplay.from_estimator(model, ax=panel)
    panel.set_title(f"{noise:.0%} of the labels wrong")

# %%
# Where labels are wrong, a larger r wins, which trusts a single row less. With two classes it is
# often the last setting, whose losses count for a tenth at most.
plt.show()
