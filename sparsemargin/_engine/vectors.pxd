"""Vectors of C++ made arrays of numpy, for states, and the other way round."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

ctypedef fused stored_vector:
    vector[int32_t]
    vector[int64_t]
    vector[float]
    vector[double]


cdef inline as_array(const void* data, size_t n, dtype):
    """A copy of what lies there."""
    import numpy as np

    dtype = np.dtype(dtype)
    size = n * dtype.itemsize
    return np.frombuffer(PyBytes_FromStringAndSize(<const char*> data, size), dtype)


cdef inline doubles(const vector[double]& values):
    return as_array(values.data(), values.size(), "f8")


cdef inline int take(stored_vector& values, name, state, length) except -1:
    """The other way round: the array called `name`, of that length."""
    import numpy as np

    from sparsemargin._engine.state import array_of

    if stored_vector is vector[int32_t]:
        dtype = np.int32
    elif stored_vector is vector[int64_t]:
        dtype = np.int64
    elif stored_vector is vector[float]:
        dtype = np.float32
    else:
        dtype = np.float64
    raw = np.ascontiguousarray(array_of(state, name, dtype, (length,))).tobytes()
    values.resize(length if length is not None else len(state[name]))
    memcpy(values.data(), <const char*> <bytes> raw, len(raw))
    return 0
