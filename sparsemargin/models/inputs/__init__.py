"""What a learner is given: rows, labels and their weights."""
