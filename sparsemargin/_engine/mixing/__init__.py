"""Coordinates of vectors that were trained on shards of the rows, and their mixture."""
