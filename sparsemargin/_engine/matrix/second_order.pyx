"""The updates of the Second-order Perceptron.

With ``v = S beta``, ``w = (a I + S S^T)^-1 v`` equals ``S alpha`` with
``alpha = (a I + S^T S)^-1 beta``. The Cholesky factor L of that k x k matrix grows by one row per
mistake. Over the features seen, when L and S cost more than an n x n matrix, the factor of
``a I + S S^T`` is computed instead, and updated with one row per mistake.
"""

from libc.math cimport hypot, sqrt
from libc.stdint cimport int32_t, int64_t
from libcpp.algorithm cimport copy, fill
from libcpp.vector cimport vector

from sparsemargin._engine.matrix.base cimport (
    COST_OF_COLUMN, DualSpace, FeatureSpace, Record, add_sparse, sparse_dot, vector_field
)
from sparsemargin._engine.numerics.simd cimport add_multiple, dot, rotate
from sparsemargin._engine.rows.csr cimport OK

from sparsemargin._engine.state import require


cdef void solve_forward(const double* factor, double* z, Py_ssize_t k) noexcept nogil:
    """z <- L^-1 z; L is given as a lower triangle, row by row."""
    cdef Py_ssize_t i
    cdef const double* row = factor
    for i in range(k):
        z[i] = (z[i] - dot(row, z, i)) / row[i]
        row += i + 1


cdef void solve_backward(const double* factor, double* z, Py_ssize_t k) noexcept nogil:
    """z <- L^-T z."""
    cdef Py_ssize_t i
    cdef const double* row = factor + k * (k + 1) // 2
    for i in range(k - 1, -1, -1):
        row -= i + 1
        z[i] /= row[i]
        add_multiple(z, row, -z[i], i)


cdef int grow(vector[double]& factor, vector[double]& forward, vector[double]& z, double a,
              double square, double step) except -1 nogil:
    """Add the column x to S, and step * x to v, given x.x and z = L^-1 S^T x. z becomes alpha."""
    cdef Py_ssize_t k = forward.size()
    cdef double along = dot(z.data(), forward.data(), k)
    # For linearly dependent rows, rounding errors may make the difference negative.
    cdef double pivot = sqrt(a + max(square - dot(z.data(), z.data(), k), 0.0))
    factor.insert(factor.end(), z.begin(), z.begin() + k)
    factor.push_back(pivot)
    forward.push_back((step - along) / pivot)
    z.assign(forward.begin(), forward.end())
    solve_backward(factor.data(), z.data(), k + 1)
    return OK


cdef class SecondOrderSpace(FeatureSpace):
    """SO(a): Cesa-Bianchi, Conconi & Gentile (2005), Figure 3.1, without the current instance.

    Parameters
    ----------
    a : float
    **settings
        Parameters of `FeatureSpace`; p is 2.
    """

    cdef double a
    cdef vector[double] factor  # Cholesky factor L, row by row
    cdef vector[double] forward  # L^-1 beta
    cdef vector[double] solved

    def open(self, *, double a, **settings):
        super().open(p=2.0, **settings)
        require(a > 0.0, "its settings are out of range")
        self.a = self.scale = a
        self.diagonal = sqrt(a)

    cdef int move(self, double step) except -1 nogil:
        cdef Py_ssize_t i, k = self.rows.count(), n
        cdef const int32_t* columns
        cdef double side = self.side(), entries = self.rows.n_entries()
        self.split_outer(False)
        n, columns = self.columns.size(), self.columns.data()
        self.z.resize(self.n_inner)
        self.move_v(step)
        if self.primal_pays(<double> k * k + 2.0 * COST_OF_COLUMN * entries, 2.0 * side * side):
            self.lay_out()
        fill(self.z.begin(), self.z.end(), 0.0)
        add_sparse(self.z.data(), 1.0, self.x.data(), columns, n)
        if self.primal:
            if self.may_update(0):
                self.rotate_in(self.z.data())
                self.updates += 1
            self.solve()
            return OK
        self.solved.resize(k)
        self.rows.products(self.solved.data(), self.z.data())
        solve_forward(self.factor.data(), self.solved.data(), k)
        if self.may_update(8 * (self.factor.size() + k + 1) + 4 * self.rows.n_entries()
                           + self.rows.values.n_bytes()):
            grow(self.factor, self.forward, self.solved, self.a,
                 sparse_dot(self.x.data(), columns, n, self.z.data()), step)
            self.rows.append(self.x, self.columns)
            self.updates += 1
            fill(self.w.begin(), self.w.end(), 0.0)
            self.rows.combine(self.w.data(), self.solved.data())
            return OK
        # S is fixed, so w changes by step * (a I + S S^T)^-1 x.
        solve_backward(self.factor.data(), self.solved.data(), k)
        for i in range(k):
            self.solved[i] = -self.solved[i]
        self.rows.combine(self.z.data(), self.solved.data())
        add_multiple(self.w.data(), self.z.data(), step / self.a, self.n_inner)
        return OK

    cdef double cost(self) noexcept nogil:
        if self.primal:
            return 2.0 * self.n_inner * self.n_inner
        return <double> self.rows.count() * self.rows.count() + 2.0 * self.rows.n_entries()

    # -------------------------------------------------------------------------- the n x n form

    cdef double* from_diagonal(self, int32_t number) noexcept nogil:
        """Row of the upper triangular R, ``R^T R = a I + S S^T``, starting at its diagonal."""
        return self.column(number) + number

    cdef void rotate_in(self, double* x) noexcept nogil:
        """R^T R <- R^T R + x x^T by plane rotations; x is overwritten."""
        cdef int32_t i
        cdef double length
        cdef double* row
        for i in range(1, self.n_inner):
            row = self.from_diagonal(i)
            if x[i] != 0.0:
                length = hypot(row[0], x[i])
                rotate(row + 1, x + i + 1, length / row[0], x[i] / row[0], self.n_inner - i - 1)
                row[0] = length

    cdef void solve(self) noexcept nogil:
        """w <- (R^T R)^-1 v."""
        cdef int32_t i
        cdef const double* row
        copy(self.v.begin(), self.v.begin() + self.n_inner, self.z.begin())
        for i in range(1, self.n_inner):
            row = self.from_diagonal(i)
            self.z[i] /= row[0]
            add_multiple(self.z.data() + i + 1, row + 1, -self.z[i], self.n_inner - i - 1)
        for i in range(self.n_inner - 1, 0, -1):
            row = self.from_diagonal(i)
            self.w[i] = (self.z[i] - dot(row + 1, self.w.data() + i + 1,
                                         self.n_inner - i - 1)) / row[0]

    cdef int fold(self, size_t i, const vector[double]& x,
                  const vector[int32_t]& columns) except -1 nogil:
        fill(self.z.begin(), self.z.end(), 0.0)
        add_sparse(self.z.data(), 1.0, x.data(), columns.data(), columns.size())
        self.rotate_in(self.z.data())
        return OK

    cdef int lay_out(self) except -1 nogil:
        FeatureSpace.lay_out(self)
        self.factor = vector[double]()
        self.forward = vector[double]()
        return OK

    cdef record(self, Record record):
        FeatureSpace.record(self, record)
        cdef int64_t k = self.rows.count()
        vector_field(record, "factor", self.factor, k * (k + 1) // 2)
        vector_field(record, "forward", self.forward, k)


cdef class SecondOrderDual(DualSpace):
    """SO(a): Cesa-Bianchi, Conconi & Gentile (2005), in dual variables.

    Parameters
    ----------
    a : float
    **settings
        Parameters of `DualSpace`.
    """

    cdef double a
    cdef vector[double] forward  # L^-1 beta, with v = S beta

    def open(self, *, double a, **settings):
        super().open(**settings)
        require(a > 0.0, "its settings are out of range")
        self.a = a

    cdef int move(self, double step) except -1 nogil:
        cdef Py_ssize_t j, k = self.columns.size()
        cdef bint grows = self.may_grow()
        cdef double curve, moved
        self.look_up()
        self.z.assign(self.x.begin(), self.x.end())
        solve_forward(self.matrix.data(), self.z.data(), k)
        # x.(a I + S S^T)^-1 x, and the new w.x.
        curve = max(1.0 - dot(self.z.data(), self.z.data(), k), 0.0) / self.a
        moved = self.output + step * curve
        self.length += step * (self.output + moved) - (moved * moved / (1.0 + curve) if grows
                                                       else 0.0)
        self.move_v(step)
        if grows:
            grow(self.matrix, self.forward, self.z, self.a, 1.0, step)
            self.take_column()
            fill(self.w.begin(), self.w.end(), 0.0)
            self.shift(0.0)
            return OK
        # S is fixed, so w changes by step / a * (x - S (a I + S^T S)^-1 S^T x).
        solve_backward(self.matrix.data(), self.z.data(), k)
        for j in range(k):
            self.z[j] *= -step / self.a
        self.shift(step / self.a)
        return OK

    cdef record(self, Record record):
        DualSpace.record(self, record)
        vector_field(record, "forward", self.forward, self.updates)
