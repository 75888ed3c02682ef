"""``arithmetic``: powers for p-norms, sums that can be taken back, random permutations; and
``vectors``: loops over contiguous numbers, compiled for the vector widths there are."""
