"""A row as corrections use it: augmented, scaled, and with distinct columns."""

from libc.stdint cimport int64_t
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from sparsemargin._engine.numerics.arithmetic cimport Power
from sparsemargin._engine.rows.csr cimport ColumnMarks, Row, RowScale, measure
from sparsemargin._engine.rows.csr cimport index_t, value_t

cdef extern from *:
    """
    #include <utility>
    #include <vector>
    #include "rows/csr.hpp"
    struct Workspace {  // buffers for the current row
        std::vector<double> values, numbers, variances;
        std::vector<int64_t> columns;
        std::vector<std::pair<int64_t, double>> entries;
        sparsemargin::ColumnMarks marks;

        void reserve(size_t n) {
            if (columns.size() >= n) return;
            values.resize(2 * n), columns.resize(2 * n);
            numbers.resize(2 * n), variances.resize(2 * n);
        }
    };
    """
    cdef cppclass Workspace:
        vector[double] values
        vector[double] numbers
        vector[double] variances
        vector[int64_t] columns
        vector[pair[int64_t, double]] entries
        ColumnMarks marks
        void reserve(size_t n) except + nogil


cdef struct Instance:
    double bias  # value of the intercept's coordinate; 0: none
    Py_ssize_t bias_column
    double slack  # value of the row's soft-margin coordinate; 0: none
    double* slack_t  # soft-margin coordinate of this row in each vector; NULL: none
    RowScale scale
    const double* values  # times scale.factor; the intercept's value is the last one
    const int64_t* columns
    Py_ssize_t n
    double* numbers  # buffer for the previous values of the coordinates
    double* variances  # buffer for the variances of the coordinates


cdef inline bint make_instance(Workspace& work, Instance* x, const Power* p,
                               const Row[value_t, index_t]& row, RowScale* known,
                               bint repeats) except -1 nogil:
    """Fill `x`, whose bias and slack are set, from the row. Return False if the row is zero.

    `known` caches the measures of the row; norm 0 means that it has not been measured.
    """
    cdef Row[double, int64_t] merged
    cdef Py_ssize_t j, n = row.nnz
    if repeats:
        merge_repeats(work, row, &merged)
        if not measure(&x.scale, p, merged, x.bias, x.slack):
            return False
        n = merged.nnz
        for j in range(n):
            work.values[j] *= x.scale.factor
    else:
        if not known.norm > 0.0 and not measure(known, p, row, x.bias, x.slack):
            known.norm = 0.0
            return False
        x.scale = known[0]
        work.reserve(n + 1)
        copy_scaled(work.values.data(), work.columns.data(), row, x.scale.factor)
    if x.bias:
        work.values[n] = x.bias * x.scale.factor
        work.columns[n] = x.bias_column
        n += 1
    x.slack *= x.scale.factor
    point(work, x, n)
    return True


cdef inline void copy_scaled(double* values, int64_t* columns, const Row[value_t, index_t]& row,
                             double factor) noexcept nogil:
    cdef const value_t* of_values = row.values
    cdef const index_t* of_columns = row.columns
    cdef Py_ssize_t j
    for j in range(row.nnz):
        values[j] = of_values[j] * factor
    for j in range(row.nnz):
        columns[j] = of_columns[j]


cdef inline void point(Workspace& work, Instance* x, Py_ssize_t n) noexcept nogil:
    x.values, x.columns, x.n = work.values.data(), work.columns.data(), n
    x.numbers, x.variances = work.numbers.data(), work.variances.data()


cdef inline int merge_repeats(Workspace& work, const Row[value_t, index_t]& row,
                              Row[double, int64_t]* merged) except -1 nogil:
    """Set `merged` to the row with sorted, distinct columns. Values of equal columns are added."""
    cdef Py_ssize_t j, n = 0
    work.entries.resize(row.nnz)
    for j in range(row.nnz):
        work.entries[j].first, work.entries[j].second = row.columns[j], row.values[j]
    sort(work.entries.begin(), work.entries.end())
    work.reserve(row.nnz + 1)
    for j in range(row.nnz):
        if n and work.columns[n - 1] == work.entries[j].first:
            work.values[n - 1] += work.entries[j].second
        else:
            work.columns[n], work.values[n] = work.entries[j].first, work.entries[j].second
            n += 1
    merged.values, merged.columns, merged.nnz = work.values.data(), work.columns.data(), n
    return 0


cdef inline int make_pair(Workspace& work, Instance* x, Py_ssize_t n_classes, Py_ssize_t plus,
                          Py_ssize_t minus) except -1 nogil:
    """Turn the instance into the difference of two classes: the row for class `plus` and its
    negative for class `minus`. The caller adapts the norm; the smallest value does not change."""
    cdef Py_ssize_t j, n = x.n
    work.reserve(2 * n)
    for j in range(n):
        work.values[n + j] = -work.values[j]
        work.columns[n + j] = work.columns[j] * n_classes + minus
        work.columns[j] = work.columns[j] * n_classes + plus
    point(work, x, 2 * n)
    return 0
