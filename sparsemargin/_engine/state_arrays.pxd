"""Conversion between C++ vectors and numpy arrays, for saved states."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

ctypedef fused stored_vector:
    vector[int32_t]
    vector[int64_t]
    vector[float]
    vector[double]


cdef inline as_array(const void* data, size_t n, dtype):
    """Return a copy of n values as an array that owns its memory."""
    import numpy as np

    values = np.empty(n, dtype)
    cdef unsigned char[::1] raw
    if n:
        raw = values.view(np.uint8)
        memcpy(&raw[0], data, raw.shape[0])
    return values


cdef inline type_of(const stored_vector& values):
    if stored_vector is vector[int32_t]:
        return "i4"
    elif stored_vector is vector[int64_t]:
        return "i8"
    elif stored_vector is vector[float]:
        return "f4"
    else:
        return "f8"


cdef inline to_array(const stored_vector& values):
    return as_array(values.data(), values.size(), type_of(values))


cdef inline int take(stored_vector& values, name, state, length) except -1:
    """Fill a C++ vector from the array called `name`. A `length` of None allows any length."""
    import numpy as np

    from sparsemargin._engine.state import array_of

    raw = np.ascontiguousarray(array_of(state, name, type_of(values), (length,))).tobytes()
    values.resize(len(state[name]))
    if raw:
        memcpy(values.data(), <const char*> <bytes> raw, len(raw))
    return 0
