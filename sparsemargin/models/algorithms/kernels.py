"""Creation of the kernel that a learner's parameters specify."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin._engine.kernel.functions import Kernel, PolyKernel, RBFKernel, keeps_zeros
from sparsemargin._engine.kernel.user_kernels import CallableKernel, PrecomputedKernel
from sparsemargin.models.inputs.training_set import Beginning
from sparsemargin.models.learner import Learner


def kernel_for(learner: Learner, first: Beginning) -> Kernel:
    """Return the kernel for a new model."""
    bias, dense = learner._bias(first), not first.grows and keeps_zeros(first.rows)
    if callable(learner.kernel):
        return CallableKernel(bias, dense=not first.sparse, function=learner.kernel)
    if learner.kernel == "precomputed":
        return PrecomputedKernel(bias)
    if learner.kernel == "linear":
        return PolyKernel(bias, dense=dense, degree=1, gamma=1.0, coef0=0.0)
    gamma = _gamma(learner.gamma, first.rows)
    if learner.kernel == "rbf":
        return RBFKernel(bias, dense=dense, gamma=gamma)
    degree = int(learner.degree)
    if learner.kernel == "polyrbf":
        return RBFKernel(bias, dense=dense, gamma=gamma, degree=degree)
    return PolyKernel(bias, dense=dense, degree=degree, gamma=gamma, coef0=float(learner.coef0))


def _gamma(gamma: Any, rows: Any) -> float:
    if gamma == "auto":
        return 1.0 / rows.n_features
    if gamma != "scale":
        return float(gamma)
    variance = _variance(rows)
    return 1.0 / (rows.n_features * variance) if variance > 0 else 1.0


def _variance(rows: Any) -> float:
    """Variance of all entries, including zeros, as in scikit-learn's SVC."""
    n = (len(rows.indptr) - 1) * rows.n_features
    mean = float(np.sum(rows.data, dtype=np.float64)) / n
    rest = rows.data - np.float64(mean)
    return float(np.dot(rest, rest) + (n - len(rest)) * mean * mean) / n
