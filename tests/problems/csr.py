"""CSR matrices in forms that scipy's constructors would convert or sort."""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp


def csr_of(data, indices, indptr, shape, kind=sp.csr_matrix):
    """Return CSR around these arrays, without the checks of the constructor."""
    X = kind(shape)
    X.data, X.indices, X.indptr = data, indices, indptr
    return X


def shuffled_rows(X, seed=0):
    """Return X with the entries of every row in a random order."""
    rng = np.random.RandomState(seed)
    order = [start + rng.permutation(stop - start) for start, stop in pairwise(X.indptr)]
    order = np.concatenate(order)
    return csr_of(X.data[order], X.indices[order], X.indptr.copy(), X.shape)


def scrambled(X):
    """Return X with unsorted rows and every entry split into two parts whose sum is exact."""
    return shuffled_rows(
        csr_of(np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr, X.shape)
    )


def assert_identical(X, Y):
    """Check that two CSR matrices have the same type, shape, and bits."""
    assert type(X) is type(Y)
    assert X.shape == Y.shape
    for name in ("indptr", "indices", "data"):
        x, y = getattr(X, name), getattr(Y, name)
        assert x.dtype == y.dtype, name
        assert x.tobytes() == y.tobytes(), name
