"""Functions that renumber the columns of rows of counts, or weight them by TF-IDF."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libcpp.vector cimport vector

import numpy as np

ctypedef fused number_t:
    int32_t
    int64_t
    float
    double

ctypedef fused real_t:
    float
    double

cdef extern from "order.hpp" namespace "sparsemargin::text" nogil:
    void cpp_renumber "sparsemargin::text::renumber"[Value](
        const int32_t*, const int32_t*, const int64_t*, size_t, const uint32_t*, size_t,
        int32_t*, Value*) except +

cdef extern from "weighing.hpp" namespace "sparsemargin::text" nogil:
    cppclass CppCounted "sparsemargin::text::Counted":
        const int32_t* counts
        const int32_t* numbers
        const int64_t* ends
        const int32_t* items
        const int64_t* item_ends
        int64_t last

    void cpp_count_rows "sparsemargin::text::count_rows"(
        const CppCounted&, int64_t, int64_t, int32_t*) except +

    cppclass Family[Value]:
        CppCounted rows
        int64_t n_terms
        const int32_t* columns
        const Value* idf
        int32_t offset

    cppclass Weighing[Value]:
        Weighing(const Value*, int64_t, int) except +
        int64_t largest
        int64_t weigh(const vector[Family[Value]]&, int64_t, int64_t, int32_t*, Value*,
                      int64_t*) except +

NORMS = {None: 0, "l1": 1, "l2": 2}


cdef class Counted:
    """Rows of counts of terms, or of words that contain several terms each.

    Row i has the counts ``counts[ends[i]:ends[i + 1]]`` of the terms in the same slice of `numbers`
    (arrays of int32, `ends` of int64). Numbers of terms are below `n_terms`. With `items`,
    `numbers` are those of words, and the terms of word i are
    ``items[item_ends[i]:item_ends[i + 1]]``.
    """

    cdef CppCounted rows
    cdef object kept  # references to the arrays, which keep them alive
    cdef readonly int64_t n_rows, n_terms

    def __init__(self, const int32_t[::1] counts, const int32_t[::1] numbers,
                 const int64_t[::1] ends, int64_t n_terms, const int32_t[::1] items=None,
                 const int64_t[::1] item_ends=None):
        cdef int64_t n = n_terms
        self.n_rows, self.n_terms = ends.shape[0] - 1, n_terms
        self.kept = counts, numbers, ends, items, item_ends
        self.rows.items = NULL
        if items is not None:
            n = item_ends.shape[0] - 1
            check_ends(item_ends, items.shape[0])
            check_numbers(items, n_terms)
            self.rows.items = &items[0] if items.shape[0] else NULL
            self.rows.item_ends = &item_ends[0]
        check_ends(ends, min(counts.shape[0], numbers.shape[0]))
        check_numbers(numbers, n)
        self.rows.counts = &counts[0] if counts.shape[0] else NULL
        self.rows.numbers = &numbers[0] if numbers.shape[0] else NULL
        self.rows.ends = &ends[0]
        self.rows.last = ends[self.n_rows] - 1

    def n_rows_with(self):
        """Return the number of rows that contain each term, as int32."""
        cdef int32_t[::1] n = np.zeros(self.n_terms, np.int32)
        if self.n_terms:
            with nogil:
                cpp_count_rows(self.rows, self.n_rows, self.n_terms, &n[0])
        return np.asarray(n)


cdef int check_ends(const int64_t[::1] ends, int64_t n) except -1:
    cdef int64_t i, n_rows = ends.shape[0] - 1
    cdef uint32_t wrong = n_rows < 0 or ends[0] < 0 or ends[n_rows] > n
    for i in range(n_rows):
        wrong |= ends[i] > ends[i + 1]
    if wrong:
        raise ValueError(f"rows of {n} entries end elsewhere, or fall")
    return 0


cdef int check_numbers(const int32_t[::1] numbers, int64_t n) except -1:
    cdef int64_t i
    cdef uint32_t wrong = 0
    for i in range(numbers.shape[0]):
        wrong |= not 0 <= numbers[i] < n
    if wrong:
        raise ValueError(f"a number is not below {n}")
    return 0


def weigh(families, logs, norm, int32_t[::1] columns_out, real_t[::1] values, int64_t[::1] ends):
    """Write rows of weights, with the weights of several families of terms side by side.

    Parameters
    ----------
    families : list of tuple
        For each family: its `Counted` rows; the column of each term, or -1 if it has none (array of
        int32); the inverse document frequency of each term (array of the type of `values`); and an
        offset that is added to the columns. Without items in the rows, the two arrays may be None.
        The numbers of terms are then the columns, and weights are not multiplied.
    logs : array or None
        ``1 + log(i)`` for each count i, which replaces the count. None: counts are not replaced.
    norm : {"l1", "l2", None}
        Norm by which each family's part of a row is divided.
    columns_out, values, ends : arrays
        Arrays for the results. `ends` has the number of rows as its size, the other two the number
        of entries.

    Returns
    -------
    largest : int
        The largest count for which `logs` is too short; the values are then wrong. Otherwise 0.
    """
    cdef vector[Family[real_t]] all_families
    cdef Family[real_t] family
    cdef const int32_t[::1] columns
    cdef const real_t[::1] idf, all_logs = logs
    cdef Counted counted
    cdef int64_t n, n_rows = ends.shape[0], room = min(columns_out.shape[0], values.shape[0])
    cdef Weighing[real_t]* weighing
    for counted, columns, idf, family.offset in families:
        n = counted.n_terms
        if counted.n_rows != n_rows or (columns is not None and columns.shape[0] != n) or (
                idf is not None and idf.shape[0] != n):
            raise ValueError(f"{n} terms in {n_rows} rows: other numbers of columns or rows")
        if counted.rows.items and (columns is None or idf is None):
            raise ValueError("terms in words need columns and weights")
        family.rows, family.n_terms = counted.rows, n
        family.columns = &columns[0] if columns is not None and n else NULL
        family.idf = &idf[0] if idf is not None and n else NULL
        all_families.push_back(family)
    if not n_rows:
        return 0
    weighing = new Weighing[real_t](
        &all_logs[0] if logs is not None else NULL, all_logs.shape[0] if logs is not None else 0,
        <int> NORMS[norm])
    try:
        with nogil:
            n = weighing.weigh(
                all_families, n_rows, room, &columns_out[0] if room else NULL,
                &values[0] if room else NULL, &ends[0])
        if n != room:
            raise ValueError(f"there is room for {room} entries")
        return weighing.largest
    finally:
        del weighing


def renumber(const int32_t[::1] counts, const int32_t[::1] columns, const int64_t[::1] indptr,
             const uint32_t[::1] numbers, int64_t n_numbers, int32_t[::1] new_columns,
             number_t[::1] values):
    """Replace the columns of rows by their `numbers`, sort the entries of each row, and write them
    to `new_columns` and `values`."""
    cdef int64_t i, n = counts.shape[0], n_rows = indptr.shape[0] - 1
    check_ends(indptr, min(n, min(columns.shape[0], min(new_columns.shape[0], values.shape[0]))))
    check_numbers(columns, numbers.shape[0])
    for i in range(numbers.shape[0]):
        if numbers[i] >= n_numbers:
            raise ValueError(f"a number is not below {n_numbers}")
    if n:
        with nogil:
            cpp_renumber(&counts[0], &columns[0], &indptr[0], n_rows, &numbers[0],
                         n_numbers, &new_columns[0], &values[0])
