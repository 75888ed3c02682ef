"""Dot products of a row with the weights of labels, one or many side by side."""

from sparsemargin._engine.first_order.storage cimport Places
from sparsemargin._engine.rows.types cimport index_t, state_t, value_t

cdef int score_alone(double* out, const state_t* weights, const value_t* values,
                     const index_t* columns, Py_ssize_t nnz, Py_ssize_t n_features, double bias,
                     bint check, const value_t* next_values, const index_t* next_columns,
                     Py_ssize_t next_nnz) noexcept nogil
cdef void scores(double* out, const state_t* weights, Py_ssize_t width, Py_ssize_t first,
                 Py_ssize_t last, const value_t* values, const index_t* columns,
                 Py_ssize_t nnz, double bias, Py_ssize_t bias_column) noexcept nogil
cdef void label_scores(double* out, const state_t* like, const Places* at,
                       Py_ssize_t n_labels, Py_ssize_t first, Py_ssize_t last,
                       const value_t* values, const index_t* columns, Py_ssize_t nnz,
                       double bias, Py_ssize_t bias_column, const index_t* next_columns,
                       Py_ssize_t next_nnz) noexcept nogil
