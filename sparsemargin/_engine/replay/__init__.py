"""All hypotheses that a run has gone through, for votes, averages and random slices.

- ``replay``: the logged corrections made again over test points, up to any trial of the run.
  `LinearReplay` moves the vectors and lets what moved reach the points; `KernelReplay` moves the
  scores of all points.
- ``replayed``: what first-order spaces tell by these.
"""
