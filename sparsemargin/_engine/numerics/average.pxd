"""The sum of the hypotheses of all trials, as ``Z g + acc``, and limits of rounding errors.

A hypothesis is ``unit * g``, and a correction changes few coordinates of g. Z is the sum of the
units. When g changes by d, acc changes by ``-Z d``. A flush adds ``Z g`` to acc and sets Z to 0.
"""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    // A sum of powers is recomputed below this part of its peak. For p = 2 every row adds a
    // rounding error, for p > 2 the increments cancel exactly.
    static const double SM_STALE_2 = 0x1p-10, SM_STALE_P = 0x1p-90;
    static const double SM_FLUSH = 0x1p-10, SM_MOST_TERMS = 0x1p20;
    """
    const double STALE_2 "SM_STALE_2"
    const double STALE_P "SM_STALE_P"
    const double FLUSH "SM_FLUSH"
    const double MOST_TERMS "SM_MOST_TERMS"


cdef struct Average:
    double Z  # sum of c_k unit_k since the last flush
    double unit_peak  # largest unit since the last flush
    int64_t begin  # number of trials before the one that made the current vector


cdef inline void count_unit(Average* average, int64_t trials, double unit) noexcept nogil:
    """Count the current vector up to trial number `trials`."""
    average.Z += (trials - average.begin) * unit
    average.unit_peak = max(average.unit_peak, unit)
    average.begin = trials


cdef inline void clear(Average* average) noexcept nogil:
    """Reset the sum after a flush."""
    average.Z = average.unit_peak = 0.0


cdef inline bint must_flush(const Average* average, double least) noexcept nogil:
    """Return whether Z must be flushed; `least` is the smaller of the units before and after a
    step. If g has grown far beyond its size when Z was summed, Z g and acc would cancel. If Z has
    many terms, their rounding errors, which have the same sign for equal terms, could add up."""
    return least < max(FLUSH * average.unit_peak, average.Z / MOST_TERMS)


cdef inline bint has_fallen(double total, double peak, bint telescopes) noexcept nogil:
    """Return whether a sum of powers is so far below its peak that it must be recomputed.
    `telescopes` means that its increments cancel exactly."""
    return total < (STALE_P if telescopes else STALE_2) * peak
