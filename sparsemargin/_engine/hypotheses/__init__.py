"""All hypotheses that a run of a first-order rule has gone through.

- ``log``: the corrections, as the trials leave them behind.
- ``replay``: these made again over test points: votes, averages and random time slices, at any
  moment of the run. `LinearReplay` moves the vectors and lets what moved reach the points;
  `KernelReplay` moves the scores of all points.
"""
