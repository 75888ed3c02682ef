"""The kernel space: vectors as combinations of a pool of rows."""

from libc.stdint cimport int64_t

from sparsemargin._engine.first_order.labels cimport FirstOrderSpace

cdef class KernelSpace(FirstOrderSpace):
    cdef readonly object kernel
    cdef readonly object pool
    cdef readonly object t
    cdef readonly object acc
    cdef readonly object origin
    cdef readonly object passed_over
    cdef readonly object max_support
    cdef readonly int64_t rows_taken
    cdef readonly Py_ssize_t n_features
    cdef take_numbers(self, state)
    cdef bind_rows(self, Py_ssize_t room)
