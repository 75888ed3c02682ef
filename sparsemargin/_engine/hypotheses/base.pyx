"""Outputs of test points by all hypotheses, at moments of a run.

The log of corrections is replayed, in the order of the trials, up to one moment after the other.
What the points are to a space, and what a correction does to their scores, subclasses know.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

import numpy as np

from sparsemargin._engine.first_order.labels cimport FirstOrderSpace
from sparsemargin._engine.hypotheses.log cimport Correction, CorrectionLog, unit_of

cdef class Hypotheses:
    """Base of the replays; not for use by itself.

    Outputs are those at the moment come to by `advance`, ndarrays of shape (n_points, n_labels).

    Parameters
    ----------
    space : FirstOrderSpace
        With a log.
    n_points : int
    averaged : bool
        Whether averages are worked out besides the rest.
    """

    def __init__(self, FirstOrderSpace space, Py_ssize_t n_points, bint averaged):
        cdef Py_ssize_t e
        self.log = space.log
        self.normalized = space.c.normalized
        self.averaged = averaged
        self.n_labels, self.n_points = space.c.n_labels, n_points
        cdef int64_t[::1] starts = np.empty(self.log.corrections.size(), dtype=np.int64)
        for e in range(starts.shape[0]):
            starts[e] = self.log.corrections[e].start
        # One label's corrections may be logged before another's earlier ones.
        self.by_time = np.argsort(starts, kind="stable")
        self.ends = self.counts = space.trials_per_label
        shape = self.n_labels, n_points
        self.scores, self.voted = np.zeros(shape), np.zeros(shape)
        self.totals = np.zeros((2, *shape) if averaged else (2, 0, 0))
        self.units = np.zeros((2, self.n_labels))

    cdef void take(self, const Correction* entry) noexcept nogil:
        """Count the vector that the correction ends, and let the scores take it."""

    cdef void count(self, Py_ssize_t label, int64_t trials) noexcept nogil:
        """Count the current vector up to so many trials."""

    def advance(self, int64_t trials):
        """Replay what happened in the first `trials` trials, which must not be fewer than
        before."""
        cdef Py_ssize_t l, v
        cdef const Correction* entry
        with nogil:
            while self.done < self.by_time.shape[0]:
                entry = &self.log.corrections[self.by_time[self.done]]
                if entry.start >= trials:
                    break
                if self.done % CORRECTIONS_PER_CHECK == 0:
                    with gil:
                        PyErr_CheckSignals()
                self.take(entry)
                for v in range(2):
                    self.units[v, entry.label] = unit_of(entry, self.normalized, v)
                self.done += 1
            for l in range(self.n_labels):
                self.count(l, min(trials, self.ends[l]))
        self.counts = np.minimum(trials, self.ends)

    def last(self, bint normalized):
        """``w.x``."""
        return np.asarray(self.scores).T * np.asarray(self.units)[int(normalized)]

    def average(self, bint normalized):
        """``sum_k c_k w_k.x``, divided by the trials."""
        return np.asarray(self.totals)[int(normalized)].T / np.maximum(self.counts, 1)

    def votes(self):
        """``sum_k c_k sign(w_k.x)``, divided by the trials."""
        return np.asarray(self.voted).T / np.maximum(self.counts, 1)
