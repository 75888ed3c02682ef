"""Outputs of a linear space, for all rows or part by part."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from sparsemargin._engine import kernels
from sparsemargin._engine.fitting.threads import run_together, threads_worth


class LinearOutputs:
    """Outputs of the last or averaged hypothesis for the rows at hand.

    Averaged weights are made once for all of them, unless they have fewer entries than a label has
    weights that are held; the outputs are the same to the bit.

    Parameters
    ----------
    space : LinearSpace
    rows : Rows
        Checked.
    relative : bool
        Whether the outputs of a row may be multiplied by a common power of two where they would
        not fit a double.
    """

    def __init__(self, space, rows, *, relative=False):
        self.space, self.rows, self.relative = space, rows, relative
        self.outputs = kernels.for_state(rows, space).outputs
        bulk = space.averages and int(rows.indptr[-1]) >= space.n_held
        self.weights = space.weighed() if bulk else None

    def fill(self, out, start, stop):
        """Outputs of the rows from start to before stop, shape (n_rows, n_labels); whether all of
        them fit a double."""
        rows = self.rows
        return self.outputs(
            self.space, self.space.t, self.weights, rows.data, rows.indices,
            rows.indptr[start : stop + 1], self.relative, out,
        )  # fmt: skip

    def part(self, start, stop):
        """A fresh array of them, and whether all fit."""
        out = np.empty((stop - start, self.space.n_labels))
        return out, self.fill(out, start, stop)

    def all(self, n_threads):
        """Those of all rows."""
        n_rows = len(self.rows.indptr) - 1
        out = np.empty((n_rows, self.space.n_labels))
        n_threads = threads_worth(n_threads, int(self.rows.indptr[-1]) * self.space.n_labels)
        cuts = [n_rows * i // n_threads for i in range(n_threads + 1)]
        calls = [partial(self.fill, out[a:b], a, b) for a, b in pairwise(cuts)]
        return out, all(run_together(calls, n_threads))
