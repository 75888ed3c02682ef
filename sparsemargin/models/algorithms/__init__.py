"""The algorithms, one per file, and the base classes of groups of algorithms."""
