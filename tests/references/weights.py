"""What weights of rows and of classes multiply steps by: none but their ratios count."""

import numpy as np


def step_factors(sample_weight, influence=np.cbrt, first_call=None):
    """Of rows, relative to the mean of those that are not 0 and, in a stream, in its first call."""
    weight = np.asarray(sample_weight, np.longdouble)
    first = weight[:first_call]
    return influence(weight / first[first > 0].mean())


def class_factors(class_weight, labels, influence=np.cbrt):
    """Of each class in sorted order, relative to the harmonic mean of those that are not 0."""
    classes, counts = np.unique(labels, return_counts=True)
    if isinstance(class_weight, str):
        class_weight = dict(zip(classes, 1 / counts, strict=True))
    weight = np.array([(class_weight or {}).get(c, 1) for c in classes], np.longdouble)
    return influence(weight * np.mean(1 / weight[weight > 0]))
