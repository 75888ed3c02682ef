# The replay of linear spaces; included by `replay`.

cdef struct Mark:
    # The counts of a vector up to some correction: trials, and the sums of c_k unit_k for unscaled
    # vectors and for vectors of norm 1, each as the sum of two doubles.
    int64_t trials
    double high[2]
    double low[2]


cdef tuple arrays_of(matrix):
    return matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)


@cython.final  # lets the compiler inline small methods
cdef class LinearReplay(Replay):
    """Replay of a linear space on test points.

    The sums of a point include a vector's hypotheses only up to a mark. They are updated before a
    coordinate of the point changes. If nothing is counted, no scores are kept.

    Parameters
    ----------
    space : LinearSpace
    points : csr_array
        The points over all coordinates, including the intercept's.
    counted, averaged : bool
    """

    cdef Power power
    cdef Py_ssize_t n_used  # number of coordinates that occur in the points
    cdef const int64_t[::1] used_of  # index of each logged column among the used ones; -1: unused
    cdef double[::1] t, g  # n_used x n_vectors
    # The points over the used coordinates, by row and by column.
    cdef const double[::1] values, data
    cdef const int64_t[::1] columns, row_start, points, column_start
    cdef double[:, ::1] low  # low-order parts of `scores`
    cdef double[:, ::1] largest  # largest term added to each score; 0: none
    cdef int64_t[:, ::1] since  # index of the mark up to which a point has been counted
    cdef vector[vector[Mark]] marks
    cdef double[::1] least_unit

    def __init__(self, FirstOrderSpace space, points, *, bint counted=True, bint averaged=False):
        super().__init__(space, points.shape[0], counted, averaged)
        self.power = make_power(space.p - 1.0)
        self.take_points(points)
        self.t = np.zeros(self.n_used * self.n_vectors)
        self.g = np.zeros(self.n_used * self.n_vectors)
        shape = self.n_vectors, self.n_points
        self.low, self.largest = np.zeros(shape), np.zeros(shape)
        self.since = np.zeros(shape, dtype=np.int64)
        self.least_unit = np.full(self.n_vectors, np.inf)
        self.marks.resize(self.n_vectors)
        for l in range(self.n_vectors):
            self.marks[l].push_back(Mark(0, [0.0, 0.0], [0.0, 0.0]))

    cdef take_points(self, points):
        """Store the points by row and by column, and map the logged columns to used coordinates."""
        from scipy.sparse import csr_array

        used, columns = np.unique(points.indices, return_inverse=True)
        self.n_used = len(used)
        logged = to_array(self.log.columns)
        used_of = np.searchsorted(used, logged)
        used_of[np.append(used, -1)[used_of] != logged] = -1
        self.used_of = used_of
        by_row = csr_array((points.data, columns, points.indptr), (self.n_points, self.n_used))
        self.values, self.columns, self.row_start = arrays_of(by_row)
        if self.counted:
            self.data, self.points, self.column_start = arrays_of(by_row.tocsc())

    # ------------------------------------------------------------------------------- the vectors

    cdef void shift(self, Py_ssize_t l, int by) noexcept nogil:
        cdef Py_ssize_t i
        cdef double factor = ldexp(1.0, by)
        for i in range(self.n_used):
            if self.t[i * self.n_vectors + l] != 0.0:
                self.t[i * self.n_vectors + l] *= factor
                self.g[i * self.n_vectors + l] = link(&self.power, self.t[i * self.n_vectors + l])

    cdef inline double add(self, Py_ssize_t i, Py_ssize_t l, double x) noexcept nogil:
        """Add x to a coordinate of t, and return its new g."""
        cdef Py_ssize_t at = i * self.n_vectors + l
        self.t[at] += x
        self.g[at] = link(&self.power, self.t[at])
        return self.g[at]

    cdef void move(self, const Correction* entry) noexcept nogil:
        cdef Py_ssize_t a
        if entry.shift_before:
            self.shift(entry.vector, entry.shift_before)
        for a in range(self.log.row_start[entry.row], self.log.row_start[entry.row + 1]):
            if self.used_of[a] >= 0:
                self.add(self.used_of[a], entry.vector, entry.coefficient * self.log.values[a])
        if entry.shift_after:
            self.shift(entry.vector, entry.shift_after)

    # ------------------------------------------------------------------------- scores of points

    cdef double score(self, Py_ssize_t l, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t a
        cdef double total = 0.0
        for a in range(self.row_start[j], self.row_start[j + 1]):
            total += self.values[a] * self.g[self.columns[a] * self.n_vectors + l]
        return total

    cdef inline void add_term(self, Py_ssize_t l, Py_ssize_t j, double term) noexcept nogil:
        add_exactly(&self.scores[l, j], &self.low[l, j], term)
        self.largest[l, j] = max(self.largest[l, j], max(fabs(term), LEAST_TERM))

    cdef void sum_afresh(self, Py_ssize_t l) noexcept nogil:
        cdef Py_ssize_t b, i, j
        for j in range(self.n_points):
            self.scores[l, j] = self.low[l, j] = self.largest[l, j] = 0.0
        for i in range(self.n_used):
            if self.t[i * self.n_vectors + l] != 0.0:
                for b in range(self.column_start[i], self.column_start[i + 1]):
                    self.add_term(l, self.points[b], self.data[b] * self.g[i * self.n_vectors + l])

    cdef inline void touch(self, Py_ssize_t l, Py_ssize_t i, double old_g,
                           double new_g) noexcept nogil:
        """Update the scores of all points that have this coordinate."""
        cdef Py_ssize_t b, j
        for b in range(self.column_start[i], self.column_start[i + 1]):
            j = self.points[b]
            add_exactly(&self.scores[l, j], &self.low[l, j], -(self.data[b] * old_g))
            self.add_term(l, j, self.data[b] * new_g)

    cdef inline double sign_of(self, Py_ssize_t l, Py_ssize_t j, double score) noexcept nogil:
        """The sign of ``w.x``, which is recomputed if cancellation has left too few digits."""
        cdef Py_ssize_t a
        cdef double total = 0.0, low = 0.0
        if fabs(score) > TELLING * self.largest[l, j]:
            return sign(score)
        if self.largest[l, j] == 0.0:
            return 0.0
        for a in range(self.row_start[j], self.row_start[j + 1]):
            add_exactly(&total, &low, self.values[a] * self.g[self.columns[a] * self.n_vectors + l])
        return sign(total + low)

    # --------------------------------------------------------------------------------- counting

    cdef void take(self, const Correction* entry) noexcept nogil:
        cdef Py_ssize_t a, b, i, l = entry.vector
        cdef double old_g, unit = unit_of(entry, self.normalized, True)
        if not self.counted:
            self.move(entry)
            return
        self.mark(l, entry.start)
        if self.is_stale(entry, unit):
            self.count_points(l)
            self.move(entry)
            self.sum_afresh(l)
            self.least_unit[l] = unit
            return
        for a in range(self.log.row_start[entry.row], self.log.row_start[entry.row + 1]):
            i = self.used_of[a]
            if i >= 0:
                # Points must be counted before any coordinate changes, because `sign_of` may
                # recompute.
                for b in range(self.column_start[i], self.column_start[i + 1]):
                    self.count_point(l, self.points[b])
        for a in range(self.log.row_start[entry.row], self.log.row_start[entry.row + 1]):
            i = self.used_of[a]
            if i >= 0:
                old_g = self.g[i * self.n_vectors + l]
                self.touch(l, i, old_g, self.add(i, l, entry.coefficient * self.log.values[a]))
        self.least_unit[l] = min(self.least_unit[l], unit)

    cdef bint is_stale(self, const Correction* entry, double unit) noexcept nogil:
        """Return whether scores or sums cannot be updated without loss of precision."""
        cdef const Mark* mark = &self.marks[entry.vector].back()
        if entry.shift_before or entry.shift_after or unit > STALE * self.least_unit[entry.vector]:
            return True
        return (mark.high[1] > STALE * unit
                or mark.high[0] > STALE * unit_of(entry, self.normalized, False))

    cdef void mark(self, Py_ssize_t l, int64_t trials) noexcept nogil:
        """Set a mark that counts the current vector up to trial number `trials`."""
        cdef Py_ssize_t v
        cdef Mark mark = self.marks[l].back()
        if self.averaged:
            for v in range(2):
                add_exactly(&mark.high[v], &mark.low[v],
                            (trials - mark.trials) * self.units[v, l])
        mark.trials = trials
        self.marks[l].push_back(mark)

    cdef inline void count_point(self, Py_ssize_t l, Py_ssize_t j) noexcept nogil:
        """Update the sums of a point up to the last mark."""
        cdef Py_ssize_t v
        cdef const Mark* old = &self.marks[l][self.since[l, j]]
        cdef const Mark* new = &self.marks[l].back()
        cdef double score = self.scores[l, j] + self.low[l, j]
        if new.trials > old.trials:
            self.voted[l, j] += (new.trials - old.trials) * self.sign_of(l, j, score)
        if self.averaged:
            for v in range(2):
                self.totals[v, l, j] += score * ((new.high[v] - old.high[v])
                                                 + (new.low[v] - old.low[v]))
        self.since[l, j] = self.marks[l].size() - 1

    cdef void count_points(self, Py_ssize_t l) noexcept nogil:
        """Update the sums of all points, and restart the sums of the marks at 0."""
        cdef Py_ssize_t j
        cdef Mark mark = self.marks[l].back()
        for j in range(self.n_points):
            self.count_point(l, j)
            self.since[l, j] = 0
        mark.high[0] = mark.high[1] = mark.low[0] = mark.low[1] = 0.0
        self.marks[l].clear()
        self.marks[l].push_back(mark)

    cdef void count(self, Py_ssize_t l, int64_t trials) noexcept nogil:
        cdef Py_ssize_t j
        cdef double error
        self.mark(l, trials)
        self.count_points(l)
        for j in range(self.n_points):
            # Move the leading digits into `scores`, from which outputs are read.
            error = 0.0
            add_exactly(&self.scores[l, j], &error, self.low[l, j])
            self.low[l, j] = error
