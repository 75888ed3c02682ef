"""The loop of joint multi-class learning: the true class against its strongest rival.

A trial tests ``W.Phi <= bar`` (times ``||Phi||_p`` where instances are measured by their own
norm), W and Theta being the vectors of all classes as one, and Phi the row at the place of its
class and its opposite at that of the rival: so ``W.Phi`` is the difference of their outputs,
``||Phi||_p = 2**(1/p) ||x||_p``, and only these two classes move.
"""

from libc.math cimport INFINITY, fabs, ldexp, pow, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t
from libcpp.vector cimport vector

from sparsemargin._engine.first_order.joint cimport JointSpace
from sparsemargin._engine.first_order.labels cimport Space
from sparsemargin._engine.rows.csr cimport (
    AHEAD, RowScale, bound_of_norm, check_row, has_repeats, is_safe, measure, prefetch,
    prefetch_span, as_row
)
from sparsemargin._engine.first_order.rules cimport BY_ROW, FirstOrderRule, Rule, Step, Trial, threshold
from sparsemargin._engine.rows.scores cimport scores
from sparsemargin._engine.first_order.linear cimport add_row, rescued_output
from sparsemargin._engine.rows.types cimport (
    ALL_STOPPED, NOT_CANONICAL, OK, TOO_WIDE, index_t, state_t, value_t
)
from sparsemargin._engine.first_order.scaling cimport answer, settle

cdef struct Classes:  # of the machine, and how the intercept is laid beside the features
    Py_ssize_t n
    double bias
    Py_ssize_t bias_column
    double stretch  # ||Phi||_p / ||x||_p


cdef struct Pair:  # Phi: the row for one class, its opposite for another
    double* values
    int64_t* columns
    Py_ssize_t nnz
    double* new_g  # room for what a correction works out


cdef inline void set_pair(Pair* pair, const Classes* classes, Py_ssize_t plus, Py_ssize_t minus,
                          const value_t* values, const index_t* columns,
                          Py_ssize_t nnz) noexcept nogil:
    cdef Py_ssize_t j, half = nnz + (1 if classes.bias else 0)
    cdef int64_t column
    for j in range(half):
        column = (columns[j] if j < nnz else classes.bias_column) * classes.n
        pair.values[j] = values[j] if j < nnz else classes.bias
        pair.values[half + j] = -pair.values[j]
        pair.columns[j] = column + plus
        pair.columns[half + j] = column + minus
    pair.nnz = 2 * half


cdef inline Py_ssize_t strongest_rival(const double* out, Py_ssize_t n, Py_ssize_t true_class,
                                       bint* wide) noexcept nogil:
    """The first of the largest outputs but that of the true class; `wide`: whether one of them
    all left the range where sums can be trusted."""
    cdef Py_ssize_t k, best = 1 if true_class == 0 else 0
    wide[0] = False
    for k in range(n):
        wide[0] |= not (fabs(out[k]) < 1.0 or is_safe(out[k]))  # a NaN is neither
        if out[k] > out[best] and k != true_class:
            best = k
    return best


cdef Py_ssize_t rescued_rival(const double* out, bint wide, const Classes* classes,
                              Py_ssize_t true_class, Pair* pair, const Space* space,
                              const state_t* t, const value_t* values, const index_t* columns,
                              Py_ssize_t nnz, const RowScale* row) noexcept nogil:
    """The strongest rival where plain dot products don't tell: all are too large or too small.

    Differences of two classes are compared, whose sign is right in any case.
    """
    cdef Py_ssize_t k, best = -1
    for k in range(classes.n):
        if k == true_class or (not wide and out[k] < 0.0 and is_safe(out[k])):
            continue
        if best >= 0:
            set_pair(pair, classes, k, best, values, columns, nnz)
            if not rescued_output(space, t, 0, pair.values, pair.columns, pair.nnz, row,
                                  <double*> NULL) > 0.0:
                continue
        best = k
    return best


cdef inline bint fires(const Rule* rule, const Space* space, const state_t* t, double lead,
                       bint trusted, const Pair* pair, const RowScale* row) noexcept nogil:
    """The exact test, for trials that the quick one could not pass."""
    cdef double bar = space.of.bar[0]
    cdef double output = space.of.sigma[0] * lead
    if bar == -INFINITY:
        return False
    if trusted and (lead == 0.0 or is_safe(output)):
        return output <= (bar * ldexp(row.norm, row.exponent) if rule.scaling == BY_ROW else bar)
    return (rescued_output(space, t, 0, pair.values, pair.columns, pair.nnz, row, <double*> NULL)
            <= bar * (row.norm if rule.scaling == BY_ROW else row.factor))


cdef int decide(const Rule* rule, Space* space, const Classes* classes, state_t* t, state_t* g,
                state_t* acc, const double* out, double bound, Py_ssize_t true_class,
                Py_ssize_t rival, bint wide, double share, int64_t trials, const value_t* values, const index_t* columns,
                Py_ssize_t nnz, Pair* pair) noexcept nogil:
    """The trial of one row; `rival` and `wide` as `strongest_rival` tells them."""
    cdef bint trusted
    cdef double lead = out[true_class] - out[rival]
    cdef double mass = 0.0, coefficient = 0.0
    cdef int32_t shifted = 0
    cdef RowScale row
    cdef Step step
    cdef Trial trial
    trusted = not wide and (is_safe(out[true_class]) or is_safe(out[rival]))
    if trusted and space.of.sigma[0] * lead > space.of.bar[0] * bound:
        return OK
    if share == 0.0 or not measure(&row, &space.p, as_row(values, columns, nnz), classes.bias, 0.0):
        return OK  # a zero row never corrects
    row.norm *= classes.stretch
    if wide or not is_safe(out[rival]):
        rival = rescued_rival(out, wide, classes, true_class, pair, space, t, values, columns,
                              nnz, &row)
    set_pair(pair, classes, true_class, rival, values, columns, nnz)
    if not fires(rule, space, t, lead, trusted, pair, &row):
        return OK
    trial = Trial(space.of.sigma[0] * lead, space.of.norm[0], ldexp(row.norm, row.exponent), 0.0)
    if rule.scaling == BY_ROW:
        trial.output /= trial.norm
        trial.norm = 1.0
    if not answer(rule, space, 0, &trial, share, &row, &step, &mass):
        return OK
    if add_row(space, t, g, acc, 0, trials, pair.values, pair.columns, pair.nnz, &row,
               <double*> NULL, &step, mass, pair.new_g, &coefficient, &shifted) != OK:
        return TOO_WIDE
    settle(rule, space, 0, <double*> NULL, mass, trials + 1)
    return OK


cdef inline int make_room(Pair* pair, vector[double]& numbers, vector[int64_t]& columns,
                          Py_ssize_t nnz) except -1 nogil:
    """Let the pair have room for a row of so many entries and an intercept."""
    cdef size_t n = 2 * (nnz + 1)
    if columns.size() < n:
        columns.resize(2 * n)
        numbers.resize(4 * n)
    pair.values = numbers.data()
    pair.new_g = numbers.data() + columns.size()
    pair.columns = columns.data()
    return 0


cdef inline int read_row(double* out, const state_t* g, const Classes* classes,
                         const value_t* values, const index_t* columns, Py_ssize_t nnz,
                         bint check, vector[uint32_t]& marks, const value_t* next_values,
                         const index_t* next_columns, Py_ssize_t next_nnz) except -1 nogil:
    """Check the row and score it, and send for one to come."""
    cdef int status = OK
    prefetch_span(next_values, next_values + next_nnz)
    prefetch_span(next_columns, next_columns + next_nnz)
    if check:
        status = check_row(as_row(values, columns, nnz), classes.bias_column)
        if status == OK and has_repeats(as_row(values, columns, nnz), marks):
            status = NOT_CANONICAL
    if status == OK:
        scores(out, g, classes.n, 0, classes.n, values, columns, nnz, classes.bias,
               classes.bias_column)
    return status


def train(JointSpace space, FirstOrderRule rule, state_t[::1] t, state_t[::1] g,
          state_t[::1] acc, const value_t[::1] data, const index_t[::1] indices,
          const index_t[::1] indptr, const int64_t[::1] codes, const double[::1] weights,
          const double[:, ::1] class_weight, const int64_t[::1] order, Py_ssize_t start,
          Py_ssize_t stop, bint check):
    """Trials ``start`` to ``stop - 1`` of a pass.

    Parameters
    ----------
    t, g, acc : arrays of `space`
    codes : ndarray of shape (n_rows,)
        Class of each row.
    weights : ndarray of shape (n_rows,) or None
        Multiply the step; 0: the row is no trial.
    class_weight : ndarray of shape (2, n_classes)
        The second row multiplies the step of the rows of each class.
    order : ndarray of shape (n_trials,) or None
        Row of each trial; None: as they come.
    check : bool
        Whether rows are checked before they are used.

    Returns
    -------
    status : int
    row : int
        The row that stopped the loop, or -1.
    mistakes : int
        Rows whose class the vectors, as they were before the trial, predicted wrongly.
    """
    cdef Space* c = &space.c
    cdef const Rule* r = &rule.rule
    cdef Classes classes = Classes(
        space.n_classes, space.rho, space.n_features, pow(2.0, 1.0 / c.p.exponent))
    cdef Py_ssize_t i, j, nnz, rival, next_row, row = -1
    cdef int64_t trials = space.trials, mistakes = 0
    cdef int status = OK
    cdef bint wide = False, normed = r.scaling == BY_ROW and threshold(r, 1) > 0.0
    cdef double bound = 1.0, share, own
    cdef const int64_t* rows = &order[0] if order is not None else NULL
    cdef const double* row_weight = &weights[0] if weights is not None else NULL
    cdef state_t* accp = &acc[0] if c.averaged else NULL
    cdef Pair pair
    cdef vector[double] out, numbers
    cdef vector[int64_t] columns
    cdef vector[uint32_t] marks
    out.resize(classes.n)
    with nogil:
        for i in range(start, stop):
            if c.of.stopped[0] >= 0:
                status = ALL_STOPPED
                break
            row = rows[i] if rows != NULL else i
            next_row = min(i + AHEAD, stop - 1)
            if rows != NULL:
                prefetch(&indptr[0] + rows[min(i + 2 * AHEAD, stop - 1)])
                next_row = rows[next_row]
            prefetch(&codes[0] + next_row)
            if row_weight != NULL:
                prefetch(row_weight + next_row)
            j = indptr[row]
            nnz = indptr[row + 1] - j
            status = read_row(
                out.data(), &g[0], &classes, &data[0] + j, &indices[0] + j, nnz, check, marks,
                &data[0] + indptr[next_row], &indices[0] + indptr[next_row],
                indptr[next_row + 1] - indptr[next_row],
            )
            if status != OK:
                break
            share = row_weight[row] if row_weight != NULL else 1.0
            if share == 0.0:
                continue
            rival = strongest_rival(out.data(), classes.n, codes[row], &wide)
            own = out[codes[row]]
            mistakes += out[rival] > own or (out[rival] == own and rival < codes[row])
            if normed:
                # The p-norm of Phi is that of the row times 2**(1/p), which is at most this.
                bound = sqrt(2.0) * bound_of_norm(as_row(&data[0] + j, &indices[0] + j, nnz), classes.bias, 0.0)
            make_room(&pair, numbers, columns, nnz)
            status = decide(r, c, &classes, &t[0], &g[0], accp, out.data(), bound, codes[row],
                            rival, wide, share * class_weight[1, codes[row]], trials, &data[0] + j,
                            &indices[0] + j, nnz, &pair)
            if status != OK:
                break
            trials += 1
    space.trials = trials
    return status, (row if status not in (OK, ALL_STOPPED) else -1), mistakes
