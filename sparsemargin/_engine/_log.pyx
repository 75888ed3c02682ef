# distutils: extra_compile_args = -ffp-contract=off
"""The log of corrections that the vote and the random hypothesis are replayed from."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from sparsemargin._engine._types cimport index_t, value_t


cdef class CorrectionLog:
    """Corrections in the order they happened, and the rows they were made with.

    Memory: 48 bytes a correction and 16 bytes a nonzero of each row stored.
    """

    def __cinit__(self):
        self.row_start.push_back(0)

    def __len__(self):
        return self.corrections.size()

    cdef int64_t add_row(self, const value_t* values, const index_t* columns, Py_ssize_t nnz,
                         double bias, int64_t bias_column, double factor) except -1 nogil:
        """Store the augmented row times factor; its place in the pool."""
        cdef Py_ssize_t j
        for j in range(nnz):
            self.columns.push_back(columns[j])
            self.values.push_back(values[j] * factor)
        if bias:
            self.columns.push_back(bias_column)
            self.values.push_back(bias * factor)
        self.row_start.push_back(self.columns.size())
        return self.row_start.size() - 2

    def __getstate__(self):
        cdef size_t n = self.corrections.size() * sizeof(Correction)
        corrections = np.empty(n, dtype=np.uint8)
        cdef unsigned char[::1] raw = corrections
        if n:
            memcpy(&raw[0], self.corrections.data(), n)
        return {
            "corrections": corrections,
            "row_start": np.asarray(self.row_start),
            "columns": np.asarray(self.columns, dtype=np.int64),
            "values": np.asarray(self.values, dtype=np.float64),
        }

    def __setstate__(self, state):
        cdef const unsigned char[::1] raw = state["corrections"]
        self.corrections.resize(raw.shape[0] // sizeof(Correction))
        if raw.shape[0]:
            memcpy(self.corrections.data(), &raw[0], raw.shape[0])
        self.row_start = state["row_start"]
        self.columns = state["columns"]
        self.values = state["values"]
