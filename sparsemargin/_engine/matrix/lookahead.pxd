"""Rows whose products with the matrix are worked out side by side, before their turn."""

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

cdef enum:
    WIDTH = 4  # vectors of four doubles are what the compilers handle well


cdef class Lanes:
    cdef int n  # in use
    cdef int current  # that of the correction under way; -1: none
    cdef bint filled
    cdef int64_t trial[WIDTH]  # of each lane's row, in the order of the pass
    cdef vector[vector[double]] x
    cdef vector[vector[int32_t]] at
    cdef vector[double] products  # by place, WIDTH side by side
    cdef void clear(self) noexcept nogil
    cdef void release(self) noexcept nogil
    cdef bint choose(self, int64_t trial) noexcept nogil
    cdef int add(self, int64_t trial, const vector[double]& x,
                 const vector[int32_t]& at) except -1 nogil
    cdef bint any_waiting(self) noexcept nogil
