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

from sparsemargin._engine.matrix.lookahead cimport WIDTH, Lanes
from sparsemargin._engine.matrix.sparse_products cimport (
    add_sparse, peel_down, peel_lanes_down, peel_lanes_up, peel_up, sparse_dot, spread
)
from sparsemargin._engine.numerics.power cimport BLOCK, Power, make_power, link, raise_block
from sparsemargin._engine.matrix.base cimport COST_OF_PLACE, SeenSpace, Values
from sparsemargin._engine.state cimport doubles, take
from sparsemargin._engine.rows.types cimport OK, value_t
from sparsemargin._engine.numerics.vectors cimport add_multiple, dot

from sparsemargin._engine.state import length_of, require, whole


cdef void peel_rows(double* z, const value_t* x, const value_t* g, const int32_t* places,
                    const int64_t* start, const double* rates, int64_t k, int width,
                    bint down) noexcept nogil:
    """z <- B z, or B^T z where it is not `down`."""
    if width == 1 and down:
        peel_down(z, x, g, places, start, rates, k)
    elif width == 1:
        peel_up(z, g, x, places, start, rates, k)
    elif down:
        peel_lanes_down(z, x, g, places, start, rates, k)
    else:
        peel_lanes_up(z, g, x, places, start, rates, k)


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
    cdef vector[double] u  # B v; for p = 2 only where B is laid out
    cdef vector[double] z, g, scratch
    cdef int32_t laid_out  # places that B has columns for

    def open(self, *, double c, bint sparse_updates, **settings):
        super().open(**settings)
        self.c, self.sparse_updates = c, sparse_updates
        self.links = self.rows.values if self.p == 2.0 else Values(self.rows.values.single)
        # What is replayed has to come out the same without them.
        self.lanes = None if self.logged else Lanes()

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
            self.g[j] = self.rows.values.stored(link(&self.minus_one, self.x[j]))
        along = sparse_dot(self.g.data(), at, n, self.v.data())
        rate = self.rate(step * along)
        moved = step * (1.0 - rate) - rate * along
        if self.primal_pays(4.0 * COST_OF_PLACE * entries, side * (side + 2.0 * n)):
            self.lay_out()
        self.move_v(step)
        if self.primal:
            self.multiply(self.x, self.at)
        elif self.lanes is not None and self.lanes.current >= 0:
            self.take_lane()
        else:
            self.work_out()
        if self.p == 2.0 and not self.primal:
            add_multiple(self.w.data(), self.z.data(), moved, self.n_seen)
            add_sparse(self.w.data(), -rate * sparse_dot(self.x.data(), at, n, self.w.data()),
                       self.x.data(), at, n)
        else:
            add_multiple(self.u.data(), self.z.data(), moved, self.n_seen)
        if rate > 0.0:
            self.take_factor(rate)
        if self.nonzero == 0:
            fill(self.u.begin(), self.u.end(), 0.0)
        if self.p != 2.0 or self.primal:
            self.take_weights()
        return OK

    cdef bint looks_ahead(self) noexcept nogil:
        """Whether the passes that lanes save cost more than the lanes, which reach as far as the
        places."""
        return (self.lanes is not None and not self.primal
                and self.rows.places.size() > <size_t> self.n_seen)

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
        if self.lanes is not None and self.lanes.any_waiting():
            self.factor_lanes(rate)
        return OK

    cdef int take_weights(self) except -1 nogil:
        """w <- B^T link_p(u)."""
        cdef int32_t i
        if not self.primal:
            apply_link(&self.minus_one, self.u, self.w)
            self.peel(self.w.data(), 1, False)
            return OK
        apply_link(&self.minus_one, self.u, self.z)
        for i in range(1, self.n_seen):
            self.w[i] = dot(self.column(i), self.z.data(), self.n_seen)
        return OK

    # ---------------------------------------------------------------- B as a product of factors

    cdef void peel(self, double* z, int width, bint down) noexcept nogil:
        """z <- B z, or B^T z where it is not `down`, for one vector or for all lanes."""
        cdef const int32_t* places = self.rows.places.data()
        cdef const int64_t* start = self.rows.start.data()
        cdef const double* rates = self.rates.data()
        cdef int64_t k = self.rates.size()
        if self.rows.values.single:
            peel_rows(z, self.rows.values.singles.data(), self.links.singles.data(), places,
                      start, rates, k, width, down)
        else:
            peel_rows(z, self.rows.values.doubles.data(), self.links.doubles.data(), places,
                      start, rates, k, width, down)

    cdef void work_out(self) noexcept nogil:
        """z <- B x; for p = 2, where w can do without u, B^T B x."""
        fill(self.z.begin(), self.z.end(), 0.0)
        add_sparse(self.z.data(), 1.0, self.x.data(), self.at.data(), self.at.size())
        self.peel(self.z.data(), 1, True)
        if self.p == 2.0:
            self.peel(self.z.data(), 1, False)

    cdef int take_lane(self) except -1 nogil:
        """`work_out` for the row whose lane it is."""
        cdef Py_ssize_t i
        self.lanes.products.resize(WIDTH * self.n_seen)
        if not self.lanes.filled:
            self.fill_lanes()
        for i in range(self.n_seen):
            self.z[i] = self.lanes.products[WIDTH * i + self.lanes.current]
        return OK

    cdef int fill_lanes(self) except -1 nogil:
        """`work_out` for the rows of all lanes."""
        cdef int lane
        cdef size_t j
        cdef double* products = self.lanes.products.data()
        fill(self.lanes.products.begin(), self.lanes.products.end(), 0.0)
        for lane in range(self.lanes.n):
            for j in range(self.lanes.x[lane].size()):
                products[WIDTH * self.lanes.at[lane][j] + lane] = self.lanes.x[lane][j]
        self.peel(products, WIDTH, True)
        if self.p == 2.0:
            self.peel(products, WIDTH, False)
        self.lanes.filled = True
        return OK

    cdef int factor_lanes(self, double rate) except -1 nogil:
        """Let the lanes' products take in the factor of the row at hand, z being its own:
        ``B (I - rate x G^T) x' = B x' - rate (G.x') B x``, and from the left for p = 2."""
        cdef double factors[WIDTH]
        cdef int lane
        cdef size_t i
        cdef int64_t whole[2]
        self.scratch.resize(self.n_seen)
        add_sparse(self.scratch.data(), 1.0, self.g.data(), self.at.data(), self.at.size())
        for lane in range(WIDTH):
            factors[lane] = 0.0
            if self.lanes.current < lane < self.lanes.n:
                factors[lane] = -rate * sparse_dot(
                    self.lanes.x[lane].data(), self.lanes.at[lane].data(),
                    self.lanes.x[lane].size(), self.scratch.data())
        for i in range(self.at.size()):
            self.scratch[self.at[i]] = 0.0
        spread(self.lanes.products.data(), self.z.data(), factors, self.n_seen)
        if self.p == 2.0:
            whole[0], whole[1] = 0, self.at.size()
            peel_lanes_up(self.lanes.products.data(), <const double*> self.x.data(),
                          <const double*> self.x.data(), self.at.data(), whole, &rate, 1)
        return OK

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
        if self.p == 2.0:
            self.u.assign(self.v.begin(), self.v.end())
            self.peel(self.u.data(), 1, True)
        self.primal = True
        self.rows.clear()
        self.links.clear()
        self.rates.clear()
        return OK

    cdef double cost(self) noexcept nogil:
        if self.primal:
            return <double> self.n_seen * (self.n_seen + 2 * self.at.size())
        return 4.0 * (self.rows.places.size() + self.n_seen)

    def __getstate__(self):
        return {**super().__getstate__(), "u": doubles(self.u), "rates": doubles(self.rates),
                "links": None if self.p == 2.0 else self.links.array(),
                "laid_out": self.laid_out}

    def __setstate__(self, state):
        super().__setstate__(state)
        require(not (self.primal and self.rows.count()), "'rows' are left of another form")
        require(length_of(state, "u") <= self.n_seen, "'u' is too long")
        take(self.u, "u", state, length_of(state, "u"))
        take(self.rates, "rates", state, self.rows.count())
        if self.p != 2.0:
            self.links.take_array("links", state, <Py_ssize_t> self.rows.places.size())
        self.laid_out = whole(state, "laid_out", 0, self.n_seen)
