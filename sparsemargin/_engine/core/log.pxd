"""The log of corrections, from which voted and random hypotheses are replayed."""

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from sparsemargin._engine.rows.csr cimport index_t, value_t

cdef enum:
    FORGET = -(1 << 30)  # value of `shift_before` that sets t to 0


cdef struct Correction:
    # t <- (t * 2**shift_before + coefficient * row) * 2**shift_after
    int64_t row  # index among the stored rows
    int64_t start  # trials of this vector before the trial that made the correction
    double coefficient
    double unit  # the new hypothesis is unit * link(t)
    double norm  # norm of the new vector
    int32_t vector
    int32_t shift_before
    int32_t shift_after


cdef inline double unit_of(const Correction* entry, bint logged, bint wanted) noexcept nogil:
    """The unit that gives a hypothesis norm 1 if `wanted`, and its own norm otherwise. `logged` is
    whether the units in the log give norm 1."""
    if logged == wanted:
        return entry.unit
    if logged:
        return entry.unit * entry.norm
    return entry.unit / entry.norm if entry.norm > 0.0 else 0.0


cdef class CorrectionLog:
    cdef vector[Correction] corrections
    # Rows that corrected at least one vector, scaled as in `RowScale`; each is stored once.
    cdef vector[int64_t] row_start
    cdef vector[int64_t] columns
    cdef vector[double] values
    cdef int take_corrections(self, state, int64_t n_rows) except -1
    cdef int64_t add_row(self, const value_t* values, const index_t* columns, Py_ssize_t nnz,
                         double bias, int64_t bias_column, double factor) except -1 nogil
