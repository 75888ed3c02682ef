"""Model files, including the pipelines that they hold, and weights written as text."""
