"""A vector over a pool of rows, and the k x k matrix that a matrix Perceptron keeps beside it.

All vectors are combinations of the rows that the label has mistaken, each divided by its length
in feature space: what is needed of a row is its products with these, and the dimension of the
feature space does not matter.
"""

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t
from libcpp.algorithm cimport copy, fill
from libcpp.vector cimport vector

import copyreg

import numpy as np

from sparsemargin._engine.state cimport as_array, doubles, take
from sparsemargin._engine.rows.types cimport OK, value_t
from sparsemargin._engine.numerics.vectors cimport add_multiple, dot

from sparsemargin._engine.state import (
    MAX_TRIALS, flag, length_of, part, real, require, require_within, whole
)

# Counts that are saved as they are.
COUNTS = ("trials", "corrections", "updates", "limit")


cdef void multiply_symmetric(const double* triangle, const double* x, double* out,
                             Py_ssize_t n) noexcept nogil:
    """out <- M x, M being symmetric, its lower triangle row after row."""
    cdef Py_ssize_t i
    cdef const double* row = triangle
    for i in range(n):
        out[i] = dot(row, x, i) + row[i] * x[i]
        add_multiple(out, row, x[i], i)
        row += i + 1


cdef class DualSpace:
    """What the dual spaces of matrix Perceptrons share: one label's weights, averages and counts.

    Parameters
    ----------
    averaged, normalized, logged : bool
        Whether the sum of the hypotheses is kept; whether they count with norm 1; whether
        corrections are logged, for hypotheses that are replayed.
    most_updates : int or None
        Corrections that may change the matrix; None: any number.
    room : int
        Bytes the matrix may take.
    """

    def __init__(self, **settings):
        self.settings = settings
        self.open(**settings)

    def open(self, *, bint averaged, bint normalized, bint logged, most_updates, int64_t room):
        self.averaged, self.normalized, self.logged = averaged, normalized, logged
        self.most_updates = -1 if most_updates is None else most_updates
        self.room = room
        self.limit = -1
        self.unit = 1.0

    # -------------------------------------------------------------------------------- learning

    cdef int move(self, const double* products, int64_t row, double output,
                  double step) except -1 nogil:
        """v <- v + step * x is about to happen: the matrix with it, and w as it then is."""
        return OK

    cdef int64_t add_row(self, int64_t place, const double* products) except -1 nogil:
        """Let a row of the pool, whose products with the label's are given, be one of these; which
        it is."""
        if self.normalized or self.logged:
            self.gram.insert(self.gram.end(), products, products + self.places.size())
            self.gram.push_back(1.0)
        self.places.push_back(place)
        self.w.push_back(0.0)
        self.v.push_back(0.0)
        if self.averaged:
            self.total.push_back(0.0)
        return self.places.size() - 1

    cdef int correct(self, const double* products, int64_t row, double output, double step,
                     int64_t number) except -1 nogil:
        """A mistake on a row of the label's, whose products with all of them are given."""
        cdef double before = self.v[row]
        self.count_current()
        self.begin = self.trials
        if self.logged:
            self.logged_rows.push_back(row)
            self.logged_steps.push_back(step)
            self.logged_begins.push_back(self.begin)
        self.move(products, row, output, step)
        self.v[row] = before + step
        self.nonzero += (self.v[row] != 0.0) - (before != 0.0)
        if self.nonzero == 0:
            # Rounding has left something of w, whose direction would tell.
            fill(self.w.begin(), self.w.end(), 0.0)
        if self.normalized:
            self.unit = self.reciprocal_norm()
        self.corrections += 1
        self.mistakes.push_back(number)
        return OK

    cdef void count_current(self) noexcept nogil:
        """Let the total take in the current vector for the trials it has lasted."""
        if self.averaged and self.trials > self.begin:
            add_multiple(self.total.data(), self.w.data(),
                         (self.trials - self.begin) * self.unit, self.total.size())

    cdef int look_up(self, const double* products) except -1 nogil:
        """x <- products of the row at hand with the columns."""
        cdef size_t j, k = self.columns.size()
        self.x.resize(k)
        self.z.resize(k)
        for j in range(k):
            self.x[j] = products[self.columns[j]]
        return OK

    cdef double reciprocal_norm(self) except -1.0 nogil:
        """1 / |w|; 0 where w is 0."""
        cdef double square
        self.scratch.resize(self.w.size())
        multiply_symmetric(self.gram.data(), self.w.data(), self.scratch.data(), self.w.size())
        square = dot(self.w.data(), self.scratch.data(), self.w.size())
        return 1.0 / sqrt(square) if square > 0.0 else 0.0

    cdef double product(self, int64_t i, int64_t j) noexcept nogil:
        """Of two of the label's rows."""
        return self.gram[max(i, j) * (max(i, j) + 1) // 2 + min(i, j)]

    cdef void shift(self, int64_t row, double size) noexcept nogil:
        """w <- w + size * x + sum_j z_j x_j over the columns."""
        cdef size_t j
        for j in range(self.columns.size()):
            self.w[self.columns[j]] += self.z[j]
        self.w[row] += size

    cdef int take_column(self, int64_t row) except -1 nogil:
        """Let the row at hand be the next column, the matrix having its entries."""
        self.updates += 1
        self.columns.push_back(row)
        return OK

    cdef bint may_update(self) noexcept nogil:
        """Whether a correction may make the matrix larger by a column."""
        cdef size_t k = self.columns.size() + 1
        if 0 <= self.most_updates <= self.updates:
            return False
        self.full = self.full or <int64_t> (4 * k * (k + 1)) > self.room
        return not self.full

    def can_grow(self, Py_ssize_t n_rows):
        """Whether so many more rows may be the label's: their products with each other, which
        norms and replays take, may be as large as the matrix."""
        cdef Py_ssize_t n = self.places.size() + n_rows
        return not (self.normalized or self.logged) or 4 * n * (n + 1) <= self.room

    # ----------------------------------------------------------------------------- for Python

    def count_trials(self, int64_t n):
        """Count n more trials that made no correction."""
        self.trials += n

    def renumber(self, int64_t base, const int64_t[::1] places):
        """Give rows that were at base + i their places in the pool."""
        cdef Py_ssize_t j = self.places.size()
        while j > 0 and self.places[j - 1] >= base:
            j -= 1
            self.places[j] = places[self.places[j] - base]

    @property
    def support(self):
        """Places in the pool of the rows mistaken so far."""
        return as_array(self.places.data(), self.places.size(), np.int64)

    @property
    def mistaken_rows(self):
        """Number of each mistake's row, shape (corrections,)."""
        return as_array(self.mistakes.data(), self.mistakes.size(), np.int64)

    @property
    def n_support(self):
        """Rows that the hypothesis is made of."""
        return self.places.size() if self.logged else int(np.count_nonzero(self.hypothesis()))

    @property
    def nbytes(self):
        """Bytes of the matrix, the vectors and the log."""
        return 8 * (self.matrix.size() + self.gram.size() + self.columns.size()
                    + self.places.size() + self.w.size() + self.v.size()
                    + self.total.size() + self.mistakes.size() + 3 * self.logged_rows.size())

    def hypothesis(self):
        """The vector that predicts: coefficients of the rows of `support`."""
        if self.averaged:
            current = (self.trials - self.begin) * self.unit
            return (doubles(self.total) + current * doubles(self.w)) / max(self.trials, 1)
        return doubles(self.w) * self.unit

    def rounding(self):
        """What coefficients may be off by, relative to the largest of them."""
        return 2.0 ** -48

    def blank(self):
        """A space like this one before its first correction, to replay the log in."""
        return type(self)(**{**self.settings, "averaged": False, "logged": False})

    def log(self):
        """Of each correction: which row of `support`, its step, and the trials before it."""
        n = self.logged_rows.size()
        return (as_array(self.logged_rows.data(), n, np.int64), doubles(self.logged_steps),
                as_array(self.logged_begins.data(), n, np.int64))

    # ---------------------------------------------------------------------------------- copies

    def __reduce__(self):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __getstate__(self):
        logged_rows, logged_steps, logged_begins = self.log()
        return {
            "settings": self.settings, "full": self.full,
            **{name: getattr(self, name) for name in COUNTS}, "begin": self.begin,
            "unit": self.unit, "nonzero": self.nonzero,
            "places": self.support, "mistakes": self.mistaken_rows, "w": doubles(self.w),
            "v": doubles(self.v), "total": doubles(self.total), "matrix": doubles(self.matrix),
            "columns": as_array(self.columns.data(), self.columns.size(), np.int64),
            "gram": doubles(self.gram), "logged_rows": logged_rows, "logged_steps": logged_steps,
            "logged_begins": logged_begins,
        }

    def __setstate__(self, state):
        self.settings = part(state, "settings")
        try:
            self.open(**self.settings)
        except (TypeError, OverflowError) as error:
            require(False, f"its settings are no settings: {error}")
        self.take_counts(state)
        self.take_rows(state)
        self.take_matrix(state)
        self.take_log(state)

    cdef int take_counts(self, state) except -1:
        self.full = flag(state, "full")
        self.trials = whole(state, "trials", 0, MAX_TRIALS)
        self.corrections = whole(state, "corrections", 0, MAX_TRIALS)
        self.updates = whole(state, "updates", 0, self.corrections)
        self.limit = whole(state, "limit", -1, MAX_TRIALS)
        self.begin = whole(state, "begin", 0, self.trials)
        self.unit = real(state, "unit", -INFINITY, INFINITY)
        return OK

    cdef int take_rows(self, state) except -1:
        n = length_of(state, "places")
        take(self.places, "places", state, n)
        require(len(np.unique(state["places"])) == n, "'places' hold a row twice")
        require_within("places", state["places"], 0, MAX_TRIALS)
        take(self.w, "w", state, n)
        take(self.v, "v", state, n)
        take(self.total, "total", state, n if self.averaged else 0)
        take(self.mistakes, "mistakes", state, self.corrections)
        self.nonzero = whole(state, "nonzero", 0, n)
        return OK

    cdef int take_matrix(self, state) except -1:
        k = self.updates
        take(self.columns, "columns", state, k)
        require_within("columns", state["columns"], 0, <int64_t> self.places.size() - 1)
        take(self.matrix, "matrix", state, k * (k + 1) // 2)
        n = <int64_t> self.places.size() if self.normalized or self.logged else 0
        take(self.gram, "gram", state, n * (n + 1) // 2)
        return OK

    cdef int take_log(self, state) except -1:
        n = self.corrections if self.logged else 0
        take(self.logged_rows, "logged_rows", state, n)
        require_within("logged_rows", state["logged_rows"], 0, <int64_t> self.places.size() - 1)
        seen = np.maximum.accumulate(np.concatenate([[-1], state["logged_rows"]]))
        require((np.diff(seen) <= 1).all(), "'logged_rows' skip a row")
        take(self.logged_steps, "logged_steps", state, n)
        take(self.logged_begins, "logged_begins", state, n)
        require_within("logged_begins", state["logged_begins"], 0, MAX_TRIALS)
        return OK


# ------------------------------------------------------------------------------------- passes

def own_products(DualSpace space, const value_t[:, ::1] products, double[:, ::1] out):
    """Of products with all rows of a pool those with the label's, as doubles.

    Parameters
    ----------
    products : ndarray of shape (n_points, n_support)
    out : ndarray of shape (n_points, at least the label's rows)
    """
    cdef Py_ssize_t i, j, n = space.places.size()
    with nogil:
        for i in range(products.shape[0]):
            for j in range(n):
                out[i, j] = products[i, space.places[j]]


def learn_rows(DualSpace space, double[:, ::1] products, const double[:, ::1] square,
               const double[::1] steps, int64_t[::1] own, const int64_t[::1] numbers,
               int64_t base):
    """Trials of a block of rows.

    Parameters
    ----------
    products : ndarray of shape (n_rows, n_own + n_rows)
        With the label's n_own rows; filled up as more rows become the label's.
    square : ndarray of shape (n_rows, n_rows)
        Products with each other.
    steps : ndarray of shape (n_rows,)
        What a mistake on each row makes, with the sign of its label; 0: it makes none.
    own : ndarray of shape (n_rows,)
        Which of the label's rows each is, -1 for none; brought up to date.
    numbers : ndarray of shape (n_rows,)
        For the list of mistakes.
    base : int
        Row i of the block, where it is a new one of the label's, gets place base + i.

    Returns
    -------
    products : float
        About how many multiplications they took.
    """
    cdef Py_ssize_t i, e, n_rows = square.shape[0]
    cdef double output, cost = 0.0
    with nogil:
        for i in range(n_rows):
            if 0 <= space.limit <= space.corrections:
                break
            output = dot(&products[i, 0], space.w.data(), space.w.size())
            cost += space.w.size()
            if (output <= 0.0 and steps[i] > 0.0) or (output >= 0.0 and steps[i] < 0.0):
                if own[i] < 0:
                    own[i] = space.add_row(base + i, &products[i, 0])
                    for e in range(n_rows):
                        products[e, own[i]] = square[e, i]
                space.correct(&products[i, 0], own[i], output, steps[i], numbers[i])
                cost += <double> space.columns.size() * space.columns.size()
            space.trials += 1
    return cost


def replay(DualSpace space, DualSpace now, Py_ssize_t start, double[:, ::1] vectors,
           double[::1] units):
    """Make corrections of a space again.

    Parameters
    ----------
    now : DualSpace
        What the space was like before them; brought up to date.
    start : int
        The first of them.
    vectors : ndarray of shape (n_corrections, n_own)
        Gets w after each of them; the label's rows stand in the order in which they became its.
    units : ndarray of shape (n_corrections,)
        Gets what each of these counts with.
    """
    cdef Py_ssize_t e, j, n
    cdef int64_t row
    cdef double output
    cdef vector[double] products
    with nogil:
        for e in range(units.shape[0]):
            row = space.logged_rows[start + e]
            n = max(<Py_ssize_t> now.w.size(), row + 1)
            products.resize(n)
            for j in range(n):
                products[j] = space.product(row, j)
            output = dot(products.data(), now.w.data(), now.w.size())
            if row == <Py_ssize_t> now.w.size():
                now.add_row(row, products.data())
            now.correct(products.data(), row, output, space.logged_steps[start + e], 0)
            copy(now.w.begin(), now.w.end(), &vectors[e, 0])
            units[e] = now.unit
