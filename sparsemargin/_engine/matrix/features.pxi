"""Spaces over the features seen so far; included by `base`.

When the matrix no longer changes, a mistake changes w for all inner features, on which the matrix
acts, and for the outer features of the row only. For outer features, w is stored without a common
factor, as in `first_order/linear.pyx`: ``w_i = common * link(v_i / scale)``. The sum of the
hypotheses is ``Z w_i + total_i``.
"""

# Range of the sum of powers. If the sum leaves this range, v is rescaled.
cdef double LEAST_POWERS = ldexp(1.0, -500)
cdef double MOST_POWERS = ldexp(1.0, 500)
# Outputs below this value, or above its inverse, may have lost terms.
cdef double LEAST_OUTPUT = 1e-270

cdef class FeatureSpace(MatrixSpace):
    """A space over the features seen so far.

    Parameters
    ----------
    n_features : int
    p, bias : float
        The norm, and the value of the intercept's coordinate, or 0 without an intercept.
    single : bool
        Whether rows are stored as float32.
    solver : {"auto", "implicit", "primal"}
    primal_room : int
        Largest size of the n x n form in bytes with ``solver="auto"``.
    **settings
        Settings of `MatrixSpace`.
    """

    def __init__(self, **settings):
        super().__init__(**settings)
        if self.primal:
            self.lay_out()

    def open(self, *, Py_ssize_t n_features, double p, double bias, bint single, solver,
             int64_t primal_room, **settings):
        super().open(**settings)
        self.p = p
        self.bias = bias
        self.n_coordinates = n_features + (1 if bias else 0)
        require(2.0 <= p <= MAX_P and self.n_coordinates > 0, "its settings are out of range")
        self.automatic, self.primal = solver == "auto", solver == "primal"
        self.primal_room = primal_room
        self.n_met = 1
        self.met = np.zeros(self.n_coordinates, dtype=np.int32)
        self.rows.values.single = single
        self.n_inner, self.scale = 1, 1.0
        self.w.resize(1)
        self.total.resize(1)
        self.v.resize(1)
        self.bind()

    cdef bind(self):
        cdef int32_t[::1] numbers = self.met
        self.numbers = &numbers[0]
        self.power = make_power(self.p)
        self.minus_one = make_power(self.p - 1.0)

    @property
    def n_features(self):
        return self.n_coordinates - (1 if self.bias else 0)

    # -------------------------------------------------------------------------------- learning

    cdef void move_v(self, double step) noexcept nogil:
        """v <- v + step * x."""
        cdef size_t j
        for j in range(self.columns.size()):
            self.move_entry(self.columns[j], step * self.x[j])
        self.move_outer(step)
        if self.nonzero == 0:
            self.powers = Sum(0.0, 0.0, 0.0)

    cdef void move_entry(self, int32_t number, double size) noexcept nogil:
        cdef double before = self.v[number]
        self.v[number] = before + size
        self.nonzero += (self.v[number] != 0.0) - (before != 0.0)

    cdef int widen(self) except -1 nogil:
        """Grow the vectors to the number of features seen so far."""
        self.w.resize(self.n_met)
        self.v.resize(self.n_met)
        if self.averaged:
            self.total.resize(self.n_met)
        if not self.is_final:
            self.n_inner = self.n_met
        return OK

    cdef double square(self) noexcept nogil:
        cdef double outer = self.powers.high * self.scale
        cdef Py_ssize_t n = self.n_inner
        if outer and not self.fit(self.powers.high):
            n, outer = self.w.size(), 0.0
        return self.common * (dot(self.w.data(), self.v.data(), n) + outer)

    # ------------------------------------------------------------------------ the final matrix

    cdef int split_outer(self, bint fixed) except -1 nogil:
        """Begin a correction, and split off the outer part of the row if the matrix is final.

        If `fixed`, the matrix never changes.
        """
        cdef size_t j, n = 0
        self.outer_x.clear()
        self.outer.clear()
        self.is_final = (self.is_final or fixed or self.full
                        or 0 <= self.most_updates <= self.updates)
        if not self.is_final:
            return OK
        for j in range(self.columns.size()):
            if self.columns[j] >= self.n_inner:
                self.outer_x.push_back(self.x[j])
                self.outer.push_back(self.columns[j])
            else:
                self.x[n], self.columns[n] = self.x[j], self.columns[j]
                n += 1
        self.x.resize(n)
        self.columns.resize(n)
        return OK

    cdef void move_outer(self, double step) noexcept nogil:
        """Update v <- v + step * x and w for the outer features."""
        cdef size_t j
        cdef int32_t i
        self.outer_w.resize(self.outer.size())
        for j in range(self.outer.size()):
            i = self.outer[j]
            self.outer_w[j] = self.w[i]
            add(&self.powers, -fabs(self.v[i] / self.scale * self.w[i]))
            self.move_entry(i, step * self.outer_x[j])
            self.w[i] = link(&self.minus_one, self.v[i] / self.scale)
            add(&self.powers, fabs(self.v[i] / self.scale * self.w[i]))
        tidy(&self.powers)
        self.most_powers = max(self.most_powers, self.powers.high)
        if has_fallen(self.powers.high, self.most_powers, True):
            self.sweep(0.0)

    cdef void sweep(self, double peak) noexcept nogil:
        """Recompute w and the powers for the outer features.

        The new scale covers `peak` and all values of v. With `peak` 0 the scale does not change.
        """
        cdef size_t i
        self.swap_outer()
        self.flush()
        if peak > 0.0:
            for i in range(self.n_inner, self.v.size()):
                peak = max(peak, fabs(self.v[i]))
            self.scale = ldexp(1.0, ilogb(peak))
        self.powers = Sum(0.0, 0.0, 0.0)
        for i in range(self.n_inner, self.v.size()):
            self.w[i] = link(&self.minus_one, self.v[i] / self.scale)
            add(&self.powers, fabs(self.v[i] / self.scale * self.w[i]))
        tidy(&self.powers)
        self.most_powers = self.powers.high

    cdef bint fit(self, double powers) noexcept nogil:
        """Return whether a sum of powers is in range."""
        return LEAST_POWERS < powers < MOST_POWERS

    cdef void swap_outer(self) noexcept nogil:
        """Exchange the old and the new values of w for the outer part of the row."""
        cdef size_t j
        cdef double now
        for j in range(self.outer.size()):
            now = self.w[self.outer[j]]
            self.w[self.outer[j]] = self.outer_w[j]
            self.outer_w[j] = now

    cdef void flush(self) noexcept nogil:
        """Add ``Z w`` to the total for the outer features, and reset Z."""
        cdef size_t i
        if self.average.Z != 0.0:
            for i in range(self.n_inner, self.w.size()):
                self.total[i] += self.average.Z * self.w[i]
        clear(&self.average)

    cdef void count_current(self) noexcept nogil:
        cdef double count = (self.trials - self.average.begin) * self.common
        if not self.is_final:
            MatrixSpace.count_current(self)
        elif self.averaged and count > 0.0:
            add_multiple(self.total.data(), self.w.data(), count, self.n_inner)
            count_unit(&self.average, self.trials, self.common)

    cdef void count_move(self, double before) noexcept nogil:
        cdef size_t j
        if must_flush(&self.average, min(before, self.common)):
            self.swap_outer()
            self.flush()
            self.swap_outer()
        if self.average.Z != 0.0:
            for j in range(self.outer.size()):
                self.total[self.outer[j]] -= self.average.Z * (
                    self.w[self.outer[j]] - self.outer_w[j])

    cdef double cost(self) noexcept nogil:
        """Return the approximate number of multiplications of the next correction (subclasses)."""

    # ---------------------------------------------------------------------------- the n x n form

    cdef Py_ssize_t side(self) noexcept nogil:
        """Return the side length of the n x n form, which has room for all possible features."""
        return self.n_coordinates + 1

    cdef bint primal_pays(self, double cost, double primal_cost) noexcept nogil:
        """Return whether to switch to the n x n form: it fits and makes corrections cheaper."""
        cdef double side = self.side()
        return (self.automatic and not self.primal and cost > primal_cost
                and 8.0 * side * side <= self.primal_room)

    cdef double* column(self, int32_t number) noexcept nogil:
        """Return the column of a feature in the n x n form, which is stored contiguously."""
        return self.matrix.data() + number * self.side()

    cdef int clear_matrix(self) except -1 nogil:
        """Set the n x n form to its initial value, a diagonal matrix."""
        cdef Py_ssize_t i, side = self.side()
        self.matrix.assign(side * side, 0.0)
        for i in range(side):
            self.matrix[i * (side + 1)] = self.diagonal
        return OK

    cdef int lay_out(self) except -1 nogil:
        """Switch to the n x n form."""
        cdef int64_t i
        cdef vector[double] x
        cdef vector[int32_t] columns
        cdef StoredRows none
        self.clear_matrix()
        self.z.resize(self.n_inner)
        for i in range(self.rows.count()):
            self.rows.read(i, x, columns)
            self.fold(i, x, columns)
        self.primal = True
        none.values.single = self.rows.values.single
        self.rows = none
        return OK

    cdef int fold(self, size_t i, const vector[double]& x,
                  const vector[int32_t]& columns) except -1 nogil:
        """Add stored row i to the n x n form."""

    def resize(self, Py_ssize_t n_features, Py_ssize_t first=0):
        """See `LinearSpace.resize`.

        Raises
        ------
        ValueError
            If the n x n form would have no room.
        """
        cdef Py_ssize_t bias = 1 if self.bias else 0, side = n_features + bias + 1
        matrix = self.part_met()
        if self.primal and 8.0 * side * side > self.room:
            raise ValueError(
                f"An n x n matrix over {n_features} features would take "
                f"{8.0 * side * side / 2**30:.3g} GiB, more than it may. Begin anew with "
                "solver='implicit', or pass hash_bits."
            )
        start, first = max(-first, 0), max(first, 0)
        n = min(n_features - start, self.n_coordinates - bias - first)
        fresh = np.zeros(n_features + bias, dtype=np.int32)
        fresh[start:start + n] = self.met[first:first + n]
        if bias:
            fresh[n_features] = self.met[self.n_coordinates - 1]
        self.settings = {**self.settings, "n_features": n_features}
        self.n_coordinates, self.met = n_features + bias, fresh
        self.bind()
        if self.primal:
            self.lay_part_met(matrix)

    cdef part_met(self):
        """Return the part of the n x n form for the features seen so far."""
        cdef Py_ssize_t side = self.side()
        if not self.primal:
            return np.zeros((0, 0))
        matrix = <double[:side, :side]> self.matrix.data()
        return np.asarray(matrix)[:self.n_met, :self.n_met].copy()

    cdef lay_part_met(self, part):
        """Allocate the n x n form for all possible features, with the given part for known ones."""
        cdef Py_ssize_t side = self.side()
        self.clear_matrix()
        matrix = <double[:side, :side]> self.matrix.data()
        np.asarray(matrix)[:len(part), :len(part)] = part

    # ----------------------------------------------------------------------------- for Python

    def weights(self, columns=slice(None)):
        """Return the weight vector that predicts, shape (n_coordinates,), or some coordinates."""
        return self.hypothesis()[self.met[columns]]

    def sum_of_hypotheses(self):
        result = super().sum_of_hypotheses()
        if self.is_final and self.averaged:
            result[self.n_inner:] += self.average.Z * to_array(self.w)[self.n_inner:]
        return result

    def summed(self):
        """Return the sum of all hypotheses, weighted by their lifetimes, shape (n_coordinates,)."""
        return self.sum_of_hypotheses()[self.met]

    def take_sums(self, sums, int64_t trials):
        """Set the sum of the hypotheses, and the number of trials over which they were summed.

        The sums must be 0 for features not seen so far.
        """
        cdef const double[::1] by_coordinate = sums
        cdef Py_ssize_t i
        self.trials = self.average.begin = trials
        self.predictor = None
        clear(&self.average)
        fill(self.total.begin(), self.total.end(), 0.0)
        if self.averaged:
            for i in range(self.n_coordinates):
                if self.numbers[i]:
                    self.total[self.numbers[i]] = by_coordinate[i]

    # ---------------------------------------------------------------------------------- copies

    def __setstate__(self, state):
        integer(part(state, "settings"), "n_features", 0, MOST_NUMBERS)
        super().__setstate__(state)

    cdef record(self, Record record):
        MatrixSpace.record(self, record)
        integer(self.settings, "primal_room", 0, self.room)
        self.record_met(record)
        self.record_vectors(record, self.n_met, 1)
        self.record_outer(record)
        self.record_matrix(record)
        rows_field(record, "rows", self.rows, self.n_inner)
        require(not (self.primal and self.rows.count()), "'rows' are left of another form")

    cdef record_met(self, Record record):
        """Record the numbers of the features seen so far, one for each coordinate."""
        most = min(self.n_coordinates + 1, INT32_MAX)
        self.n_met = record.field("n_met", self.n_met, integer, 1, most)
        if record.writing:
            record.fields["met"] = sparse(self.met)
            return
        self.met = None  # frees the old array before the new one is allocated
        array = np.zeros(self.n_coordinates, np.int32)
        restore(array, record.fields, "met")
        numbers = np.sort(array[np.flatnonzero(array)])
        require(np.array_equal(numbers, np.arange(1, self.n_met)),
                f"'met' has not the numbers up to {self.n_met - 1}, each once")
        self.met = writable(array)
        self.bind()

    cdef record_outer(self, Record record):
        cdef vector[double] sums
        if self.is_final:
            sums = [self.common, self.scale, self.powers.high, self.powers.low, self.powers.lowest,
                    self.most_powers, self.average.Z, self.average.unit_peak]
        n = record.field("n_inner", self.n_inner if self.is_final else 0, integer, 0, self.n_met)
        self.is_final = n > 0
        self.n_inner = n if self.is_final else self.n_met
        vector_field(record, "outer_sums", sums, 8 if self.is_final else 0)
        require_within("outer_sums", record.fields["outer_sums"], -INFINITY, INFINITY)
        if self.is_final:
            self.common, self.scale = sums[0], sums[1]
            self.powers = Sum(sums[2], sums[3], sums[4])
            self.most_powers, self.average.Z, self.average.unit_peak = sums[5], sums[6], sums[7]

    cdef record_matrix(self, Record record):
        asked_for = self.primal
        self.primal = record.field("primal", self.primal, flag)
        if record.writing:
            record.fields["matrix"] = self.part_met()
            return
        require(self.automatic or self.primal == asked_for, "'primal' is not what 'solver' says")
        n = self.n_met if self.primal else 0
        array_of(record.fields, "matrix", np.float64, (n, n))
        if self.primal:
            require(8.0 * self.side() * self.side() <= self.room, "'matrix' has no room")
            self.lay_part_met(record.fields["matrix"])
