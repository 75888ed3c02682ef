"""The sum of all hypotheses, each as often as it lasted, as ``Z g + acc``; and sums that fall.

A hypothesis is ``unit * g``, of which a correction moves few coordinates. Z counts the units; where
g moves by d, acc gains ``-Z d``. A flush lets acc take in ``Z g``, and Z begins anew.
"""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    // Of sums of powers: for p = 2 the increments are rounded row by row, for p > 2 they telescope
    // exactly.
    static const double SM_STALE_2 = 0x1p-10, SM_STALE_P = 0x1p-90;
    static const double SM_FLUSH = 0x1p-10, SM_MOST_TERMS = 0x1p20;
    """
    const double STALE_2 "SM_STALE_2"
    const double STALE_P "SM_STALE_P"
    const double FLUSH "SM_FLUSH"
    const double MOST_TERMS "SM_MOST_TERMS"


cdef struct Average:
    double Z  # sum of c_k unit_k since the last flush
    double unit_peak  # largest unit since then
    int64_t begin  # trials before the one that made the current vector


cdef inline void count_unit(Average* average, int64_t trials, double unit) noexcept nogil:
    """Count the current vector up to so many trials."""
    average.Z += (trials - average.begin) * unit
    average.unit_peak = max(average.unit_peak, unit)
    average.begin = trials


cdef inline void clear(Average* average) noexcept nogil:
    """Begin anew after a flush."""
    average.Z = average.unit_peak = 0.0


cdef inline bint must_flush(const Average* average, double least) noexcept nogil:
    """Whether Z g and acc would cancel, `least` being the lesser unit before and after a step:
    where g grows far beyond what it was when Z was summed; or Z has so many terms that their
    rounding, which goes one way where they are equal, could add up."""
    return least < max(FLUSH * average.unit_peak, average.Z / MOST_TERMS)


cdef inline bint has_fallen(double total, double peak, bint telescopes) noexcept nogil:
    """Whether a sum of powers is so far below its peak that it is to be summed afresh."""
    return total < (STALE_P if telescopes else STALE_2) * peak
