"""Sums that can be taken back: what was added and is later subtracted leaves no trace."""


cdef inline void add_exactly(double* high, double* low, double x) noexcept nogil:
    """high + low + x, the rounding error of the sum kept in low (Knuth's two-sum)."""
    cdef double total = high[0] + x
    cdef double part = total - high[0]
    low[0] += (high[0] - (total - part)) + (x - part)
    high[0] = total


cdef struct Sum:
    double high
    double low
    double lowest


cdef inline void add(Sum* total, double x) noexcept nogil:
    """Add x with three times the digits of a double."""
    cdef double error = 0.0
    add_exactly(&total.high, &error, x)
    add_exactly(&total.low, &total.lowest, error)


cdef inline void add_sum(Sum* total, const Sum* other) noexcept nogil:
    add(total, other.high)
    add(total, other.low)
    add(total, other.lowest)


cdef inline void tidy(Sum* total) noexcept nogil:
    """Bring the leading digits to the front; cancellation may have left them behind."""
    cdef double error = 0.0
    add_exactly(&total.high, &error, total.low)
    total.low = 0.0
    add_exactly(&error, &total.low, total.lowest)
    total.lowest = total.low
    total.low = error
