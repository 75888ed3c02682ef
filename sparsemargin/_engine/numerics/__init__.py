"""Numbers, whatever they stand for.

- ``arithmetic``: powers for p-norms, sums that can be taken back, random permutations.
- ``average``: what keeps the sum of all hypotheses exact.
- ``vectors``: loops over contiguous numbers, compiled for the vector widths there are.
"""
