"""Rows of CSR matrices made svmlight text: the way back from `_scan`."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from sparsemargin._engine.rows.types cimport index_t, value_t

cdef extern from "<charconv>" namespace "std" nogil:
    cppclass to_chars_result:
        char* ptr

    to_chars_result to_chars(char*, char*, int64_t)
    to_chars_result to_chars(char*, char*, double)

cdef enum:
    # " 9223372036854775807:-2.2250738585072014e-308" is the longest entry.
    LONGEST_ENTRY = 48


def text_of_rows(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                 const unsigned char[::1] heads, const int64_t[::1] head_ends, int64_t first):
    """A line for each row.

    Parameters
    ----------
    data, indices, indptr : arrays
        Sound rows of a CSR matrix.
    heads : array of uint8
        What the lines begin with, one after the other: labels.
    head_ends : array of int64, shape (n_rows,)
        Where each of them ends in `heads`; rising.
    first : int
        The index of column 0.

    Returns
    -------
    text : array of uint8
        Every value in the fewest digits that give it back as a double.
    """
    cdef int64_t n_rows = indptr.shape[0] - 1, row, entry, start = 0
    cdef int64_t n_entries = indptr[n_rows] - indptr[0]
    text = np.empty(heads.shape[0] + n_rows + n_entries * LONGEST_ENTRY + LONGEST_ENTRY, np.uint8)
    cdef unsigned char[::1] room = text
    cdef char* begin = <char*> &room[0]
    cdef char* at = begin
    with nogil:
        for row in range(n_rows):
            if head_ends[row] > start:
                memcpy(at, &heads[start], head_ends[row] - start)
                at += head_ends[row] - start
                start = head_ends[row]
            for entry in range(indptr[row], indptr[row + 1]):
                at[0] = 32
                at = to_chars(at + 1, at + LONGEST_ENTRY, <int64_t> indices[entry] + first).ptr
                at[0] = 58
                at = to_chars(at + 1, at + LONGEST_ENTRY, <double> data[entry]).ptr
            at[0] = 10
            at += 1
    return text[:at - begin]
