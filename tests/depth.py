"""How much a run of the tests tries: a sample that has every value of every axis, or everything.

``make test`` takes the samples; ``make test-all`` sets SPARSEMARGIN_TESTS to "all" and takes all.
"""

import os
from itertools import combinations, product

import pytest

ALL = os.environ.get("SPARSEMARGIN_TESTS") == "all"

# Of a test that takes long for what shorter ones show in part.
long = pytest.mark.skipif(not ALL, reason="takes long: make test-all")


def some(sample, everything):
    """Return the sample, or everything where all is tried."""
    return everything if ALL else sample


def pairwise(*axes):
    """Return the combinations of the axes' values, or as few as have every pair of values.

    Greedy, in the order of the product: the same ones in every run.
    """
    rows = list(product(*axes))
    if ALL or len(axes) < 3:
        return rows
    coded = list(product(*(range(len(axis)) for axis in axes)))
    pairs = list(combinations(range(len(axes)), 2))
    missing = {(i, row[i], j, row[j]) for row in coded for i, j in pairs}
    chosen = []
    while missing:
        best = max(coded, key=lambda row: sum((i, row[i], j, row[j]) in missing for i, j in pairs))
        missing -= {(i, best[i], j, best[j]) for i, j in pairs}
        chosen.append(best)
    return [tuple(axis[at] for axis, at in zip(axes, row, strict=True)) for row in chosen]
