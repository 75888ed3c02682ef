"""|a|**e for the exponents a p-norm needs, by multiplication where that is exact enough."""

from libc.math cimport copysign, exp2, fabs, pow, sqrt

cdef struct Power:
    double exponent
    int whole  # integer part of a multiple of one half, -1 for any other exponent
    bint half
    double negligible  # below it, 2**20 powers add less than rounding to a sum of 1 or more


cdef enum:
    BLOCK = 64  # how many powers are taken at a time


cdef inline Power make_power(double exponent) noexcept nogil:
    cdef Power power
    cdef double doubled = 2.0 * exponent
    power.exponent = exponent
    power.whole = -1
    power.negligible = exp2(-80.0 / exponent)
    power.half = False
    if doubled == <int> doubled:
        power.whole = <int> exponent
        power.half = (<int> doubled) % 2 == 1
    return power


cdef inline double raised(const Power* power, double a) noexcept nogil:
    """``a ** exponent`` for a >= 0."""
    cdef double result
    cdef int whole = power.whole
    if whole < 0:
        return pow(a, power.exponent)
    result = sqrt(a) if power.half else 1.0
    while whole:
        if whole & 1:
            result *= a
        a *= a
        whole >>= 1
    return result


cdef inline void raise_block(const Power* power, double* a, Py_ssize_t n) noexcept nogil:
    """``a[j] **= exponent`` for n <= BLOCK entries >= 0, to the bit what `raised` gives: by the
    block, so that the compiler can use vector instructions."""
    cdef double base[BLOCK]
    cdef Py_ssize_t j
    cdef int whole = power.whole
    if whole < 0:
        for j in range(n):
            a[j] = pow(a[j], power.exponent)
        return
    for j in range(n):
        base[j] = a[j]
    for j in range(n):
        a[j] = sqrt(a[j]) if power.half else 1.0
    while whole:
        if whole & 1:
            for j in range(n):
                a[j] *= base[j]
        whole >>= 1
        if whole:
            for j in range(n):
                base[j] *= base[j]


cdef inline double link(const Power* power, double t) noexcept nogil:
    """``sign(t) |t|**exponent``."""
    return copysign(raised(power, fabs(t)), t)
