# Outputs of the last and of the averaged hypothesis; included by `trials`.

cdef class Hypothesis:
    """The hypothesis of a linear space, prepared for computing outputs of checked rows.

    Averaged weights are computed once for all rows. If the rows have fewer entries than a vector
    has weights, the weights are computed entry by entry instead. The outputs are bitwise equal.

    Parameters
    ----------
    space : LinearState
    rows : Csr
    """

    cdef LinearState space
    cdef Csr rows
    cdef object weights  # precomputed averaged weights, or None
    cdef const double[::1] a
    cdef const double[::1] b

    def __init__(self, LinearState space, Csr rows):
        self.space, self.rows = space, rows
        self.a, self.b = space.mixture()
        if space.c.averaged and rows.indptr[rows.n_rows] >= space.c.n_coordinates:
            self.weights = space.weighed()

    def part(self, Py_ssize_t start, Py_ssize_t stop):
        """``w.x`` of the rows start..stop-1 for every vector, shape (n_rows, n_vectors)."""
        out = np.empty((stop - start, self.space.c.n_vectors))
        self.fill(out, start, stop)
        return out

    def fill(self, double[:, ::1] out, Py_ssize_t start, Py_ssize_t stop):
        """Write the result of `part` to `out`."""
        cdef float[:, ::1] singles
        cdef double[:, ::1] doubles
        cdef Coordinates[float] in_float = self.space.singles
        cdef Coordinates[double] in_double = self.space.doubles
        if stop == start:
            return
        if self.weights is not None and self.space.is_single:
            singles = self.weights
            in_float.g, in_float.stride = &singles[0, 0], self.space.width
        elif self.weights is not None:
            doubles = self.weights
            in_double.g, in_double.stride = &doubles[0, 0], self.space.width
        with nogil:
            if self.space.is_single:
                fill_by_types(self, &out[0, 0], in_float, start, stop)
            else:
                fill_by_types(self, &out[0, 0], in_double, start, stop)


cdef int fill_by_types(Hypothesis of, double* out, const Coordinates[state_t]& at,
                       Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
    if of.rows.types == FLOAT_INT32:
        return fill(of, out, at, of.rows.float_int32, start, stop)
    if of.rows.types == FLOAT_INT64:
        return fill(of, out, at, of.rows.float_int64, start, stop)
    if of.rows.types == DOUBLE_INT32:
        return fill(of, out, at, of.rows.double_int32, start, stop)
    return fill(of, out, at, of.rows.double_int64, start, stop)


cdef int fill(Hypothesis of, double* out, const Coordinates[state_t]& at,
               const Rows[value_t, index_t]& rows, Py_ssize_t start,
               Py_ssize_t stop) except -1 nogil:
    cdef const Space* c = &of.space.c
    cdef Py_ssize_t r, l, K = c.n_vectors, n = c.n_coordinates
    cdef Weights[state_t] weights = weights_of(
        <const state_t*> at.g, at.stride, n, 0, K, of.space.width)
    cdef bint by_row = c.averaged and of.weights is None
    cdef const state_t* of_bias = at.g + (n - 1) * at.stride
    cdef vector[double] scores
    cdef vector[double] made  # large enough for either type
    cdef vector[int64_t] places
    cdef Row[value_t, index_t] row
    scores.resize(of.space.width)
    for r in range(start, stop):
        row = rows.at(r)
        if by_row:
            made.resize((row.nnz + 1) * K)
            of_bias = weigh_row(<state_t*> made.data(), of, at, row)
            score_weighed(scores.data(), <const state_t*> made.data(), K, row, places)
        elif K == 1:
            score_alone(scores.data(), NULL, 0.0, weights, n, False, row,
                        rows.at(min(r + AHEAD, rows.n - 1)))
        else:
            score(scores.data(), weights, row, rows.at(min(r + 1, rows.n - 1)))
        for l in range(K):
            if c.bias:
                scores[l] += c.bias * of_bias[l]
            out[l] = scores[l] if c.averaged else of.a[l] * scores[l]
        out += K
    return 0


cdef const state_t* weigh_row(state_t* made, Hypothesis of, const Coordinates[state_t]& at,
                              const Row[value_t, index_t]& row) noexcept nogil:
    """Compute the weights of all vectors for each entry of a row. Return a pointer to those of the
    intercept, which come last."""
    cdef const Space* c = &of.space.c
    cdef Py_ssize_t j, i, K = c.n_vectors
    for j in range(row.nnz + (1 if c.bias else 0)):
        i = (row.columns[j] if j < row.nnz else c.n_coordinates - 1) * at.stride
        weigh(made + j * K, c, at, i, 0, K, &of.a[0], &of.b[0])
    return made + row.nnz * K


cdef int score_weighed(double* scores, const state_t* made, Py_ssize_t K,
                       const Row[value_t, index_t]& row,
                       vector[int64_t]& places) except -1 nogil:
    """Scores of a row with the weights of its own entries."""
    cdef Row[value_t, int64_t] own
    while <Py_ssize_t> places.size() < row.nnz:
        places.push_back(places.size())
    own.values, own.columns, own.nnz = row.values, places.data(), row.nnz
    score(scores, weights_of(made, K, row.nnz, 0, K, K), own, own)
    return 0
