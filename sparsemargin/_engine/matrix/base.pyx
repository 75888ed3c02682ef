"""Code shared by the matrix Perceptrons: vectors over a basis, averages and counts.

The basis depends on the mistakes. `FeatureSpace` numbers the features in the order in which
mistaken rows contain them, so that the data of a mistake is short and contiguous for any number of
columns of X. In `DualSpace` all vectors are combinations of the mistaken rows, each divided by its
length in feature space; only the products of a row with these are needed.
"""

from libc.math cimport INFINITY, copysign, fabs, ilogb, ldexp, sqrt
from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libcpp.algorithm cimport fill
from libcpp.vector cimport vector

import copyreg

import numpy as np

from sparsemargin._engine.core.stored_outputs cimport (
    StoredOutputs, place_of_trial, stored_outputs_of
)
from sparsemargin._engine.numerics.arithmetic cimport Sum, add, link, make_power, tidy
from sparsemargin._engine.numerics.average cimport clear, count_unit, has_fallen, must_flush
from sparsemargin._engine.numerics.simd cimport add_multiple, dot
from sparsemargin._engine.rows.csr cimport (
    DOUBLE_INT32, FLOAT_INT32, FLOAT_INT64, Csr, Row, RowScale, Rows, measure
)
from sparsemargin._engine.rows.csr cimport OK, index_t, value_t
from sparsemargin._engine.state_arrays cimport to_array, stored_vector, take

from sparsemargin._engine.first_order.spaces import MAX_P
from sparsemargin._engine.state import (
    MAX_TRIALS, MOST_NUMBERS, aligned, array_of, restore, flag, part, real, require, require_starts,
    require_within, integer, sparse, writable
)


cdef class Record:
    """A state that one function writes or reads, so that fields are named and checked only once."""

    def __init__(self, state=None):
        self.writing = state is None
        self.fields = {} if state is None else state

    def field(self, name, value, check, *limits):
        """Write the value and return it, or read a value with a check of state.py."""
        if not self.writing:
            return check(self.fields, name, *limits)
        self.fields[name] = value
        return value


cdef int vector_field(Record record, name, stored_vector& values, length) except -1:
    """Write or read a vector of that length; None: of any length."""
    if record.writing:
        record.fields[name] = to_array(values)
        return OK
    return take(values, name, record.fields, length)


cdef int values_field(Record record, name, Values& values, length) except -1:
    if values.single:
        return vector_field(record, name, values.singles, length)
    return vector_field(record, name, values.doubles, length)


cdef int rows_field(Record record, name, StoredRows& rows, n_columns) except -1:
    """Write or read rows over the features seen, which are numbered from 1 to n_columns - 1."""
    if record.writing:
        record.fields[name] = {}
    cdef Record inner = Record(part(record.fields, name))
    inner.writing = record.writing
    vector_field(inner, "start", rows.start, None)
    vector_field(inner, "columns", rows.columns, None)
    values_field(inner, "values", rows.values, rows.n_entries())
    require_starts("start", inner.fields["start"], rows.n_entries())
    require_within("columns", inner.fields["columns"], 1, n_columns - 1)
    return OK


cdef class MatrixSpace:
    """One vector over a basis, and the state that every matrix Perceptron keeps with it.

    Parameters
    ----------
    averaged : bool
        Whether the sum of the hypotheses is kept.
    share : float
        A trial corrects if ``y w.x`` is at most ``share / sqrt(k) * sqrt(w.v)`` after k - 1
        corrections.
    most_updates : int or None
        Number of corrections that may change the matrix; None: no limit.
    room : int
        Largest size of the matrix in bytes.
    """

    def __init__(self, **settings):
        self.settings = settings
        self.open(**settings)

    def open(self, *, bint averaged, most_updates, int64_t room, double share):
        self.averaged = averaged
        require(0.0 <= share < INFINITY, "its margin is out of range")
        self.share = share
        self.most_updates = -1 if most_updates is None else most_updates
        self.room = room
        self.limit = -1
        self.common = 1.0
        self.set_threshold()
        self.predictor = None

    # -------------------------------------------------------------------------------- training

    cdef int move(self, double step) except -1 nogil:
        """v <- v + step * x, with the matrix and w updated."""

    cdef int correct(self, double step, int64_t number) except -1 nogil:
        """Make a correction with the current row, whose number is `number`."""
        cdef double before = self.common
        self.count_current()
        self.average.begin = self.trials
        self.move(step)
        if self.nonzero == 0:
            # The rest of w is a rounding error, whose direction is meaningless.
            fill(self.w.begin(), self.w.end(), 0.0)
        self.count_move(before)
        self.corrections += 1
        self.set_threshold()
        self.mistakes.push_back(number)
        return OK

    cdef double square(self) noexcept nogil:
        """w.v"""

    cdef void set_threshold(self) noexcept nogil:
        cdef double length = sqrt(max(self.square(), 0.0)) if self.share > 0.0 else 0.0
        self.threshold = self.share / sqrt(self.corrections + 1.0) * length

    cdef bint must_correct(self, double signed_output) noexcept nogil:
        """Return whether a trial with this ``y w.x`` is corrected."""
        if signed_output > self.threshold:
            return False
        self.mistaken += not signed_output > 0.0
        return True

    cdef void count_current(self) noexcept nogil:
        """Add the current vector to the total, once for each trial since the last correction."""
        if self.averaged and self.trials > self.average.begin:
            add_multiple(self.total.data(), self.w.data(),
                         (self.trials - self.average.begin) * self.common, self.total.size())

    cdef void count_move(self, double before) noexcept nogil:
        """Correct the total for a changed part of w whose past values are counted by Z. `before` is
        the previous value of `common`."""

    cdef bint may_update(self, int64_t n_bytes) noexcept nogil:
        """Return whether a correction may extend the matrix to this size."""
        if 0 <= self.most_updates <= self.updates:
            return False
        self.full = self.full or n_bytes > self.room
        return not self.full

    # ----------------------------------------------------------------------------- for Python

    def resume(self, max_corrections=None):
        """Continue training, up to `max_corrections` corrections in all."""
        self.limit = -1 if max_corrections is None else max_corrections
        self.bound_mistakes()

    cdef int bound_mistakes(self) except -1:
        """If updates of the matrix are limited, drop the mistakes beyond that number."""
        self.mistakes.resize(self.n_mistakes_kept())
        return OK

    cdef int64_t n_mistakes_kept(self) noexcept:
        """Number of mistakes whose rows are kept."""
        return self.corrections if self.most_updates < 0 else min(self.corrections, self.most_updates)

    def count_trials(self, int64_t n):
        """Count n more trials without a correction."""
        self.trials += n

    @property
    def mistaken_rows(self):
        """Row number of each mistake, up to the limit of `most_updates`."""
        return to_array(self.mistakes)[:self.n_mistakes_kept()]

    def mistaken_since(self, int64_t corrections):
        """Row numbers of the mistakes in the last call, before which there had been `corrections`
        corrections."""
        return to_array(self.mistakes)[self.mistakes.size() - (self.corrections - corrections):]

    def sum_of_hypotheses(self):
        """Sum of the hypotheses over all trials, over the basis."""
        times = (self.trials - self.average.begin) * self.common
        return to_array(self.total) + times * to_array(self.w)

    def hypothesis(self):
        """The vector used for prediction, over the basis; the same array until the next trial."""
        made = self.trials, self.corrections
        if self.predictor is None or self.predictor[0] != made:
            vector = (self.sum_of_hypotheses() / max(self.trials, 1) if self.averaged
                      else to_array(self.w) * self.common)
            self.predictor = made, vector
        return self.predictor[1]

    # ---------------------------------------------------------------------------------- copies

    def __reduce__(self):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __getstate__(self):
        cdef Record record = Record()
        self.record(record)
        return {"settings": self.settings, **record.fields}

    def __setstate__(self, state):
        state = aligned(state)
        self.settings = part(state, "settings")
        try:
            self.open(**self.settings)
        except (TypeError, OverflowError) as error:
            require(False, f"its settings are no settings: {error}")
        self.record(Record(state))
        self.set_threshold()

    cdef record(self, Record record):
        """Write or read the state, field by field."""
        self.full = record.field("full", self.full, flag)
        self.trials = record.field("trials", self.trials, integer, 0, MAX_TRIALS)
        self.corrections = record.field("corrections", self.corrections, integer, 0, MAX_TRIALS)
        self.updates = record.field("updates", self.updates, integer, 0, self.corrections)
        self.limit = record.field("limit", self.limit, integer, -1, MAX_TRIALS)
        self.average.begin = record.field("begin", self.average.begin, integer, 0, self.trials)

    cdef record_vectors(self, Record record, n, n_total):
        """Write or read the vectors over a basis of size n, and the mistakes. Without averaging,
        `total` has the size n_total."""
        vector_field(record, "w", self.w, n)
        vector_field(record, "v", self.v, n)
        vector_field(record, "total", self.total, n if self.averaged else n_total)
        self.nonzero = record.field("nonzero", self.nonzero, integer, 0, n)
        if record.writing:
            self.bound_mistakes()
        vector_field(record, "mistakes", self.mistakes, self.n_mistakes_kept())


include "features.pxi"
include "feature_trials.pxi"


cdef void multiply_symmetric(const double* triangle, const double* x, double* out,
                             Py_ssize_t n) noexcept nogil:
    """out <- M x for a symmetric M, given by its lower triangle row by row."""
    cdef Py_ssize_t i
    cdef const double* row = triangle
    for i in range(n):
        out[i] = dot(row, x, i) + row[i] * x[i]
        add_multiple(out, row, x[i], i)
        row += i + 1


cdef class DualSpace(MatrixSpace):
    """A space over the mistaken rows in dual variables, which works with any kernel."""

    cdef int64_t add_row(self, int64_t slot) except -1 nogil:
        """Add the row of a slot to the rows of this vector, and return its index."""
        self.slot_of.push_back(slot)
        self.w.push_back(0.0)
        self.v.push_back(0.0)
        if self.averaged:
            self.total.push_back(0.0)
        return self.slot_of.size() - 1

    cdef int look_up(self) except -1 nogil:
        """x <- products of the current row with the columns."""
        cdef size_t j, k = self.columns.size()
        self.x.resize(k)
        self.z.resize(k)
        for j in range(k):
            self.x[j] = self.products[self.columns[j]]
        return OK

    cdef void move_v(self, double step) noexcept nogil:
        """v <- v + step * x."""
        cdef double before = self.v[self.row]
        self.v[self.row] = before + step
        self.nonzero += (self.v[self.row] != 0.0) - (before != 0.0)
        if self.nonzero == 0:
            self.length = 0.0

    cdef void shift(self, double size) noexcept nogil:
        """w <- w + size * x + sum_j z_j x_j over the columns."""
        cdef size_t j
        for j in range(self.columns.size()):
            self.w[self.columns[j]] += self.z[j]
        self.w[self.row] += size

    cdef bint may_grow(self) noexcept nogil:
        """Return whether a correction may add a column to the matrix."""
        cdef size_t k = self.columns.size() + 1
        return self.may_update(4 * k * (k + 1))

    cdef int take_column(self) except -1 nogil:
        """Make the current row the next column; the matrix already has its entries."""
        self.updates += 1
        self.columns.push_back(self.row)
        return OK

    cdef double square(self) noexcept nogil:
        return self.length

    # ----------------------------------------------------------------------------- for Python

    def renumber(self, int64_t base, const int64_t[::1] slots):
        """Replace the provisional slots base + i of new rows by their slots in the support set."""
        cdef Py_ssize_t j = self.slot_of.size()
        while j > 0 and self.slot_of[j - 1] >= base:
            j -= 1
            self.slot_of[j] = slots[self.slot_of[j] - base]

    @property
    def slots(self):
        """Slots of the mistaken rows in the support set."""
        return to_array(self.slot_of)

    @property
    def n_support(self):
        """Number of rows with nonzero coefficients in the hypothesis."""
        return int(np.count_nonzero(self.hypothesis()))

    @property
    def nbytes(self):
        """Bytes of the matrix and the vectors."""
        return 8 * (self.matrix.size() + self.columns.size() + self.slot_of.size() + self.w.size()
                    + self.v.size() + self.total.size() + self.mistakes.size())

    cdef record(self, Record record):
        MatrixSpace.record(self, record)
        vector_field(record, "slots", self.slot_of, None)
        n, k = <int64_t> self.slot_of.size(), self.updates
        require(len(np.unique(record.fields["slots"])) == n, "'slots' hold a row twice")
        require_within("slots", record.fields["slots"], 0, MAX_TRIALS)
        self.record_vectors(record, n, 0)
        vector_field(record, "columns", self.columns, k)
        require_within("columns", record.fields["columns"], 0, n - 1)
        vector_field(record, "matrix", self.matrix, k * (k + 1) // 2)
        self.length = record.field("length", self.length, real, -INFINITY, INFINITY)


def learn_products(DualSpace space, double[:, ::1] products, const double[:, ::1] square,
                   const double[::1] steps, int64_t[::1] which, const int64_t[::1] numbers,
                   int64_t base):
    """Make trials on a block of rows, given their products.

    Parameters
    ----------
    products : ndarray of shape (n_rows, n_support + n_rows)
        Products with the vector's n_support rows, with room for new rows of the vector.
    square : ndarray of shape (n_rows, n_rows)
        Products of the rows of the block.
    steps, numbers : ndarray of shape (n_rows,)
        See `learn_rows`.
    which : ndarray of shape (n_rows,)
        Index of each row among the vector's rows, -1: none; updated.
    base : int
        Row i of the block gets the slot base + i if it is new.

    Returns
    -------
    products : float
        Approximate number of multiplications.
    """
    cdef Py_ssize_t i, e, n_rows = square.shape[0]
    cdef double cost = 0.0
    with nogil:
        for i in range(n_rows):
            if 0 <= space.limit <= space.corrections:
                break
            space.products = &products[i, 0]
            space.output = dot(space.products, space.w.data(), space.w.size())
            cost += space.w.size()
            if steps[i] != 0.0 and space.must_correct(copysign(1.0, steps[i]) * space.output):
                if which[i] < 0:
                    which[i] = space.add_row(base + i)
                    for e in range(n_rows):
                        products[e, which[i]] = square[e, i]
                space.row = which[i]
                space.correct(steps[i], numbers[i])
                cost += <double> space.columns.size() * space.columns.size()
            space.trials += 1
    return cost
