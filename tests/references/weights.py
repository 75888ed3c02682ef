"""Factors by which weights of rows and classes multiply steps: only their ratios count."""

import numpy as np


def step_factors(sample_weight, influence=np.cbrt, first_call=None):
    """Factors of rows, relative to the mean of nonzero weights, in a stream those of its first
    call."""
    weight = np.asarray(sample_weight, np.longdouble)
    first = weight[:first_call]
    return influence(weight / first[first > 0].mean())


def class_factors(class_weight, labels, influence=np.cbrt):
    """Factors of the sorted classes, relative to the harmonic mean of nonzero weights."""
    classes, counts = np.unique(labels, return_counts=True)
    if isinstance(class_weight, str):
        class_weight = dict(zip(classes, 1 / counts, strict=True))
    weight = np.array([(class_weight or {}).get(c, 1) for c in classes], np.longdouble)
    return influence(weight * np.mean(1 / weight[weight > 0]))
