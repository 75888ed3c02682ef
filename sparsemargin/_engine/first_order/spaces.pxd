"""The state of first-order models: the linear spaces as Python objects."""

from sparsemargin._engine.core.vectors cimport FirstOrderSpace
from sparsemargin._engine.first_order.linear cimport Coordinates

cdef class LinearState(FirstOrderSpace):
    cdef readonly object t
    cdef readonly object g
    cdef readonly object acc
    cdef readonly object synced
    cdef readonly object variances
    cdef readonly object pending
    cdef readonly Py_ssize_t width
    cdef readonly object row_slack
    cdef readonly object multipliers
    cdef object scales
    cdef bint is_single
    cdef Coordinates[float] singles
    cdef Coordinates[double] doubles
    cdef take_coordinates(self, tuple arrays, pending)
    cdef point(self)

cdef class JointState(LinearState):
    cdef Py_ssize_t n_classes
    cdef double rho
