"""The Second-order Perceptron's dual space.

With ``v = S beta``, ``w = (a I + S S^T)^-1 v`` is ``S alpha``, ``alpha = (a I + S^T S)^-1 beta``.
The Cholesky factor L of that k x k matrix grows by a row a mistake.
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libcpp.algorithm cimport fill
from libcpp.vector cimport vector

from sparsemargin._engine.matrix.dual cimport DualSpace
from sparsemargin._engine.state cimport doubles, take
from sparsemargin._engine.rows.types cimport OK
from sparsemargin._engine.numerics.vectors cimport add_multiple, dot

from sparsemargin._engine.state import require


cdef class SecondOrderDual(DualSpace):
    """SO(a): Cesa-Bianchi, Conconi & Gentile (2005), in dual variables.

    Parameters
    ----------
    a : float
    **settings
        Those of `DualSpace`.
    """

    cdef double a
    cdef vector[double] forward  # L^-1 beta, v being S beta

    def open(self, *, double a, **settings):
        super().open(**settings)
        require(a > 0.0, "its settings are out of range")
        self.a = a

    cdef int move(self, const double* products, int64_t row, double output,
                  double step) except -1 nogil:
        cdef Py_ssize_t k = self.columns.size()
        self.look_up(products)
        self.z.assign(self.x.begin(), self.x.end())
        self.solve_forward(k)
        if self.may_update():
            self.take_row_in(k, row, step)
        else:
            self.move_only(k, row, step / self.a)
        return OK

    cdef int take_row_in(self, Py_ssize_t k, int64_t row, double step) except -1 nogil:
        """S takes in the row at hand, and v moves by step times it."""
        cdef double along = dot(self.z.data(), self.forward.data(), k)
        # Of rows that depend on each other rounding may leave less than nothing.
        cdef double rest = max(1.0 - dot(self.z.data(), self.z.data(), k), 0.0)
        cdef double pivot = sqrt(self.a + rest)
        self.matrix.insert(self.matrix.end(), self.z.begin(), self.z.end())
        self.matrix.push_back(pivot)
        self.forward.push_back((step - along) / pivot)
        self.take_column(row)
        self.z.assign(self.forward.begin(), self.forward.end())
        self.solve_backward(k + 1)
        fill(self.w.begin(), self.w.end(), 0.0)
        self.shift(row, 0.0)
        return OK

    cdef void move_only(self, Py_ssize_t k, int64_t row, double size) noexcept nogil:
        """v moves, S stays: w moves by size times ``x - S (a I + S^T S)^-1 S^T x``."""
        cdef Py_ssize_t j
        self.solve_backward(k)
        for j in range(k):
            self.z[j] *= -size
        self.shift(row, size)

    cdef void solve_forward(self, Py_ssize_t k) noexcept nogil:
        """z <- L^-1 z."""
        cdef Py_ssize_t i
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

    def rounding(self):
        # By the condition number of a I + S^T S, at most.
        return super().rounding() * (1.0 + self.updates / self.a)

    def __getstate__(self):
        return {**super().__getstate__(), "forward": doubles(self.forward)}

    def __setstate__(self, state):
        super().__setstate__(state)
        take(self.forward, "forward", state, self.columns.size())
