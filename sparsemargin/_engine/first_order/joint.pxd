"""The space of joint multi-class learning: one vector over the coordinates of all classes."""

from sparsemargin._engine.first_order.linear cimport LinearSpace

cdef class JointSpace(LinearSpace):
    cdef Py_ssize_t n_classes
    cdef double rho  # value of the intercept's coordinate of each class; 0: none
    cdef LinearSpace as_labels(self)
