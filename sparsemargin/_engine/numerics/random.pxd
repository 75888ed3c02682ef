"""SplitMix64, which drives the shuffling and the drawing of time slices."""

from libc.stdint cimport int64_t, uint64_t

cdef inline uint64_t stepped(uint64_t state) noexcept nogil:
    return state + 0x9E3779B97F4A7C15u


cdef inline uint64_t mixed(uint64_t z) noexcept nogil:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu
    return z ^ (z >> 31)


cdef inline void shuffle_rows(int64_t* order, Py_ssize_t n, uint64_t seed) noexcept nogil:
    """A random permutation, in place: Fisher and Yates's."""
    cdef Py_ssize_t i
    cdef uint64_t j
    cdef int64_t kept
    for i in range(n - 1, 0, -1):
        seed = stepped(seed)
        # The high half of 32 bits times the range: biased by less than 2**-32 * n.
        j = ((mixed(seed) >> 32) * <uint64_t> (i + 1)) >> 32
        kept = order[i]
        order[i] = order[j]
        order[j] = kept
