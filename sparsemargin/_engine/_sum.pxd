"""Sums that can be taken back: what was added and is later subtracted leaves no trace."""


cdef inline void add_exactly(double* high, double* low, double x) noexcept nogil:
    """high + low + x, the rounding error of the sum kept in low (Knuth's two-sum)."""
    cdef double total = high[0] + x
    cdef double part = total - high[0]
    low[0] += (high[0] - (total - part)) + (x - part)
    high[0] = total
