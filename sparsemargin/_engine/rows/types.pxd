"""The types every kernel is compiled for, and the codes kernels report back."""

from libc.stdint cimport int32_t, int64_t

ctypedef fused value_t:  # entries of X
    float
    double

ctypedef fused state_t:  # coordinates of the learned vectors
    float
    double

ctypedef fused index_t:  # column indices and row pointers of X
    int32_t
    int64_t

cdef enum Status:
    OK
    NOT_FINITE  # a NaN or an infinity in the row
    OUT_OF_RANGE  # a column index that is negative or not below n_features
    NOT_CANONICAL  # a column stands twice in the row: `has_repeats` tells
    TOO_WIDE  # magnitudes too far apart for one floating-point vector to hold
    ALL_STOPPED  # every label has used up its corrections
