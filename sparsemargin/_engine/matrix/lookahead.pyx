"""Rows whose products with the matrix are worked out side by side, before their turn.

Of the rows that the present vector mistakes, most are still mistaken when their turn comes. A
pass over the stored rows costs hardly more for four vectors than for one, and what a correction
does to the matrix is easily done to the products at hand too. So on a mistake the next ones are
guessed, and the four products worked out at once. A guess that fails costs a lane; the rule, the
order of the corrections and, but for rounding, the vectors are the same.
"""

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from sparsemargin._engine.rows.types cimport OK


cdef class Lanes:
    def __init__(self):
        self.x.resize(WIDTH)
        self.at.resize(WIDTH)
        self.current = -1

    cdef void clear(self) noexcept nogil:
        self.n = 0
        self.current = -1
        self.filled = False

    cdef void release(self) noexcept nogil:
        """Forget all, and give back the memory."""
        self.clear()
        self.products = vector[double]()

    cdef bint choose(self, int64_t trial) noexcept nogil:
        """Make the row of that trial the current one, if it has a lane."""
        cdef int lane
        for lane in range(self.n):
            if self.trial[lane] == trial:
                self.current = lane
                return True
        return False

    cdef int add(self, int64_t trial, const vector[double]& x,
                 const vector[int32_t]& at) except -1 nogil:
        self.trial[self.n] = trial
        self.x[self.n] = x
        self.at[self.n] = at
        self.n += 1
        return OK

    cdef bint any_waiting(self) noexcept nogil:
        """Whether a lane's row is still to come."""
        return 0 <= self.current < self.n - 1
