"""The updates of the Higher-order Perceptron.

Over the features seen, ``w_k = B_k^T link_p(u_k)`` with ``u_k = B_k v_k``. B is a product of
``I - rho_i x_i G_i^T``, one factor per mistake, with ``G = link_p(x)``. Since
``B_k = B_{k-1} (I - rho x G^T)``,

    u_k = u_{k-1} + r B_{k-1} x,    r = step (1 - rho) - rho G.v_{k-1}.

Products with B and B^T apply the factors one by one, each of which affects the features of one
row. When the factors have more entries than a matrix over the features, B itself is computed.

In dual variables, with ``A = B^T B = I + sum_ij D_ij x_i x_j^T``, a mistake on an x of length 1
changes ``w = A v`` to ``(I - rho x x^T) (w + r A x)``. D gets another row, ``-rho D X^T x``, with
``rho^2 x.A x - 2 rho`` on the diagonal.
"""

from libc.math cimport copysign, fabs, pow
from libc.stdint cimport int32_t, int64_t
from libcpp.algorithm cimport fill
from libcpp.vector cimport vector

from sparsemargin._engine.matrix.base cimport (
    COST_OF_COLUMN, DualSpace, FeatureSpace, Record, Values, add_sparse, multiply_symmetric,
    sparse_dot, values_field, vector_field
)
from sparsemargin._engine.numerics.arithmetic cimport BLOCK, Power, link, raise_block
from sparsemargin._engine.numerics.simd cimport add_multiple, dot
from sparsemargin._engine.rows.csr cimport OK

from sparsemargin._engine.state import require


cdef double peak_of(const vector[double]& u) noexcept nogil:
    cdef double peak = 0.0
    cdef size_t j
    for j in range(u.size()):
        peak = max(peak, fabs(u[j]))
    return peak


cdef double raise_all(const Power* power, const vector[double]& u, double scale,
                      vector[double]& w) noexcept nogil:
    """w <- sign(u) |u / scale|**(p - 1), with p - 1 in `power`; returns the sum of |u /
    scale|**p."""
    cdef double block[BLOCK]
    cdef const double* part
    cdef double total = 0.0
    cdef Py_ssize_t b, j, n, size = u.size()
    for b in range((size + BLOCK - 1) // BLOCK):
        n = min(<Py_ssize_t> BLOCK, size - b * BLOCK)
        part = u.data() + b * BLOCK
        for j in range(n):
            block[j] = fabs(part[j]) / scale
        raise_block(power, block, n)
        for j in range(n):
            total += block[j] * (fabs(part[j]) / scale)
            w[b * BLOCK + j] = copysign(block[j], part[j])
    return total


cdef void apply_link(const Power* power, const vector[double]& u, vector[double]& w) noexcept nogil:
    """w <- link_p(u), with p - 1 in `power`; 0 where u is 0."""
    cdef double peak, total, factor, p = power.exponent + 1.0
    cdef Py_ssize_t j, size = u.size()
    if p == 2.0:
        w.assign(u.begin(), u.end())
        return
    peak = peak_of(u)
    if peak == 0.0:
        fill(w.begin(), w.begin() + size, 0.0)
        return
    total = raise_all(power, u, peak, w)
    factor = peak * pow(total, (2.0 - p) / p)
    for j in range(size):
        w[j] *= factor


cdef class HigherOrderSpace(FeatureSpace):
    """HO_p(c): Brotto, Gentile & Vitale (2007), Figure 1 and section 2.

    Parameters
    ----------
    c : float
        ``rho_k = c / k``.
    sparse_updates : bool
        Whether rho is 0 if ``y G.v < 0``.
    **settings
        Parameters of `FeatureSpace`.
    """

    cdef double c
    cdef bint sparse_updates
    cdef vector[double] rates
    cdef Values links  # G of the stored rows; empty for p = 2, where G is the row
    cdef vector[double] u  # B v; for p = 2 only after `lay_out`
    cdef vector[double] g

    def open(self, *, double c, bint sparse_updates, **settings):
        super().open(**settings)
        require(0.0 <= c < 1.0, "its settings are out of range")
        self.c, self.sparse_updates = c, sparse_updates
        self.links.single = self.rows.values.single
        self.diagonal = 1.0

    cdef int move(self, double step) except -1 nogil:
        cdef Py_ssize_t j, n
        cdef const int32_t* columns
        cdef double along, rate, moved, entries = self.rows.n_entries(), side = self.side()
        self.split_outer(self.c == 0.0)
        n, columns = self.columns.size(), self.columns.data()
        self.u.resize(self.n_inner)
        self.z.resize(self.n_inner)
        self.g.resize(n)
        for j in range(n):
            self.g[j] = self.rows.values.stored(link(&self.minus_one, self.x[j]))
        along = sparse_dot(self.g.data(), columns, n, self.v.data())
        rate = self.rate(step * along)
        moved = step * (1.0 - rate) - rate * along
        if self.primal_pays(4.0 * COST_OF_COLUMN * entries, side * (side + 2.0 * n)):
            self.lay_out()
        self.move_v(step)
        if self.primal:
            self.multiply(self.x, self.columns)
        else:
            self.apply_factors()
        if self.p == 2.0 and not self.primal:
            add_multiple(self.w.data(), self.z.data(), moved, self.n_inner)
            add_sparse(self.w.data(), -rate * sparse_dot(self.x.data(), columns, n, self.w.data()),
                       self.x.data(), columns, n)
        else:
            add_multiple(self.u.data(), self.z.data(), moved, self.n_inner)
        if rate > 0.0:
            self.take_factor(rate)
        if self.nonzero == 0:
            fill(self.u.begin(), self.u.end(), 0.0)
        if self.p != 2.0 or self.primal:
            self.take_weights()
        return OK

    cdef double rate(self, double agreement) noexcept nogil:
        """rho of the current mistake; `agreement` has the sign of ``y G.v``."""
        cdef int64_t grown = 0
        if not self.primal:
            grown = (self.rows.values.n_bytes() + self.links.n_bytes()
                     + 4 * self.rows.n_entries())
        if self.c == 0.0 or (self.sparse_updates and agreement < 0.0):
            return 0.0
        return self.c / (self.corrections + 1) if self.may_update(grown) else 0.0

    cdef int take_factor(self, double rate) except -1 nogil:
        """B <- B (I - rate x G^T); z has B x."""
        cdef size_t j
        self.updates += 1
        if self.primal:
            for j in range(self.columns.size()):
                add_multiple(self.column(self.columns[j]), self.z.data(), -rate * self.g[j],
                             self.n_inner)
            return OK
        self.rows.append(self.x, self.columns)
        if self.p != 2.0:
            self.links.append(self.g)
        self.rates.push_back(rate)
        return OK

    cdef int take_weights(self) except -1 nogil:
        """w <- B^T link_p(u)."""
        cdef int32_t i
        if not self.primal:
            self.apply_link(self.w)
            self.rows.apply_transposed(self.w.data(), self.stored_links()[0], self.rates)
            return OK
        self.apply_link(self.z)
        for i in range(1, self.n_inner):
            self.w[i] = dot(self.column(i), self.z.data(), self.n_inner)
        return OK

    cdef void apply_link(self, vector[double]& g) noexcept nogil:
        """g <- link_p(u), without the factor `common`."""
        cdef double total
        if not self.is_final or self.p == 2.0:
            apply_link(&self.minus_one, self.u, g)
            return
        total = raise_all(&self.minus_one, self.u, self.scale, g) + self.powers.high
        if self.nonzero == 0:
            return
        if not self.fit(total):
            self.sweep(peak_of(self.u))
            total = raise_all(&self.minus_one, self.u, self.scale, g) + self.powers.high
        self.common = self.scale * pow(total, (2.0 - self.p) / self.p)

    # ---------------------------------------------------------------- B as a product of factors

    cdef const Values* stored_links(self) noexcept nogil:
        return &self.rows.values if self.p == 2.0 else &self.links

    cdef void apply_factors(self) noexcept nogil:
        """z <- B x; for p = 2, where w does not need u, z <- B^T B x."""
        fill(self.z.begin(), self.z.end(), 0.0)
        add_sparse(self.z.data(), 1.0, self.x.data(), self.columns.data(), self.columns.size())
        self.rows.apply(self.z.data(), self.stored_links()[0], self.rates)
        if self.p == 2.0:
            self.rows.apply_transposed(self.z.data(), self.stored_links()[0], self.rates)

    cdef double cost(self) noexcept nogil:
        if self.primal:
            return <double> self.n_inner * (self.n_inner + 2 * self.columns.size())
        return 4.0 * (self.rows.n_entries() + self.n_inner)

    # ----------------------------------------------------------------------- B stored by columns

    cdef void multiply(self, const vector[double]& x, const vector[int32_t]& columns) noexcept nogil:
        """z <- B x."""
        cdef size_t j
        fill(self.z.begin(), self.z.end(), 0.0)
        for j in range(x.size()):
            add_multiple(self.z.data(), self.column(columns[j]), x[j], self.n_inner)

    cdef int fold(self, size_t i, const vector[double]& x,
                  const vector[int32_t]& columns) except -1 nogil:
        cdef size_t j
        self.multiply(x, columns)
        for j in range(columns.size()):
            add_multiple(self.column(columns[j]), self.z.data(),
                         -self.rates[i] * self.stored_links().at(self.rows.start[i] + j),
                         self.n_inner)
        return OK

    cdef int lay_out(self) except -1 nogil:
        cdef Values none
        if self.p == 2.0:
            self.u.assign(self.v.begin(), self.v.begin() + self.n_inner)
            self.rows.apply(self.u.data(), self.rows.values, self.rates)
        FeatureSpace.lay_out(self)
        none.single = self.links.single
        self.links = none
        self.rates = vector[double]()
        return OK

    cdef record(self, Record record):
        FeatureSpace.record(self, record)
        vector_field(record, "u", self.u, None)
        require(self.u.size() <= <size_t> self.n_inner, "'u' is too long")
        vector_field(record, "rates", self.rates, self.rows.count())
        if self.p != 2.0:
            values_field(record, "links", self.links, self.rows.n_entries())


cdef class HigherOrderDual(DualSpace):
    """HO_2(c): Brotto, Gentile & Vitale (2007), section 2, "Dual version".

    Parameters
    ----------
    c, sparse_updates
        See `HigherOrderSpace`.
    **settings
        Parameters of `DualSpace`.
    """

    cdef double c
    cdef bint sparse_updates

    def open(self, *, double c, bint sparse_updates, **settings):
        super().open(**settings)
        require(0.0 <= c < 1.0, "its settings are out of range")
        self.c, self.sparse_updates = c, sparse_updates

    cdef int move(self, double step) except -1 nogil:
        cdef size_t j, k = self.columns.size()
        cdef double along = dot(self.products, self.v.data(), self.v.size())
        cdef double rate = self.rate(step * along)
        cdef double moved = step * (1.0 - rate) - rate * along
        cdef double curve
        self.look_up()
        multiply_symmetric(self.matrix.data(), self.x.data(), self.z.data(), k)
        curve = 1.0 + dot(self.x.data(), self.z.data(), k)
        self.length += moved * (2.0 * self.output + moved * curve)
        self.move_v(step)
        if rate > 0.0:
            for j in range(k):
                self.matrix.push_back(-rate * self.z[j])
            self.matrix.push_back(rate * (rate * curve - 2.0))
        for j in range(k):
            self.z[j] *= moved
        self.shift(moved - rate * (self.output + moved * curve))
        if rate > 0.0:
            self.take_column()
        return OK

    cdef double rate(self, double agreement) noexcept nogil:
        """rho of the current mistake; `agreement` has the sign of ``y x.v``."""
        if self.c == 0.0 or (self.sparse_updates and agreement < 0.0) or not self.may_grow():
            return 0.0
        return self.c / (self.corrections + 1)
