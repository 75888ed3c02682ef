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


def counted_weights(sample_weight, class_weight, labels):
    """Return the weights of rows, 0 for those of a class of weight 0, which are no trials."""
    weight = np.ones(len(labels)) if sample_weight is None else np.array(sample_weight, float)
    if isinstance(class_weight, dict):
        weight[np.isin(labels, [c for c, of_class in class_weight.items() if of_class == 0])] = 0
    return weight
