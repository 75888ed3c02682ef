"""Powers for p-norms, sums that can be subtracted exactly, and random permutations."""

from libc.math cimport copysign, exp2, fabs, pow, sqrt
from libc.stdint cimport int64_t, uint64_t

# Powers |a|**e for p-norms. If e is a multiple of one half, they are computed by multiplication.

cdef struct Power:
    double exponent
    int whole  # integer part of the exponent; -1 if it is not a multiple of one half
    bint half  # whether one half is added to `whole`
    double negligible  # the powers of 2**20 smaller numbers do not change a sum of 1


cdef enum:
    BLOCK = 64  # number of powers computed together


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
    """``a[j] **= exponent`` for n <= BLOCK entries >= 0, bitwise equal to `raised`; the compiler
    can use SIMD instructions for the block."""
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


# Exact sums: a number that is added and later subtracted leaves no rounding error.

cdef extern from "numerics/sums.hpp" namespace "sparsemargin" nogil:
    void add_exactly(double* high, double* low, double x) noexcept
    void add_long(double* high, double* low, double* lowest, double x) noexcept


cdef struct Sum:
    double high
    double low
    double lowest


cdef inline void add(Sum* total, double x) noexcept nogil:
    """Add x with three times the precision of a double."""
    add_long(&total.high, &total.low, &total.lowest, x)


cdef inline void add_sum(Sum* total, const Sum* other) noexcept nogil:
    add(total, other.high)
    add(total, other.low)
    add(total, other.lowest)


cdef inline void tidy(Sum* total) noexcept nogil:
    """Move the leading digits into `high`; after cancellation they may be in the lower parts."""
    cdef double error = 0.0
    add_exactly(&total.high, &error, total.low)
    total.low = 0.0
    add_exactly(&error, &total.low, total.lowest)
    total.lowest = total.low
    total.low = error


# SplitMix64, the generator behind shuffling and random time slices.

cdef inline uint64_t stepped(uint64_t state) noexcept nogil:
    return state + 0x9E3779B97F4A7C15u


cdef inline uint64_t mixed(uint64_t z) noexcept nogil:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu
    return z ^ (z >> 31)


cdef inline void shuffle_rows(int64_t* order, Py_ssize_t n, uint64_t seed) noexcept nogil:
    """A random permutation in place (Fisher-Yates)."""
    cdef Py_ssize_t i
    cdef uint64_t j
    cdef int64_t moved
    for i in range(n - 1, 0, -1):
        seed = stepped(seed)
        # Scaling 32 random bits to 0..i has a bias of less than 2**-32 * n.
        j = ((mixed(seed) >> 32) * <uint64_t> (i + 1)) >> 32
        moved = order[i]
        order[i] = order[j]
        order[j] = moved
