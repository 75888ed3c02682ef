"""What matrix Perceptrons share: a vector over a basis, its averages and counts.

The basis is made of what mistakes have brought. `FeatureSpace` numbers features in the order in
which mistaken rows bring them: what a mistake works on is then short and contiguous, however many
columns X has. In `DualSpace` all vectors are combinations of the rows mistaken, each divided by its
length in feature space: what is needed of a row is its products with these.
"""

from libc.math cimport INFINITY, copysign, fabs, ilogb, ldexp, sqrt
from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libcpp.algorithm cimport fill
from libcpp.vector cimport vector

import copyreg

import numpy as np

from sparsemargin._engine.core.kept cimport Kept, kept_of, place_of
from sparsemargin._engine.numerics.arithmetic cimport Sum, add, link, make_power, tidy
from sparsemargin._engine.numerics.average cimport clear, count_unit, has_fallen, must_flush
from sparsemargin._engine.numerics.vectors cimport add_multiple, dot
from sparsemargin._engine.rows.csr cimport (
    DOUBLE_INT32, FLOAT_INT32, FLOAT_INT64, Csr, Row, RowScale, Rows, measure
)
from sparsemargin._engine.rows.csr cimport OK, index_t, value_t
from sparsemargin._engine.vectors cimport copied, stored_vector, take

from sparsemargin._engine.first_order.spaces import MAX_P, MOST_NUMBERS
from sparsemargin._engine.state import (
    MAX_TRIALS, aligned, array_of, restore, flag, part, real, require, require_starts,
    require_within, integer, sparse, writable
)


cdef class Record:
    """A state that is written, or read: what a field is called and must be is said once."""

    def __init__(self, state=None):
        self.writing = state is None
        self.fields = {} if state is None else state

    def field(self, name, value, check, *limits):
        """The value, that is written; or the one read, which `check` of state.py looks at."""
        if not self.writing:
            return check(self.fields, name, *limits)
        self.fields[name] = value
        return value


cdef int vector_field(Record record, name, stored_vector& values, length) except -1:
    """Of that length; None: of any."""
    if record.writing:
        record.fields[name] = copied(values)
        return OK
    return take(values, name, record.fields, length)


cdef int values_field(Record record, name, Values& values, length) except -1:
    if values.single:
        return vector_field(record, name, values.singles, length)
    return vector_field(record, name, values.doubles, length)


cdef int rows_field(Record record, name, StoredRows& rows, n_columns) except -1:
    """Of rows over the features met, numbered from 1 to n_columns - 1."""
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
    """One label's vector over a basis, and what a matrix Perceptron keeps beside it.

    Parameters
    ----------
    averaged : bool
        Whether the sum of the hypotheses is kept.
    share, margin : float
        A trial corrects where ``y w.x`` is at most ``share / sqrt(k) * sqrt(w.v)``, k - 1
        corrections having been made, or at most the margin.
    most_updates : int or None
        Corrections that may change the matrix; None: any number.
    room : int
        Bytes the matrix may take.
    """

    def __init__(self, **settings):
        self.settings = settings
        self.open(**settings)

    def open(self, *, bint averaged, most_updates, int64_t room, double share, double margin):
        self.averaged = averaged
        require(0.0 <= share < INFINITY and 0.0 <= margin < INFINITY, "its margin is out of range")
        self.share, self.margin = share, margin
        self.most_updates = -1 if most_updates is None else most_updates
        self.room = room
        self.limit = -1
        self.common = 1.0
        self.set_threshold()
        self.predictor = None

    # -------------------------------------------------------------------------------- learning

    cdef int move(self, double step) except -1 nogil:
        """v <- v + step * x, the matrix with it, and w as it then is."""

    cdef int correct(self, double step, int64_t number) except -1 nogil:
        """A correction on the row at hand, called by that number."""
        cdef double before = self.common
        self.count_current()
        self.average.begin = self.trials
        self.move(step)
        if self.nonzero == 0:
            # Rounding has left something of w, whose direction would tell.
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
        self.threshold = max(self.margin, self.share / sqrt(self.corrections + 1.0) * length)

    cdef bint meet(self, double signed_output) noexcept nogil:
        """Whether a trial corrects whose ``y w.x`` that is."""
        if signed_output > self.threshold:
            return False
        self.mistaken += not signed_output > 0.0
        return True

    cdef void count_current(self) noexcept nogil:
        """Let the total take in the current vector for the trials it has lasted."""
        if self.averaged and self.trials > self.average.begin:
            add_multiple(self.total.data(), self.w.data(),
                         (self.trials - self.average.begin) * self.common, self.total.size())

    cdef void count_move(self, double before) noexcept nogil:
        """Let the total know what has moved of vectors that it has not taken in; `common`
        was `before`."""

    cdef bint may_update(self, int64_t n_bytes) noexcept nogil:
        """Whether a correction may make the matrix as large as that."""
        if 0 <= self.most_updates <= self.updates:
            return False
        self.full = self.full or n_bytes > self.room
        return not self.full

    # ----------------------------------------------------------------------------- for Python

    def resume(self, max_corrections=None):
        """Learn on, up to that many corrections since the first."""
        self.limit = -1 if max_corrections is None else max_corrections
        self.bound_mistakes()

    cdef int bound_mistakes(self) except -1:
        """Where the matrix is bounded, keep as few of the mistakes."""
        self.mistakes.resize(self.n_mistakes_kept())
        return OK

    cdef int64_t n_mistakes_kept(self) noexcept:
        """Mistakes whose rows stay known."""
        return self.corrections if self.most_updates < 0 else min(self.corrections, self.most_updates)

    def count_trials(self, int64_t n):
        """Count n more trials that made no correction."""
        self.trials += n

    @property
    def mistaken_rows(self):
        """Number of each mistake's row, of the first `most_updates` where these are bounded."""
        return copied(self.mistakes)[:self.n_mistakes_kept()]

    def mistaken_since(self, int64_t corrections):
        """Those of the call under way, or of the last, so many corrections having been made
        before."""
        return copied(self.mistakes)[self.mistakes.size() - (self.corrections - corrections):]

    def sum_of_hypotheses(self):
        """Each as often as it lasted, over the basis."""
        times = (self.trials - self.average.begin) * self.common
        return copied(self.total) + times * copied(self.w)

    def hypothesis(self):
        """The vector that predicts, over the basis; the same array until the next trial."""
        made = self.trials, self.corrections
        if self.predictor is None or self.predictor[0] != made:
            vector = (self.sum_of_hypotheses() / max(self.trials, 1) if self.averaged
                      else copied(self.w) * self.common)
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
        """Those over a basis of n, the total being of n_total where nothing is averaged; and what
        there is of each correction."""
        vector_field(record, "w", self.w, n)
        vector_field(record, "v", self.v, n)
        vector_field(record, "total", self.total, n if self.averaged else n_total)
        self.nonzero = record.field("nonzero", self.nonzero, integer, 0, n)
        if record.writing:
            self.bound_mistakes()
        vector_field(record, "mistakes", self.mistakes, self.n_mistakes_kept())


include "features.pxi"


cdef void multiply_symmetric(const double* triangle, const double* x, double* out,
                             Py_ssize_t n) noexcept nogil:
    """out <- M x, M being symmetric, its lower triangle row after row."""
    cdef Py_ssize_t i
    cdef const double* row = triangle
    for i in range(n):
        out[i] = dot(row, x, i) + row[i] * x[i]
        add_multiple(out, row, x[i], i)
        row += i + 1


cdef class DualSpace(MatrixSpace):
    """A space over the rows mistaken: in dual variables, which any kernel will do for."""

    cdef int64_t add_row(self, int64_t slot) except -1 nogil:
        """Let the row of a slot be one of the label's; which it is."""
        self.slot_of.push_back(slot)
        self.w.push_back(0.0)
        self.v.push_back(0.0)
        if self.averaged:
            self.total.push_back(0.0)
        return self.slot_of.size() - 1

    cdef int look_up(self) except -1 nogil:
        """x <- products of the row at hand with the columns."""
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
        """Whether a correction may make the matrix larger by a column."""
        cdef size_t k = self.columns.size() + 1
        return self.may_update(4 * k * (k + 1))

    cdef int take_column(self) except -1 nogil:
        """Let the row at hand be the next column, the matrix having its entries."""
        self.updates += 1
        self.columns.push_back(self.row)
        return OK

    cdef double square(self) noexcept nogil:
        return self.length

    # ----------------------------------------------------------------------------- for Python

    def renumber(self, int64_t base, const int64_t[::1] slots):
        """Give rows that were at base + i their slots in the support set."""
        cdef Py_ssize_t j = self.slot_of.size()
        while j > 0 and self.slot_of[j - 1] >= base:
            j -= 1
            self.slot_of[j] = slots[self.slot_of[j] - base]

    @property
    def slots(self):
        """Of the rows mistaken so far, in the support set."""
        return copied(self.slot_of)

    @property
    def n_support(self):
        """Rows that the hypothesis is made of."""
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
    """Trials of a block of rows, known by their products.

    Parameters
    ----------
    products : ndarray of shape (n_rows, n_support + n_rows)
        With the label's n_support rows; filled up as more rows become the label's.
    square : ndarray of shape (n_rows, n_rows)
        Products with each other.
    steps, numbers : ndarray of shape (n_rows,)
        As those of `learn_rows`.
    which : ndarray of shape (n_rows,)
        Which of the label's rows each is, -1 for none; brought up to date.
    base : int
        Row i of the block, where it is a new one of the label's, gets slot base + i.

    Returns
    -------
    products : float
        About how many multiplications they took.
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
            if steps[i] != 0.0 and space.meet(copysign(1.0, steps[i]) * space.output):
                if which[i] < 0:
                    which[i] = space.add_row(base + i)
                    for e in range(n_rows):
                        products[e, which[i]] = square[e, i]
                space.row = which[i]
                space.correct(steps[i], numbers[i])
                cost += <double> space.columns.size() * space.columns.size()
            space.trials += 1
    return cost
