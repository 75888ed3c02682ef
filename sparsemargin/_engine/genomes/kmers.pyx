"""Counts of the k-mers of sequences. K-mers with letters other than ACGTU are not counted."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine.state_arrays cimport as_array

# Two-bit codes of the letters of bases, and 4 for all other letters.
cdef uint8_t[256] BASES
BASES[:] = [4] * 256
for _code, _letters in enumerate(("Aa", "Cc", "Gg", "TtUu")):
    for _letter in _letters:
        BASES[ord(_letter)] = _code


def count_kmers(sequences, int k, bint canonical, int64_t n_columns):
    """Count the k-mers of each sequence, in a row of CSR form.

    Parameters
    ----------
    sequences : iterable of bytes
    k : int
        From 1 to 31.
    canonical : bool
        Whether a k-mer and its reverse complement are counted together, as the smaller code.
    n_columns : int
        4**k: the column of a k-mer is its code. Smaller: the column is a hash of the code.

    Returns
    -------
    counts, columns, ends : ndarray of float32, int64, int64
    """
    cdef const uint8_t[::1] letters
    cdef vector[uint64_t] codes, columns
    cdef vector[float] counts
    cdef vector[int64_t] ends
    cdef bint hashed = n_columns < (<int64_t> 1) << (2 * k)
    cdef size_t i
    ends.push_back(0)
    for sequence in sequences:
        letters = sequence
        with nogil:
            codes.clear()
            if letters.shape[0]:
                find_codes(&letters[0], letters.shape[0], k, canonical, codes)
            if hashed:
                for i in range(codes.size()):
                    codes[i] = mixed(codes[i]) % <uint64_t> n_columns
            add_row(codes, n_columns, columns, counts)
            ends.push_back(<int64_t> columns.size())
    return (
        as_array(counts.data(), counts.size(), np.float32),
        as_array(columns.data(), columns.size(), np.int64),
        as_array(ends.data(), ends.size(), np.int64),
    )


cdef uint64_t mixed(uint64_t code) noexcept nogil:
    """Hash a 64-bit code by a bijection: the finaliser of MurmurHash3."""
    code = (code ^ (code >> 33)) * <uint64_t> 0xff51afd7ed558ccd
    code = (code ^ (code >> 33)) * <uint64_t> 0xc4ceb9fe1a85ec53
    return code ^ (code >> 33)


cdef int find_codes(
    const uint8_t* letters, Py_ssize_t length, int k, bint canonical, vector[uint64_t]& codes
) except -1 nogil:
    cdef uint64_t forward = 0, backward = 0, base, mask = ((<uint64_t> 1) << (2 * k)) - 1
    cdef int n_bases = 0, shift = 2 * (k - 1)
    cdef Py_ssize_t i
    for i in range(length):
        base = BASES[letters[i]]
        if base > 3:
            n_bases = 0
            continue
        forward = ((forward << 2) | base) & mask
        backward = (backward >> 2) | ((3 - base) << shift)
        n_bases += 1
        if n_bases >= k:
            codes.push_back(min(forward, backward) if canonical else forward)
    return 0


cdef int add_row(
    vector[uint64_t]& codes, int64_t n_columns, vector[uint64_t]& columns, vector[float]& counts
) except -1 nogil:
    """Count each code, and store codes and counts in the order of the codes."""
    cdef vector[int32_t] table
    cdef size_t i
    if n_columns <= <int64_t> (4 * codes.size()):
        table.resize(n_columns)
        for i in range(codes.size()):
            table[codes[i]] += 1
        for i in range(table.size()):
            if table[i]:
                columns.push_back(i)
                counts.push_back(<float> table[i])
        return 0
    sort(codes.begin(), codes.end())
    for i in range(codes.size()):
        if i and codes[i] == codes[i - 1]:
            counts[counts.size() - 1] += 1
        else:
            columns.push_back(codes[i])
            counts.push_back(1)
    return 0
