"""The algorithms, one file each, and what groups of them share."""
