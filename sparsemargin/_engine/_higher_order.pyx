# distutils: extra_compile_args = -ffp-contract=off
"""The Higher-order Perceptron's space.

``w_k = B_k^T link_p(u_k)`` with ``u_k = B_k v_k`` and B a product of ``I - rho_i x_i G_i^T``, one
factor a mistake, ``G = link_p(x)``. Since ``B_k = B_{k-1} (I - rho x G^T)``,

    u_k = u_{k-1} + r B_{k-1} x,    r = step (1 - rho) - rho G.v_{k-1},

and products with B and B^T run through the factors, each of which touches the features of one
row. Where the factors have come to hold more than a matrix over the features would, B itself is
kept.
"""

from libc.math cimport copysign, fabs, pow
from libc.stdint cimport int32_t, int64_t
from libcpp.algorithm cimport fill
from libcpp.vector cimport vector

from sparsemargin._engine._passes cimport add_sparse, peel_down, peel_up, sparse_dot
from sparsemargin._engine._power cimport BLOCK, Power, make_power, link, raise_block
from sparsemargin._engine._seen cimport SeenSpace, Values, doubles, take_doubles
from sparsemargin._engine._types cimport OK
from sparsemargin._engine._vectors cimport add_multiple, dot

# A nonzero of a stored row is reached through its place: it costs about twice what an entry of
# a contiguous matrix does.
cdef double COST_OF_PLACE = 2.0


cdef void apply_link(const Power* power, const vector[double]& u, vector[double]& w) noexcept nogil:
    """w <- link_p(u), `power` being p - 1; 0 where u is 0."""
    cdef double block[BLOCK]
    cdef const double* part
    cdef double peak = 0.0, total = 0.0, factor, p = power.exponent + 1.0
    cdef Py_ssize_t b, j, n, size = u.size()
    if p == 2.0:
        w.assign(u.begin(), u.end())
        return
    for j in range(size):
        peak = max(peak, fabs(u[j]))
        w[j] = 0.0
    if peak == 0.0:
        return
    for b in range((size + BLOCK - 1) // BLOCK):
        n = min(<Py_ssize_t> BLOCK, size - b * BLOCK)
        part = u.data() + b * BLOCK
        for j in range(n):
            block[j] = fabs(part[j]) / peak
        raise_block(power, block, n)
        for j in range(n):
            total += block[j] * (fabs(part[j]) / peak)
            w[b * BLOCK + j] = copysign(block[j], part[j])
    factor = peak * pow(total, (2.0 - p) / p)
    for j in range(size):
        w[j] *= factor


cdef class HigherOrderSpace(SeenSpace):
    """HO_p(c): Brotto, Gentile & Vitale (2007), Figure 1 and section 2.

    Parameters
    ----------
    c : float
        ``rho_k = c / k``.
    sparse_updates : bool
        Whether rho is 0 where ``y G.v < 0``.
    **settings
        Those of `SeenSpace`.
    """

    cdef double c
    cdef bint sparse_updates
    cdef Power minus_one  # p - 1
    cdef vector[double] rates
    cdef Values links  # G of the stored rows; the rows themselves for p = 2
    cdef vector[double] u, z, g
    cdef int32_t laid_out  # places that B has columns for

    def open(self, *, double c, bint sparse_updates, **settings):
        super().open(**settings)
        self.c, self.sparse_updates = c, sparse_updates
        self.links = self.rows.values if self.p == 2.0 else Values(self.rows.values.single)
        if self.primal:
            self.lay_out()

    cdef bind(self):
        SeenSpace.bind(self)
        self.minus_one = make_power(self.p - 1.0)

    cdef int move(self, double step) except -1 nogil:
        cdef Py_ssize_t j, n = self.at.size()
        cdef const int32_t* at = self.at.data()
        cdef double along, rate, moved
        cdef double entries = self.rows.places.size(), side = self.stride()
        self.u.resize(self.n_seen)
        self.z.resize(self.n_seen)
        self.g.resize(n)
        for j in range(n):
            self.g[j] = link(&self.minus_one, self.x[j])
        along = sparse_dot(self.g.data(), at, n, self.v.data())
        rate = self.rate(step * along)
        moved = step * (1.0 - rate) - rate * along
        add_sparse(self.v.data(), step, self.x.data(), at, n)
        if self.primal_pays(4.0 * COST_OF_PLACE * entries, side * (side + 2.0 * n)):
            self.lay_out()
        if self.primal:
            self.multiply(self.x, self.at)
        else:
            fill(self.z.begin(), self.z.end(), 0.0)
            add_sparse(self.z.data(), 1.0, self.x.data(), at, n)
            self.pass_through(self.z.data())
        add_multiple(self.u.data(), self.z.data(), moved, self.n_seen)
        if rate > 0.0:
            self.take_factor(rate)
        self.take_weights()
        return OK

    cdef double rate(self, double agreement) noexcept nogil:
        """rho of this mistake; `agreement` has the sign of ``y G.v``."""
        cdef int64_t grown = self.rows.values.n_bytes() + 4 * self.rows.places.size()
        if self.p != 2.0:
            grown += self.links.n_bytes()
        if self.c == 0.0 or (self.sparse_updates and agreement < 0.0):
            return 0.0
        if not self.may_update(0 if self.primal else grown):
            return 0.0
        return self.c / (self.corrections + 1)

    cdef int take_factor(self, double rate) except -1 nogil:
        """B <- B (I - rate x G^T), z being B x."""
        cdef size_t j
        self.updates += 1
        if self.primal:
            for j in range(self.at.size()):
                add_multiple(self.column(self.at[j]), self.z.data(), -rate * self.g[j],
                             self.n_seen)
            return OK
        self.rows.append(&self.x, &self.at)
        if self.p != 2.0:
            self.links.append(&self.g)
        self.rates.push_back(rate)
        return OK

    cdef int take_weights(self) except -1 nogil:
        """w <- B^T link_p(u)."""
        cdef int32_t i
        if not self.primal:
            apply_link(&self.minus_one, self.u, self.w)
            self.pass_back(self.w.data())
            return OK
        apply_link(&self.minus_one, self.u, self.z)
        for i in range(1, self.n_seen):
            self.w[i] = dot(self.column(i), self.z.data(), self.n_seen)
        return OK

    # ---------------------------------------------------------------- B as a product of factors

    cdef void pass_through(self, double* z) noexcept nogil:
        """z <- B z."""
        if self.rows.values.single:
            peel_down(z, self.rows.values.singles.data(), self.links.singles.data(),
                      self.rows.places.data(), self.rows.start.data(), self.rates.data(),
                      self.rates.size())
        else:
            peel_down(z, self.rows.values.doubles.data(), self.links.doubles.data(),
                      self.rows.places.data(), self.rows.start.data(), self.rates.data(),
                      self.rates.size())

    cdef void pass_back(self, double* z) noexcept nogil:
        """z <- B^T z."""
        if self.rows.values.single:
            peel_up(z, self.links.singles.data(), self.rows.values.singles.data(),
                    self.rows.places.data(), self.rows.start.data(), self.rates.data(),
                    self.rates.size())
        else:
            peel_up(z, self.links.doubles.data(), self.rows.values.doubles.data(),
                    self.rows.places.data(), self.rows.start.data(), self.rates.data(),
                    self.rates.size())

    # ----------------------------------------------------------------------- B column by column

    cdef double* column(self, int32_t place) noexcept nogil:
        while self.laid_out <= place:
            self.matrix[self.laid_out * self.stride() + self.laid_out] = 1.0
            self.laid_out += 1
        return self.matrix.data() + place * self.stride()

    cdef void multiply(self, const vector[double]& x, const vector[int32_t]& at) noexcept nogil:
        """z <- B x."""
        cdef size_t j
        fill(self.z.begin(), self.z.end(), 0.0)
        for j in range(x.size()):
            add_multiple(self.z.data(), self.column(at[j]), x[j], self.n_seen)

    cdef int lay_out(self) except -1 nogil:
        """Go over from the factors to B itself."""
        cdef size_t i, j
        cdef vector[double] x
        cdef vector[int32_t] at
        self.matrix.assign(self.stride() * self.stride(), 0.0)
        self.laid_out = 1
        self.z.resize(self.n_seen)
        for i in range(self.rates.size()):
            self.rows.read(i, &x, &at)
            self.multiply(x, at)
            for j in range(at.size()):
                add_multiple(self.column(at[j]), self.z.data(),
                             -self.rates[i] * self.links.at(self.rows.start[i] + j), self.n_seen)
        self.primal = True
        self.rows.clear()
        self.links.clear()
        self.rates.clear()
        return OK

    @property
    def cost_of_correction(self):
        """About how many multiplications the next one takes."""
        if self.primal:
            return self.n_seen * (self.n_seen + 2 * self.at.size())
        return 4 * (self.rows.places.size() + self.n_seen)

    def __getstate__(self):
        return {**super().__getstate__(), "u": doubles(self.u), "rates": doubles(self.rates),
                "links": self.links, "laid_out": self.laid_out}

    def __setstate__(self, state):
        super().__setstate__(state)
        take_doubles(self.u, state["u"])
        take_doubles(self.rates, state["rates"])
        self.links, self.laid_out = state["links"], state["laid_out"]
