"""Outputs of a linear space, for all rows or part by part."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from sparsemargin._engine.first_order.trials import Hypothesis
from sparsemargin._engine.fitting.threads import run_together, threads_worth


class LinearOutputs:
    """Outputs of the last or averaged hypothesis for the rows at hand.

    Parameters
    ----------
    space : LinearSpace
    rows : Csr
        Checked.
    """

    def __init__(self, space, rows):
        self.space, self.rows = space, rows
        self.hypothesis = Hypothesis(space, int(rows.indptr[-1]))

    def part(self, start, stop):
        """Those of the rows from start to before stop, shape (n_rows, n_labels)."""
        out = np.empty((stop - start, self.space.n_labels))
        self.hypothesis.fill(out, self.rows, start, stop)
        return out

    def all(self, n_threads):
        """Those of all rows."""
        n_rows = self.rows.n_rows
        out = np.empty((n_rows, self.space.n_labels))
        n_threads = threads_worth(n_threads, int(self.rows.indptr[-1]) * self.space.n_labels)
        cuts = [n_rows * i // n_threads for i in range(n_threads + 1)]
        calls = [
            partial(self.hypothesis.fill, out[a:b], self.rows, a, b) for a, b in pairwise(cuts)
        ]
        run_together(calls, n_threads)
        return out
