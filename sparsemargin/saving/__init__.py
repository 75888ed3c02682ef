"""Model files, the pipelines in them, and weights as text."""
