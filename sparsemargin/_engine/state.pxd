"""What engine objects are saved as, and how that is taken in again."""

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

ctypedef fused stored_vector:
    vector[int32_t]
    vector[int64_t]
    vector[float]
    vector[double]

cdef as_array(const void* data, size_t n, dtype)
cdef doubles(const vector[double]& values)
cdef int take(stored_vector& values, name, state, length) except -1
