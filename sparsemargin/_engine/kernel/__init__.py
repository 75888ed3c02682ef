"""Kernels, the support set, and first-order rules in feature space.

- ``functions``: the kernels, of rows divided by their lengths; what they and rows are saved as.
- ``support``: rows as a kernel takes them, and the set of those that have made corrections.
- ``products``: products of rows, and the trials of a block of rows by stored ones.
- ``space``: the vectors, as combinations of the support set.
- ``loop``: a task's rows in blocks, their scores kept from pass to pass; and `KernelSpace`, which
  models learn in and ask.
- ``stored_products``: trials of a block, and of few rows of a linear space, by their products.
- ``outputs``: outputs of vectors, norms and lengths, tile by tile; base of the spaces over a
  support set.
"""
