"""The training data of a learner: rows, labels and weights."""
