"""A vector over the features seen so far, and what a matrix Perceptron keeps beside it.

Features are renumbered in the order in which mistaken rows bring them: what a mistake works on
is then short and contiguous, however many columns X has.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, fabs, pow
from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libcpp.algorithm cimport copy, fill
from libcpp.vector cimport vector

import copyreg

import numpy as np

from sparsemargin._engine.matrix.sparse_products cimport sparse_dot
from sparsemargin._engine.numerics.power cimport make_power
from sparsemargin._engine.rows.csr cimport RowScale
from sparsemargin._engine.state cimport as_array, doubles, take
from sparsemargin._engine.rows.types cimport OK, index_t, value_t
from sparsemargin._engine.numerics.vectors cimport add_multiple

from sparsemargin._engine.first_order.spaces import MAX_P
from sparsemargin._engine.state import (
    MAX_TRIALS, aligned, array_of, flag, length_of, part, real, require, require_starts,
    require_within, whole, writable
)


# Counts that are saved as they are.
COUNTS = ("trials", "corrections", "updates", "limit", "rows_taken")


cdef class Values:
    """Values of the type rows are stored in."""

    def __init__(self, bint single):
        self.single = single

    cdef int append(self, const vector[double]* values) except -1 nogil:
        cdef size_t j
        for j in range(values.size()):
            if self.single:
                self.singles.push_back(<float> values[0][j])
            else:
                self.doubles.push_back(values[0][j])
        return OK

    cdef double stored(self, double value) noexcept nogil:
        """What becomes of a value that is stored: what is worked with from the first, too."""
        return <float> value if self.single else value

    cdef double at(self, int64_t j) noexcept nogil:
        return self.singles[j] if self.single else self.doubles[j]

    cdef int64_t n_bytes(self) noexcept nogil:
        return self.singles.size() * sizeof(float) + self.doubles.size() * sizeof(double)

    cdef void clear(self) noexcept nogil:
        """Forget all values, and give back their memory."""
        self.singles = vector[float]()
        self.doubles = vector[double]()

    cdef array(self):
        """A copy of the values."""
        if self.single:
            return as_array(self.singles.data(), self.singles.size(), np.float32)
        return doubles(self.doubles)

    cdef int take_array(self, name, state, length) except -1:
        """The other way round, for the array called `name`."""
        if self.single:
            return take(self.singles, name, state, length)
        return take(self.doubles, name, state, length)


cdef class RowStore:
    """Rows over the features seen, one after the other."""

    def __init__(self, bint single):
        self.start.push_back(0)
        self.values = Values(single)

    cdef int append(self, const vector[double]* values,
                    const vector[int32_t]* places) except -1 nogil:
        self.values.append(values)
        self.places.insert(self.places.end(), places.begin(), places.end())
        self.start.push_back(self.places.size())
        return OK

    cdef Py_ssize_t count(self) noexcept nogil:
        return self.start.size() - 1

    cdef int read(self, size_t i, vector[double]* values,
                  vector[int32_t]* places) except -1 nogil:
        cdef int64_t j
        values.clear()
        for j in range(self.start[i], self.start[i + 1]):
            values.push_back(self.values.at(j))
        places.assign(self.places.begin() + self.start[i], self.places.begin() + self.start[i + 1])
        return OK

    cdef void clear(self) noexcept nogil:
        self.start.resize(1)
        self.places = vector[int32_t]()
        self.values.clear()

    cdef dict arrays(self):
        """A copy of the rows."""
        return {"start": as_array(self.start.data(), self.start.size(), np.int64),
                "places": as_array(self.places.data(), self.places.size(), np.int32),
                "values": self.values.array()}

    cdef int take_arrays(self, state, n_seen) except -1:
        """The other way round, for rows over the places from 1 to n_seen - 1."""
        n_stored = length_of(state, "places")
        take(self.start, "start", state, length_of(state, "start"))
        take(self.places, "places", state, n_stored)
        self.values.take_array("values", state, n_stored)
        require_starts("start", state["start"], n_stored)
        require_within("places", state["places"], 1, n_seen - 1)
        return OK


cdef int take_row(SeenSpace space, const RowScale* scale, const value_t* values,
                  const index_t* columns, Py_ssize_t nnz) except -1 nogil:
    """Make the augmented row, divided by its norm, the one at hand; new features get places."""
    cdef Py_ssize_t j, column
    cdef double value
    space.x.clear()
    space.at.clear()
    for j in range(nnz + (1 if space.bias else 0)):
        value = space.rows.values.stored(
            (values[j] if j < nnz else space.bias) * scale.factor / scale.norm)
        if value == 0.0:
            continue
        column = columns[j] if j < nnz else space.n_coordinates - 1
        if space.place[column] == 0:
            space.place[column] = space.n_seen
            space.n_seen += 1
        space.x.push_back(value)
        space.at.push_back(space.place[column])
    space.widen()
    return OK


cdef class SeenSpace:
    """What the spaces of matrix Perceptrons share: one label's weights, averages and counts.

    Parameters
    ----------
    n_features : int
    p : float
    bias : float
        Value of the intercept's coordinate; 0: there is none.
    single : bool
        Whether rows are stored as float32.
    averaged, normalized, logged : bool
        Whether the sum of the hypotheses is kept; whether they count with norm 1; whether
        corrections are logged, for hypotheses that are replayed.
    most_updates : int or None
        Corrections that may change the matrix; None: any number.
    solver : {"auto", "implicit", "primal"}
    room, primal_room : int
        Bytes the matrix may take; and its n x n form, where that is not asked for.
    """

    def __init__(self, **settings):
        self.settings = settings
        self.open(**settings)
        if self.primal:
            self.lay_out()

    def open(self, *, Py_ssize_t n_features, double p, double bias, bint single, bint averaged,
             bint normalized, bint logged, most_updates, solver, int64_t room,
             int64_t primal_room):
        self.p = p
        self.bias = bias
        self.n_coordinates = n_features + (1 if bias else 0)
        require(2.0 <= p <= MAX_P and self.n_coordinates > 0, "its settings are out of range")
        self.averaged, self.normalized, self.logged = averaged, normalized, logged
        self.most_updates = -1 if most_updates is None else most_updates
        self.automatic, self.primal = solver == "auto", solver == "primal"
        self.room, self.primal_room = room, primal_room
        self.limit = -1
        self.n_seen = 1
        self.predictor = None
        self.place_of = np.zeros(self.n_coordinates, dtype=np.int32)
        self.rows, self.logged_rows = RowStore(single), RowStore(single)
        self.w.resize(1)
        self.total.resize(1)
        self.v.resize(1)
        self.bind()

    cdef bind(self):
        cdef int32_t[::1] place = self.place_of
        self.place = &place[0]
        self.power = make_power(self.p)

    cdef Py_ssize_t stride(self) noexcept nogil:
        """Places there may ever be, for which the n x n form is laid out."""
        return self.n_coordinates + 1

    cdef int lay_out(self) except -1 nogil:
        """Go over to the n x n form."""
        return OK

    # -------------------------------------------------------------------------------- learning

    cdef int move(self, double step) except -1 nogil:
        """v <- v + step * x, the matrix with it, and w as it then is."""
        return OK

    cdef bint looks_ahead(self) noexcept nogil:
        """Whether products with rows to come are worth working out before their turn."""
        return False

    cdef double cost(self) noexcept nogil:
        """About how many multiplications the next correction takes."""
        return 0.0

    cdef void move_v(self, double step) noexcept nogil:
        """v <- v + step * x."""
        cdef size_t j
        cdef double before
        for j in range(self.at.size()):
            before = self.v[self.at[j]]
            self.v[self.at[j]] = before + step * self.x[j]
            self.nonzero += (self.v[self.at[j]] != 0.0) - (before != 0.0)

    cdef int widen(self) except -1 nogil:
        """Let the vectors reach as far as the places."""
        self.w.resize(self.n_seen)
        self.v.resize(self.n_seen)
        if self.averaged:
            self.total.resize(self.n_seen)
        return OK

    cdef int correct(self, double step, int64_t row) except -1 nogil:
        """A mistake on the row at hand, number `row`."""
        self.count_current()
        self.begin = self.trials
        if self.logged:
            self.logged_rows.append(&self.x, &self.at)
            self.logged_steps.push_back(step)
            self.logged_begins.push_back(self.begin)
        self.move(step)
        if self.nonzero == 0:
            # Rounding has left something of w, whose direction would tell.
            fill(self.w.begin(), self.w.end(), 0.0)
        self.unit = reciprocal_norm(self.w, self.p) if self.normalized else 1.0
        self.corrections += 1
        self.mistakes.push_back(row)
        return OK

    cdef void count_current(self) noexcept nogil:
        """Let the total take in the current vector for the trials it has lasted."""
        if self.averaged and self.trials > self.begin:
            add_multiple(self.total.data(), self.w.data(),
                         (self.trials - self.begin) * self.unit, self.total.size())

    cdef bint may_update(self, int64_t n_bytes) noexcept nogil:
        """Whether a correction may make the matrix larger by that much."""
        if 0 <= self.most_updates <= self.updates:
            return False
        self.full = self.full or n_bytes > self.room
        return not self.full

    cdef bint primal_pays(self, double cost, double primal_cost) noexcept nogil:
        """Whether it is time for the n x n form: it fits, and corrections have come to cost more
        without it."""
        cdef double side = self.stride()
        return (self.automatic and not self.primal and cost > primal_cost
                and 8.0 * side * side <= self.primal_room)

    # ----------------------------------------------------------------------------- for Python

    def count_trials(self, int64_t n):
        """Count n more trials that made no correction."""
        self.trials += n

    def resize(self, Py_ssize_t n_features, Py_ssize_t first=0):
        """As `LinearSpace.resize`.

        Raises
        ------
        ValueError
            If the n x n form would have no room.
        """
        cdef Py_ssize_t bias = 1 if self.bias else 0, side = n_features + bias + 1
        seen = self.seen_part()
        if self.primal and 8.0 * side * side > self.room:
            raise ValueError(
                f"An n x n matrix over {n_features} features would take "
                f"{8.0 * side * side / 2**30:.3g} GiB, more than it may. Begin anew with "
                "solver='implicit', or pass hash_bits."
            )
        start, first = max(-first, 0), max(first, 0)
        kept = min(n_features - start, self.n_coordinates - bias - first)
        fresh = np.zeros(n_features + bias, dtype=np.int32)
        fresh[start:start + kept] = self.place_of[first:first + kept]
        if bias:
            fresh[n_features] = self.place_of[self.n_coordinates - 1]
        self.settings = {**self.settings, "n_features": n_features}
        self.n_coordinates, self.place_of = n_features + bias, fresh
        self.bind()
        if self.primal:
            self.lay_seen_part(seen)

    def count_rows(self, int64_t n):
        """Count n more rows of a stream, by which its mistakes are numbered."""
        self.rows_taken += n

    def summed(self):
        """Sum of the hypotheses, each as often as it lasted, shape (n_coordinates,)."""
        summed = doubles(self.total) + (self.trials - self.begin) * self.unit * doubles(self.w)
        return summed[self.place_of]

    def take_sums(self, sums, int64_t trials):
        """Let the average have counted hypotheses that come to these sums, which are 0 for features
        not seen, in so many trials."""
        cdef const double[::1] by_coordinate = sums
        cdef Py_ssize_t i
        self.trials = self.begin = trials
        self.predictor = None
        fill(self.total.begin(), self.total.end(), 0.0)
        if self.averaged:
            for i in range(self.n_coordinates):
                if self.place[i]:
                    self.total[self.place[i]] = by_coordinate[i]

    @property
    def mistaken_rows(self):
        """Number of each mistake's row, shape (corrections,)."""
        return as_array(self.mistakes.data(), self.mistakes.size(), "i8")

    def hypothesis(self):
        """The vector that predicts, by place, shape (n_seen,); kept until the next trial."""
        cdef double current = self.unit
        moment = self.trials, self.corrections
        if self.predictor is not None and self.predictor[0] == moment:
            return self.predictor[1]
        vector = doubles(self.w)
        if self.averaged:
            current *= self.trials - self.begin
            vector = (doubles(self.total) + current * vector) / max(self.trials, 1)
        elif self.normalized:
            vector = vector * current
        self.predictor = moment, vector
        return vector

    def weights(self):
        """The vector that predicts, shape (n_coordinates,)."""
        return self.hypothesis()[self.place_of]

    @property
    def n_features(self):
        return self.n_coordinates - (1 if self.bias else 0)

    def rounding(self):
        """What weights may be off by, relative to the largest they have been."""
        return 2.0 ** -48

    def blank(self):
        """A space like this one before its first correction, to replay the log in."""
        return type(self)(**{**self.settings, "averaged": False, "logged": False})

    # ---------------------------------------------------------------------------------- copies

    def __reduce__(self):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __getstate__(self):
        return {
            "settings": self.settings, "primal": self.primal, "full": self.full,
            **{name: getattr(self, name) for name in COUNTS}, "begin": self.begin,
            "unit": self.unit, "nonzero": self.nonzero, "n_seen": self.n_seen,
            "place_of": self.place_of, "rows": self.rows.arrays(), "w": doubles(self.w),
            "total": doubles(self.total), "v": doubles(self.v), "matrix": self.seen_part(),
            "logged_rows": self.logged_rows.arrays(), "logged_steps": doubles(self.logged_steps),
            "logged_begins": as_array(self.logged_begins.data(), self.logged_begins.size(),
                                      np.int64),
            "mistakes": self.mistaken_rows,
        }

    def __setstate__(self, state):
        state = aligned(state)
        self.settings = part(state, "settings")
        whole(self.settings, "n_features", 0, length_of(state, "place_of"))
        try:
            self.open(**self.settings)
        except (TypeError, OverflowError) as error:
            require(False, f"its settings are no settings: {error}")
        self.take_counts(state)
        self.take_places(state)
        self.take_matrix(state)
        self.rows.take_arrays(part(state, "rows"), self.n_seen)
        self.take_log(state)
        self.bind()

    cdef int take_counts(self, state) except -1:
        self.full = flag(state, "full")
        self.trials = whole(state, "trials", 0, MAX_TRIALS)
        self.corrections = whole(state, "corrections", 0, MAX_TRIALS)
        self.updates = whole(state, "updates", 0, self.corrections)
        self.limit = whole(state, "limit", -1, MAX_TRIALS)
        self.rows_taken = whole(state, "rows_taken", 0, MAX_TRIALS)
        self.begin = whole(state, "begin", 0, self.trials)
        self.unit = real(state, "unit", -INFINITY, INFINITY)
        self.n_seen = whole(state, "n_seen", 1, min(self.n_coordinates + 1, INT32_MAX))
        self.nonzero = whole(state, "nonzero", 0, self.n_seen)
        return OK

    cdef int take_places(self, state) except -1:
        """The places, of which every one but the empty place 0 is of one coordinate; and the
        vectors over them."""
        cdef const int32_t[::1] place_of = array_of(
            state, "place_of", np.int32, (self.n_coordinates,))
        cdef vector[char] taken
        cdef Py_ssize_t i
        require(np.count_nonzero(state["place_of"]) == self.n_seen - 1,
                f"'place_of' has not {self.n_seen - 1} places")
        require_within("place_of", place_of, 0, self.n_seen - 1)
        taken.resize(self.n_seen)
        for i in range(self.n_coordinates):
            if taken[place_of[i]]:
                require(False, f"'place_of' holds {place_of[i]} twice")
            taken[place_of[i]] = place_of[i] != 0
        self.place_of = writable(state["place_of"])
        take(self.w, "w", state, self.n_seen)
        take(self.v, "v", state, self.n_seen)
        take(self.total, "total", state, self.n_seen if self.averaged else 1)
        return OK

    cdef seen_part(self):
        """The n x n form, as far as it is over the features seen."""
        cdef Py_ssize_t side = self.stride()
        if not self.primal:
            return np.zeros((0, 0))
        matrix = <double[:side, :side]> self.matrix.data()
        return np.asarray(matrix)[:self.n_seen, :self.n_seen].copy()

    cdef int take_matrix(self, state) except -1:
        """The other way round."""
        cdef Py_ssize_t side = self.stride(), n
        asked_for = self.primal
        self.primal = flag(state, "primal")
        require(self.automatic or self.primal == asked_for, "'primal' is not what 'solver' says")
        n = self.n_seen if self.primal else 0
        array_of(state, "matrix", np.float64, (n, n))
        if not self.primal:
            return OK
        require(8.0 * side * side <= self.room, "'matrix' has no room")
        self.lay_seen_part(state["matrix"])
        return OK

    cdef lay_seen_part(self, seen):
        """Make room for all places there may be, those seen being as given."""
        cdef Py_ssize_t side = self.stride()
        self.matrix.assign(side * side, 0.0)
        matrix = <double[:side, :side]> self.matrix.data()
        np.asarray(matrix)[:len(seen), :len(seen)] = seen

    cdef int take_log(self, state) except -1:
        n = self.corrections if self.logged else 0
        self.logged_rows.take_arrays(part(state, "logged_rows"), self.n_seen)
        require(self.logged_rows.count() == n, "'logged_rows' are not those of the corrections")
        take(self.logged_steps, "logged_steps", state, n)
        take(self.logged_begins, "logged_begins", state, n)
        require_within("logged_begins", state["logged_begins"], 0, MAX_TRIALS)
        take(self.mistakes, "mistakes", state, self.corrections)
        return OK


cdef double reciprocal_norm(const vector[double]& w, double p) noexcept nogil:
    """1 / ||w||_q; 0 where w is 0."""
    cdef double q = p / (p - 1.0), peak = 0.0, total = 0.0
    cdef size_t i
    for i in range(w.size()):
        peak = max(peak, fabs(w[i]))
    if peak == 0.0:
        return 0.0
    for i in range(w.size()):
        if w[i] != 0.0:
            total += pow(fabs(w[i]) / peak, q)
    return 1.0 / (peak * pow(total, 1.0 / q))


# -------------------------------------------------------------------------------------- replays

cdef class _Replay:
    """The vectors of a space as they were, one correction after the other, and what they say of
    test points, given as rows over the features seen."""

    cdef SeenSpace space
    cdef SeenSpace now
    cdef vector[double] w  # as long as the places of the points reach
    cdef vector[double] largest  # that each of these has been
    cdef double peak  # of these
    cdef double rounding
    cdef const double[::1] values
    cdef const int32_t[::1] places
    cdef const int64_t[::1] start

    def __init__(self, SeenSpace space, values, places, start):
        self.space, self.now = space, space.blank()
        self.values, self.places, self.start = values, places, start
        self.w.resize(space.n_seen)
        self.largest.resize(space.n_seen)
        self.rounding = space.rounding()

    cdef int make_correction(self, size_t e) except -1 nogil:
        cdef size_t j
        with gil:
            PyErr_CheckSignals()
        self.space.logged_rows.read(e, &self.now.x, &self.now.at)
        for j in range(self.now.at.size()):
            self.now.n_seen = max(self.now.n_seen, self.now.at[j] + 1)
        self.now.widen()
        self.now.correct(self.space.logged_steps[e], 0)
        copy(self.now.w.begin(), self.now.w.end(), self.w.begin())
        for j in range(self.now.w.size()):
            self.largest[j] = max(self.largest[j], fabs(self.w[j]))
            self.peak = max(self.peak, self.largest[j])
        return OK

    cdef int64_t end(self, size_t e) noexcept nogil:
        """Trials before the correction that ended what correction e began."""
        if e + 1 < self.space.logged_begins.size():
            return self.space.logged_begins[e + 1]
        return self.space.trials

    cdef double output(self, Py_ssize_t r) noexcept nogil:
        cdef int64_t j = self.start[r]
        return sparse_dot(&self.values[0] + j, &self.places[0] + j, self.start[r + 1] - j,
                          self.w.data())

    cdef double sign_of(self, Py_ssize_t r, double length) noexcept nogil:
        """That of the output of a row whose entries sum to `length`, sizes alone; 0 where rounding
        could have left it."""
        cdef int64_t j
        cdef double output = self.output(r), size = 0.0
        if fabs(output) <= self.rounding * self.peak * length:
            for j in range(self.start[r], self.start[r + 1]):
                size += fabs(self.values[j]) * self.largest[self.places[j]]
        return (output > self.rounding * size) - (output < -self.rounding * size)


def votes(SeenSpace space, values, places, start):
    """``sum_k c_k sign(w_k.x)`` for every point.

    Parameters
    ----------
    values, places, start : ndarray, float64, int32, int64
        The points as CSR arrays over the places of `space`.

    Returns
    -------
    ndarray of shape (n_points,)
    """
    cdef _Replay replay = _Replay(space, values, places, start)
    cdef Py_ssize_t r, n_points = len(start) - 1
    cdef size_t e
    cdef int64_t lasted
    result = np.zeros(n_points)
    cdef double[::1] out = result
    cdef const double[::1] lengths = np.diff(np.append(0.0, np.cumsum(np.abs(values)))[start])
    with nogil:
        for e in range(space.logged_begins.size()):
            replay.make_correction(e)
            lasted = replay.end(e) - space.logged_begins[e]
            if lasted > 0:
                for r in range(n_points):
                    out[r] += lasted * replay.sign_of(r, lengths[r])
    return result


def outputs_at(SeenSpace space, values, places, start, const int64_t[::1] slices):
    """``w.x`` with the vector that existed at each point's time slice, as `votes`."""
    cdef _Replay replay = _Replay(space, values, places, start)
    cdef const int64_t[::1] by_time = np.argsort(slices, kind="stable")
    cdef Py_ssize_t done = 0, n_points = by_time.shape[0]
    cdef size_t e, n_corrections = space.logged_begins.size()
    result = np.zeros(n_points)
    cdef double[::1] out = result
    with nogil:
        while n_corrections and done < n_points and (
                slices[by_time[done]] < space.logged_begins[0]):
            done += 1
        for e in range(n_corrections):
            replay.make_correction(e)
            while done < n_points and (e + 1 == n_corrections
                                       or slices[by_time[done]] < replay.end(e)):
                out[by_time[done]] = replay.now.unit * replay.output(by_time[done])
                done += 1
    return result
