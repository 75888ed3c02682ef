"""Norms of vectors."""

import numpy as np


def vectors_of(weights):
    """The rows of an array, or of a CSR array of which one at a time is made dense."""
    for i in range(weights.shape[0]):
        yield weights[i] if isinstance(weights, np.ndarray) else weights[[i]].toarray().ravel()


def norm(v, q):
    """The q-norm of a vector, whatever its magnitude."""
    largest = float(np.abs(v).max(initial=0.0))
    return largest * float(np.linalg.norm(v / largest, ord=q)) if largest else 0.0
