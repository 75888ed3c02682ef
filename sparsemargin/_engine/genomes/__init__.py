"""Counts of the k-mers of sequences."""
