"""SplitMix64, which drives the shuffling and the drawing of time slices."""

from libc.stdint cimport uint64_t

cdef inline uint64_t stepped(uint64_t state) noexcept nogil:
    return state + 0x9E3779B97F4A7C15u


cdef inline uint64_t mixed(uint64_t z) noexcept nogil:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu
    return z ^ (z >> 31)
