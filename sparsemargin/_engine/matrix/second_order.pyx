"""The Second-order Perceptron's space.

With ``v = S beta``, ``w = (a I + S S^T)^-1 v`` is ``S alpha``, ``alpha = (a I + S^T S)^-1 beta``.
The Cholesky factor L of that k x k matrix grows by a row a mistake. Where L and S have come to
cost more than an n x n matrix would, the factor of ``a I + S S^T`` is kept, and turned by one row
a mistake.
"""

from libc.math cimport hypot, sqrt
from libc.stdint cimport int32_t
from libcpp.algorithm cimport copy, fill
from libcpp.vector cimport vector

from sparsemargin._engine.matrix.sparse_products cimport add_sparse, combine, products, sparse_dot
from sparsemargin._engine.matrix.base cimport COST_OF_PLACE, SeenSpace
from sparsemargin._engine.state cimport doubles, take
from sparsemargin._engine.rows.types cimport OK
from sparsemargin._engine.numerics.vectors cimport add_multiple, dot, rotate

from sparsemargin._engine.state import require, whole


cdef class SecondOrderSpace(SeenSpace):
    """SO(a): Cesa-Bianchi, Conconi & Gentile (2005), Figure 3.1, the instance at hand left out.

    Parameters
    ----------
    a : float
    **settings
        Those of `SeenSpace`, p being 2.
    """

    cdef double a
    cdef vector[double] factor  # L, row after row
    cdef vector[double] forward  # L^-1 beta
    cdef vector[double] solved, z
    cdef int32_t laid_out  # places that the n x n form has rows for

    def open(self, *, double a, **settings):
        super().open(p=2.0, **settings)
        self.a = a

    cdef int move(self, double step) except -1 nogil:
        cdef const int32_t* at = self.at.data()
        cdef Py_ssize_t k = self.rows.count(), n = self.at.size()
        cdef double side = self.stride(), entries = self.rows.places.size()
        self.z.resize(self.n_seen)
        self.move_v(step)
        if self.primal_pays(<double> k * k + 2.0 * COST_OF_PLACE * entries, 2.0 * side * side):
            self.lay_out()
        fill(self.z.begin(), self.z.end(), 0.0)
        add_sparse(self.z.data(), 1.0, self.x.data(), at, n)
        if self.primal:
            if self.may_update(0):
                self.turn(self.z.data())
                self.updates += 1
            self.solve()
            return OK
        self.solved.resize(k + 1)
        self.solve_forward(k)
        if self.may_update(8 * (self.factor.size() + k + 1) + 4 * self.rows.places.size()
                           + self.rows.values.n_bytes()):
            self.take_row_in(k, step)
        else:
            self.move_only(k, step)
        return OK

    # -------------------------------------------------------------------------- the k x k form

    cdef void solve_forward(self, Py_ssize_t k) noexcept nogil:
        """solved <- L^-1 S^T z."""
        cdef Py_ssize_t i
        cdef const double* row = self.factor.data()
        self.multiply_rows(k)
        for i in range(k):
            self.solved[i] = (self.solved[i] - dot(row, self.solved.data(), i)) / row[i]
            row += i + 1

    cdef void multiply_rows(self, Py_ssize_t k) noexcept nogil:
        """solved <- S^T z."""
        if self.rows.values.single:
            products(self.solved.data(), self.z.data(), self.rows.values.singles.data(),
                     self.rows.places.data(), self.rows.start.data(), k)
        else:
            products(self.solved.data(), self.z.data(), self.rows.values.doubles.data(),
                     self.rows.places.data(), self.rows.start.data(), k)

    cdef void add_rows(self, double* z, Py_ssize_t k) noexcept nogil:
        """z <- z + S solved."""
        if self.rows.values.single:
            combine(z, self.solved.data(), self.rows.values.singles.data(),
                    self.rows.places.data(), self.rows.start.data(), k)
        else:
            combine(z, self.solved.data(), self.rows.values.doubles.data(),
                    self.rows.places.data(), self.rows.start.data(), k)

    cdef void solve_backward(self, Py_ssize_t k) noexcept nogil:
        """solved <- L^-T solved."""
        cdef Py_ssize_t i
        cdef const double* row = self.factor.data() + k * (k + 1) // 2
        for i in range(k - 1, -1, -1):
            row -= i + 1
            self.solved[i] /= row[i]
            add_multiple(self.solved.data(), row, -self.solved[i], i)

    cdef int take_row_in(self, Py_ssize_t k, double step) except -1 nogil:
        """S takes in the row at hand, and v moves by step times it."""
        cdef double along = dot(self.solved.data(), self.forward.data(), k)
        cdef double rest = (sparse_dot(self.x.data(), self.at.data(), self.at.size(),
                                       self.z.data())
                            - dot(self.solved.data(), self.solved.data(), k))
        # Of rows that depend on each other rounding may leave less than nothing.
        cdef double pivot = sqrt(self.a + max(rest, 0.0))
        self.factor.insert(self.factor.end(), self.solved.begin(), self.solved.begin() + k)
        self.factor.push_back(pivot)
        self.forward.push_back((step - along) / pivot)
        self.rows.append(&self.x, &self.at)
        self.updates += 1
        copy(self.forward.begin(), self.forward.end(), self.solved.begin())
        self.solve_backward(k + 1)
        fill(self.w.begin(), self.w.end(), 0.0)
        self.add_rows(self.w.data(), k + 1)
        return OK

    cdef void move_only(self, Py_ssize_t k, double step) noexcept nogil:
        """v moves by step times the row at hand, S stays: w moves by (a I + S S^T)^-1 x."""
        cdef Py_ssize_t i
        self.solve_backward(k)
        for i in range(k):
            self.solved[i] = -self.solved[i]
        self.add_rows(self.z.data(), k)
        add_multiple(self.w.data(), self.z.data(), step / self.a, self.n_seen)

    # -------------------------------------------------------------------------- the n x n form

    cdef double* row_from_diagonal(self, int32_t place) noexcept nogil:
        """Row of the upper triangular R, ``R^T R = a I + S S^T``, from its diagonal on."""
        while self.laid_out <= place:
            self.matrix[self.laid_out * (self.stride() + 1)] = sqrt(self.a)
            self.laid_out += 1
        return self.matrix.data() + place * (self.stride() + 1)

    cdef void turn(self, double* x) noexcept nogil:
        """R^T R <- R^T R + x x^T by plane rotations; x is used up."""
        cdef int32_t i
        cdef double length
        cdef double* row
        for i in range(1, self.n_seen):
            row = self.row_from_diagonal(i)
            if x[i] != 0.0:
                length = hypot(row[0], x[i])
                rotate(row + 1, x + i + 1, length / row[0], x[i] / row[0], self.n_seen - i - 1)
                row[0] = length

    cdef void solve(self) noexcept nogil:
        """w <- (R^T R)^-1 v."""
        cdef int32_t i
        cdef const double* row
        copy(self.v.begin(), self.v.end(), self.z.begin())
        for i in range(1, self.n_seen):
            row = self.row_from_diagonal(i)
            self.z[i] /= row[0]
            add_multiple(self.z.data() + i + 1, row + 1, -self.z[i], self.n_seen - i - 1)
        for i in range(self.n_seen - 1, 0, -1):
            row = self.row_from_diagonal(i)
            self.w[i] = (self.z[i] - dot(row + 1, self.w.data() + i + 1,
                                         self.n_seen - i - 1)) / row[0]

    cdef int lay_out(self) except -1 nogil:
        """Go over from L and S to R."""
        cdef Py_ssize_t i
        cdef vector[double] x
        cdef vector[int32_t] at
        self.matrix.assign(self.stride() * self.stride(), 0.0)
        self.laid_out = 1
        self.z.resize(self.n_seen)
        for i in range(self.rows.count()):
            self.rows.read(i, &x, &at)
            fill(self.z.begin(), self.z.end(), 0.0)
            add_sparse(self.z.data(), 1.0, x.data(), at.data(), at.size())
            self.turn(self.z.data())
        self.primal = True
        self.rows.clear()
        self.factor = vector[double]()
        self.forward = vector[double]()
        return OK

    cdef double cost(self) noexcept nogil:
        if self.primal:
            return 2.0 * self.n_seen * self.n_seen
        return <double> self.rows.count() * self.rows.count() + 2.0 * self.rows.places.size()

    def rounding(self):
        # By the condition number of a I + S S^T, at most.
        return super().rounding() * (1.0 + self.updates / self.a)

    def __getstate__(self):
        return {**super().__getstate__(), "factor": doubles(self.factor),
                "forward": doubles(self.forward), "laid_out": self.laid_out}

    def __setstate__(self, state):
        super().__setstate__(state)
        cdef Py_ssize_t k = self.rows.count()
        require(not (self.primal and k), "'rows' are left of another form")
        take(self.factor, "factor", state, k * (k + 1) // 2)
        take(self.forward, "forward", state, k)
        self.laid_out = whole(state, "laid_out", 0, self.n_seen)
