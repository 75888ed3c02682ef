"""Norms of vectors."""

import numpy as np


def vectors_of(weights):
    """The rows of an array, or of a CSR array, each as a dense vector."""
    for i in range(weights.shape[0]):
        yield weights[i] if isinstance(weights, np.ndarray) else weights[[i]].toarray().ravel()


def norm(v, q):
    """The q-norm of a vector, without overflow or underflow."""
    largest = float(np.abs(v).max(initial=0.0))
    return largest * float(np.linalg.norm(v / largest, ord=q)) if largest else 0.0
