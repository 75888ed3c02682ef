"""The log of corrections, from which voted and random hypotheses are replayed."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

import copyreg

import numpy as np

from sparsemargin._engine.state_arrays cimport as_array, to_array, take
from sparsemargin._engine.rows.csr cimport index_t, value_t

from sparsemargin._engine.state import MAX_TRIALS, array_of, require_starts, require_within

# The dtype of the struct `Correction`, with the compiler's memory layout.
ENTRY = np.dtype([
    ("row", np.int64), ("start", np.int64), ("coefficient", np.float64), ("unit", np.float64),
    ("norm", np.float64), ("vector", np.int32), ("shift_before", np.int32),
    ("shift_after", np.int32),
], align=True)


cdef class CorrectionLog:
    """Corrections in the order in which they were made, and the rows used.

    Memory: 56 bytes per correction. The linear space also needs 16 bytes per nonzero of each stored
    row; the kernel space has its rows in the support set.
    """

    def __cinit__(self):
        self.row_start.push_back(0)

    def __len__(self):
        return self.corrections.size()

    cdef int64_t add_row(self, const value_t* values, const index_t* columns, Py_ssize_t nnz,
                         double bias, int64_t bias_column, double factor) except -1 nogil:
        """Store the augmented row times `factor` and return its index among the stored rows."""
        cdef Py_ssize_t j
        for j in range(nnz):
            self.columns.push_back(columns[j])
            self.values.push_back(values[j] * factor)
        if bias:
            self.columns.push_back(bias_column)
            self.values.push_back(bias * factor)
        self.row_start.push_back(self.columns.size())
        return self.row_start.size() - 2

    def entries(self):
        """The corrections as a dict of arrays, one per field."""
        entries = as_array(self.corrections.data(), self.corrections.size(), ENTRY)
        return {name: np.ascontiguousarray(entries[name]) for name in ENTRY.names}

    def __getstate__(self):
        return {
            **self.entries(),
            "row_start": to_array(self.row_start),
            "columns": to_array(self.columns),
            "values": to_array(self.values),
        }

    def __reduce__(self):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __setstate__(self, state):
        take(self.columns, "columns", state, None)
        take(self.row_start, "row_start", state, None)
        take(self.values, "values", state, self.columns.size())
        require_starts("row_start", state["row_start"], self.columns.size())
        self.take_corrections(state, <int64_t> self.row_start.size() - 1)

    cdef int take_corrections(self, state, int64_t n_rows) except -1:
        """Restore the corrections from the result of `entries`; `n_rows` rows are stored."""
        n = len(array_of(state, "row", np.int64, (None,)))
        entries = np.zeros(n, ENTRY)
        for name in ENTRY.names:
            entries[name] = array_of(state, name, ENTRY[name], (n,))
        require_within("row", state["row"], 0, n_rows - 1)
        require_within("start", state["start"], 0, MAX_TRIALS)
        cdef const unsigned char[::1] raw = entries.view(np.uint8)
        self.corrections.resize(n)
        if n:
            memcpy(self.corrections.data(), &raw[0], raw.shape[0])
        return 0
