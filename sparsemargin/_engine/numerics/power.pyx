"""Powers by the block, so that the compiler can use vector instructions."""

from libc.math cimport pow, sqrt


cdef void raise_block(const Power* power, double* a, Py_ssize_t n) noexcept nogil:
    """``a[j] **= exponent`` for n <= BLOCK entries >= 0, to the bit what `raised` gives."""
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
