# distutils: extra_compile_args = -ffp-contract=off
"""The Second-order Perceptron's dual space.

``w = (a I + S S^T)^-1 v``. With L the Cholesky factor of ``a I + S^T S``, which grows by a row a
mistake, a mistake on x moves w along ``x - S (a I + S^T S)^-1 S^T x``.
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t

from sparsemargin._engine._dual cimport DualSpace
from sparsemargin._engine._types cimport OK
from sparsemargin._engine._vectors cimport add_multiple, dot

from sparsemargin._engine._states import require


cdef class SecondOrderDual(DualSpace):
    """SO(a): Cesa-Bianchi, Conconi & Gentile (2005), in dual variables.

    Parameters
    ----------
    a : float
    **settings
        Those of `DualSpace`.
    """

    cdef double a

    def open(self, *, double a, **settings):
        super().open(**settings)
        require(a > 0.0, "its settings are out of range")
        self.a = a

    cdef int move(self, const double* products, int64_t row, double output,
                  double step) except -1 nogil:
        cdef size_t j, k = self.columns.size()
        cdef bint updates = self.may_update()
        cdef double rest = self.a, size = step / self.a
        self.look_up(products)
        self.z.assign(self.x.begin(), self.x.end())
        self.solve_forward(k)
        if updates:
            # Of rows that depend on each other rounding may leave less than nothing.
            rest += max(1.0 - dot(self.z.data(), self.z.data(), k), 0.0)
            size = (step - output) / rest
            self.matrix.insert(self.matrix.end(), self.z.begin(), self.z.end())
            self.matrix.push_back(sqrt(rest))
        self.solve_backward(k)
        for j in range(k):
            self.z[j] *= -size
        output = self.shift(row, output, size)
        if updates:
            self.take_column(row, output)
        return OK

    cdef void solve_forward(self, size_t k) noexcept nogil:
        """z <- L^-1 z."""
        cdef size_t i
        cdef const double* row = self.matrix.data()
        for i in range(k):
            self.z[i] = (self.z[i] - dot(row, self.z.data(), i)) / row[i]
            row += i + 1

    cdef void solve_backward(self, Py_ssize_t k) noexcept nogil:
        """z <- L^-T z."""
        cdef Py_ssize_t i
        cdef const double* row = self.matrix.data() + k * (k + 1) // 2
        for i in range(k - 1, -1, -1):
            row -= i + 1
            self.z[i] /= row[i]
            add_multiple(self.z.data(), row, -self.z[i], i)
