"""
Time grows with what is in a row, not with its length
=====================================================

A trial costs O(nnz), the number of entries that are not zero. So the time of an epoch grows in
proportion to the rows, which on logarithmic axes is a line of slope 1. The display fits that slope,
the *exponent*, and tells its standard error.
"""

# %%
# Sparse rows over 50,000 words, ever more of them; each time is the least of three. A fifth of the
# labels is wrong, so that corrections are as frequent late as early.
from time import perf_counter

import matplotlib.pyplot as plt

from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin.datasets import make_zipf_text
from sparsemargin.plotting import GrowthDisplay

X, y = make_zipf_text(64_000, 50_000, mean_nnz=40, noise=0.2, random_state=0)
sizes = [4000, 8000, 16_000, 32_000, 64_000]


def seconds(model, n_rows):
    """Time one epoch over the first rows."""
    times = []
    for _ in range(3):
        start = perf_counter()
        model.fit(X[:n_rows], y[:n_rows])
        times.append(perf_counter() - start)
    return min(times)


# %%
# An exponent of 1 means: twice the rows, twice the time. What a call costs whatever its rows, a
# vector of weights for one, makes it a little less.
learners = {
    "Perceptron, p = 2": PNormPerceptron(max_iter=1, random_state=0),
    "ALMA, p = 6": ALMAClassifier(p=6, max_iter=1, random_state=0),
}
measurements = {
    name: (sizes, [seconds(model, n_rows) for n_rows in sizes]) for name, model in learners.items()
}
GrowthDisplay.from_measurements(
    measurements, size_name="rows of 50,000 features", time_name="seconds an epoch"
)
plt.show()
