"""The Higher-order Perceptron's dual space.

With ``A = B^T B = I + sum_ij D_ij x_i x_j^T``, a mistake on x of unit length makes of ``w = A v``
``(I - rho x x^T) (w + r A x)``, ``r = step (1 - rho) - rho (x.v)``, and of D a matrix larger by
the row ``-rho D X^T x`` and the number ``rho^2 x.A x - 2 rho`` on the diagonal.
"""

from libc.stdint cimport int64_t

from sparsemargin._engine.matrix.dual cimport DualSpace, multiply_symmetric
from sparsemargin._engine.rows.types cimport OK
from sparsemargin._engine.numerics.vectors cimport dot

from sparsemargin._engine.state import require


cdef class HigherOrderDual(DualSpace):
    """HO_2(c): Brotto, Gentile & Vitale (2007), section 2, "Dual version".

    Parameters
    ----------
    c : float
        ``rho_k = c / k``.
    sparse_updates : bool
        Whether rho is 0 where ``y x.v < 0``.
    **settings
        Those of `DualSpace`.
    """

    cdef double c
    cdef bint sparse_updates

    def open(self, *, double c, bint sparse_updates, **settings):
        super().open(**settings)
        require(0.0 <= c < 1.0, "its settings are out of range")
        self.c, self.sparse_updates = c, sparse_updates

    cdef int move(self, const double* products, int64_t row, double output,
                  double step) except -1 nogil:
        cdef size_t j, k = self.columns.size()
        cdef double along = dot(products, self.v.data(), self.v.size())
        cdef double rate = self.rate(step * along)
        cdef double moved = step * (1.0 - rate) - rate * along
        cdef double curve
        self.look_up(products)
        multiply_symmetric(self.matrix.data(), self.x.data(), self.z.data(), k)
        curve = 1.0 + dot(self.x.data(), self.z.data(), k)
        if rate > 0.0:
            for j in range(k):
                self.matrix.push_back(-rate * self.z[j])
            self.matrix.push_back(rate * (rate * curve - 2.0))
        for j in range(k):
            self.z[j] *= moved
        self.shift(row, moved - rate * (output + moved * curve))
        if rate > 0.0:
            self.take_column(row)
        return OK

    cdef double rate(self, double agreement) noexcept nogil:
        """rho of this mistake; `agreement` has the sign of ``y x.v``."""
        if self.c == 0.0 or (self.sparse_updates and agreement < 0.0) or not self.may_update():
            return 0.0
        return self.c / (self.corrections + 1)
